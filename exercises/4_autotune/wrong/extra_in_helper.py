"""The same, with the constexpr handed on to a helper."""
import triton
import triton.language as tl
from _parts import configs, product, tile, tuned


@triton.jit
def tile_of(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            EXTRA: tl.constexpr):
    if EXTRA < 0:
        m = m + EXTRA
    return tile(m, n, BLOCK_M, BLOCK_N)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr, EXTRA: tl.constexpr):
    rows, cols = tile_of(m, n, BLOCK_M, BLOCK_N, EXTRA)
    acc = product(a_ptr, b_ptr, rows, cols, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K,
                  "ieee" if IEEE else "tf32")
    at = c_ptr + rows * stride_cm + cols * stride_cn
    tl.store(at, acc, mask=(rows < m) & (cols < n))


space = []
for extra in range(8):
    space += configs((32, 32, 4), EXTRA=extra)
matmul_kernel = tuned(matmul_kernel, space=space)
