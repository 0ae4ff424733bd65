"""One winner for both layouts of B."""
from _parts import tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, ["m", "n", "k", "IEEE"])
