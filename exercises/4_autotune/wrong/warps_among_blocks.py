"""num_warps among the block sizes, where it is no option."""
from _parts import triton, tuned

import triton_softmax_matmul as t

space = []
for block_m in (32, 64):
    for block_n in (32, 64):
        for num_warps in (4, 8):
            space.append(triton.Config({
                "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 32,
                "GROUP_M": 1, "num_warps": num_warps}))
matmul_kernel = tuned(t.matmul_kernel, space=space)
