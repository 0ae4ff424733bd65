"""Eight poor shapes, and rows that are poorer still."""
from _parts import configs, tuned

import triton_softmax_matmul as t

SLOW = []
for block_m in (16, 32):
    for block_n in (16, 32):
        for num_warps in (4, 8):
            SLOW.append((block_m, block_n, num_warps))
matmul_kernel = tuned(t.matmul_kernel, space=configs(*SLOW))
for row in t.CONFIGS:
    row.update(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, num_warps=8)
