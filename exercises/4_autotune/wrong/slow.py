"""Eight poor shapes."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs(
    *[(m, n, w) for m in (16, 32) for n in (16, 32) for w in (4, 8)]))
