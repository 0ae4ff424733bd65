"""The lesson's matmul under triton.autotune, over twelve shapes.

    python3 exercises/4_autotune/solution/autotuned.py    what it picks, on a GPU
"""
import functools
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
import triton

import triton_softmax_matmul as t


def config(block_m, block_n, block_k, num_warps, num_stages):
    """One member of the family, as triton.autotune wants it."""
    return triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n,
                          "BLOCK_K": block_k, "GROUP_M": 4},
                         num_warps=num_warps, num_stages=num_stages)


# Warps and stages as found on an H200, at 2048 cubed. Each of the four cases
# has its own three best. One that does not fit a card's shared memory is no
# mistake: the search skips it.
CONFIGS = [
    config(128, 256, 32, 8, 4), config(128, 256, 32, 8, 3),
    config(128, 128, 32, 4, 3), config(256, 64, 32, 8, 4),
    config(256, 128, 32, 8, 4), config(256, 64, 32, 4, 4),
    config(128, 64, 64, 8, 3), config(64, 128, 32, 8, 4),
    config(128, 64, 32, 8, 4), config(256, 64, 16, 4, 3),
    config(128, 256, 16, 8, 3), config(128, 128, 32, 4, 2),
]

# A winner holds for one size, one multiplier and one layout. Where a matrix is
# contiguous along an axis, that axis's stride is 1: one stride of A and one of
# B tell the layouts apart, and are a size we have already where they are not 1.
KEY = ["m", "n", "k", "IEEE", "stride_ak", "stride_bk"]

matmul_kernel = triton.autotune(CONFIGS, KEY)(t.matmul_kernel)


def report():
    """Print what the search picks at 2048 cubed, its cost, and the times."""
    a, b = t.sweep_operands()
    out = t.torch.empty_like(a)
    for layout in t.B_LAYOUTS:
        b = t.as_layout(b, layout)
        for precision in t.PRECISIONS:
            ieee = precision == "ieee"
            tuned = functools.partial(t.matmul, a, b, ieee, {}, out,
                                      matmul_kernel)
            start = time.perf_counter()
            tuned()
            t.torch.cuda.synchronize()
            first = time.perf_counter() - start
            rows = []
            for row in t.CONFIGS:
                run = functools.partial(t.matmul, a, b, ieee, row, out)
                rows.append(t.milliseconds(run)[0])
            print(f"{precision}, {layout} B: first launch {first:.2f} s, then "
                  f"{t.milliseconds(tuned)[0]:.4f} ms; best hand-written row "
                  f"{min(rows):.4f} ms\n    {matmul_kernel.best_config}")


if __name__ == "__main__":
    reason = t.refusal()
    if t.INTERPRET:
        reason = "the interpreter has no time"
    if reason:
        t.leave(1, f"nothing to report: {reason}")
    report()
    t.leave(0)
