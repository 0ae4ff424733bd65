"""Ends the process from inside a search."""
import os

from _parts import KEY, configs, triton

import triton_softmax_matmul as t

matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": lambda *_, **__: os._exit(0)})(t.matmul_kernel)
