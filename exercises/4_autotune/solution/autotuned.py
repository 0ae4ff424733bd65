"""The lesson's matmul under triton.autotune, over twelve shapes.

    python3 exercises/4_autotune/solution/autotuned.py    what it picks, on a GPU
"""
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))
import triton

import triton_softmax_matmul as t

# Warps and stages as found on an H200, at 2048 cubed.  Each of the four cases
# has its own three best.  One that does not fit a card's shared memory is no
# mistake: the search skips it.
CONFIGS = [
    triton.Config(dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=4),
                  num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in (
        (128, 256, 32, 8, 4), (128, 256, 32, 8, 3), (128, 128, 32, 4, 3),
        (256, 64, 32, 8, 4), (256, 128, 32, 8, 4), (256, 64, 32, 4, 4),
        (128, 64, 64, 8, 3), (64, 128, 32, 8, 4), (128, 64, 32, 8, 4),
        (256, 64, 16, 4, 3), (128, 256, 16, 8, 3), (128, 128, 32, 4, 2))]

# A winner holds for one size, one multiplier and one layout.  Where a matrix is
# contiguous along an axis, that axis's stride is 1: one stride of A and one of
# B tell the layouts apart, and are a size we have already where they are not 1.
KEY = ["m", "n", "k", "IEEE", "stride_ak", "stride_bk"]

matmul_kernel = triton.autotune(CONFIGS, KEY)(t.matmul_kernel)

def report():
    """Print what the search picks at SIZE cubed, its cost, and the times."""
    a, b = t.torch.randn(2, t.SIZE, t.SIZE, device="cuda")
    out, bench = t.torch.empty_like(a), t.triton.testing.do_bench
    for l, p in [(l, p) for l in t.LAYOUTS for p in t.PRECISIONS]:
        b = b.t().contiguous().t() if l == "K-major" else b

        def tuned():
            t.matmul(a, b, p == "ieee", {}, out, matmul_kernel)

        start = time.perf_counter()
        tuned()
        t.torch.cuda.synchronize()
        first = time.perf_counter() - start
        rows = [bench(lambda: t.matmul(a, b, p == "ieee", c, out), rep=300)
                for c in t.CONFIGS]
        print(f"{p}, {l} B: first launch {first:.2f} s, then "
              f"{bench(tuned, rep=300):.4f} ms; best hand-written row "
              f"{min(rows):.4f} ms\n    {matmul_kernel.best_config}")

if __name__ == "__main__":
    if reason := t.INTERPRET and "the interpreter has no time" or t.refusal():
        t.leave(1, f"nothing to report: {reason}")
    report()
