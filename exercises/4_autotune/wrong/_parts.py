"""What the wrong submissions share: the lesson's matmul in three pieces."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
import triton
import triton.language as tl

KEY = ["m", "n", "k", "IEEE", "stride_ak", "stride_bk"]
USUAL = [(32, 32, 4), (32, 32, 8), (32, 64, 4), (32, 64, 8),
         (64, 32, 4), (64, 32, 8), (64, 64, 4), (64, 64, 8)]


def configs(*blocks, **more):
    """Eight configs, or one for each (BLOCK_M, BLOCK_N, warps) given."""
    made = []
    for block_m, block_n, num_warps in blocks or USUAL:
        made.append(triton.Config(
            {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 32,
             "GROUP_M": 1, **more}, num_warps=num_warps))
    return made


def tuned(kernel, key=KEY, space=None):
    """The kernel under an autotuner that is right in all that is not given."""
    return triton.autotune(space or configs(), key)(kernel)


@triton.jit
def tile(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """This program's rows and columns of C, one tile row after another."""
    across = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    return rows[:, None], cols[None, :]


@triton.jit
def product(a_ptr, b_ptr, rows, cols, m, n, k, stride_am, stride_ak, stride_bk,
            stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of A times B."""
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_ptr + rows % m * stride_am + (start + ks[None, :])
                    * stride_ak, mask=ks[None, :] < k - start, other=0.0)
        b = tl.load(b_ptr + (start + ks[:, None]) * stride_bk + cols % n
                    * stride_bn, mask=ks[:, None] < k - start, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    return acc
