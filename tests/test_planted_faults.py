"""Faults planted in the script one at a time: something must go red.

FAULTS are seen by the script's own run under the interpreter, EMITTED by its
table of compiled code, and the rest, to which that run is blind, by the tests
here: JUDGES are faults of the checks themselves.
"""
import collections
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import SCRIPT, clean_env

TEXT = SCRIPT.read_text(encoding="utf-8")
LOAD = ('cols, mask=mask,\n                other=-float("inf"))', "cols)")
STORE = "num / tl.sum(num, axis=0)"
PAD_A = ", mask=offs_k[None, :] < left, other=0.0)\n"
PAD_B = ", mask=offs_k[:, None] < left, other=0.0)\n"
ZEROS = "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
C_MASK = "(offs_m < m) & (offs_n < n)"
A_PTRS = "(offs_m % m) * stride_am + offs_k[None, :] * stride_ak"
B_PTRS = "offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn"

FAULTS = {  # name: old text, new text, the check that sees it, times if not 1
    "pad of 0": ('other=-float("inf")', "other=0.0", "softmax all near -50"),
    "no maximum": ("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x)", "+-1e4"),
    "minimum": ("tl.max(x, axis=0)", "tl.min(x, axis=0)", "one spike"),
    "load not masked": (*LOAD, "softmax 3 columns"),
    "store not masked": (f"{STORE},\n             mask=mask)", f"{STORE})",
                         "wrote outside out"),
    "sum before exp": (STORE, "num / tl.sum(x, axis=0)", "1024 columns"),
    "sum of the maximum": (STORE, "num / tl.max(num, axis=0)", "constant"),
    "no division": (STORE, "num", "constant"),
    "exp2": ("tl.exp(x", "tl.exp2(x", "1024 columns"),
    "rows packed, load": ("in_ptr + row * row_stride", "in_ptr + row * n_cols",
                          "softmax 1024 columns"),
    "rows packed, store": ("out_ptr + row * row_stride",
                           "out_ptr + row * n_cols", "wrote outside out"),
    "rows packed, both": ("row * row_stride + cols", "row * n_cols + cols",
                          "softmax 1024 columns", 2),
    "every row the first": ("row * row_stride + cols", "row * 0 + cols",
                            "first [1, 0]", 2),
    "a column too many": ("cols < n_cols", "cols <= n_cols", "3 columns"),
    "a column too few": ("cols < n_cols", "cols < n_cols - 1", "1 columns"),
    "half a block": ("block = triton.next_power_of_2(cols)",
                     "block = max(triton.next_power_of_2(cols) // 2, 1)",
                     "softmax 1024 columns"),
    "float16 weights": ("tl.exp(x - tl.max(x, axis=0))", "tl.exp("
                        "x - tl.max(x, axis=0)).to(tl.float16).to(tl.float32)",
                        "softmax 1024 columns"),
    "zeros": (STORE, "num * 0", "softmax 1 columns"),
    "uniform": (STORE, "num * 0 + 1.0 / n_cols", "one spike"),
    "NaN": (STORE, 'num * float("nan")', "softmax 1 columns"),
    "NaN made 0": (STORE, f"tl.where(num == num, {STORE}, 0)", "a NaN a row"),
    "wrong at 1024 alone": (STORE, f"{STORE} * (1 + (n_cols == 1024))",
                            "softmax 1024 columns"),
    "kernel writes its input": (
        "    num = tl.exp(", "    tl.store(in_ptr + row * row_stride + cols, "
        "x + 1, mask=mask)\n    num = tl.exp(", "wrote on an input"),
    "K tail open in A": ("a_ptrs" + PAD_A, "a_ptrs)\n", "1x40x7"),
    "K tail open in B": ("b_ptrs" + PAD_B, "b_ptrs)\n", "1x40x7"),
    "K tail open in both": (f"a_ptrs{PAD_A}        b = tl.load(b_ptrs{PAD_B}",
                            "a_ptrs)\n        b = tl.load(b_ptrs)\n", "3x4x1"),
    "K mask stands still": ("left = k - step * BLOCK_K", "left = k", "40x1x33"),
    "K tail of 1": ("other=0.0", "other=1.0", "3x4x1", 2),
    "K tail dropped": ("tl.cdiv(k, BLOCK_K))", "k // BLOCK_K)", "1x40x7"),
    "acc reset": ("        left =", f"        {ZEROS}\n        left =",
                  "64x64x64"),
    "acc not passed, ieee": ('b, acc, input_precision="ieee"',
                             'b, input_precision="ieee"', "ieee 64x64x64"),
    "acc not passed, tf32": ('b, acc, input_precision="tf32"',
                             'b, input_precision="tf32"', "tf32 64x64x64"),
    "acc from 1": (ZEROS, ZEROS + " + 1", "5x6x0"),
    "a not advanced": ("        a_ptrs += BLOCK_K * stride_ak\n", "", "x64"),
    "b not advanced": ("        b_ptrs += BLOCK_K * stride_bk\n", "", "x64"),
    "a advanced by rows": ("a_ptrs += BLOCK_K * stride_ak",
                           "a_ptrs += BLOCK_K * stride_am", "64x64x64"),
    "b advanced by columns": ("b_ptrs += BLOCK_K * stride_bk",
                              "b_ptrs += BLOCK_K * stride_bn", "64x64x64"),
    "b taken as K-major": ("b_ptrs += BLOCK_K * stride_bk",
                           "b_ptrs += BLOCK_K", "64x64x64 row-major"),
    "b taken as row-major": ("(offs_n % n) * stride_bn", "(offs_n % n)",
                             "64x64x64 K-major"),
    "strides of A swapped": (A_PTRS, A_PTRS.replace("am", "xx").replace(
        "ak", "am").replace("xx", "ak"), "64x64x64"),
    "strides of B swapped": (B_PTRS, B_PTRS.replace("bk", "xx").replace(
        "bn", "bk").replace("xx", "bn"), "64x64x64"),
    "strides of C swapped": (
        "offs_m * stride_cm + offs_n * stride_cn",
        "offs_m * stride_cn + offs_n * stride_cm", "64x64x64"),
    "strides of A for B": ("*a.stride(), *b.stride()",
                           "*b.stride(), *a.stride()", "64x64x64 K-major"),
    "store mask without m": (C_MASK, "offs_n < n", "wrote outside out"),
    "store mask without n": (C_MASK, "offs_m < m", "wrote outside out"),
    "store without mask": ("acc, mask=c_mask", "acc", "wrote outside out"),
    "m wrapped at n": ("offs_m % m", "offs_m % n", "197x70x45"),
    "m and n swapped": ("out, m, n, k,", "out, n, m, k,", "197x70x45"),
    "rows_here ignored": ("min(tiles_m - first_m, GROUP_M)", "GROUP_M",
                          "270x70x20"),
    "last group dropped": (C_MASK, C_MASK + " & (first_m == 0)", "270x70x20"),
    "a tile repeated": ("% per_group) // rows_here", "% per_group) // GROUP_M",
                        "270x70x20"),
    "groups overlap": ("(pid // per_group) * GROUP_M", "pid // per_group",
                       "270x70x20"),
    "a tile unwritten": (C_MASK, C_MASK + " & (pid_m + pid_n < 5)",
                         "270x70x20"),
    "a tile row too few": ('triton.cdiv(m, meta["BLOCK_M"])',
                           'm // meta["BLOCK_M"]', "197x70x45"),
    "A in bfloat16": ("        if IEEE:\n", "        a = a.to(tl.bfloat16)"
                      ".to(tl.float32)\n        if IEEE:\n", "ieee 64x64x64"),
    "C of zeros": ("tl.store(c_ptrs, acc", "tl.store(c_ptrs, acc * 0", "x64"),
    "C of NaN": ("tl.store(c_ptrs, acc", 'tl.store(c_ptrs, acc * float("nan")',
                 "5x6x0"),
    "softmax ignores out": ("out = x.new_empty(x.shape) if out is None else "
                            "out", "out = x.new_empty(x.shape)", "1 columns"),
    "matmul ignores out": ("out = a.new_empty((m, n)) if out is None else out",
                           "out = a.new_empty((m, n))", "64x64x64"),
    "softmax in place": ("(src, dst, src", "(src, src, src",
                         "wrote on an input"),
    "matmul writes on a": ("**config)\n    return out",
                           "**config)\n        a.neg_()\n    return out",
                           "wrote on an input"),
    "a taken as row-major": ("offs_k[None, :] * stride_ak", "offs_k[None, :]",
                             "197x70x45"),
    "a advanced by 1": ("a_ptrs += BLOCK_K * stride_ak", "a_ptrs += BLOCK_K",
                        "197x70x45"),
    "C taken as row-major": ("offs_n * stride_cn", "offs_n", "197x70x45"),
    "tile column by rows": ("pid_n * BLOCK_N", "pid_n * BLOCK_M", "197x70x45"),
    "tile row by columns": ("pid_m * BLOCK_M", "pid_m * BLOCK_N", "197x70x45"),
    "grid by rows alone": ('* triton.cdiv(n, meta["BLOCK_N"])',
                           '* triton.cdiv(n, meta["BLOCK_M"])', "197x70x45"),
    "copy not copied": ("else out.copy_(dst)", "else out", "127 columns"),
    "softmax's copy returned": ("return out if dst is out else out.copy_(dst)",
                                "return dst", "127 columns"),
    "softmax returns x": ("return out if dst is out else out.copy_(dst)",
                          "return x", "returned another"),
    "matmul returns a": ("**config)\n    return out",
                         "**config)\n    return a", "returned another"),
}

DOUBLES = {  # a fault in losing a verdict: its edit, and one of the FAULTS
    "softmax verdicts": ("passed &= check(", "passed = check(",
                         "wrong at 1024 alone"),
    "matmul verdicts": ("passed &= right", "passed = right", "K tail of 1"),
    "either part": ('softmax_checks("cpu") & matmul', 'softmax_checks("cpu") '
                    "| matmul", "pad of 0"),
    "exit status": ("return int(not passed)", "return 0", "pad of 0"),
}

JUDGES = {  # in the checks and tolerances
    "written as error > limit": ("~(errors <= limit)", "errors > limit"),
    "result against itself": ("np.abs(got - want)", "np.abs(got - got)"),
    "reference for result": ("np.abs(got - want)", "np.abs(want - want)"),
    "NaN always right": ("np.isnan(got) & np.isnan(want)", "np.isnan(got)"),
    "NaN excuses all": ("np.isnan(got) & np.isnan(want)", "np.isnan(want)"),
    "equal infinity wrong": ("(got == want) | np.isnan", "np.isnan"),
    "mean, not maximum": ("errors = np.abs(got - want) / scale",
                          "errors = (np.abs(got - want) / scale).mean("
                          "keepdims=True) + 0 * want"),
    "out starts as 0": ("inputs[-1][0].shape[1]), torch.nan)",
                        "inputs[-1][0].shape[1]), 0.0)"),
    "guard not read": (
        'faults.append("; wrote outside out, or returned another")', "pass"),
    "inputs not read": ('faults.append("; wrote on an input")', "pass"),
    "inputs not kept": ("[frame.clone() for", "[frame for"),
    "always passes": ("return not faults, out", "return True, out"),
    "k for sqrt(k)": ("= 4 * np.sqrt(k) *", "= 4 * k *"),
    "k squared": ("= 4 * np.sqrt(k) *", "= 4 * k**2 *"),
    "k left out": ("= 4 * np.sqrt(k) *", "= 4 *"),
    "a bit lost": ("np.sqrt(k) * 2**-24,", "np.sqrt(k) * 2**-23,"),
    "tf32 for ieee": ('if precision == "ieee" else', "if False else"),
    "ieee for tf32": ('if precision == "ieee" else', "if True else"),
    "tf32 too wide": ("2 * 2**-10 +", "4 * 2**-10 +"),
    "n for sqrt(n)": ("return (np.sqrt(n) + 8)", "return (n + 8)"),
    "exp too wide": ("(np.sqrt(n) + 8) * 2**-24,", "(np.sqrt(n) + 80) * "
                     "2**-24,"),
}

PROBED = {  # what no run on a CPU can tell
    "always ieee": ("IEEE=bool(ieee)", "IEEE=True"),
    "ieee inverted": ("IEEE=bool(ieee)", "IEEE=not ieee"),
}

FENCED = {  # loads past an operand's end, whose lanes the store leaves out
    "m not wrapped": ("offs_m % m", "offs_m"),
    "n not wrapped": ("offs_n % n", "offs_n"),
    "load not masked": LOAD,
}

EMITTED = {  # in what the compiled code multiplies with, as the table shows it
    "tf32 in ieee": [('acc, input_precision="ieee"',
                      'acc, input_precision="tf32"')],
    "ieee in tf32": [('acc, input_precision="tf32"',
                      'acc, input_precision="ieee"')],
    "tf32x3 in ieee": [('acc, input_precision="ieee"',
                        'acc, input_precision="tf32x3"')],
    "the default in both": [(f'acc, input_precision="{p}"', "acc")
                            for p in ("ieee", "tf32")],
    "branches swapped": [("if IEEE:", "if not IEEE:")],
}
INT32 = (".to(tl.int64)", "")
COUNT = 107

# Forks a child for each script named to it, since importing torch and Triton
# takes longer than the checks.  The child ends as a run of the script ends.
FORKS = """
import os, runpy, signal, sys
import numpy, torch, triton
for path in map(str.strip, sys.stdin):
    child = os.fork()
    if not child:
        signal.alarm(120)
        file = os.open(path + ".out", os.O_CREAT | os.O_WRONLY)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv = [path]
        runpy.run_path(path, run_name="__main__")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

# Each operand ends where a page begins that nobody may touch.
FENCES = """
    import ctypes, mmap
    def fenced(rows, cols):
        page, count = mmap.PAGESIZE, rows * cols
        size = -(-4 * count // page) * page
        pages = mmap.mmap(-1, size + page)
        end = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + size
        assert not ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), page, 0)
        flat = torch.frombuffer(pages, dtype=torch.float32, count=size // 4)
        return flat[size // 4 - count:].view(rows, cols).fill_(1)
    for c in CONFIGS:
        for b in (fenced(83, 61), fenced(61, 83).t()):
            c_ = matmul(fenced(97, 83), b, True, c, fenced(97, 61))
            assert c_.eq(83).all()
    assert softmax(fenced(2, 333), fenced(2, 333)).eq(1 / 333).all()
    leave(0)
"""

# Row 2 lies 2^31 elements after row 0, in a file of holes that takes up no
# space; an offset that wraps finds zeros, 2^31 elements before row 0.
FAR = """
    x, out = (torch.from_file(f"{__file__}.{name}", True, 2**32 + 1024)
              .as_strided((3, 4), (2**30, 1), 2**31) for name in "xy")
    x.copy_(torch.arange(12.).view(3, 4)**2)
    leave(int(not softmax(x, out).allclose(torch.softmax(x, 1))))
"""


def planted(folder, *edits, then="    leave(main())\n"):
    """The script with edits (old, new, times), ending in `then`."""
    text = TEXT
    for old, new, *times in (*edits, ("    leave(main())\n", then)):
        assert text.count(old) == (times or [1])[0], old
        text = text.replace(old, new)
    path = folder / "planted.py"
    path.write_text(text, encoding="utf-8")
    return path


def load(path):
    """The module at path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def forked():
    """Run a script interpreted; its exit status and its output."""
    with subprocess.Popen([sys.executable, "-c", FORKS], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=clean_env(
                              TRITON_INTERPRET=1, OMP_NUM_THREADS=1)) as server:
        def run(path):
            print(path, file=server.stdin, flush=True)
            status = int(server.stdout.readline())
            return status, path.with_name(f"{path.name}.out").read_text()
        yield run


def seen(status, output, check):
    """Whether a run ended as it must where that check sees a fault."""
    return status == 1 and output.endswith("exit 1\n") and any(
        check in line for line in output.splitlines()
        if line.startswith(("FAIL", "stopped by")))


def test_nothing_planted(tmp_path, forked):
    status, output = forked(planted(tmp_path))
    assert status == 0 and "FAIL" not in output and "pass" in output


# Every other one is left to -m slow: each is a whole run of the script.
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (turn % 2))
    for turn, name in enumerate(FAULTS)])
def test_the_run_fails(name, tmp_path, forked):
    old, new, check, *times = FAULTS[name]
    status, output = forked(planted(tmp_path, (old, new, *times)))
    assert seen(status, output, check), f"{status}\n{output}"


@pytest.mark.parametrize("name", DOUBLES)
def test_a_lost_verdict_is_seen(name, tmp_path, forked):
    """What test_the_run_fails asserts does not hold with the verdict lost."""
    *edit, fault = DOUBLES[name]
    old, new, check, *times = FAULTS[fault]
    result = forked(planted(tmp_path, edit, (old, new, *times)))
    assert "FAIL" in result[1] and not seen(*result, check)


def misjudged(t):
    """Names of the made-up runs on which t.check gives the wrong verdict."""
    rng = np.random.default_rng(86)
    a, b = (torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))
            for shape in ((5, 64), (64, 6)))
    c64 = (a.double() @ b.double()).numpy()
    scale = (a.abs().double() @ b.abs().double()).numpy()
    y64 = np.exp(c64) / np.exp(c64).sum(axis=1, keepdims=True)
    special = c64.copy()
    special[0, :3] = np.nan, np.inf, -np.inf
    top = y64.max(axis=1, keepdims=True)
    tolerances = {  # as the design has them, for 64 terms
        "ieee": (c64, scale, t.matmul_tolerance(64, "ieee"), 32 * 2**-24),
        "tf32": (c64, scale, t.matmul_tolerance(64, "tf32"),
                 2 * 2**-10 + 2**-20 + 32 * 2**-24),
        "softmax": (y64, top, t.softmax_tolerance(64), 16 * 2**-24)}

    def put(values, at=(), value=0.0):
        values = np.array(values)
        values[at] = value if at else values
        return lambda a, b, out: out.copy_(torch.from_numpy(values))

    def outside(a, b, out):
        out.copy_(torch.from_numpy(c64))
        out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(0)
        return out

    def on_input(a, b, out):
        b[63, 5] = 0
        return out.copy_(torch.from_numpy(c64))

    runs = [("right", True, c64, put(c64)), ("0", False, c64, put(0 * c64)),
            ("constant", False, c64, put(0 * c64 + c64.mean())),
            ("NaN", False, c64, put(c64 * np.nan)),
            ("a NaN", False, c64, put(c64, (4, 5), np.nan)),
            ("an inf", False, c64, put(c64, (4, 5), np.inf)),
            ("unwritten", False, 0 * c64, lambda a, b, out: out),
            ("another", False, c64, lambda a, b, out: put(c64)(a, b, out) + 0),
            ("outside", False, c64, outside), ("input", False, c64, on_input),
            ("special", True, special, put(special)),
            ("NaN missed", False, special, put(special, (0, 0), 0.5)),
            ("NaN for inf", False, special, put(special, (0, 1), np.nan)),
            ("inf for -inf", False, special, put(special, (0, 2), np.inf)),
            ("elsewhere", False, special, put(special, (3, 3), 99.0))]
    runs = [(*run, scale, t.matmul_tolerance(64, "ieee")) for run in runs]
    for name, (want, size, tolerance, limit) in tolerances.items():
        for share in (0.9, 1.1):
            off = put(want, (4, 5), (want + share * limit * size)[4, 5])
            runs.append((f"{share} of the limit, {name}", share < 1, want, off,
                         size, tolerance))
    return [name for name, right, want, run, size, tolerance in runs
            if right is not t.check(
                name, run, [t.framed(a, "cpu"), t.framed(b, "cpu")], want, size,
                tolerance)[0]]


@pytest.mark.interpreter
@pytest.mark.parametrize("name", [None, *JUDGES])
def test_a_wrong_judge_is_seen(name, tmp_path):
    """The script's checks judge every made-up run rightly, the faulty not."""
    edits = [JUDGES[name]] if name else []
    wrong = misjudged(load(planted(tmp_path, *edits)))
    assert bool(wrong) is bool(name), wrong


def unanswered(t):
    """What t's launchers do wrong where every stride and tile counts."""
    rng = np.random.default_rng(86)
    wrong, modes = [], []
    # Whole numbers, of which float32 loses nothing.  Columns first throughout.
    a, b = (torch.from_numpy(rng.integers(-9, 9, shape).astype("f")).t()
            for shape in ((83, 270), (150, 83)))
    for config in t.CONFIGS:
        out = torch.full((150, 270), torch.nan).t()
        result = t.matmul(a, b, True, config, out)
        if result is not out or not out.equal(a @ b):
            wrong.append(config)
    out = torch.full((270, 2 * 83), torch.nan)[:, ::2]  # written by a copy
    result = t.softmax(a, out)
    if result is not out or not out.allclose(torch.softmax(a, 1)):
        wrong.append("softmax")
    if not t.softmax(a).allclose(torch.softmax(a, 1)):
        wrong.append("softmax without out")
    for mode in (True, False):  # the interpreter cannot tell the two apart
        t.matmul(a, b, mode, kernel=collections.defaultdict(
            lambda: lambda *_, **named: modes.append(named["IEEE"])))
    return wrong + ["mode"] * (modes != [True, False])


@pytest.mark.interpreter
@pytest.mark.parametrize("name", [None, *PROBED])
def test_a_wrong_launcher_is_seen(name, tmp_path):
    edits = [PROBED[name]] if name else []
    wrong = unanswered(load(planted(tmp_path, *edits)))
    assert bool(wrong) is bool(name), wrong


@pytest.mark.parametrize("name", [None, *FENCED])
def test_nothing_is_read_past_the_end(name, tmp_path, forked):
    """A load that leaves its operand ends the process; ours does not."""
    edits = [FENCED[name]] if name else []
    status, output = forked(planted(tmp_path, *edits, then=FENCES))
    assert status == (-11 if name else 0), output


@pytest.mark.parametrize("edits", [[], [INT32]], ids=["int64", "int32"])
def test_rows_past_2_31_elements(edits, tmp_path, forked):
    status, output = forked(planted(tmp_path, *edits, then=FAR))
    assert status == len(edits), output


def test_the_emitted_table_fails(tmp_path):
    """Compiled for sm_80 and sm_90, which takes no GPU; in one process."""
    faults = {"none": [], **EMITTED}
    for number, edits in enumerate(faults.values()):
        planted(tmp_path, *edits).rename(tmp_path / f"planted{number}.py")
    result = subprocess.run(
        [sys.executable, "-c", f"""
for number in range({len(faults)}):
    t = __import__(f"planted{{number}}")
    del t.CONFIGS[1:]
    print("right", t.emitted(80), t.emitted(90))"""],
        cwd=tmp_path, env=clean_env(), text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    found = [line for line in result.stdout.splitlines() if "right" in line]
    assert dict(zip(faults, found, strict=True)) == {
        name: f"right {not edits} {not edits}"
        for name, edits in faults.items()}


def test_count():
    kinds = FAULTS, DOUBLES, JUDGES, PROBED, FENCED, EMITTED, {"int32": INT32}
    assert COUNT == sum(map(len, kinds)) >= 36
