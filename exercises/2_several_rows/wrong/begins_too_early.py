"""Takes program 7 to begin at row 7, so that programs overlap."""
import triton
import triton.language as tl


@triton.jit
def rows_kernel(in_ptr, out_ptr, row_stride, n_rows, n_cols,
                BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    first = tl.program_id(0).to(tl.int64)
    rows = (first + tl.arange(0, BLOCK_ROWS))[:, None]
    cols = tl.arange(0, BLOCK_COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    offsets = rows * row_stride + cols
    x = tl.load(in_ptr + offsets, mask=mask, other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(out_ptr + offsets, num / tl.sum(num, axis=1, keep_dims=True),
             mask=mask)


def choose(rows, cols):
    block = triton.next_power_of_2(cols)
    return {"BLOCK_ROWS": max(512 // block, 1), "num_warps": 4}
