"""Plain dicts where triton.Config is wanted."""
from _parts import KEY, triton

import triton_softmax_matmul as t

matmul_kernel = triton.autotune(t.CONFIGS * 3, KEY)(t.matmul_kernel)
