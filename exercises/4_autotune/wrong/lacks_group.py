"""Configs without GROUP_M."""
from _parts import configs, tuned

import triton_softmax_matmul as t

space = configs()
for config in space:
    del config.kwargs["GROUP_M"]
matmul_kernel = tuned(t.matmul_kernel, space=space)
