"""Your submission: a softmax of which a program does several rows.

    TRITON_INTERPRET=1 python3 exercises/check.py 2 THIS FILE    is it right?
    python3 exercises/check.py 2 THIS FILE    and, on a GPU, is it fast?
"""
import sys

import triton
import triton.language as tl


@triton.jit
def rows_kernel(in_ptr, out_ptr, row_stride, n_rows, n_cols,
                BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    # So far this is the lesson's kernel: program 7 does row 7, and no other.
    # TODO 1: let program 7 do BLOCK_ROWS rows, from row 7 * BLOCK_ROWS on, as
    # one block with two axes. Then take tl.static_assert(...) out.
    tl.static_assert(BLOCK_ROWS == 1, "next is TODO 1: a program has to do "
                     "BLOCK_ROWS rows, and this kernel does one")
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)


def choose(rows, cols):
    """The settings of a launch on a matrix of that size."""
    # TODO 2: a power of two of rows, the more of them the narrower they are.
    return {"BLOCK_ROWS": 1, "num_warps": 4}


if __name__ == "__main__":
    taken = choose(1000, 32)["BLOCK_ROWS"]
    print("Running this file judges nothing. At 32 columns a program takes "
          f"{taken} of the rows.\nNext: any TODO that is left, and then the "
          "judge:\n    TRITON_INTERPRET=1 python3 exercises/check.py 2 "
          f"{sys.argv[0]}\nexit 1")
    sys.exit(1)
