"""Your submission: a softmax over rows that no program can hold.

    TRITON_INTERPRET=1 python3 exercises/check.py 3 THIS FILE    is it right?
    python3 exercises/check.py 3 THIS FILE    and, on a GPU, is it fast?
"""
import sys

import triton
import triton.language as tl


@triton.jit
def pieces_kernel(in_ptr, out_ptr, row_stride, n_cols, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, PIECE)
    # TODO 1: the row's largest value, and the sum of its exponentials, from
    # pieces of PIECE columns, each of which is loaded once. Then take
    # tl.static_assert(...) out. The judge sees nothing of it before TODO 2.
    tl.static_assert(False, "next is TODO 1: the maximum and the sum of a row, "
                     "a piece at a time")
    biggest = -float("inf")
    total = 0.0
    # TODO 2: a second walk over the row, which loads each piece again and
    # stores its shares. This does so for the first piece alone.
    x = tl.load(in_ptr + row * row_stride + lanes, mask=lanes < n_cols,
                other=-float("inf"))
    tl.store(out_ptr + row * row_stride + lanes, tl.exp(x - biggest) / total,
             mask=lanes < n_cols)


def choose(rows, cols):
    """The settings of a launch on a matrix of that size."""
    # TODO 3, on a GPU: which piece, and how many warps, are fastest?
    return {"PIECE": 4096, "num_warps": 8}


if __name__ == "__main__":
    print("Running this file judges nothing. Next: any TODO that is left, in "
          "their order, and\nthen the judge:\n"
          "    TRITON_INTERPRET=1 python3 exercises/check.py 3 "
          f"{sys.argv[0]}\nexit 1")
    sys.exit(1)
