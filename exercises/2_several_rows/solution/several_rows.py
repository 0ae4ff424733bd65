"""A softmax of which a program does several rows.

    python3 exercises/2_several_rows/solution/several_rows.py    on a GPU, what
        each number of rows a program takes
"""
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
import triton
import triton.language as tl

import triton_softmax_matmul as t


@triton.jit
def rows_kernel(in_ptr, out_ptr, row_stride, n_rows, n_cols,
                BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    # A column of row numbers and a row of column numbers: together they span a
    # block with two axes. int64, as in the lesson, for matrices that are large.
    first = tl.program_id(0).to(tl.int64) * BLOCK_ROWS
    rows = (first + tl.arange(0, BLOCK_ROWS))[:, None]
    cols = tl.arange(0, BLOCK_COLS)[None, :]
    # The last program may hang over the last row, as every program may hang
    # over the last column.
    mask = (rows < n_rows) & (cols < n_cols)
    offsets = rows * row_stride + cols
    x = tl.load(in_ptr + offsets, mask=mask, other=-float("inf"))
    # Along axis 1, a result a row; kept as a column, so that it is broadcast.
    num = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(out_ptr + offsets, num / tl.sum(num, axis=1, keep_dims=True),
             mask=mask)


def choose(rows, cols):
    """Rows enough to give each thread of four warps four numbers, and no
    fewer than four rows.

    Four numbers are 16 bytes, the most that a thread loads at once. Up to 128
    columns a row then lies in one warp, which reduces it by shuffles alone. At
    256 columns Triton spreads a row over two warps, which meet at barriers;
    with four rows rather than two, they do twice as much between them.
    """
    block = triton.next_power_of_2(cols)
    if block > 512:
        return {"BLOCK_ROWS": 1, "num_warps": min(block // 256, 32)}
    return {"BLOCK_ROWS": max(512 // block, 4), "num_warps": 4}


def softmax(x, out, **settings):
    """The softmax of a contiguous x, in out."""
    rows, cols = x.shape
    grid = (triton.cdiv(rows, settings["BLOCK_ROWS"]),)
    rows_kernel[grid](x, out, x.stride(0), rows, cols,
                      BLOCK_COLS=triton.next_power_of_2(cols), **settings)


def report():
    """Time 2^26 numbers at each width, with 1, 2, 4, ... rows a program."""
    for cols in (32, 64, 128, 256, 512):
        generator = t.torch.Generator("cuda").manual_seed(86)
        x = t.torch.randn(2**26 // cols, cols, device="cuda",
                          generator=generator)
        out = t.torch.empty_like(x)
        runs = {"torch.softmax": functools.partial(t.torch.softmax, x, 1,
                                                   out=out),
                "device copy": functools.partial(out.copy_, x),
                "the lesson's": functools.partial(t.softmax, x, out)}
        for block_rows in (1, 2, 4, 8, 16, 32, 64):
            for num_warps in (1, 2, 4, 8):
                if not 128 <= block_rows * cols // num_warps <= 1024:
                    continue  # idle threads, or too much for each
                settings = {"BLOCK_ROWS": block_rows, "num_warps": num_warps}
                mark = " <-" if settings == choose(*x.shape) else ""
                runs[f"{block_rows} rows, {num_warps} warps{mark}"] = (
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
