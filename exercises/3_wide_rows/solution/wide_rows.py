"""A softmax over rows of any width, in pieces.

    python3 exercises/3_wide_rows/solution/wide_rows.py    on a GPU, what other
        pieces, and other numbers of warps, take
"""
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
import triton
import triton.language as tl

import triton_softmax_matmul as t

# float32's lowest number that is not -inf. A maximum that begins here is never
# -inf, so nothing below subtracts -inf from -inf, which is NaN. In a row that
# is all -inf every exponential is 0, and so is the sum; 0 / 0 is the NaN that
# is right there.
LOWEST = tl.constexpr(-(2.0 - 2.0**-23) * 2.0**127)


@triton.jit
def pieces_kernel(in_ptr, out_ptr, row_stride, n_cols, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    out_row = out_ptr + row * row_stride
    lanes = tl.arange(0, PIECE)
    # Each lane has a maximum and a sum of its own, over every PIECE-th column,
    # so that in the first walk no thread waits for another.
    biggest = tl.full((PIECE,), LOWEST, tl.float32)
    total = tl.zeros((PIECE,), tl.float32)
    for start in range(0, n_cols, PIECE):
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        # If x is the larger, what was summed so far shrinks by
        # exp(biggest - x), and x itself counts 1. If not, x counts
        # exp(x - biggest). Both are exp of minus the distance.
        above = x - biggest
        share = tl.exp(-tl.abs(above))
        total = tl.where(above > 0, total * share + 1, total + share)
        biggest = tl.maximum(biggest, x)
    # Now the lanes are brought together, once a row.
    top = tl.max(biggest, axis=0)
    whole = tl.sum(total * tl.exp(biggest - top), axis=0)
    # The second walk goes backwards. What was loaded last is the likeliest to
    # be in the L2 cache still, unless what is written pushes it out; so what
    # will not be needed again is marked as the first to go.
    last = (n_cols - 1) // PIECE * PIECE
    for back in range(0, n_cols, PIECE):
        cols = last - back + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=0.0,
                    eviction_policy="evict_first")
        tl.store(out_row + cols, tl.exp(x - top) / whole, mask=cols < n_cols,
                 eviction_policy="evict_first")


def choose(rows, cols):
    """A warp for every 1024 lanes: 32 numbers a thread, and as many maxima and
    sums. With twice the warps, half of the registers would be left for each.
    """
    piece = min(triton.next_power_of_2(cols), 16384)
    return {"PIECE": piece, "num_warps": max(piece // 1024, 1)}


def softmax(x, out, **settings):
    """The softmax of a contiguous x, in out."""
    rows, cols = x.shape
    pieces_kernel[(rows,)](x, out, x.stride(0), cols, **settings)


def report():
    """Time 2^27 numbers at each width, with pieces of several sizes."""
    for cols in (32768, 65536, 131072, 262144, 1048576):
        generator = t.torch.Generator("cuda").manual_seed(86)
        x = t.torch.randn(2**27 // cols, cols, device="cuda",
                          generator=generator)
        out = t.torch.empty_like(x)
        runs = {"torch.softmax": functools.partial(t.torch.softmax, x, 1,
                                                   out=out),
                "device copy": functools.partial(out.copy_, x)}
        if cols <= 65536:
            runs["the lesson's"] = functools.partial(t.softmax, x, out)
        for piece, num_warps in ((4096, 8), (4096, 16), (8192, 8), (8192, 16),
                                 (8192, 32), (16384, 8), (16384, 16),
                                 (16384, 32), (32768, 32)):
            settings = {"PIECE": piece, "num_warps": num_warps}
            mark = " <-" if settings == choose(*x.shape) else ""
            runs[f"pieces of {piece}, {num_warps} warps{mark}"] = (
                functools.partial(softmax, x, out, **settings))
        t.time_rows(f"softmax, {x.shape[0]} x {cols}", runs, 2 * x.nbytes,
                    "TB/s", direct=["device copy"])


if __name__ == "__main__":
    reason = "the interpreter has no time" if t.INTERPRET else t.refusal()
    if reason:
        t.leave(1, f"nothing to report: {reason}")
    t.header()
    report()
    t.leave(0)
