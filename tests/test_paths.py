"""Every path through the script: exit status, messages, header, verdicts."""
import ast
import hashlib
import importlib.metadata
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
import triton
from conftest import DEVICE, ROOT, SCRIPT, ended, run_script

import triton_softmax_matmul as t

COMMAND = "TRITON_INTERPRET=1 python3 triton_softmax_matmul.py"
INSTALL = "pip install torch==2.13.0 triton==3.7.1 numpy"

# Run before the script: a made-up card, on which a kernel may not even start.
FAKE = """
import torch, triton
from triton.runtime.jit import JITFunction
def never(*args, **kwargs):
    raise AssertionError("a kernel was compiled or launched")
triton.compile = JITFunction.run = never
torch.version.cuda, torch.version.hip = "12.8", None
torch.cuda.init = lambda: None
torch.cuda.get_device_capability = lambda device=None: (7, 5)
torch.cuda.get_device_name = lambda device=None: "Some Card"
"""
NO_DRIVER = """
def init():
    raise RuntimeError("Found no NVIDIA driver\\nand a second line")
torch.cuda.init = init
"""
# Run before the script: importing one of these packages raises that error.
BROKEN = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in {names}:
            raise {error}
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def card(monkeypatch):
    """This process as one that compiles, on a card of our own making."""
    def never(*args, **kwargs):
        raise AssertionError("a kernel was compiled or launched")
    for owner, name in [(triton, "compile"), (t, "softmax"), (t, "matmul"),
                        (triton.runtime.jit.JITFunction, "run")]:
        monkeypatch.setattr(owner, name, never)
    monkeypatch.setattr(t, "INTERPRET", False)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some Card")

    def of(*capability):
        monkeypatch.setattr(torch.cuda, "get_device_capability",
                            lambda: capability)
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda: types.SimpleNamespace(
                name="Some Card", major=capability[0], minor=capability[1],
                total_memory=2**34))
    return of


# ------------------------------------------------------------------- refused
@pytest.mark.parametrize("capability", [(6, 0), (7, 0), (7, 5)])
def test_old_card_is_refused(card, capsys, capability):
    card(*capability)
    assert t.main() == 1
    text = capsys.readouterr().out
    assert "refused: Some Card has capability {}.{}.".format(
        *capability) in text
    assert "8.0 and newer" in text
    assert COMMAND in text


@pytest.mark.parametrize("capability", [
    (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_newer_card_is_not_refused(card, capability):
    card(*capability)  # as numbers: "12.0" < "8.0" as text
    assert t.refusal() is None


@pytest.mark.parametrize("capability", [(9, 0), (11, 0)])
def test_amd_is_refused_whatever_its_number(card, monkeypatch, capsys,
                                            capability):
    card(*capability)
    monkeypatch.setattr(torch.version, "hip", "6.2.41133")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert t.main() == 1
    text = capsys.readouterr().out
    assert "refused: AMD, ROCm 6.2.41133" in text
    assert COMMAND in text


def test_cpu_build_is_refused(card, monkeypatch, capsys):
    card(9, 0)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert t.main() == 1
    text = capsys.readouterr().out
    assert f"refused: no CUDA build: torch {torch.__version__} is" in text
    assert COMMAND in text


@pytest.mark.parametrize("preamble, words", [
    (FAKE, "refused: Some Card has capability 7.5."),
    (FAKE + NO_DRIVER, "refused: no visible GPU: Found no NVIDIA driver."),
], ids=["old card", "no driver"])
def test_refusal_in_a_process_of_its_own(run_after, preamble, words):
    result = run_after(preamble)
    text = ended(result, 1)
    assert words in text
    assert COMMAND in text
    assert result.stderr == ""


@pytest.mark.gpu
def test_gpu_hidden_from_the_process():
    text = ended(run_script(env={"CUDA_VISIBLE_DEVICES": ""}), 1)
    assert "refused: no visible GPU: " in text


# ---------------------------------------------------------- could not start
@pytest.mark.parametrize("names, error, words", [
    (["numpy"], "ModuleNotFoundError(f'No module named {name!r}')",
     "No module named 'numpy'"),
    (["torch"], "ModuleNotFoundError(f'No module named {name!r}')",
     "No module named 'torch'"),
    (["triton"], "ModuleNotFoundError(f'No module named {name!r}')",
     "No module named 'triton'"),
    (["triton"], "OSError('libtriton.so: wrong ELF class\\nand more')",
     "libtriton.so: wrong ELF class"),
    (["numpy"], "AttributeError('module has no attribute')",
     "module has no attribute"),
    (["numpy"], "AssertionError()", "AssertionError"),
    # numpy's own, where its binaries do not fit, begins with empty lines.
    (["numpy"], "ImportError('\\n\\nIMPORTANT: PLEASE READ\\n\\nadvice')",
     "IMPORTANT: PLEASE READ"),
], ids=["no numpy", "no torch", "no triton", "OSError", "AttributeError",
        "no message", "numpy's message"])
def test_package_missing_or_broken(run_after, names, error, words):
    result = run_after(BROKEN.format(names=names, error=error))
    text = ended(result, 2)
    assert text.count("\n") == 2  # one plain line and the exit line
    line = text.splitlines()[0]
    assert words in line
    assert INSTALL in line
    assert "Linux" in line
    assert "WSL2" in line
    assert result.stderr == ""


def test_help_needs_no_package(run_after):
    names = ["numpy", "torch", "triton"]
    result = run_after(BROKEN.format(names=names, error="ImportError"),
                       "--help")
    assert ended(result, 0) == f"{t.__doc__.strip()}\nexit 0\n"


@pytest.mark.parametrize("args", [["-h"], ["--help", "x"], ["2048"], [""]])
def test_wrong_argument(args):
    text = ended(run_script(*args), 2)
    assert "--help" in text
    assert repr(args) in text


VERSIONS = """
import numpy, triton
triton.__version__, numpy.__version__ = {!r}, {!r}
"""


def test_triton_36_cannot_interpret_with_numpy_24(run_after):
    text = ended(run_after(VERSIONS.format("3.6.0", "2.4.0"),
                           TRITON_INTERPRET="1"), 2)
    assert "Triton 3.6.0 cannot interpret with numpy 2.4.0" in text
    assert "numpy<2.4" in text
    assert "Triton 3.7 or newer" in text


@pytest.mark.skipif(
    not (triton.__version__.startswith("3.6.")
         and np.lib.NumpyVersion(np.__version__) >= "2.4.0"),
    reason="needs Triton 3.6 and numpy 2.4 or newer themselves")
def test_the_hole_itself():  # unreachable in process: the import fails
    text = ended(run_script(env={"TRITON_INTERPRET": "1"}), 2)
    assert f"cannot interpret with numpy {np.__version__}" in text


# ---------------------------------------------------------------- which mode
# What decides the mode is read on import, so each case is a process of its own,
# forked after the slow imports; it prints what the script made of the case.
FORKS = """
import os, numpy, torch
for value, versions in {cases}:
    if not os.fork():
        try:
            if value is not None:
                os.environ["TRITON_INTERPRET"] = value
            import triton
            if versions:
                triton.__version__, numpy.__version__ = versions
            import triton_softmax_matmul
            result = triton_softmax_matmul.INTERPRET
        except Exception as error:
            result = error
        print(repr(value), *versions, result, flush=True)
        os._exit(0)
    os.wait()
"""


def modes(*cases):
    """A line for each (TRITON_INTERPRET, (Triton, numpy) versions or ())."""
    return run_script(script=FORKS.format(cases=cases), flags=["-c"],
                      cwd=ROOT).stdout.splitlines()


def test_interpreted_when_triton_says_so():
    on, off = ("1", "true", "YES", "y", "on"), ("0", "2", "", " 1")
    assert modes(*((value, ()) for value in (*on, *off, None))) == [
        *(f"{value!r} True" for value in on),
        *(f"{value!r} False" for value in off), "None False"]


def test_only_triton_36_with_numpy_24_cannot_interpret():
    *fine, hole = modes(
        ("1", ("3.6.0", "2.3.5")), ("1", ("3.7.0", "2.4.0")),
        (None, ("3.6.0", "2.4.0")), ("1", ("3.6.1", "2.10.0")))
    assert fine == ["'1' 3.6.0 2.3.5 True", "'1' 3.7.0 2.4.0 True",
                    "None 3.6.0 2.4.0 False"]
    assert "cannot interpret with numpy 2.10.0" in hole


def test_a_value_that_is_not_on_is_refused_without_a_gpu():
    text = ended(run_script(env={"TRITON_INTERPRET": "2",
                                 "CUDA_VISIBLE_DEVICES": ""}), 1)
    assert "refused: no " in text
    assert "TRITON_INTERPRET is set to '2'" in text


@pytest.mark.parametrize("before, after", [(None, "1"), ("1", "0")])
def test_interpret_changed_after_triton_was_imported(run_after, before, after):
    text = ended(run_after(
        f"import os, triton; os.environ['TRITON_INTERPRET'] = {after!r}",
        TRITON_INTERPRET=before), 2)
    assert "TRITON_INTERPRET was changed after" in text


# ------------------------------------------------------ the interpreter pass
@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """One run, from another directory, with variables that it must report."""
    return run_script(cwd=tmp_path_factory.mktemp("elsewhere"), env={
        "TRITON_INTERPRET": "YES", "TRITON_F32_DEFAULT": "tf32x3",
        "NVIDIA_TF32_OVERRIDE": "1", "TRITON_CACHE_DIR": "/nowhere/at/all",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8"})


def test_interpreter_pass(interpreted):
    text = ended(interpreted, 0)
    assert interpreted.stderr == ""
    assert "FAIL" not in text
    assert text.count("pass  softmax") >= 16
    assert text.count("pass  ieee") == text.count("pass  tf32") >= 14
    assert "1, 2, 4 open" in text
    assert "3 held in the interpreter" in text


def test_interpreter_pass_times_nothing(interpreted):
    units = r"\d\s*(ns|us|µs|ms|s|sec\w*|[KMGT]?FLOPS?|[KMGT]?B/s|FLOP/s)\b"
    found = re.findall(units, interpreted.stdout, re.I)
    assert not found
    assert "/s" not in interpreted.stdout


def test_header(interpreted):
    lines = interpreted.stdout.splitlines()
    source = SCRIPT.read_bytes()
    part = source[source.index(b"@triton.jit"):source.index(b"def require")]
    part = part.removeprefix(b"@triton.jit")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", lines[0])
    assert lines[1] == (
        f"script {hashlib.sha256(source).hexdigest()[:12]}, kernels and "
        f"CONFIGS {hashlib.sha256(part).hexdigest()[:12]}")
    assert lines[2] == (
        f"Python {sys.version.split()[0]}, numpy {np.__version__}, torch "
        f"{torch.__version__}, CUDA {torch.version.cuda}")
    assert lines[3].startswith(f"Triton {triton.__version__}, ")
    assert {"TRITON_INTERPRET is set to 'YES'",
            "TRITON_F32_DEFAULT is set to 'tf32x3'",
            "NVIDIA_TF32_OVERRIDE is set to '1'",
            "CUBLAS_WORKSPACE_CONFIG is set to ':4096:8'"} <= set(lines)
    assert "nowhere" not in interpreted.stdout  # a path is the reader's own


@pytest.mark.parametrize("requires, version, route", [
    (["triton==3.7.1; platform_system == 'Linux'"], "3.7.1",
     "torch's own pin"),
    (["numpy", "triton ==3.7.1 ; sys_platform == 'linux'"], "3.7.1",
     "torch's own pin"),
    (["triton~=3.8.0; platform_system == 'Linux'"], "3.8.2",
     "torch's own pin"),
    (["triton==3.7.1"], "3.9.0", "installed over torch's pin ==3.7.1"),
    (["triton~=3.9.0"], "3.8.0", "installed over torch's pin ~=3.9"),
    (["numpy", "pytorch-triton==3.7.1"], "3.7.1",
     "beside a torch that pins none"),
    (None, "3.7.1", "beside a torch that pins none")])
def test_route_by_which_triton_came(monkeypatch, capsys, requires, version,
                                    route):
    monkeypatch.setattr(importlib.metadata, "requires", {"torch": requires}.get)
    monkeypatch.setattr(triton, "__version__", version)
    t.header()
    assert f"\nTriton {version}, {route}\n" in capsys.readouterr().out + "\n"


@pytest.mark.parametrize("softmax, matmul, status, verdict", [
    (True, True, 0, "held"), (False, True, 1, "falsified"),
    (True, False, 1, "falsified")])
def test_interpreted_status_is_the_checks(monkeypatch, capsys, softmax, matmul,
                                          status, verdict):
    monkeypatch.setattr(t, "INTERPRET", True)
    monkeypatch.setattr(t, "softmax_checks", lambda device: softmax)
    monkeypatch.setattr(t, "matmul_checks", lambda device: matmul)
    assert t.main() == status
    assert f"\n3 {verdict} in the interpreter" in capsys.readouterr().out


def test_import_does_no_work():
    # And where a package is missing, an importer, such as the exercise, gets
    # the error and not our exit.
    result = run_script(flags=["-c"], cwd=ROOT, script="""
import signal, sys
before = signal.getsignal(signal.SIGINT)  # ignored, where `&` started us
triton = sys.modules["triton"] = None
try:
    import triton_softmax_matmul
    raise SystemExit("imported without Triton")
except ImportError:
    del sys.modules["triton"]
import triton
triton.compile = triton.runtime.jit.JITFunction.run = None
import triton_softmax_matmul
assert sys.excepthook is sys.__excepthook__
assert signal.getsignal(signal.SIGINT) is before
""")
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


# ---------------------------------------------------------- the compiled path
@pytest.fixture
def measured(card, monkeypatch):
    """The compiled path with every part that needs a GPU passed over."""
    card(8, 6)
    for name in ("softmax_checks", "matmul_checks", "emitted"):
        monkeypatch.setattr(t, name, lambda device: True)
    monkeypatch.setattr(t, "precision_table", lambda a, b: {})
    monkeypatch.setattr(t, "sweep", lambda a, b: {})
    monkeypatch.setattr(t, "race", lambda *args: {})
    monkeypatch.setattr(torch, "Generator", lambda device: (
        types.SimpleNamespace(manual_seed=lambda seed: None)))
    monkeypatch.setattr(torch, "randn", lambda *shape, device, generator: (
        torch.zeros(2, 2, 2)))


@pytest.mark.parametrize("gates, status", [(True, 0), (False, 1)])
def test_compiled_status_is_the_gates(measured, monkeypatch, capsys, gates,
                                      status):
    monkeypatch.setattr(t, "predictions", lambda errors, times: gates)
    assert t.main() == status
    assert ("Some Card, compute capability 8.6, 16384 MiB"
            in capsys.readouterr().out)


@pytest.mark.parametrize("name", [
    "softmax_checks", "matmul_checks", "emitted"])
def test_nothing_is_timed_after_a_failed_check(measured, monkeypatch, capsys,
                                               name):
    monkeypatch.setattr(t, name, lambda device: False)
    for timed in ("sweep", "race", "predictions"):
        monkeypatch.delattr(t, timed)
    assert t.main() == 1
    assert "nothing is timed" in capsys.readouterr().out


@pytest.mark.gpu
def test_compiled_run():
    result = run_script(timeout=550)
    # Which it is, the card decides: a falsified prediction is no fault.
    gates = re.search("falsified, gated|larger, falsified", result.stdout)
    text = ended(result, 1 if gates else 0)
    assert "FAIL" not in text
    assert text.count("cubed, ieee") == text.count("cubed, tf32") == 2
    assert len(re.findall(r"^\d+,\d+,\d+ .* TFLOP/s ", text, re.M)) == 12


# -------------------------------------------------------------- the verdicts
def judged(capsys, tf32=250, **rows):
    """What predictions returns, and its lines; errors are in units of ieee's,
    rows are milliseconds by shape, as ieee_row, ieee_k, tf32_row, tf32_k."""
    rows = {"ieee_row": (4, 4, 3), "ieee_k": (5, 5, 4),
            "tf32_row": (2, 2, 1), "tf32_k": (3, 3, 2)} | rows
    times = {(p, l): dict(zip(map(t.shape, t.CONFIGS), rows[f"{p}_{short}"],
                              strict=True))
             for p in t.PRECISIONS
             for l, short in (("row-major", "row"), ("K-major", "k"))}
    gates = t.predictions({"ieee": 1e-7, "tf32": tf32 * 1e-7}, times)
    return gates, capsys.readouterr().out.splitlines()


def test_all_held(capsys):
    gates, lines = judged(capsys)
    assert gates is True
    assert "\n".join(lines) == """
1 held: tf32's error is 250 times ieee's (predicted: 100); gated: larger, held
2 held, gated: the best tf32 is 3.00 times as fast as the best ieee \
(predicted: 2)
    row-major B alone: 3.00, held
    K-major B alone: 2.00, held
3 held on this GPU: softmax agrees with float64
4 held in ieee, row-major B: the smallest takes 1.33 of the best larger \
shape's time
4 held in tf32, row-major B: the smallest takes 2.00 of the best larger \
shape's time"""


@pytest.mark.parametrize("tf32, size, direction", [
    (100, "held", "held"), (99.4, "falsified", "held"),
    (1, "falsified", "falsified"), (0.5, "falsified", "falsified")])
def test_error_is_gated_on_its_direction_only(capsys, tf32, size, direction):
    gates, lines = judged(capsys, tf32=tf32)
    assert gates == (direction == "held")
    assert lines[1].startswith(f"1 {size}: ")
    assert lines[1].endswith(f"gated: larger, {direction}")


def test_speed_is_gated(capsys):
    gates, lines = judged(capsys, tf32_row=(2, 2, 1.6), tf32_k=(2, 2, 1.6))
    assert gates is False
    assert lines[2].startswith("2 falsified, gated: the best tf32 is 1.88 ")
    gates, lines = judged(capsys, tf32_row=(2, 2, 1.5), tf32_k=(2, 2, 1.5))
    assert gates is True  # "at least"
    assert lines[2].startswith("2 held, gated: the best tf32 is 2.00 ")


def test_one_layout_alone_would_have_falsified(capsys):
    # The best of each precision, whichever layout it is in: 3 over 1.
    gates, lines = judged(capsys, tf32_row=(3, 3, 2), tf32_k=(2, 2, 1))
    assert gates is True
    assert lines[2].startswith("2 held, gated: the best tf32 is 3.00 ")
    assert lines[3:5] == ["    row-major B alone: 1.50, falsified",
                          "    K-major B alone: 4.00, held"]
    assert lines[7].startswith("4 held in tf32, K-major B: ")


@pytest.mark.parametrize("smallest, verdict", [
    (1.021, "held"), (1.019, "a tie"), (1, "a tie"), (0.981, "a tie"),
    (0.979, "falsified")])
def test_shapes_within_two_percent_tie(capsys, smallest, verdict):
    gates, lines = judged(capsys, tf32_row=(smallest, 1.5, 1))
    assert gates is True  # not a gate
    assert lines[6].startswith("4 held in ieee, ")
    assert lines[7].startswith(f"4 {verdict} in tf32, row-major B: ")


def test_a_shape_that_did_not_fit_is_no_time(capsys):
    times = {(p, l): {t.shape(t.CONFIGS[0]): 4 if p == "ieee" else 1.5,
                      t.shape(t.CONFIGS[1]): 3 if p == "ieee" else 1}
             for p in t.PRECISIONS for l in t.LAYOUTS}
    assert t.predictions({"ieee": 1e-7, "tf32": 1e-4}, times)
    assert "4 held in tf32" in capsys.readouterr().out


# ------------------------------------------------------- timing and torch.mm
def test_race_goes_on_past_a_shape_that_does_not_fit(monkeypatch, capsys):
    def do_bench(run, warmup, rep, quantiles):
        assert quantiles == [0.5, 0.2, 0.8]  # the median comes first
        return run()

    def too_big():
        raise triton.OutOfResources(131072, 101376, "shared memory")
    monkeypatch.setattr(triton.testing, "do_bench", do_bench)
    times = t.race("a title", {
        "torch.mm": lambda: [2, 1.5, 2.5], "128,128,64": too_big,
        "64,64,32": lambda: [4, 3.5, 4.5]}, 8e9, "TFLOP/s")
    assert times == {"torch.mm": 2, "64,64,32": 4}
    head, first, row, last = capsys.readouterr().out.strip().splitlines()
    assert "a title" in head
    assert "median" in head
    # 8e9 FLOP in 2 ms are 4e12 a second.
    assert first.split() == ["torch.mm", "2.0000", "ms", "(1.5000", "..",
                             "2.5000)", "4.00", "TFLOP/s", "1.00"]
    assert row.startswith("128,128,64")
    for word in ("shared memory", "131072 required", "101376 available"):
        assert word in row
    assert last.split()[-3:] == ["2.00", "TFLOP/s", "0.50"]


@pytest.fixture
def settings(monkeypatch):
    """torch's precision setting, put back afterwards; its older switch raises,
    since to use both makes torch raise when either is read."""
    def never(*args):
        raise AssertionError("the legacy TF32 flag was used")
    for name in ("_get_cublas_allow_tf32", "_set_cublas_allow_tf32",
                 "_set_float32_matmul_precision"):
        monkeypatch.setattr(torch._C, name, never)
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    yield matmul
    matmul.fp32_precision = before


@pytest.mark.parametrize("before", ["ieee", "tf32", "none"])
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_pinned_mm_restores(monkeypatch, settings, before, precision):
    mm, seen = torch.mm, []
    settings.fp32_precision = before

    def watched(a, b, out):
        seen.append(settings.fp32_precision)
        return mm(a, b, out=out)
    monkeypatch.setattr(torch, "mm", watched)
    a, out = torch.eye(2, device=DEVICE), torch.zeros(2, 2, device=DEVICE)
    assert t.pinned_mm(a, 2 * a, precision, out) is out
    assert out.tolist() == [[2, 0], [0, 2]]
    assert seen == [precision]
    assert settings.fp32_precision == before


def test_pinned_mm_restores_after_an_error(settings):
    settings.fp32_precision = "ieee"
    with pytest.raises(RuntimeError):
        t.pinned_mm(torch.ones(2, 3), torch.ones(2, 3), "tf32")
    assert settings.fp32_precision == "ieee"


# ------------------------------------------------------------- the file itself
def test_kernel_line_counts():
    text = SCRIPT.read_text()
    kernels = [node for node in ast.parse(text).body
               if isinstance(node, ast.FunctionDef) and node.decorator_list]
    counts = {}
    for node in kernels:
        first = node.decorator_list[0].lineno
        lines = text.splitlines()[first - 1:node.end_lineno]
        assert lines[0] == "@triton.jit"
        counts[node.name] = sum(
            not line.strip().startswith("#") for line in lines if line.strip())
    assert counts == {"softmax_kernel": 11, "matmul_kernel": 33}


def test_script_is_narrow():
    lines = SCRIPT.read_text().splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_script_imports_three_packages():
    names = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        assert not isinstance(node, ast.ImportFrom)
    assert names - sys.stdlib_module_names == {"torch", "triton", "numpy"}


def test_ruff():
    result = subprocess.run([sys.executable, "-m", "ruff", "check", ROOT],
                            text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
