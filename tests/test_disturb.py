"""Interrupted, cut off, on a full disk: a plain line and never a traceback."""
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import SCRIPT, clean_env, ended, in_turn, run_script

INTERPRET = {"TRITON_INTERPRET": "1"}


def start():
    """The interpreter pass, under way."""
    return subprocess.Popen(
        [sys.executable, SCRIPT], env=clean_env(**INTERPRET), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# ---------------------------------------------------------------- interrupted
@pytest.mark.parametrize("after", in_turn(["pass  ieee", ""], 2),
                         ids=["matmul", "first line"])
def test_interrupt_while_running(after):
    with start() as process:
        for line in process.stdout:
            if line.startswith(after):
                break
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=60)
    assert text.endswith("interrupted\nexit 130\n")
    assert errors == ""
    assert process.returncode == 130


# Run before the script: Ctrl-C as this package is looked for.
INTERRUPT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("package", in_turn(["numpy", "torch", "triton"], 3))
def test_interrupt_while_importing(run_after, package):
    result = run_after(INTERRUPT.format(package))
    assert ended(result, 130) == "interrupted\nexit 130\n"
    assert result.stderr == ""


def test_interrupt_twice(run_after):
    # The second meets a process that is already on its way out.
    result = run_after(INTERRUPT.format("numpy") + """
import atexit
atexit.register(os.kill, os.getpid(), signal.SIGINT)
""")
    assert result.stderr == ""
    assert ended(result, 130) == "interrupted\nexit 130\n"


# -------------------------------------------------------------------- cut off
def test_reader_that_leaves():  # as in `| head -1`
    with start() as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == -signal.SIGPIPE
        assert process.stderr.read() == ""


def test_stdout_closed():
    result = run_script(env=INTERPRET, shell="exec >&-")
    assert result.stderr == ""
    assert result.returncode == 0


def test_stdout_on_a_full_disk():
    result = run_script(env=INTERPRET, shell="exec >/dev/full")
    assert "No space left" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == 2


# -------------------------------------------- a hostile place to interpret in
FULL = "ulimit -f 0"  # a file may not grow, as on a full disk; pipes work


def test_interpreter_pass_needs_nothing_of_its_surroundings(tmp_path):
    # No home and no cache (their parent is a file, which stops root, too), no
    # C compiler or any other program, a full disk, a read-only checkout, and
    # no patience with warnings.
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "nowhere"
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    script = shutil.copy(SCRIPT, checkout)
    checkout.chmod(0o555)
    result = run_script(
        script=script, cwd=checkout, shell=FULL, flags=["-W", "error"],
        env=INTERPRET | {"HOME": nowhere, "TRITON_CACHE_DIR": nowhere,
                         "PATH": nowhere, "CC": None, "CXX": None})
    assert "FAIL" not in ended(result, 0)
    assert result.stderr == ""
    # Root can write anywhere, so see that it did not.
    assert [path.name for path in checkout.iterdir()] == [SCRIPT.name]


# Run before the script: a session that has settings of its own.
SETTINGS = """
import numpy, torch
numpy.seterr(all="raise")
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
"""


@pytest.mark.slow
def test_settings_of_the_session_are_no_matter(run_after):
    result = run_after(SETTINGS, TRITON_INTERPRET="1", PYTHONWARNINGS="error")
    assert "FAIL" not in ended(result, 0)
    assert result.stderr == ""


@pytest.mark.slow
def test_stdout_that_knows_ascii_alone(tmp_path):
    script = tmp_path / "edited.py"
    script.write_text(SCRIPT.read_text(encoding="utf-8").replace(
        "    num = tl.exp(x - tl.max(x, axis=0))",
        "    num = tl.expp(x)  # \u00fcber, \u65e5\u672c"), encoding="utf-8")
    result = run_script(script=script, env=INTERPRET | {
        "PYTHONIOENCODING": "ascii"})
    assert "num = tl.expp(x)  # \\xfcber, \\u65e5\\u672c" in ended(result, 3)


@pytest.mark.slow
def test_stdout_that_cannot_be_reconfigured(run_after):
    result = run_after("""
import sys
class Plain:
    def __init__(self, stream):
        self.write, self.flush = stream.write, stream.flush
sys.stdout = Plain(sys.stdout)
""", TRITON_INTERPRET="1")
    assert "FAIL" not in ended(result, 0)


@pytest.mark.slow
def test_folder_whose_name_is_not_ascii(tmp_path):
    folder = tmp_path / "\u00fcbung \u65e5\u672c"
    folder.mkdir()
    script = shutil.copy(SCRIPT, folder)
    text = ended(run_script(script=script, env=INTERPRET), 0)
    assert "FAIL" not in text
    # ptxas cannot read such a path, which Triton writes into the code.
    result = run_script(
        script="import triton_softmax_matmul as t; t.show("
        "t.softmax_kernel, 80, 'sass'); print('shown')", flags=["-c"],
        cwd=folder, env={"TRITON_CACHE_DIR": tmp_path / "cache"})
    assert result.stdout.endswith("shown\n"), result.stderr
    result = run_script(
        script="import triton_softmax_matmul as t; t.compile_for(80, "
        "t.softmax_kernel, BLOCK_COLS=64); print('compiled')", flags=["-c"],
        cwd=folder, env={"TRITON_CACHE_DIR": tmp_path / "cache"})
    assert result.stdout.endswith("compiled\n"), result.stderr


# ------------------------------------------- a hostile place to compile in
@pytest.fixture
def compiling(tmp_path):
    """Run a copy of the script that does something else in place of main, to
    compile as on the path that a GPU takes, but without one."""
    def run(statement, shell=":", **env):
        text = SCRIPT.read_text(encoding="utf-8")
        main = 'def main():\n    """Take one of the three paths; return the ' \
            'exit status."""\n'
        assert text.count(main) == 1
        script = tmp_path / "compiling.py"
        script.write_text(text.replace(main, f"{main}    {statement}\n"))
        return run_script(script=script, shell=shell, env=env)
    return run


EMITTED = "return 0 if emitted(80) else 3"


@pytest.mark.parametrize("interpret", [None, "1"])
@pytest.mark.parametrize("name", in_turn(["TRITON_CACHE_DIR", "HOME"], 2))
def test_cache_that_cannot_be_made(compiling, tmp_path, name, interpret):
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "nowhere"
    result = compiling(EMITTED, **{name: nowhere,
                                   "TRITON_INTERPRET": interpret})
    text = ended(result, 2)
    assert "no place for compiled kernels (Not a directory)" in text
    assert "set TRITON_CACHE_DIR" in text
    assert result.stderr == ""


def test_cache_on_a_full_disk(compiling, tmp_path):
    result = compiling(EMITTED, FULL, TRITON_CACHE_DIR=tmp_path)
    text = ended(result, 2)
    assert "no place for compiled kernels (File too large)" in text
    assert result.stderr == ""


@pytest.mark.parametrize("interpret", in_turn(["1", None], 0, 2))
def test_a_cache_of_binaries_alone(compiling, tmp_path, interpret):
    show = "show(softmax_kernel, 80, BLOCK_COLS=64); return 0"
    for _ in "first", "from the cache":
        result = compiling(show, TRITON_STORE_BINARY_ONLY="1",
                           TRITON_INTERPRET=interpret,
                           TRITON_CACHE_DIR=tmp_path / "cache")
        assert ".target sm_80" in ended(result, 0)
    # As a launch by another program would have left it.
    fill = ("compile_for(80, softmax_kernel, BLOCK_COLS=64, num_warps=4); "
            "return 0")
    done = compiling("triton.knobs.compilation.store_binary_only = True; "
                     "triton.compile(triton.compiler.ASTSource(softmax_kernel,"
                     " *compile_arguments(softmax_kernel, {'BLOCK_COLS': 64})),"
                     " target=triton.backends.compiler.GPUTarget('cuda', 80, "
                     "32)); return 0", TRITON_CACHE_DIR=tmp_path / "other")
    ended(done, 0)
    ended(compiling(fill, TRITON_CACHE_DIR=tmp_path / "other"), 0)


@pytest.mark.slow
def test_compiling_needs_no_c_compiler(compiling, tmp_path):
    result = compiling(
        "print(compile_for(80, softmax_kernel, BLOCK_COLS=64, num_warps=4)"
        ".asm['ptx']); return 0",
        PATH=tmp_path, CC=None, CXX=None, TRITON_CACHE_DIR=tmp_path / "cache")
    assert ".target sm_80" in ended(result, 0)


# Run before the script: a card that fails when it is first asked something.
BUSY = """
import torch
torch.version.cuda, torch.version.hip = "12.8", None
torch.cuda.init = lambda: None
def busy(*args):
    raise torch.AcceleratorError("CUDA error: device is busy")
torch.cuda.get_device_capability = torch.cuda.get_device_properties = busy
"""


def test_card_that_fails(run_after):
    result = run_after(BUSY)
    text = ended(result, 1)
    assert "refused: no usable GPU: CUDA error: device is busy" in text
    assert result.stderr == ""


@pytest.mark.gpu
def test_launching_without_a_c_compiler(tmp_path):
    # Triton builds a kernel's launcher with it, at the first launch.
    result = run_script(env={"PATH": tmp_path, "CC": None, "CXX": None,
                             "TRITON_CACHE_DIR": tmp_path / "cache"})
    assert "Failed to find C compiler" in ended(result, 2)


# Another process, which holds the card's memory but for 1 GiB.
HOLD = """
import sys, torch
held = torch.empty(torch.cuda.mem_get_info()[0] - 2**30, dtype=torch.int8,
                   device="cuda")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.gpu
def test_another_process_holds_the_memory():
    with subprocess.Popen([sys.executable, "-c", HOLD], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as it:
        assert it.stdout.readline() == "held\n"
        result = run_script()
        it.communicate()
    assert "out of memory" in ended(result, 1)
