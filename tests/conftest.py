"""The mode of the whole test run, and what every test file shares."""
import os
import pathlib
import subprocess
import sys

import pytest
import torch

# Triton reads TRITON_INTERPRET when it is imported, so the mode is settled
# here, before any test imports it; torch alone does not.
assert "triton" not in sys.modules, "imported before its mode was settled"
GPU = (torch.version.hip is None and torch.cuda.is_available()
       and torch.cuda.get_device_capability() >= (8, 0))
os.environ.pop("TRITON_INTERPRET", None)
if not GPU:
    os.environ["TRITON_INTERPRET"] = "1"
    # The tests run side by side, and their products are too small to share.
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
DEVICE = "cuda" if GPU else "cpu"

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "triton_softmax_matmul.py"
sys.path.insert(0, str(ROOT))


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not GPU:
        pytest.skip("needs an NVIDIA GPU of compute capability 8.0 or newer")
    if item.get_closest_marker("interpreter") and GPU:
        pytest.skip("this process compiles its kernels: there is a GPU")


def in_turn(names, quick, slow=1):
    """Parameters of a test whose cases are many and take seconds each.

    Every quick-th is always run (none where quick is 0), every slow-th of the
    others is marked slow, and the rest thorough. A tuple is one case with
    several parameters.
    """
    found = []
    for turn, name in enumerate(names):
        values = name if isinstance(name, tuple) else (name,)
        marks = []
        if not quick or turn % quick:
            marks = [pytest.mark.thorough if turn % slow else pytest.mark.slow]
        found.append(pytest.param(*values, marks=marks))
    return found


@pytest.fixture
def device():
    """Where this run's tensors live: "cuda", or "cpu" when interpreting."""
    return DEVICE


def clean_env(**extra):
    """This environment without whatever the script reacts to, plus extra; a
    value of None takes a variable out."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("TRITON_", "PYTEST_", "CUBLAS"))
           and "TF32" not in name} | extra
    return {name: str(v) for name, v in env.items() if v is not None}


def run_script(*args, env=None, script=SCRIPT, cwd=None, flags=(),
               timeout=300, shell=":", program=sys.executable):
    """Run a script, the lesson by default; the completed process, as text.
    env is added to clean_env(), flags go to Python itself, and shell is what
    a shell does before it becomes that process."""
    return subprocess.run(
        ["/bin/sh", "-c", shell + '; exec "$0" "$@"', program, *flags,
         str(script), *args], text=True, cwd=cwd, timeout=timeout,
        env=clean_env(**(env or {})), capture_output=True)


@pytest.fixture
def run_after(tmp_path):
    """Run the script in a process in which a preamble has been run first."""
    def run(preamble, *args, **env):
        path = tmp_path / "preamble.py"
        path.write_text(f"{preamble}\nimport runpy\nrunpy.run_path("
                        f"{str(SCRIPT)!r}, run_name='__main__')\n")
        return run_script(*args, script=path, env=env)
    return run


def ended(result, status):
    """The output, of which the last line must be the exit status."""
    assert "Traceback" not in result.stdout + result.stderr
    assert result.stdout.splitlines()[-1:] == [f"exit {status}"]
    assert result.returncode == status
    return result.stdout
