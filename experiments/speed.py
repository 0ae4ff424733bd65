"""Softmax by width, and what int64 offsets cost the matmul: needs a GPU.

    python3 experiments/speed.py

Each row is the median of three interleaved rounds of do_bench medians.
"""
import importlib.util
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import torch  # noqa: E402
import triton  # noqa: E402

import triton_softmax_matmul as t  # noqa: E402


def medians(runs, rounds=3):
    """{name: ms} for runs that take turns, so that drift meets all alike."""
    seen = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            seen[name].append(triton.testing.do_bench(
                run, warmup=25, rep=100, quantiles=[0.5]))
    return {name: statistics.median(times) for name, times in seen.items()}


def int64_kernel():
    """The matmul kernel with its program number, and so its offsets, int64."""
    text = (ROOT / "triton_softmax_matmul.py").read_text(encoding="utf-8")
    narrow = "    pid = tl.program_id(0)\n"
    assert text.count(narrow) == 1
    path = pathlib.Path(tempfile.mkdtemp()) / "wide.py"
    path.write_text(text.replace(
        narrow, "    pid = tl.program_id(0).to(tl.int64)\n"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("wide", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matmul_kernel


def softmax_widths(elements=2**28):
    print(f"\nsoftmax, {elements} elements a tensor: speed over a device copy's, "
          "over torch.softmax's")
    for cols in (256, 384, 512, 768, 1000, 1024, 1536, 2048, 3000, 4096, 6000,
                 8192, 12000, 16384, 24000, 30000, 32768, 40000, 50000, 65536):
        x = torch.randn(elements // cols, cols, device="cuda")
        y = torch.empty_like(x)
        ms = medians({"copy": lambda: y.copy_(x),
                      "torch": lambda: torch.softmax(x, 1, out=y),
                      "softmax": lambda: t.softmax(x, y)})
        print(f"{cols:>6} columns  {ms['copy'] / ms['softmax']:.3f}  "
              f"{ms['torch'] / ms['softmax']:.3f}", flush=True)


def offsets():
    kernels = {"int32": t.matmul_kernel, "int64": int64_kernel()}
    a, b = torch.randn(2, t.SIZE, t.SIZE, device="cuda")
    out = torch.empty_like(a)
    print(f"\nmatmul, {t.SIZE} cubed: int64 offsets' time over int32's")
    for layout in t.LAYOUTS:
        b = b.t().contiguous().t() if layout == "K-major" else b.contiguous()
        for precision in t.PRECISIONS:
            for config in t.CONFIGS:
                ms = medians({name: lambda kernel=kernel: t.matmul(
                    a, b, precision == "ieee", config, out, kernel)
                    for name, kernel in kernels.items()})
                print(f"{precision} {layout:<9} {t.shape(config):<10}  "
                      f"{ms['int64'] / ms['int32']:.3f}", flush=True)


if __name__ == "__main__":
    t.header()
    reason = t.refusal()
    if t.INTERPRET or reason:
        t.leave(1, f"refused: {reason or 'the interpreter has no time'}")
    softmax_widths()
    offsets()
    t.leave(0)
