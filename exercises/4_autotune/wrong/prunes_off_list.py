"""Pruning that brings in, at 2048, a config that is on no list."""
from _parts import KEY, configs, triton

import triton_softmax_matmul as t


def prune(configs, named_args, **settings):
    """The given ones, but for the size that is timed."""
    if named_args["m"] == 2048:
        return [triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32,
                               "GROUP_M": 4})]
    return configs


matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": prune})(t.matmul_kernel)
