"""Writes NaN where a tile hangs over C."""
import triton
import triton.language as tl
from _parts import product, tile, tuned


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr):
    rows, cols = tile(m, n, BLOCK_M, BLOCK_N)
    acc = product(a_ptr, b_ptr, rows, cols, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K,
                  "ieee" if IEEE else "tf32")
    at = c_ptr + rows * stride_cm + cols * stride_cn
    inside = (rows < m) & (cols < n)
    tl.store(at, tl.where(inside, acc, float("nan")))


matmul_kernel = tuned(matmul_kernel)
