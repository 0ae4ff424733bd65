"""Numbers under 1e-20 are counted as 0."""
import triton
import triton.language as tl
from _parts import tile, tuned


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr):
    rows, cols = tile(m, n, BLOCK_M, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_ptr + rows % m * stride_am + (start + ks[None, :])
                    * stride_ak, mask=ks[None, :] < k - start, other=0.0)
        b = tl.load(b_ptr + (start + ks[:, None]) * stride_bk + cols % n
                    * stride_bn, mask=ks[:, None] < k - start, other=0.0)
        a = tl.where(tl.abs(a) < 1e-20, 0.0, a)
        acc = tl.dot(a, b, acc, input_precision="ieee" if IEEE else "tf32")
    at = c_ptr + rows * stride_cm + cols * stride_cn
    tl.store(at, acc, mask=(rows < m) & (cols < n))


matmul_kernel = tuned(matmul_kernel)
