"""A row softmax and an FP32 matmul in Triton: programs over blocks of data.

    TRITON_INTERPRET=1 python3 triton_softmax_matmul.py    on any Linux machine
    python3 triton_softmax_matmul.py                       on an NVIDIA GPU

The first checks both kernels on the CPU, the matmul in ieee and in tf32,
against a float64 reference.  The second refuses a GPU below compute capability
8.0; on 8.0 and newer it makes the same checks, times three block shapes at 2048
cubed, and gives verdicts on four predictions.  Last it prints its exit status:
    0  every check passed and no gated prediction was falsified
    1  refused, or a check failed, or a gated prediction was falsified
    2  could not start: a package missing or unusable, or a wrong argument
"""
import hashlib
import importlib.metadata
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

def leave(status, *lines):
    """Print the lines and the exit line, and end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one Ctrl-C is enough
    print(*lines, f"exit {status}", sep="\n")
    sys.exit(status)

def stopped(kind, error, _):  # by a full disk, a busy card, a bad kernel
    try:
        print(text := f"stopped by {kind.__name__}: {error}\nexit 1")
    except OSError:  # it is stdout's disk that is full
        print(text, file=sys.stderr)

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    signal.signal(signal.SIGINT, lambda *_: leave(130, "interrupted"))
    sys.excepthook = stopped
    sys.stdout.reconfigure(line_buffering=True)  # rows as they are measured
    if sys.argv[1:]:
        leave(*(0, __doc__.strip()) if sys.argv[1:] == ["--help"] else
              (2, f"usage: --help is the only argument, not {sys.argv[1:]}"))
try:
    import numpy as np
    import torch
    import triton
    import triton.language as tl
    INTERPRET = triton.knobs.runtime.interpret  # as Triton reads it, at @jit
    if INTERPRET == isinstance(tl.max, triton.JITFunction):
        raise ImportError("TRITON_INTERPRET was changed after Triton's import")
    if (INTERPRET and triton.__version__.startswith("3.6.")
            and np.lib.NumpyVersion(np.__version__) >= "2.4.0"):
        raise ImportError(
            f"Triton {triton.__version__} cannot interpret with numpy "
            f"{np.__version__}: take numpy<2.4 or Triton 3.7 or newer")
except Exception as error:  # a broken package raises more than ImportError
    if __name__ != "__main__":
        raise
    leave(2, f"cannot start: {error!r:.300}.  To install: "
             "python3 -m pip install torch==2.13.0 triton==3.7.1 numpy "
             "(Triton ships for Linux only; on Windows use WSL2)")

# ------------------------------------------------------------------- kernels
@triton.jit
def softmax_kernel(in_ptr, out_ptr, row_stride, n_cols,
                   BLOCK_COLS: tl.constexpr):
    # One program, one row, held as one value of BLOCK_COLS lanes: a reduction
    # is one call, and the compiler adds its shuffles, shared memory, barriers.
    # row is int64, since row * row_stride passes 2^31 on a tensor that large.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    # BLOCK_COLS is a power of two, so lanes may hang over the row's end.  They
    # hold -inf, which never wins the maximum and, as exp(-inf) = 0, adds
    # nothing to the sum.  A pad of 0 would win in an all-negative row.
    mask = cols < n_cols
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=-float("inf"))
    # With the maximum left in, exp overflows float32 from 89 upwards.
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr):
    # One program, one BLOCK_M x BLOCK_N tile of C.  Which tile is ours to
    # choose: going down GROUP_M tile rows before stepping right lets programs
    # that run together read the same rows of A and columns of B while they
    # are in L2.  The last group may have fewer rows.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # Lanes that hang over an edge wrap round with %: they load what exists,
    # and the store leaves them out.  That spares the loop two masks.
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    # A value, kept in registers; num_stages is how far the loop loads ahead.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K  # past the end of K, 0 adds nothing
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        # IEEE is known at compile time, so the other branch is not compiled.
        # Never leave the string out: the default is "tf32".
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)

# ----------------------------------------------------------------- launchers
# Warps and stages as measured on an H200; each fits sm_86's and sm_89's 99 KB.
CONFIGS = [dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=32, GROUP_M=4, num_warps=w,
                num_stages=s) for m, n, w, s in
           ((64, 64, 4, 3), (128, 64, 8, 4), (128, 128, 4, 3))]

def require(name, x, shape=None, inputs=()):
    """Raise unless x is float32, 2-D and here; given a shape, a fit out."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x)}")
    got = f"got {tuple(x.shape)}, {x.dtype}, {x.layout}, on {x.device}"
    if x.dtype != torch.float32 or x.layout != torch.strided or x.is_neg():
        raise TypeError(f"{name} must be a plain float32 tensor: {got}")
    if x.dim() != 2 or shape not in (None, x.shape):
        raise ValueError(f"{name} must be 2-D {tuple(shape or ())}: {got}")
    place, mode = ("cpu", "on") if INTERPRET else ("cuda", "off")
    if x.device.type != place or any(i.device != x.device for i in inputs):
        raise ValueError(f"{name} must be with the others on a {place} device "
                         f"while TRITON_INTERPRET is {mode}: {got}")
    memory = [t.untyped_storage().data_ptr() for t in (x, *inputs)]
    if shape and x.numel() and (0 in x.stride() or memory[0] in memory[1:]):
        raise ValueError(f"{name} overlaps itself or an input's storage: {got}")

def softmax(x, out=None, kernel=softmax_kernel):
    """The softmax of each row of x (rows, cols), in out or in new memory:
    float32, any strides, 1 to 65536 columns; carries no gradient."""
    require("x", x)
    rows, cols = x.shape
    # Registers spill past 2^15 columns; compile time explodes past 2^17.
    if not 1 <= cols <= 65536 or rows >= 2**31:
        raise ValueError(f"x is {tuple(x.shape)}: a program holds a row, of 1 "
                         "to 65536 columns, and there can be 2^31 - 1 of them")
    out = x.new_empty(x.shape) if out is None else out
    require("out", out, x.shape, [x])
    # One row stride serves both sides; any other layout is copied first.
    src, dst = x, out
    if x.stride() != out.stride() or x.stride(1) != 1:
        src = x.contiguous()
        dst = out if out.is_contiguous() else torch.empty_like(src)
    block = triton.next_power_of_2(cols)
    if rows:
        with torch.cuda.device_of(x):
            kernel[(rows,)](src, dst, src.stride(0), cols, BLOCK_COLS=block,
                            num_warps=min(max(block // 512, 1), 32))
    return out if dst is out else out.copy_(dst)

def matmul(a, b, ieee, config=CONFIGS[2], out=None, kernel=matmul_kernel):
    """a (m, k) times b (k, n), in out (m, n) or in new memory: float32, any
    strides, no gradient; in tf32 unless ieee; config {} is for autotuning."""
    require("a", a)
    require("b", b, None, [a])
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        raise ValueError(f"k differs: a {tuple(a.shape)}, b {tuple(b.shape)}")
    out = a.new_empty((m, n)) if out is None else out
    require("out", out, (m, n), [a, b])
    for name, x in ("a", a), ("b", b), ("out", out):  # int64 costs up to 10 %
        if sum((n - 1) * s for n, s in zip(x.shape, x.stride())) >= 2**31:
            raise ValueError(f"{name} {tuple(x.shape)} spans over 2^31 values")
    if out.numel():
        with torch.cuda.device_of(a):
            kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_M"])
                                 * triton.cdiv(n, meta["BLOCK_N"]),)](
                a, b, out, m, n, k, *a.stride(), *b.stride(), *out.stride(),
                IEEE=bool(ieee), **config)
    return out

# ------------- references: numpy, on the CPU, so that no GPU is on both sides
def softmax64(x):
    """Softmax of each row of a float32 array (rows, cols), in float64."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and rightly
        num = np.exp(x - x.max(axis=1, keepdims=True))
        return num / num.sum(axis=1, keepdims=True)

def matmul64(a, b):
    """The product of two float32 arrays, and |a| |b|, both in float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b, np.abs(a) @ np.abs(b)

# ---------------------------------------------------------------- tolerances
# A sum of k products, each rounded to 2^-24, is off by at most k 2^-24 |a| |b|
# (Higham, Accuracy and Stability, 3.5), and by lambda sqrt(k) 2^-24 |a| |b|
# where rounding errors are independent (Higham and Mary 2019); lambda is 4.
def matmul_tolerance(k, precision):
    """For max |c - c64| / (|a| |b|); tf32 truncates both inputs to 10 bits."""
    limit, arithmetic = 4 * np.sqrt(k) * 2**-24, f"4 sqrt({k}) 2^-24"
    return (limit, arithmetic) if precision == "ieee" else (
        2 * 2**-10 + 2**-20 + limit, "2^-9 + 2^-20 + " + arithmetic)

def softmax_tolerance(n):
    """For a row's max |y - y64| over its largest y64; 8 for exp and /."""
    return (np.sqrt(n) + 8) * 2**-24, f"(sqrt({n}) + 8) 2^-24"

# -------------------------------------------------------------------- checks
FRAME = 144  # NaN: 16 before a view, 128 after it, as far as a block reaches
SIZE, PRECISIONS = 2048, ("ieee", "tf32")
LAYOUTS = {"row-major": "stride_bn", "K-major": "stride_bk"}  # of B; which is 1
# m, n, k; configs take turns: 270 rows are five tile rows, groups of 4 and 1.
MATMUL_CASES = [(64, 64, 64), (197, 70, 45), (1, 40, 7), (270, 70, 20),
                (40, 1, 33), (3, 4, 1), (5, 6, 0),
                *[(SIZE, SIZE, SIZE)] * (not INTERPRET)]  # for every config

def framed(values, device, k_major=False):
    """values as a view into NaN-filled memory, and that memory."""
    values = values.t() if k_major else values
    rows, cols = values.shape
    frame = torch.full((rows + FRAME, cols + FRAME), torch.nan, device=device)
    view = frame[16:16 + rows, 16:16 + cols].copy_(values)
    return (view.t() if k_major else view), frame

def check(what, run, inputs, want, scale, tolerance, form=np.asarray):
    """Run on framed inputs into a NaN frame, compare, print; (passed, out)."""
    limit, arithmetic = tolerance
    before = [frame.clone() for _, frame in inputs]
    blank = torch.full((len(inputs[0][0]), inputs[-1][0].shape[1]), torch.nan)
    out, frame = framed(blank, inputs[0][1].device, inputs[0][0].stride(0) == 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        back = run(*(view for view, _ in inputs), out)
        got = form(out.cpu().numpy().astype(np.float64))
        errors = np.abs(got - want) / scale
    errors[(got == want) | np.isnan(got) & np.isnan(want)] = 0
    wrong = np.argwhere(~(errors <= limit))
    faults = [f"; {len(wrong)} wrong, first {at.tolist()}: {got[*at]:.6g}, not "
              f"{want[*at]:.6g}" for at in wrong[:1]]
    if back is not out or (torch.count_nonzero(frame == frame)
                           != torch.count_nonzero(out == out)):
        faults.append("; wrote outside out, or returned another")
    if not all(now.view(torch.int32).equal(was.view(torch.int32))
               for (_, now), was in zip(inputs, before)):
        faults.append("; wrote on an input")
    print("FAIL " if faults else "pass ", f"{what:<27}", f"{errors.max():.1e} "
          f"<= {limit:.1e} = {arithmetic}", *faults)
    return not faults, out

def softmax_checks(device, kernel=softmax_kernel):
    """Whether all softmax cases pass, in their values and their row sums."""
    def with_sums(y):
        return np.column_stack([y, y.sum(axis=1)])
    g, passed = torch.Generator().manual_seed(86), True
    x, at = torch.randn(2, 333, generator=g), torch.tensor([1])
    cases = {f"{cols} columns": torch.randn(3, cols, generator=g) for cols in
             (1024, 1, 3, 17, 127, 1000, 4096 if INTERPRET else 65536)} | {
        "all near -50": x - 50, "+-1e4": x.sign() * 1e4, "1e4 N(0, 1)": x * 1e4,
        "one spike": (0 * x).index_fill(1, at, 100), "constant": 0 * x + 7.25,
        "some -inf": x.masked_fill(x < 0, -torch.inf),
        "a -inf row": x.index_fill(0, at, -torch.inf),
        "an inf a row": x.index_fill(1, at, torch.inf),
        "a NaN a row": x.index_fill(1, at, torch.nan)}
    for what, x in cases.items():
        y64, n = softmax64(x.numpy()), x.shape[1]
        scale = np.where(np.arange(n + 1) < n, y64.max(axis=1)[:, None], 1)
        passed &= check(f"softmax {what}", lambda x, o: softmax(x, o, kernel),
                        [framed(x, device, n == 127)], with_sums(y64), scale,
                        softmax_tolerance(n), with_sums)[0]
    return passed

def matmul_checks(device, configs=CONFIGS, kernel=matmul_kernel):
    """Whether all cases pass in both layouts of B, and tf32 is tf32."""
    g, passed = torch.Generator().manual_seed(86), True
    for turn, (m, n, k) in enumerate(MATMUL_CASES):
        turns = configs if m == SIZE else [configs[turn % len(configs)]]
        a, b = torch.randn(m, k, generator=g), torch.randn(k, n, generator=g)
        want, scale = matmul64(a.numpy(), b.numpy())
        for config, layout in [(c, l) for c in turns for l in LAYOUTS]:
            outs = []
            for p in PRECISIONS:
                right, out = check(
                    f"{p} {m}x{n}x{k} {layout}", lambda a, b, out: matmul(
                        a, b, p == "ieee", config, out, kernel),
                    [framed(a, device, turn == 1),  # once by columns, as is c
                     framed(b, device, layout == "K-major")],
                    want, scale, matmul_tolerance(k, p))
                passed &= right
                outs.append(out)
            if outs[0].equal(outs[1]) != (INTERPRET or k == 0):
                print("FAIL  ieee and tf32: one did not use its multiplier")
                passed = False
    return passed

# ------------------------------------------------------------- emitted code
COUNTED = {"barriers": r"\bbar(?:rier)?(?:\.cta)?\.sync",
           "shuffles": r"\bshfl\.sync", "FMA": r"\bfma\.rn\.f32",
           "tensor": r"\b(?:wgmma\.mma_async|mma|tcgen05\.mma)\.\S+"}
shape = "{BLOCK_M},{BLOCK_N},{BLOCK_K}".format_map  # of a config
held = {True: "held", False: "falsified"}.get

def compile_for(capability, kernel, **settings):
    """kernel compiled for, say, 86, at sizes divisible by 16; needs no GPU."""
    signature, constants, aligned = {}, {}, {}
    for i, name in enumerate(kernel.arg_names):
        if name in settings:
            signature[name], constants[name] = "constexpr", settings.pop(name)
        else:
            signature[name] = "*fp32" if name.endswith("_ptr") else "i32"
            aligned[i,] = [["tt.divisibility", 16]]
    return triton.compile(
        triton.compiler.ASTSource(kernel, signature, constants, aligned),
        target=triton.backends.compiler.GPUTarget("cuda", capability, 32),
        options=settings)

def emitted(capability):
    """Print what the compiler emits for, say, 86; whether tf32 is in place."""
    rows = [(f"softmax 1024, {warps} warps", softmax_kernel,
             dict(BLOCK_COLS=1024, num_warps=warps)) for warps in (1, 2, 4, 8)]
    rows += [(f"{shape(c)} {p} {l}", matmul_kernel, c | {
        "IEEE": p == "ieee", "stride_ak": 1, "stride_cn": 1, LAYOUTS[l]: 1})
        for c in CONFIGS for p in PRECISIONS for l in LAYOUTS]
    print(f"\n{f'emitted for sm_{capability}':<25}", *COUNTED, "shared bytes")
    right = True
    for what, kernel, settings in rows:
        compiled = compile_for(capability, kernel, **settings)
        found = [re.findall(p, compiled.asm["ptx"]) for p in COUNTED.values()]
        print(f"{what:<25}", *(f"{len(hits):>7}" for hits in found),
              f"{compiled.metadata.shared:>10} ", *found[3][:1])
        right &= ("tf32" in what) == bool(found[3]) == ("tf32" in str(found[3]))
    print(f"{'pass' if right else 'FAIL'}  tensor cores, in tf32 alone")
    return right

# ----------------------------------------------------------------- the sweep
def race(title, runs, work, unit):
    """Time runs that do the same work (FLOP, bytes); {name: milliseconds}."""
    times = {}
    print(f"\n{title}: median (20 % .. 80 %), rate, speed over the first's")
    for name, run in runs.items():
        try:
            times[name], low, high = ms = triton.testing.do_bench(
                run, warmup=100, rep=300, quantiles=[0.5, 0.2, 0.8])
            print(f"{name:<14} {ms[0]:.4f} ms ({low:.4f} .. {high:.4f}) "
                  f"{work / ms[0] * 1e-9:6.2f} {unit} "
                  f"{[*times.values()][0] / ms[0]:.2f}")
        except triton.OutOfResources as error:
            print(f"{name:<14} does not fit: {error.name}, "
                  f"{error.required} required, {error.limit} available")
    return times

def pinned_mm(a, b, precision, out=None):
    """torch.mm at "ieee" or "tf32", whatever torch is set to."""
    settings = torch.backends.cuda.matmul
    before, settings.fp32_precision = settings.fp32_precision, precision
    try:
        return torch.mm(a, b, out=out)
    finally:
        settings.fp32_precision = before

def sweep(a, b):
    """Time a @ b; {(precision, layout): {shape: milliseconds}}."""
    out, times = torch.empty_like(a), {}
    for p, l in [(p, l) for p in PRECISIONS for l in LAYOUTS]:
        b = b.t().contiguous().t() if l == "K-major" else b.contiguous()
        times[p, l] = race(f"{SIZE} cubed, {p}, {l} B", {
            "torch.mm": lambda: pinned_mm(a, b, p, out)} | {
            shape(c): lambda c=c: matmul(a, b, p == "ieee", c, out)
            for c in CONFIGS}, 2 * SIZE**3, "TFLOP/s")
        del times[p, l]["torch.mm"]
    return times

def precision_table(a, b):
    """Print errors, which show that the hardware truncates; {name: error}."""
    def tf32_bits(x, add):
        return ((x.view(torch.int32) + add) & ~0x1fff).view(torch.float32)
    cut, near = [[tf32_bits(x, add) for x in (a, b)] for add in (0, 0x1000)]
    want, scale = matmul64(a.cpu().numpy(), b.cpu().numpy())
    tf32, tf32_cut = matmul(a, b, False), matmul(*cut, False)
    errors = {n: (np.abs(c.cpu().numpy() - want) / scale).max() for n, c in (
        ("ieee", matmul(a, b, True)), ("tf32", tf32),
        ("tf32, inputs truncated first", tf32_cut),
        ("tf32, inputs rounded first", matmul(*near, False)),
        ("torch.mm ieee", pinned_mm(a, b, "ieee")),
        ("torch.mm tf32", pinned_mm(a, b, "tf32")))}
    print(f"\nerror at {SIZE} cubed, max |c - c64| / (|a| |b|)",
          *(f"{name:<30} {error:.2e}" for name, error in errors.items()),
          f"tf32 gives truncated inputs the same bits: {tf32.equal(tf32_cut)}",
          sep="\n")
    return errors

# ----------------------------------------------------------- the predictions
def predictions(errors, times):
    """Print the verdicts of a GPU run; return whether the gated ones held."""
    ieee, tf32 = errors["ieee"], errors["tf32"]
    best = {key: min(row.values()) for key, row in times.items()}
    layout = {p: min(LAYOUTS, key=lambda l: best[p, l]) for p in PRECISIONS}
    ratio = best["ieee", layout["ieee"]] / best["tf32", layout["tf32"]]
    print(f"""
1 {held(tf32 >= 100 * ieee)}: tf32's error is {tf32 / ieee:.0f} times ieee's \
(predicted: 100); gated: larger, {held(tf32 > ieee)}
2 {held(ratio >= 2)}, gated: the best tf32 is {ratio:.2f} times as fast as the \
best ieee (predicted: 2)""")
    for l in LAYOUTS:
        alone = best["ieee", l] / best["tf32", l]
        print(f"    {l} B alone: {alone:.2f}, {held(alone >= 2)}")
    print("3 held on this GPU: softmax agrees with float64")
    for p in PRECISIONS:
        row = times[p, layout[p]]
        gain = row.pop(shape(CONFIGS[0])) / min(row.values())
        print(f"4 {'a tie' if abs(gain - 1) <= 0.02 else held(gain > 1)} in {p}"
              f", {layout[p]} B: the smallest takes {gain:.2f} of the best "
              "larger shape's time")
    return tf32 > ieee and ratio >= 2

# ------------------------------------------------------------ the three paths
def header():
    """Print what makes a transcript worth keeping."""
    text = pathlib.Path(__file__).read_text(encoding="utf-8")
    part = text.partition("@triton.jit")[2].partition("def require")[0]
    whole, part = (hashlib.sha256(t.encode()).hexdigest()[:12]
                   for t in (text, part))
    pin = re.search(r"^triton ?(==[\d.]+|~=\d+\.\d+)", "\n".join(
        importlib.metadata.requires("torch") or ()), re.M)
    route = ("beside a torch that pins none" if not pin else "torch's own pin"
             if triton.__version__.startswith(pin[1][2:])
             else f"installed over torch's pin {pin[1]}")
    print(f"""{time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}
script {whole}, kernels and CONFIGS {part}
Python {sys.version.split()[0]}, numpy {np.__version__}, \
torch {torch.__version__}, CUDA {torch.version.cuda}
Triton {triton.__version__}, {route}""", *(
        f"{name} is set to {value!r}" for name, value in os.environ.items()
        if re.match("TRITON_(?!.*(DIR|PATH|HOME))|.*TF32|CUBLAS|CUDA_VISIBLE|"
                    "DISABLE_PTXAS", name)), sep="\n")

def refusal():
    """Why there is no GPU here that the kernels can run on, or None."""
    if torch.version.hip:
        return f"AMD, ROCm {torch.version.hip}: its capability is a gfx number"
    if not torch.version.cuda:
        return f"no CUDA build: torch {torch.__version__} is for the CPU"
    try:
        torch.cuda.init()
    except RuntimeError as error:
        return f"no visible GPU: {str(error).splitlines()[0]}"
    major, minor = torch.cuda.get_device_capability()
    if (major, minor) < (8, 0):
        return f"{torch.cuda.get_device_name()} has capability {major}.{minor}"

def main():
    """Take one of the three paths; return the exit status."""
    header()
    if INTERPRET:
        print("\nTriton's interpreter has no tf32: here it must equal ieee.\n")
        passed = softmax_checks("cpu") & matmul_checks("cpu")
        print("\n3", held(passed), "in the interpreter; 1, 2, 4 open: no tf32")
        return int(not passed)
    if reason := refusal():
        print(f"""
refused: {reason}.
Triton supports NVIDIA GPUs of compute capability 8.0 and newer (its README,
github.com/triton-lang/triton#compatibility): an L4, an A100, an RTX 3090, ...
The checks run without one, on any Linux machine:
    TRITON_INTERPRET=1 python3 triton_softmax_matmul.py""")
        return 1
    card = torch.cuda.get_device_properties()
    driver = subprocess.getoutput("nvidia-smi --query-gpu=driver_version "
                                  "--format=csv,noheader").partition("\n")[0]
    print(f"{card.name}, compute capability {card.major}.{card.minor}, "
          f"{card.total_memory >> 20} MiB, driver {driver}\n")
    if not (softmax_checks("cuda") & matmul_checks("cuda")
            & emitted(10 * card.major + card.minor)):
        print("a check failed, so nothing is timed")
        return 1
    g = torch.Generator("cuda").manual_seed(86)
    a, b = torch.randn(2, SIZE, SIZE, device="cuda", generator=g)
    errors, times = precision_table(a, b), sweep(a, b)
    x = torch.randn(65536, 1024, device="cuda", generator=g)
    y = torch.empty_like(x)
    race("softmax, 65536 x 1024", {
        "device copy": lambda: y.copy_(x), "softmax": lambda: softmax(x, y),
        "torch.softmax": lambda: torch.softmax(x, 1, out=y)},
        2 * x.nbytes, "TB/s")
    return int(not predictions(errors, times))

if __name__ == "__main__":
    leave(main())
