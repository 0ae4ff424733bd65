"""The judge of the exercise: what it passes, and what it says of mistakes."""
import itertools
import os
import subprocess
import sys

import pytest
from conftest import GPU, ROOT, clean_env, ended, run_script

EXERCISE = ROOT / "exercises" / "4_autotune"
CHECK = ROOT / "exercises" / "check.py"
sys.path.append(str(CHECK.parent))  # for check, which imports no torch
# wrong/*.py: the exit status, and words that the output must hold.
WRONG = {
    "calls_torch": (4, "of type function"),
    "caches_output": (4, "of type Cached"),
    "re_exports": (4, "triton.autotune makes an Autotuner"),
    "seven_configs": (4, "7 configs, 7 of them distinct"),
    "duplicate_configs": (4, "8 configs, 4 of them distinct"),
    "odd_blocks": (4, "powers of two"),
    "key_of_the_lesson": (4, "Add IEEE to the key"),
    "key_missing_precision": (4, "Add IEEE to the key"),
    "key_missing_layout": (4, "Add stride_bk (or stride_bn) to the key"),
    "key_missing_k": (4, "Add k to the key"),
    "key_misspelt": (4, "M"),
    "key_of_addresses": (4, "searched again"),
    "zeros": (3, "FAIL"),
    "constant": (3, "FAIL  softmax"),
    "skips_max": (3, "FAIL  softmax +-1e4"),
    "nan": (3, "nan, not"),
    "unwritten": (3, "nan, not"),
    "right_once": (3, "FAIL  ieee 97x61x83, new inputs, old out"),
    "mutates_input": (3, "wrote on an input"),
    "in_place_accumulate": (3, "FAIL"),
    "drops_masks": (3, "wrote outside out"),
    "hard_coded_size": (3, "FAIL"),
    "half_output_configs": (3, "config 1 of 8, 32,32,32"),
    "patches_lesson": (3, "FAIL"),
    "tf32_in_ieee": (3, "ieee"),
    "ieee_in_tf32": (3, "tf32"),
    "default_precision": (3, "ieee"),
    "crashes": (3, "ended its process"),
    "no_kernel": (2, "defines no matmul_kernel"),
    "raises": (2, "not finished yet, line 2 of the file"),
    "hangs": (2, "was not done after 5 s"),
    "exits": (2, "ended its process, with status 0"),
    "prints_exit0": (2, "SystemExit"),
}
# Of those with wrong results, which take the longest to judge, one of a kind.
QUICK = {"constant", "unwritten", "half_output_configs", "tf32_in_ieee"}
TIMED = {
    "slow": (5, "over 1.05 of the best hand-written row"),
    "slow_baseline": (5, "over 1.05 of the best hand-written row"),
    "impossible_time": (1, "impossible time"),
}


def judge(*arguments, cwd=None, **env):
    """Run the judge in the mode of these tests; the completed process."""
    env = ({} if GPU else {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
           ) | env
    return subprocess.run(
        [sys.executable, str(CHECK), *map(str, arguments)], text=True,
        cwd=cwd, env=clean_env(**env), capture_output=True, timeout=900)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK and
                                                  WRONG[name][0] == 3))
    for name in WRONG])
def test_a_wrong_submission_gets_its_status(name):
    status, words = WRONG[name]
    limit = {"CHECK_IMPORT_LIMIT": "5"} if name == "hangs" else {}
    out = ended(judge(4, EXERCISE / "wrong" / f"{name}.py", **limit), status)
    assert words in out


@pytest.mark.gpu
@pytest.mark.parametrize("name", TIMED)
def test_a_wrong_time_gets_its_status(name):
    status, words = TIMED[name]
    out = ended(judge(4, EXERCISE / "wrong" / f"{name}.py"), status)
    assert words in out


def test_every_wrong_submission_is_listed_here_and_in_the_readme():
    files = {path.stem for path in (EXERCISE / "wrong").glob("[a-z]*.py")}
    assert files == {*WRONG, *TIMED}
    readme = (EXERCISE / "README.md").read_text()
    for name, (status, _) in (WRONG | TIMED).items():
        assert f"| `{name}.py` | {status} |" in readme


def test_the_solution_passes_from_anywhere(tmp_path):
    out = ended(judge(4, EXERCISE / "solution" / "autotuned.py", cwd=tmp_path,
                      TRITON_CACHE_AUTOTUNING="1"), 0)
    assert "FAIL" not in out
    assert "12 configs a search" in out
    assert "one change of each of 5 kinds began 5 searches" in out
    assert "= 4 sqrt(83) 2^-24" in out  # the tolerance's arithmetic
    assert "ieee: no tensor-core instruction" in out
    timed = 4 * GPU  # the interpreter has no time, and prints none
    assert out.count("first launch:") == out.count("allowed 1.05") == timed
    assert (" ms" in out) == GPU
    assert ("measurement half was not judged" in out) != GPU


@pytest.mark.parametrize("arguments", [(), (4, "no such file.py"), (4, "a", "b"),
                                       (4, str(EXERCISE)), (9, __file__)])
def test_nothing_to_judge_is_status_2(arguments):
    assert "usage" in ended(judge(*arguments), 2)


def test_help_is_the_docstring():
    assert "0  passed" in ended(judge("--help"), 0)


def test_the_starter_says_what_is_missing():
    out = ended(judge(4, EXERCISE / "autotuned.py"), 4)
    assert "1 configs, 1 of them distinct; at least 8" in out
    run = subprocess.run([sys.executable, str(EXERCISE / "autotuned.py")],
                         text=True, capture_output=True, env=clean_env())
    assert "fill in the three TODO" in ended(run, 1)


@pytest.mark.interpreter
def test_no_gpu_is_refused_before_the_submission_is_imported():
    out = ended(judge(4, EXERCISE / "wrong" / "raises.py", TRITON_INTERPRET=None),
                1)
    assert "refused: no " in out and "not finished yet" not in out


def test_a_submission_may_hold_a_kernel_of_its_own(tmp_path):
    lesson = (ROOT / "triton_softmax_matmul.py").read_text()
    kernel = lesson[lesson.index("@triton.jit\ndef matmul_kernel"):]
    kernel = kernel[:kernel.index("# -----")]
    file = tmp_path / "mine.py"
    file.write_text("import triton\nimport triton.language as tl\n"
                    "@triton.autotune([triton.Config(dict(BLOCK_M=m, "
                    "BLOCK_N=32, BLOCK_K=k, GROUP_M=1), num_stages=s) "
                    "for m in (32, 64) for k in (16, 32) for s in (2, 3)], "
                    "['m', 'n', 'k', 'IEEE', 'stride_bn'])\n" + kernel)
    status = 5 if GPU else 0  # right, and not a good space
    out = ended(judge(4, file), status)
    assert "FAIL" not in out


def test_an_unimportable_lesson_is_status_2(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    out = ended(judge(4, EXERCISE / "autotuned.py",
                      PYTHONPATH=os.fspath(tmp_path)), 2)
    assert "no torch here" in out


@pytest.mark.interpreter
@pytest.mark.parametrize("mode", ["1", None])
def test_precisions_are_not_measured_without_a_gpu(mode):
    out = ended(run_script(script=ROOT / "experiments" / "precision.py",
                           env={"TRITON_INTERPRET": mode}), 1)
    assert ("not measured: the interpreter" if mode else "refused: no ") in out


@pytest.mark.gpu
def test_every_precision_gets_its_rows():
    out = ended(run_script(script=ROOT / "experiments" / "precision.py", timeout=900), 0)
    rows = out.partition("precision")[2].splitlines()[1:-1]
    found = [(row.split()[0], row.split()[1]) for row in rows]
    assert len(found) == len({*found}) == 16
    assert "nan" not in out


class Side:
    """In a child's place: times in ms, round after round, and a clock."""

    def __init__(self, *times, clock=1.0):
        self.times, self.clock, self.asked = itertools.cycle(times), clock, 0

    def ask(self, status, step, *arguments):
        self.asked += step == "time"
        if step == "time":
            ms = next(self.times)
            return ms, ms * self.clock
        return {"hand_written": ("128,64,32", 0.9), "search": ("a", 8, 1)}[step]


@pytest.mark.parametrize("mine, passes, asked", [
    ([1.04], True, 5), ([1.06], False, 5),
    ([1.06, 1.02], True, 10),  # five rounds are over, ten are not
    ([1.07, 1.04, 1.06], False, 15)])
def test_a_case_is_repeated_while_noise_decides(mine, passes, asked):
    import check
    side = Side(*mine)
    assert check.compare(side, Side(1.0), ("ieee", "row-major")) == passes
    assert side.asked == asked


@pytest.mark.parametrize("side, words", [
    (Side(0.44), "less than half of torch.mm's 0.9000"),
    (Side(1.0, clock=2.5), "where the clock says 2.5000")])
def test_an_impossible_time_is_not_judged(side, words, capsys):
    import check
    with pytest.raises(SystemExit) as left:
        check.compare(side, Side(1.0), ("tf32", "K-major"))
    out = capsys.readouterr().out
    assert left.value.code == 1
    assert words in out and out.endswith("not judged\nexit 1\n")
