"""What each input_precision costs in time and error: the lesson's matmul with
the string as a parameter, at 2048 cubed, beside torch.mm.

    python3 experiments/precision.py        on an NVIDIA GPU of 8.0 or newer

One row for each precision and layout of B, with the fastest of three configs; no
column but the last holds a space.  The last line is the exit status: 0
measured, 1 refused, 2 a wrong argument.
"""
import collections
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import triton
import triton.language as tl

import triton_softmax_matmul as t

CONFIGS = [dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=32, GROUP_M=4, num_warps=w,
                num_stages=s) for m, n, w, s in (
    (128, 128, 8, 3), (128, 128, 4, 3), (128, 64, 8, 4))]
NAMES = ["ieee", "tf32", "tf32-rounded", "tf32x3", "bf16x3", "bf16x6"]
ROW = "{:<14} {:<9} {:<17} {:>8} {:>8} {:>9}  {}".format

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr, PRECISION: tl.constexpr):
    # As in the lesson, but that PRECISION decides; its launcher sets IEEE.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    per_group = GROUP_M * tl.cdiv(n, BLOCK_N)
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    tl.store(c_ptrs, acc, mask=(offs_m < m) & (offs_n < n))

def to_nearest(x):
    """x rounded to tf32's 10 bits of mantissa, in x's layout of memory."""
    bits = x.view(t.torch.int32) + 0x1000
    return (bits & ~0x1fff).view(t.torch.float32)

def instructions(capability, precision, layout, config):
    """What the multiplications compile to, as COUNTxNAME joined by commas."""
    ptx = t.compile_for(
        capability, matmul_kernel, **config, IEEE=True, PRECISION=precision,
        stride_ak=1, stride_cn=1, **{t.LAYOUTS[layout]: 1}).asm["ptx"]
    counts = collections.Counter(
        t.re.findall(t.COUNTED["tensor"], ptx)
        or t.re.findall(t.COUNTED["FMA"], ptx))
    return ",".join(f"{n}x{name}" for name, n in counts.items()) or "none"

def timed(run):
    """The median of a run's milliseconds."""
    return triton.testing.do_bench(run, warmup=50, rep=150,
                                   return_mode="median")

def fastest(a, b, precision, out):
    """(milliseconds, config) of the fastest config that fits the card."""
    times = []
    for config in CONFIGS:
        def run():
            t.matmul(a, b, True, config | {"PRECISION": precision}, out,
                     matmul_kernel)
        try:
            times.append((timed(run), CONFIGS.index(config)))
        except triton.OutOfResources:
            continue
    ms, best = min(times)
    return ms, CONFIGS[best]

def rows(a, b, layout, capability):
    """Print the rows of one layout of B, each as it is measured."""
    want, scale = t.matmul64(a.cpu().numpy(), b.cpu().numpy())
    out = t.torch.empty_like(a)

    def row(name, config, ms, told):
        error = (abs(out.cpu().numpy() - want) / scale).max()
        print(ROW(name, layout, config, f"{ms:.4f}",
                  f"{2 * t.SIZE**3 / ms * 1e-9:.2f}", f"{error:.2e}", told))

    for name in NAMES:
        precision, _, rounded = name.partition("-")
        x, y = (to_nearest(a), to_nearest(b)) if rounded else (a, b)
        try:
            ms, config = fastest(x, y, precision, out)
        except Exception as error:  # a string that this Triton does not take
            told = f"{type(error).__name__}: {error}".splitlines()[0]
            print(ROW(name, layout, "-", "-", "-", "-", told))
            continue
        t.matmul(x, y, True, config | {"PRECISION": precision}, out,
                 matmul_kernel)
        row(name, f"{t.shape(config)},w{config['num_warps']}"
            f",s{config['num_stages']}", ms,
            instructions(capability, precision, layout, config))
    for precision in t.PRECISIONS:
        def library():
            t.pinned_mm(a, b, precision, out)
        row(f"torch.mm-{precision}", "-", timed(library), "-")

def main():
    """Measure, or say why not; return the exit status."""
    t.header()
    if t.INTERPRET:
        print("\nnot measured: the interpreter ignores the string where it is "
              "ieee, tf32 or tf32x3,\nrefuses the bf16 ones, and has no time")
        return 1
    if reason := t.refusal():
        print(f"\nrefused: {reason}")
        return 1
    card = t.torch.cuda.get_device_properties()
    print(f"{card.name}, compute capability {card.major}.{card.minor}\n\n"
          f"{t.SIZE} cubed; error: max |c - c64| / (|a| |b|); the fastest of "
          f"{len(CONFIGS)} configs\n" + ROW(
              "precision", "B", "config", "ms", "TFLOP/s", "error",
              "instructions"))
    g = t.torch.Generator("cuda").manual_seed(86)
    a, b = t.torch.randn(2, t.SIZE, t.SIZE, device="cuda", generator=g)
    for layout in t.LAYOUTS:
        b = b.t().contiguous().t() if layout == "K-major" else b
        rows(a, b, layout, 10 * card.major + card.minor)
    return 0

if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    if sys.argv[1:]:
        t.leave(*(0, __doc__.strip()) if sys.argv[1:] == ["--help"] else
                (2, f"usage: --help is the only argument, not {sys.argv[1:]}"))
    t.leave(main())
