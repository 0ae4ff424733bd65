"""A typing error in any section of the lesson is told with its line."""
import os
import re
import sys

import pytest
from conftest import SCRIPT, clean_env, ended, in_turn, run_script

TEXT = SCRIPT.read_text(encoding="utf-8")
# By section: what stands there, what is typed instead, and the status.
MISTAKES = {
    "2, on loading": ('DEVICE = "cpu" if', 'DEVICE = cpu if', 2),
    "3, the reference": ("numerator = np.exp(", "numerator = np.expp(", 3),
    "3, the kernel": ("num = tl.exp(x", "num = tl.exp(y", 3),
    "3, a decorator": ("@triton.jit\ndef softmax", "@triton.git\ndef softmax",
                       2),
    "3, the launcher": ("block = triton.next_power", "block = trition.next_p",
                        3),
    "3, the demonstration": ("result = torch.full_like(memory", "result = "
                             "torch.full_like(memmory", 3),
    "4, the tile order": ("pid_n = (pid % per_group) // rows_here\n    return",
                          "pid_n = (pid % group) // rows_here\n    return", 3),
    "4, the kernel": ("c_mask = (offs_m < m)", "c_mask = (offs_m < M)", 3),
    "4, CONFIGS": ('"BLOCK_K": 32, "GROUP_M": 4,\n     "num_warps": 8',
                   '"BLOCK_K": 32, "GROUP_M": FOUR,\n     "num_warps": 8', 2),
    "4, the launcher": ("kernel = matmul_kernel\n",
                        "kernel = matmul_kernels\n", 3),
    "5, a tolerance": ("limit = 4 * np.sqrt(k)", "limit = 4 * np.sqrt(K)", 3),
    "5, the cases": ("passed &= check_softmax(label, launch", "passed &= "
                     "check_sofmax(label, launch", 3),
    "8, a verdict": ("    if INTERPRET:\n        say_verdict(", "    if INTERPR"
                     "ET:\n        say_verdikt(", 3),
    "9, the header": ('print(f"Triton {triton.__version__}, {pin_line()}")',
                      'print(f"Triton {triton.__version__}, {pin()}")', 3),
}
LATER = {  # in what a run without a GPU does not reach: called by itself
    "6, the table": ("hits = re.findall(pattern, made",
                     "hits = re.findall(patern, made",
                     "counts({'ptx': '', 'shared': 0, 'registers': 1})"),
    "7, the rows": ("width = max(14,", "width = max(14, wide,",
                    "time_rows('title', {'one': None}, 1, 'TB/s')"),
    "8, the second verdict": ("ratio = ieee[0] / tf32[0]",
                              "ratio = ieee[0] / tf32[O]",
                              "prediction_2({(p, l): [2, 2, 1] for p in "
                              "PRECISIONS for l in B_LAYOUTS})"),
}


def line_of(text, start):
    """The number, and the text, of the line that holds text[start]."""
    number = text.count("\n", 0, start) + 1
    return number, text.splitlines()[number - 1].strip()


def mistaken(folder, old, new):
    """The script with a mistake, and where in it the first one stands."""
    assert TEXT.count(old) == 1, old
    text = TEXT.replace(old, new)
    same = len(os.path.commonprefix([old, new])) - 1
    script = folder / "mistaken.py"
    script.write_text(text, encoding="utf-8")
    return script, *line_of(text, TEXT.index(old) + same)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", in_turn(MISTAKES, 9, 3))
def test_a_mistake_is_told_with_its_line(name, tmp_path):
    old, new, status = MISTAKES[name]
    script, number, line = mistaken(tmp_path, old, new)
    result = run_script(script=script, env={"TRITON_INTERPRET": "1",
                                            "OMP_NUM_THREADS": "1"})
    text = ended(result, status)
    assert re.search(rf"^line {number}, in \S+: {re.escape(line)}$", text, re.M)
    assert re.search(r"^(this file does not load: )?(Name|Attribute|Type)Error"
                     ": .+$", text, re.M)
    assert result.stderr == ""


@pytest.mark.parametrize("name", in_turn(LATER, 3))
def test_a_mistake_further_on_is_told_with_its_line(name, tmp_path):
    old, new, call = LATER[name]
    _, number, line = mistaken(tmp_path, old, new)
    result = run_script(
        script=f"import mistaken as t; t.leave(t.reported(lambda: eval({call!r}"
        ", vars(t))))", flags=["-c"], cwd=tmp_path)
    text = ended(result, 3)
    assert re.search(rf"^line {number}, in \S+: {re.escape(line)}$", text, re.M)


COMPILE = """
import sys
import mistaken as t
def task():
    return t.compile_for(80, t.{kernel}, **{settings})
t.leave(t.reported(task))
"""


@pytest.mark.parametrize("old, new, kernel", in_turn([
    ("num = tl.exp(x", "num = tl.exp(y", "softmax_kernel"),
    ("tl.max(x, axis=0))", "tl.maxx(x, axis=0))", "softmax_kernel"),
    ("acc = tl.zeros((BLOCK_M, BLOCK_N)", "acc = tl.zeros((BLOCK_M, BLOCK_K)",
     "matmul_kernel"),
    ("c_mask = (offs_m < m)", "c_mask = (offs_m < M)", "matmul_kernel")], 3))
def test_the_compilers_error_is_told_with_its_line(old, new, kernel, tmp_path):
    _, number, line = mistaken(tmp_path, old, new)
    settings = {"BLOCK_COLS": 64} if kernel == "softmax_kernel" else {
        "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 32, "GROUP_M": 1,
        "IEEE": True}
    result = run_script(
        script=COMPILE.format(kernel=kernel, settings=settings), flags=["-c"],
        cwd=tmp_path, env={"TRITON_CACHE_DIR": tmp_path / "cache"})
    text = ended(result, 3)
    where = re.escape(line) if "zeros" not in line else ".*tl.dot.*"
    assert re.search(rf"in {kernel}: {where}$", text, re.M)
    if "zeros" not in line:
        assert f"line {number}, in {kernel}: " in text


def test_a_file_that_does_not_parse_is_pythons_own(tmp_path):
    script, number, _ = mistaken(tmp_path, "def softmax(x, out=None, kernel",
                                 "def softmax(x, out=None,, kernel")
    result = run_script(script=script)
    assert result.returncode == 1
    assert f"line {number}\n" in result.stderr
    assert "SyntaxError" in result.stderr


def test_python_is_the_one_that_these_tests_run_on():
    assert clean_env().get("TRITON_INTERPRET") is None
    assert sys.version_info >= (3, 11)
