"""A running maximum that begins at -inf: and -inf - -inf is NaN."""
import triton
import triton.language as tl


@triton.jit
def pieces_kernel(in_ptr, out_ptr, row_stride, n_cols, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    out_row = out_ptr + row * row_stride
    lanes = tl.arange(0, PIECE)
    biggest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, PIECE):
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        new = tl.maximum(biggest, tl.max(x, axis=0))
        total = total * tl.exp(biggest - new)
        total += tl.sum(tl.exp(x - new), axis=0)
        biggest = new
    for start in range(0, n_cols, PIECE):
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=0.0)
        tl.store(out_row + cols, tl.exp(x - biggest) / total,
                 mask=cols < n_cols)


def choose(rows, cols):
    piece = min(triton.next_power_of_2(cols), 16384)
    return {"PIECE": piece, "num_warps": max(piece // 1024, 1)}
