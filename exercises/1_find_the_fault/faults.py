"""Twelve kernels with a mistake in each, to be found and mended.

    TRITON_INTERPRET=1 python3 exercises/check.py 1 THIS FILE    judges them all

Each is the lesson's softmax or matmul but for one place, or two that belong
together. Above it stand what its users saw, and where somebody reported a
mistake of that kind.
"""
import sys

import triton
import triton.language as tl


# softmax_1. Where all values of a row are far below 0, say near -50, the row
# comes out as zeros, or nearly so. Rows of ordinary numbers are off as well,
# by less.
# https://github.com/vllm-project/vllm/pull/55009
@triton.jit
def softmax_1(in_ptr, out_ptr, row_stride, n_cols,
              BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=0.0)
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)


# softmax_2. Right for numbers of an ordinary size. Where a row holds numbers
# like 3000 it comes out as NaN, and where all are near -3000, too.
# https://github.com/triton-lang/triton/issues/230
@triton.jit
def softmax_2(in_ptr, out_ptr, row_stride, n_cols,
              BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=-float("inf"))
    shifted = x - tl.max(x, axis=0)
    num = tl.exp(x)
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)


# softmax_3. Right for a matrix whose rows follow each other without a gap.
# For the left half of a wider matrix, all rows but the first are wrong.
# https://github.com/ROCm/rocm-libraries/issues/11387
@triton.jit
def softmax_3(in_ptr, out_ptr, row_stride, n_cols,
              BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * n_cols + cols, mask=mask,
                other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, num / tl.sum(num, axis=0),
             mask=mask)


# softmax_4. Right in every test, until a matrix is so large that a row
# begins 2^31 elements behind the first: then it reads and writes somewhere
# else, or ends the process.
# https://github.com/triton-lang/triton/issues/832
@triton.jit
def softmax_4(in_ptr, out_ptr, row_stride, n_cols,
              BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)


# matmul_1. Right where k is a multiple of BLOCK_K. Otherwise every element
# may be wrong, or NaN, or right after all, depending on what lies behind the
# matrices.
# https://github.com/triton-lang/triton/issues/630
@triton.jit
def matmul_1(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_2. The numbers are right every time. Now and then the process dies
# of an illegal memory access, at sizes that are no multiple of the block.
# https://github.com/triton-lang/triton/issues/770
@triton.jit
def matmul_2(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_3. Where n is no multiple of BLOCK_N, some elements at the beginning
# of rows are wrong, others at each run, and what lies behind the result is
# overwritten.
# https://github.com/huggingface/kernels-community/issues/1153
@triton.jit
def matmul_3(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = offs_m < m
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_4. Right at many sizes. At others some tiles in the lower rows of C
# are never written, depending on m and on GROUP_M.
# https://github.com/ROCm/FlyDSL/pull/979
@triton.jit
def matmul_4(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = GROUP_M
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_5. Right for a result that torch.empty has just made. Written into a
# part of a larger matrix, or into a transposed one, the numbers land in
# wrong places.
# https://github.com/pytorch/FBGEMM/issues/2713
@triton.jit
def matmul_5(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * n + offs_n
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_6. Under the interpreter every number is right. On a GPU half of the
# whole numbers up to 8191 change when they are multiplied by 1, although
# ieee was asked for.
# https://github.com/thinking-machines-lab/batch_invariant_ops/issues/23
@triton.jit
def matmul_6(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc)
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_7. Right where k is at most BLOCK_K. For a longer k the result is
# that of the last columns of A alone.
# https://github.com/tile-ai/tilelang/issues/2627
@triton.jit
def matmul_7(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# matmul_8. Right the first time, if the result's memory happens to be full
# of zeros. The next call into the same memory gives the sum of both
# products, and fresh memory gives anything.
# https://github.com/triton-lang/triton/issues/2183
@triton.jit
def matmul_8(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
             stride_bk, stride_bn, stride_cm, stride_cn,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
             IEEE: tl.constexpr):
    # Which tile is mine?
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Where do its operands lie?
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # Along K, a step at a time.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # Where does the result belong?
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.atomic_add(c_ptrs, acc, mask=c_mask)


if __name__ == "__main__":
    print("Running this file judges nothing. Next: read the symptom of "
          "softmax_1, find the\nline that explains it, mend it, and have the "
          "judge look:\n    TRITON_INTERPRET=1 python3 exercises/check.py 1 "
          f"{sys.argv[0]}\nexit 1")
    sys.exit(1)
