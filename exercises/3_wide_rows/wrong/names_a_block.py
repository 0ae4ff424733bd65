"""Chooses a BLOCK_COLS, which this kernel does not have."""
import triton
import triton.language as tl

LOWEST = tl.constexpr(-(2.0 - 2.0**-23) * 2.0**127)


@triton.jit
def pieces_kernel(in_ptr, out_ptr, row_stride, n_cols, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    out_row = out_ptr + row * row_stride
    lanes = tl.arange(0, PIECE)
    biggest = tl.full((PIECE,), LOWEST, tl.float32)
    total = tl.zeros((PIECE,), tl.float32)
    for start in range(0, n_cols, PIECE):
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        above = x - biggest
        share = tl.exp(-tl.abs(above))
        total = tl.where(above > 0, total * share + 1, total + share)
        biggest = tl.maximum(biggest, x)
    top = tl.max(biggest, axis=0)
    whole = tl.sum(total * tl.exp(biggest - top), axis=0)
    last = (n_cols - 1) // PIECE * PIECE
    for back in range(0, n_cols, PIECE):
        cols = last - back + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=0.0,
                    eviction_policy="evict_first")
        tl.store(out_row + cols, tl.exp(x - top) / whole, mask=cols < n_cols,
                 eviction_policy="evict_first")


def choose(rows, cols):
    return {"BLOCK_COLS": 16384, "num_warps": 32}
