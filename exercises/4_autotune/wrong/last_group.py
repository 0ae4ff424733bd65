"""Takes every group of tile rows for a full one."""
import triton
import triton.language as tl
from _parts import configs, product, tuned


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    pid_m = pid // per_group * GROUP_M + pid % per_group % GROUP_M
    pid_n = pid % per_group // GROUP_M
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = product(a_ptr, b_ptr, rows, cols, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K,
                  "ieee" if IEEE else "tf32")
    at = c_ptr + rows * stride_cm + cols * stride_cn
    tl.store(at, acc, mask=(rows < m) & (cols < n))



space = configs()
for config in space:
    config.kwargs["GROUP_M"] = 3
matmul_kernel = tuned(matmul_kernel, space=space)
