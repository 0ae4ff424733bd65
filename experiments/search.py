"""A wider search than the exercise asks for, and what each idea buys.

    python3 experiments/search.py        on a GPU of 8.0 or newer

For each precision and layout of B at 2048 cubed: the best of many configs as
the kernel stands; with the operands swapped, so that C^T = B^T A^T is what is
computed; with B transposed by a copy that is timed with the product.  Then
GROUP_M and maxnreg around each winner.  The last column is torch.mm's time
over the row's, on the same operands at the same precision.
"""
import itertools
import multiprocessing
import pathlib
import sys
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import torch  # noqa: E402
import triton  # noqa: E402

import triton_softmax_matmul as t  # noqa: E402

SHAPES = [(64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256),
          (256, 128)]
WAYS = [(p, l, way) for p, l in itertools.product(t.PRECISIONS, t.LAYOUTS)
        for way in ("as it is", "swapped", "B copied")
        # The other two are for the layout that the precision likes less.
        if way == "as it is" or (p == "tf32") == (l == "row-major")]


def configs(precision):
    """The space for a precision; ieee holds what it multiplies in registers,
    so its big tiles are left out with few warps."""
    for (m, n), k, warps, stages in itertools.product(
            SHAPES, (16, 32), (4, 8), (3, 4)):
        if (m + n) * k * 4 * stages > 227 * 1024 or (
                precision == "ieee" and m * n > 16384 and warps == 4):
            continue
        yield dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=4, num_warps=warps,
                   num_stages=stages)


def setup():
    """Operands of the sweep's size, B in both layouts, scratch for a copy."""
    global A, B, OUT, SCRATCH
    torch.manual_seed(86)
    A, b = torch.randn(2, t.SIZE, t.SIZE, device="cuda")
    B = {"row-major": b, "K-major": b.t().contiguous().t()}
    OUT, SCRATCH = torch.empty_like(A), torch.empty_like(A)


def product(precision, layout, way, config):
    """One way to A @ B, into OUT."""
    b, ieee = B[layout], precision == "ieee"
    if way == "swapped":
        t.matmul(b.t(), A.t(), ieee, config, OUT.t())
    elif way == "B copied":  # into the layout that b has not
        flip = layout == "row-major"
        other = SCRATCH.t() if flip else SCRATCH
        t.matmul(A, other.copy_(b), ieee, config, OUT)
    else:
        t.matmul(A, b, ieee, config, OUT)


def compiled(case):
    """Compile one case, so that the search finds it in the cache."""
    try:
        product(*case)
        torch.cuda.synchronize()
    except (triton.OutOfResources, RuntimeError) as error:
        return str(error)


def milliseconds(run, rep=40):
    return triton.testing.do_bench(run, warmup=15, rep=rep, quantiles=[0.5])


def row(what, config, ms, base):
    print(f"{what:<16} {t.shape(config):<10} G{config['GROUP_M']:<2} "
          f"w{config['num_warps']} s{config['num_stages']} "
          f"r{config.get('maxnreg') or '-':<4} {ms:.4f} ms  {base / ms:.3f}",
          flush=True)


def main():
    t.header()
    if t.INTERPRET or (reason := t.refusal()):
        return t.leave(1, "refused: " + ("the interpreter has no time"
                                         if t.INTERPRET else reason))
    cases = [(*way, config) for way in WAYS for config in configs(way[0])]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"),
                             initializer=setup, max_workers=14) as pool:
        failed = [f for f in pool.map(compiled, cases, chunksize=4) if f]
    print(f"{len(cases)} cases, of which {len(failed)} do not run here")
    setup()
    for precision, layout, way in WAYS:
        base = milliseconds(
            lambda: t.pinned_mm(A, B[layout], precision, OUT), 200)
        print(f"\n{precision}, {layout} B, {way}: torch.mm {base:.4f} ms")
        times = []
        for config in configs(precision):
            try:
                times.append((milliseconds(lambda: product(
                    precision, layout, way, config)), config))
            except (triton.OutOfResources, RuntimeError):
                continue
        times.sort(key=lambda pair: pair[0])
        for ms, config in times[:3]:
            row("best", config, ms, base)
        # Below 224 registers some wgmma do not assemble.
        for change in [{"GROUP_M": 1}, {"GROUP_M": 8}, {"maxnreg": 224}]:
            config = times[0][1] | change
            ms = milliseconds(lambda: product(precision, layout, way, config))
            row(str(change), config, ms, base)
    t.leave(0)


if __name__ == "__main__":
    main()
