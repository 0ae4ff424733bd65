"""Pruning that leaves nothing where k is odd."""
from _parts import KEY, configs, triton

import triton_softmax_matmul as t


def prune(configs, named_args, **settings):
    """Those whose BLOCK_K divides k."""
    return [config for config in configs
            if named_args["k"] % config.kwargs["BLOCK_K"] == 0]


matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": prune})(t.matmul_kernel)
