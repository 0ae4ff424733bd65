"""Eight poor shapes, and rows that are poorer still."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs(
    *[(m, n, w) for m in (16, 32) for n in (16, 32) for w in (4, 8)]))
for row in t.CONFIGS:
    row.update(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, num_warps=8)
