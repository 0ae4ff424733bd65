"""The lesson as a notebook: what it is made from, and what its cells print.

The kernels run in a real ipykernel, interpreted where there is no GPU.
"""
import json
import re
import subprocess
import sys

import pytest
from conftest import GPU, SCRIPT, clean_env, in_turn

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = SCRIPT.with_suffix(".ipynb")
MAKE = "jupytext --update --to notebook triton_softmax_matmul.py"
TEXT = SCRIPT.read_text(encoding="utf-8")


def cells_of(notebook):
    """What matters of each cell: all but its id."""
    return [(cell.cell_type, cell.source, dict(cell.metadata))
            for cell in notebook.cells]


def test_the_notebook_is_made_from_the_script():
    made = jupytext.reads(TEXT, "py:percent")
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert cells_of(kept) == cells_of(made), f"make it anew: {MAKE}"
    assert kept.metadata["kernelspec"]["name"] == "python3"
    assert kept.metadata["accelerator"] == "GPU"
    for cell in kept.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_making_it_anew_changes_nothing(tmp_path):
    for path in (SCRIPT, NOTEBOOK):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-m", *MAKE.split()], cwd=tmp_path,
                   check=True, capture_output=True)
    made = json.loads((tmp_path / NOTEBOOK.name).read_text())
    assert made == json.loads(NOTEBOOK.read_text())


def execute(cells, folder, go_on=False):
    """Run cells, given as text, in a new kernel; each cell's output as text."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", allow_errors=go_on,
        resources={"metadata": {"path": str(folder)}})
    client.execute(env=clean_env(OMP_NUM_THREADS=1))
    return ["".join(output.get("text") or "\n".join(output.get(
        "traceback", ())) for output in cell.outputs)
        for cell in notebook.cells]


def code_cells():
    """The source of each code cell of the notebook."""
    notebook = jupytext.reads(TEXT, "py:percent")
    return [cell.source for cell in notebook.cells
            if cell.cell_type == "code"]


def the_cell(start):
    """The one code cell that has a line which starts so."""
    cell, = [cell for cell in code_cells()
             if re.search(f"^{re.escape(start)}", cell, re.M)]
    return cell


CHECKS = the_cell("passed = all_checks()")
SHORT = "passed = all_checks(); print(passed)"
COMPARE = the_cell("compare(softmax_kernel, softmax_as_it_came")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The output of every cell, run from top to bottom, and of two edits."""
    kernel = the_cell("def softmax_kernel(")
    broken = kernel.replace("tl.max(x, axis=0)", "tl.min(x, axis=0)")
    raising = kernel.replace("tl.exp(x", "tl.expp(x")
    assert kernel not in (broken, raising)
    cells = code_cells()
    edits = [broken, SHORT, COMPARE, kernel, SHORT, raising, SHORT]
    told = execute(cells + edits, tmp_path_factory.mktemp("elsewhere"))
    return dict(zip(cells, told)), told[len(cells):]


def test_every_cell_prints_what_it_should(executed):
    told, _ = executed
    first = next(iter(told.values()))
    assert ("Compiling for the " if GPU else "Interpreting on the CPU: there is"
            " no NVIDIA GPU that torch can use.") in first
    assert "leaves the rest" in told[the_cell("try_softmax()")]
    assert "equal to a @ b: True" in told[the_cell("try_blocked_product()")]
    assert "  10  12  14\n" in told[the_cell("draw_tile_order()")]
    assert "nothing written: True" in told[the_cell("try_matmul()")]
    checks = told[CHECKS]
    assert "FAIL" not in checks
    for words in ("pass  softmax 2x1024", "pass  tf32 3x66x2085"):
        assert words in checks
    assert "every dot is float32 times float32" in told[the_cell(
        "try_compare()")]
    assert "mine: num_warps=1" in told[the_cell("try_compare()")]
    last = told[the_cell("if INTERPRET and passed:")]
    assert "Prediction 3, " in last
    assert ("Prediction 2 with row-major B" in last) == GPU


def test_an_edit_is_what_is_judged(executed):
    _, (_, broken, compared, _, mended, _, raising) = executed
    assert broken.endswith("False\n")
    # The kernel as it came is kept, so compare shows what was edited.
    assert re.search(r"^-.*arith\.max", compared, re.M)
    assert re.search(r"^\+.*arith\.min", compared, re.M)
    assert re.search("^FAIL  softmax .*, one spike", broken, re.M)
    assert mended.endswith("True\n")
    assert "FAIL" not in mended
    assert "in softmax_kernel: num = tl.expp(x - tl.max(x, axis=0))" in raising
    assert "has no attribute 'expp'" in raising
    assert raising.endswith("False\n")


SESSION = """
import signal, sys
def session():
    return (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPIPE),
            sys.excepthook, sys.stdout, sys.displayhook)
before = session()
"""
SAME = "print('the session is the same:', session() == before)"
INTERPRET = "import os; os.environ['TRITON_INTERPRET'] = '1'"


@pytest.mark.interpreter
@pytest.mark.parametrize("how", in_turn(["pasted", "%run", "%run --help"], 0))
def test_the_whole_file_in_a_cell(how, tmp_path):
    run = TEXT if how == "pasted" else f"{how.replace('run', f'run {SCRIPT}')}"
    told = execute([SESSION, INTERPRET, run, SAME], tmp_path)
    assert "FAIL" not in told[2]
    assert told[2].endswith("exit 0\n")
    assert ("\nscript in a notebook, " in told[2]) == (how == "pasted")
    assert told[3] == "the session is the same: True\n"
