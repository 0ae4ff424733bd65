"""Every path through the script: exit status, messages, header, verdicts."""
import ast
import contextlib
import hashlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
import triton
from conftest import DEVICE, ROOT, SCRIPT, ended, in_turn, run_script

import triton_softmax_matmul as t

COMMAND = "TRITON_INTERPRET=1 python3 triton_softmax_matmul.py"
INSTALL = "pip install torch==2.13.0 triton==3.7.1 numpy"

# Run before the script: a made-up card, on which a kernel may not even start.
FAKE = """
import torch, triton, types
from triton.runtime.jit import JITFunction
def never(*args, **kwargs):
    raise AssertionError("a kernel was compiled or launched")
triton.compile = JITFunction.run = never
torch.version.cuda, torch.version.hip = "12.8", None
torch.cuda.init = lambda: None
torch.cuda.get_device_capability = lambda device=None: (7, 5)
torch.cuda.get_device_name = lambda device=None: "Some Card"
torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(
    name="Some Card", major=7, minor=5, total_memory=2**34)
"""
NO_DRIVER = """
def init(*args):
    raise RuntimeError("Found no NVIDIA driver\\nand a second line")
torch.cuda.init = torch.cuda.get_device_properties = init
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
    monkeypatch.setattr(t, "DEVICE", "cuda")
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
    (FAKE + NO_DRIVER, "refused: no usable GPU: Found no NVIDIA driver."),
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
    assert "refused: no usable GPU: " in text


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
    problem, install, _ = ended(result, 2).splitlines()
    assert words in problem
    assert problem.startswith("cannot start: ")
    for part in (INSTALL, "Linux", "WSL2"):
        assert part in install
    assert result.stderr == ""


def test_help_needs_no_package(run_after):
    names = ["numpy", "torch", "triton"]
    result = run_after(BROKEN.format(names=names, error="ImportError"),
                       "--help")
    assert ended(result, 0) == f"{t.__doc__.strip()}\nexit 0\n"


def test_help_without_docstrings():
    result = run_script("--help", flags=["-OO"])
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


@pytest.mark.parametrize("version", in_turn(["3.5.1", "3.6.0"], 2))
def test_an_old_triton_cannot_interpret_with_numpy_24(run_after, version):
    text = ended(run_after(VERSIONS.format(version, "2.4.0"),
                           TRITON_INTERPRET="1"), 2)
    assert f"Triton {version} cannot interpret with numpy 2.4.0" in text
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


def test_only_an_old_triton_with_numpy_24_cannot_interpret():
    *fine, hole = modes(
        ("1", ("3.6.0", "2.3.5")), ("1", ("3.7.0", "2.4.0")),
        ("1", ("3.10.0", "2.4.0")), (None, ("3.6.0", "2.4.0")),
        ("1", ("3.6.1", "2.10.0")))
    assert fine == ["'1' 3.6.0 2.3.5 True", "'1' 3.7.0 2.4.0 True",
                    "'1' 3.10.0 2.4.0 True", "None 3.6.0 2.4.0 False"]
    assert "cannot interpret with numpy 2.10.0" in hole


def test_a_value_that_is_not_on_is_refused_without_a_gpu():
    text = ended(run_script(env={"TRITON_INTERPRET": "2",
                                 "CUDA_VISIBLE_DEVICES": ""}), 1)
    assert "refused: no " in text
    assert "TRITON_INTERPRET is set to '2'" in text


@pytest.mark.parametrize("before, after", in_turn([(None, "1"), ("1", "0")],
                                                  2))
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
    of_each = [len(re.findall(rf"^pass  {precision} .* <= .* = ", text, re.M))
               for precision in ("ieee", "tf32")]
    assert of_each[0] == of_each[1] >= 14
    assert "Predictions 1, 2 and 4 stay open" in text
    assert re.search("^Prediction 3, in the interpreter .*: HELD.$", text, re.M)
    for demonstration in ("softmax of         1.000", "equal to a @ b: True",
                          "   0   2   4   6\n", "where memory ends"):
        assert demonstration in text


def test_interpreter_pass_times_nothing(interpreted):
    units = r"\d\s*(ns|us|µs|ms|s|sec\w*|[KMGT]?FLOPS?|[KMGT]?B/s|FLOP/s)\b"
    found = re.findall(units, interpreted.stdout, re.I)
    assert not found
    assert "/s" not in interpreted.stdout


def test_header(interpreted):
    lines = interpreted.stdout.splitlines()
    source = SCRIPT.read_bytes()
    part = "".join(inspect.getsource(kernel.fn) for kernel in (
        t.softmax_kernel, t.matmul_kernel)) + repr(t.CONFIGS)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", lines[0])
    assert lines[1] == (
        f"script {hashlib.sha256(source).hexdigest()[:12]}, kernels and "
        f"CONFIGS {hashlib.sha256(part.encode()).hexdigest()[:12]}")
    assert lines[2] == (
        f"Python {sys.version.split()[0]}, numpy {np.__version__}, torch "
        f"{torch.__version__}, CUDA {torch.version.cuda}")
    assert lines[3].startswith(f"Triton {triton.__version__}, ")
    assert lines[4] == ("no GPU is used: Triton interprets the kernels on the "
                        "CPU")
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


def test_torch_without_package_metadata(monkeypatch, capsys):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)
    monkeypatch.setattr(importlib.metadata, "requires", requires)
    t.header()
    assert "pin unknown: torch has no" in capsys.readouterr().out


@pytest.fixture
def interpreting(monkeypatch):
    """This process on the interpreter's path, whatever it runs on."""
    monkeypatch.setattr(t, "INTERPRET", True)
    monkeypatch.setattr(t, "DEVICE", "cpu")
    monkeypatch.setattr(t, "demonstrations", lambda: True)


@pytest.mark.parametrize("lost", [None, "softmax_checks", "matmul_checks",
                                  "take_steps"])
def test_interpreted_status_is_the_checks(interpreting, monkeypatch, capsys,
                                          lost):
    for name in ("softmax_checks", "matmul_checks", "take_steps"):
        def passes(*args, right=name != lost, **named):
            return right
        monkeypatch.setattr(t, name, passes)
    assert t.main() == (3 if lost else 0)
    text = capsys.readouterr().out
    assert ("and ieee equals tf32: HELD.\n" in text) != bool(lost)
    assert ("A check failed." in text) == bool(lost)


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
def measured(card, monkeypatch, tmp_path):
    """The compiled path with every part that needs a GPU passed over."""
    card(8, 6)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(t, "demonstrations", lambda: True)
    for name in ("softmax_checks", "matmul_checks", "repeat_checks", "emitted"):
        monkeypatch.setattr(t, name, lambda *args: True)
    monkeypatch.setattr(t, "sweep_operands", lambda: (None, None))
    monkeypatch.setattr(t, "precision_table", lambda a, b: {})
    monkeypatch.setattr(t, "sweep", lambda a, b: {})
    monkeypatch.setattr(t, "softmax_row", lambda: None)


@pytest.mark.parametrize("gates, status, words", [
    (True, 0, "Every check passed, and every gated prediction held."),
    (False, 6, "Every check passed. A gated prediction was falsified")])
def test_compiled_status_is_the_gates(measured, monkeypatch, capsys, gates,
                                      status, words):
    monkeypatch.setattr(t, "predictions", lambda errors, times: gates)
    assert t.main() == status
    text = capsys.readouterr().out
    assert "Some Card, compute capability 8.6, 16384 MiB, driver " in text
    assert words in text


@pytest.mark.parametrize("name", [
    "softmax_checks", "matmul_checks", "repeat_checks", "emitted"])
def test_nothing_is_timed_after_a_failed_check(measured, monkeypatch, capsys,
                                               name):
    monkeypatch.setattr(t, name, lambda *args: False)
    for timed in ("sweep", "time_rows", "predictions"):
        monkeypatch.delattr(t, timed)
    assert t.main() == 3
    assert "nothing is timed" in capsys.readouterr().out


@pytest.mark.gpu
def test_compiled_run():
    result = run_script(timeout=550)
    # Which it is, the card decides: a falsified prediction is no fault.
    gated = re.search("gated: FALSIFIED", result.stdout)
    text = ended(result, 6 if gated else 0)
    assert "FAIL" not in text.replace("FALSIFIED", "")
    assert text.count("cubed, ieee") == text.count("cubed, tf32") == 2
    assert len(re.findall(r"^\d+,\d+,\d+ .* TFLOP/s ", text, re.M)) == 12


# -------------------------------------------------------------- the verdicts
KEYS = [(precision, layout) for precision in t.PRECISIONS
        for layout in t.B_LAYOUTS]


def sweep_times(**rows):
    """What sweep returns, with rows given as ieee_row, tf32_K and so on."""
    usual = {"ieee_row": [4, 4, 3], "ieee_K": [5, 5, 4],
             "tf32_row": [2, 2, 1], "tf32_K": [3, 3, 2]} | rows
    return {key: usual[f"{key[0]}_{key[1].partition('-')[0]}"] for key in KEYS}


def judged(capsys, tf32=250, **rows):
    """What predictions returns, and {what is predicted: verdict}."""
    errors = {"ieee": 1e-7, "tf32": tf32 * 1e-7}
    gates = t.predictions(errors, sweep_times(**rows))
    text = capsys.readouterr().out
    verdicts = re.findall(r"^Prediction (.*): ([A-Z ]+)\.$", text, re.M)
    return gates, dict(verdicts), text


def test_all_held(capsys):
    gates, verdicts, text = judged(capsys)
    assert gates is True
    assert len(verdicts) == 2 + 2 + 1 + 4
    assert {*verdicts.values()} == {"HELD"}
    assert "which is 250 times as large." in text
    assert ("The best ieee row took 3.0000 ms (128,128,32) and the best tf32 "
            "row 1.0000 ms (128,128,32):\n    3.00 times as fast.") in text
    assert ("Each config against itself: 64,64,32 2.00; 128,64,32 2.00; "
            "128,128,32 3.00.") in text
    assert ("64,64,32 took 4.0000 ms, and the best larger one, 128,128,32, "
            "3.0000 ms:\n    a ratio of 1.33. The fastest of all was "
            "128,128,32;") in text


@pytest.mark.parametrize("tf32, size, direction", [
    (100, "HELD", "HELD"), (99.4, "FALSIFIED", "HELD"),
    (1, "FALSIFIED", "FALSIFIED"), (0.5, "FALSIFIED", "FALSIFIED")])
def test_error_is_gated_on_its_direction_only(capsys, tf32, size, direction):
    gates, verdicts, _ = judged(capsys, tf32=tf32)
    assert gates == (direction == "HELD")
    assert verdicts["1, tf32's error is at least 100 times ieee's"] == size
    assert verdicts["1, tf32's error is the larger one, gated"] == direction


GATED = "2 with row-major B, tf32 is at least twice as fast, gated"
REPORTED = "2 with K-major B, tf32 is at least twice as fast"


@pytest.mark.parametrize("row, held", [(1.6, False), (1.5, True)])
def test_speed_is_gated_with_row_major_b(capsys, row, held):
    gates, verdicts, _ = judged(capsys, tf32_row=[2, 2, row])
    assert gates is held  # "at least"
    assert verdicts[GATED] == ("HELD" if held else "FALSIFIED")


def test_speed_with_k_major_b_is_reported_alone(capsys):
    gates, verdicts, text = judged(capsys, tf32_K=[3, 3, 3])
    assert gates is True
    assert verdicts[REPORTED] == "FALSIFIED"
    assert "\n    1.33 times as fast." in text
    gates, verdicts, _ = judged(capsys, tf32_row=[3, 3, 3])
    assert gates is False  # although the best row of all is fast enough
    assert verdicts[REPORTED] == "HELD"


@pytest.mark.parametrize("smallest, verdict", [
    (1.021, "HELD"), (1.019, "A TIE"), (1, "A TIE"), (0.981, "A TIE"),
    (0.979, "FALSIFIED")])
def test_shapes_within_two_percent_tie(capsys, smallest, verdict):
    gates, verdicts, _ = judged(capsys, tf32_row=[smallest, 1.5, 1])
    assert gates is True  # not a gate
    name = "4 in tf32 with row-major B, the smallest shape is not the best"
    assert verdicts[name] == verdict


@pytest.mark.parametrize("missing", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_a_config_that_does_not_fit_is_left_out(capsys, missing):
    rows = {"ieee_row": [4, 4, 3], "ieee_K": [5, 5, 4], "tf32_row": [2, 2, 1],
            "tf32_K": [3, 3, 2]}
    for row in rows.values():
        for index in missing:
            row[index] = None
    gates, verdicts, _ = judged(capsys, **rows)
    assert gates is True
    second = [verdicts[GATED], verdicts[REPORTED]]
    fourth = [v for name, v in verdicts.items() if name.startswith("4")]
    assert (second == ["OPEN", "OPEN"]) == (len(missing) == 3)
    assert (fourth == ["OPEN"] * 4) == (0 in missing or len(missing) == 2)


def test_the_smallest_is_found_wherever_it_stands(capsys, monkeypatch):
    monkeypatch.setattr(t, "CONFIGS", t.CONFIGS[::-1])
    *_, text = judged(capsys, ieee_row=[3, 4, 6])
    words = "64,64,32 took 6.0000 ms, and the best larger one, 128,128,32"
    assert words in text


def test_two_configs_of_one_shape_keep_their_rows():
    config = t.CONFIGS[0]
    names = t.row_names([config, {**config, "num_warps": 8}, t.CONFIGS[1]])
    assert len({*names}) == 3
    assert names[2] == "128,64,32"


# ------------------------------------------------------- timing and torch.mm
def test_rows_go_on_past_a_shape_that_does_not_fit(monkeypatch, capsys):
    def do_bench(run, warmup, rep, quantiles):
        assert quantiles == [0.5, 0.2, 0.8]  # the median comes first
        return run()

    def too_big():
        raise triton.OutOfResources(131072, 101376, "shared memory")
    monkeypatch.setattr(triton.testing, "do_bench", do_bench)
    runs = {"torch.mm": lambda: [2, 1.5, 2.5], "128,128,64": too_big,
            "64,64,32": lambda: [4, 3.5, 4.5]}
    times = t.time_rows("a title", runs, 8e9, "TFLOP/s", direct=[*runs])
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


def test_what_is_timed_is_the_replay_of_a_graph(monkeypatch):
    """A launch to compile, one to record, and then only replays."""
    class Graph:
        def replay(self):
            raise AssertionError("do_bench is not called here")
    calls, timed = [], []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph",
                        lambda graph: contextlib.nullcontext())
    monkeypatch.setattr(triton.testing, "do_bench",
                        lambda run, **settings: timed.append(run))
    t.milliseconds(lambda: calls.append(1))
    assert len(calls) == 2
    assert timed[0].__func__ is Graph.replay

    def direct():
        raise AssertionError("do_bench alone calls this")
    t.milliseconds(direct, graph=False)
    assert timed[1] is direct


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


def test_no_function_is_long():
    """40 lines at most, neither blank nor comment nor docstring."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    long = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not isinstance(node, ast.FunctionDef):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        left_out = set()
        if ast.get_docstring(node):
            told = node.body[0]
            left_out = set(range(told.lineno, told.end_lineno + 1))
        count = 0
        for number in range(first, node.end_lineno + 1):
            line = lines[number - 1].strip()
            if number not in left_out and line and not line.startswith("#"):
                count += 1
        if count > 40:
            long[node.name] = count
    assert not long


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
