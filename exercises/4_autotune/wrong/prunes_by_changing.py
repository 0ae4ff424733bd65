"""Pruning that changes the configs it is given."""
from _parts import KEY, configs, triton

import triton_softmax_matmul as t


def prune(configs, named_args, **settings):
    """All of them, with twice the warps."""
    for config in configs:
        config.num_warps *= 2
    return configs


matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": prune})(t.matmul_kernel)
