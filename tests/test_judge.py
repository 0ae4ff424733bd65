"""The judge: what it says of wrong submissions, and how it ends."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import GPU, ROOT, clean_env, ended, in_turn
from judging import BEGIN, CHECK, EXERCISES, LESSONS, judge

AUTOTUNE = EXERCISES / "4_autotune"
NEW_LINE = "\n"
# exercises/4_autotune/wrong/*.py: the exit status, and words in the output.
FORM = {
    "calls_torch": "is a plain Python function",
    "caches_output": "is of type Cached",
    "re_exports": "a jitted kernel without an autotuner; wanted is what",
    "replaces_run": "its 'run' was replaced",
    "replaces_class_run": "the file replaces run of Triton's JITFunction",
    "hook_calls_torch": "a hook is registered with add_pre_run_hook",
    "launch_hook": "the file sets Triton's launch_enter_hook",
    "config_hook": "has a pre_hook, which runs before the kernel",
    "other_ir": "has an ir_override",
    "prunes_off_list": "at m=2048, n=2048, k=2048 returned a config that is "
                       "on no list",
    "prunes_by_changing": "returned a config that is on no list",
    "prunes_all": "left no config over",
    "prunes_to_unused": "8 configs, at most 4 of them different programs that "
                        "run",
    "crashes": "its pruning: ended its process with status 0",
    "seven_configs": "7 configs, 7 of them different; at least 8",
    "duplicate_configs": "8 configs, 4 of them different; at least 8",
    "extra_constexpr": "config 2 (32,32,32 GROUP_M=1 EXTRA=1 num_warps=4 "
                       "num_stages=3) makes the same program as config 1",
    "extra_in_helper": "8 configs, at most 7 of them different programs",
    "stages_fixed": "num_stages=2) makes the same program as config 1",
    "too_large": "needs 524288 bytes of shared memory",
    "odd_blocks": "BLOCK_M=8: block sizes are powers of two",
    "dicts": "is of type dict; a config is a triton.Config(",
    "lacks_group": "config 1 (32,32,32 num_warps=4 num_stages=3) lacks GROUP_M",
    "names_split_k": "names SPLIT_K, which is no parameter of the kernel",
    "warps_among_blocks": "write triton.Config({...}, num_warps=8)",
    "key_none": "its key is None; a key is a list of the names",
    "key_of_the_lesson": "the key that the lesson prints",
    "key_missing_precision": "Add IEEE to the key",
    "key_missing_layout": "Add stride_bk (or stride_bn) to the key",
    "key_missing_k": "Add k to the key",
    "key_misspelt": "M",
    "key_of_addresses": "take the tensors out of the key",
    "replaces_helper_source": "The file has another kernel",
    "right_when_interpreted": "another constant or other configs where it is "
                              "interpreted than where it is compiled",
    "no_kernel": "the file defines no matmul_kernel",
}
NOT_STARTED = {
    "raises": "RuntimeError: not finished yet, line 2 of the file",
    "hangs": "importing the file: not done after 5 s",
    "exits": "importing the file: ended its process with status 0",
    "prints_exit0": "SystemExit: 0, line 5 of the file",
}
# Which IR says at once, and which checks say after some ten programs.
MULTIPLIER = {
    "tf32_in_ieee": "has a dot of f32 and f32 in tf32; wanted is f32 and f32 "
                    "in ieee",
    "ieee_in_tf32": "in ieee; wanted is f32 and f32 in tf32",
    "default_precision": "in tf32; wanted is f32 and f32 in ieee",
    "bf16_from_k_128": "tf32 32,32,32 GROUP_M=1 num_warps=4 num_stages=3, "
                       "row-major, for sm_80: has a dot of bf16 and bf16",
    "fp16_as_tf32": "tf32 32,64,32 GROUP_M=1 num_warps=4 num_stages=3, "
                    "row-major, for sm_80: has a dot of f16 and f16",
    "tf32x3_as_ieee": "ieee 32,64,32 GROUP_M=1 num_warps=4 num_stages=3, "
                      "row-major, for sm_80: has a dot of f32 and f32 in "
                      "tf32x3",
    "tf32x3_by_stride": "has a dot of f32 and f32 in tf32x3",
    "without_dot": "has no tl.dot",
    "float64": "has a dot of f64 and f64",
}
PAST_END = "ended by SIG(SEGV|BUS): a load or a store went past the end"
RESULT = {
    "zeros": "FAIL  ieee",
    "constant": "FAIL  softmax",
    "skips_max": "FAIL  softmax",
    "softmax_fourth_row": "FAIL  softmax 40x5, many rows",
    "nan": "nan, not",
    "unwritten": "elements of the result were not written",
    "right_once": "an earlier result",
    "skips_if_right": "an earlier result",
    "adds_finite_old": "an earlier result",
    "in_place_accumulate": "FAIL  ieee",
    "mutates_input": "wrote on an input",
    "writes_input_back": PAST_END,
    "drops_masks": "wrote outside the result",
    "nan_in_overhang": "wrote outside the result",
    "old_in_overhang": PAST_END,
    "nan_on_nan": "wrote outside the result",
    "no_mask_no_wrap": PAST_END,
    "wraps_first_tile": PAST_END,
    "k_unmasked": "FAIL  ieee",
    "k_mask_off_by_one": "FAIL  ieee",
    "k_over_2048": "FAIL  ieee 3x4x2086 32,32,32, k over 2048",
    "hard_coded_size": "FAIL  ieee",
    "last_group": "a group and more",
    "half_output_configs": "FAIL  config 1 of 8, 32,32,32",
    "one_config": "FAIL  config 5 of 8, 64,32,32 GROUP_M=1 num_warps=4 "
                  "num_stages=3: 2 of",
    "strides_of_a_and_c": "FAIL  ieee",
    "packed_strides": "FAIL  matmul_kernel, where memory ends",
    "cuts_strides": "2\\^24 elements apart",
    "nan_counted_as_zero": "NaN, inf and -0.0",
    "tiny_counted_as_zero": "powers of two",
    "rounds_to_bf16": "FAIL  tf32",
    "rounds_to_fp16": "2\\^100 and 2\\^-100",
    "patches_lesson": "FAIL  ieee",
}
TIMED = {
    "slow": (5, "over 1.05 of the best baseline"),
    "slow_baseline": (5, "over 1.05 of the best baseline"),
    "impossible_time": (1, "impossible time"),
}
WRONG = {}
for status, table in ((4, FORM), (2, NOT_STARTED), (3, MULTIPLIER),
                      (3, RESULT)):
    for name, words in table.items():
        WRONG[name] = status, words
QUICK = [*FORM, *MULTIPLIER, *NOT_STARTED]  # 5 s each; the others take 20


@pytest.mark.parametrize("name", in_turn(QUICK, 20, 5) + in_turn(RESULT, 0, 16))
def test_a_wrong_submission_gets_its_status(name):
    status, words = WRONG[name]
    limit = {"CHECK_IMPORT_LIMIT": "5"} if name == "hangs" else {}
    out = ended(judge(4, AUTOTUNE / "wrong" / f"{name}.py", **limit), status)
    if name in RESULT:
        assert re.search(words, out)
    else:
        assert words in out


@pytest.mark.gpu
@pytest.mark.parametrize("name", TIMED)
def test_a_wrong_time_gets_its_status(name):
    status, words = TIMED[name]
    assert words in ended(judge(4, AUTOTUNE / "wrong" / f"{name}.py"), status)


REWRITES = """
import pathlib
lesson = pathlib.Path(t.__file__)
lesson.write_text(lesson.read_text().replace('"BLOCK_M": 128', '"BLOCK_M": 16'))
for path in pathlib.Path(triton.knobs.cache.dir).rglob("*.cubin"):
    path.unlink()
"""


@pytest.mark.gpu
def test_rewriting_what_it_is_measured_against_is_no_help(tmp_path):
    """Poor blocks, and a lesson and a cache that are changed at the import."""
    shutil.copytree(EXERCISES, tmp_path / "exercises")
    shutil.copy(ROOT / "triton_softmax_matmul.py", tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(BEGIN.replace(str(ROOT), str(tmp_path)) + LESSONS
                    + REWRITES)
    out = ended(judge(4, file, check=tmp_path / "exercises" / "check.py",
                      TRITON_CACHE_DIR=tmp_path / "cache"), 5)
    assert "over 1.05 of the best baseline" in out


def test_every_wrong_submission_is_listed_here_and_in_the_readme():
    files = {path.stem for path in (AUTOTUNE / "wrong").glob("[a-z]*.py")}
    assert files == {*WRONG, *TIMED}
    readme = (AUTOTUNE / "README.md").read_text()
    for name, (status, _) in (WRONG | TIMED).items():
        assert f"| `{name}.py` | {status} |" in readme, name


def test_the_readmes_milliseconds_are_in_its_transcripts():
    readme = (AUTOTUNE / "README.md").read_text()
    transcripts = "".join(
        (ROOT / "transcripts" / name).read_text() for name in
        set(re.findall(r"transcripts/([\w.-]+\.txt)", readme)))
    numbers = re.findall(r"\b0\.\d{4}\b|\b1\.\d{4}\b", readme)
    assert len(numbers) > 20
    for number in numbers:
        # A row of its own, or a number of the table of every winner's times.
        assert re.search(rf"{number}(?: ms|  |$)", transcripts, re.M), number


@pytest.mark.slow
def test_the_solution_passes_from_anywhere(tmp_path):
    begun = time.monotonic()
    out = ended(judge(4, AUTOTUNE / "solution" / "autotuned.py", cwd=tmp_path),
                0)
    assert "FAIL" not in out
    assert "12 configs a search" in out
    assert "one change of each of 5 kinds began 5 searches" in out
    assert "num_stages=4 for sm_80: no tensor-core instruction" in out or GPU
    assert ("measurement half was not judged" in out) != GPU
    assert (" ms" in out) == GPU
    if GPU:
        assert out.count("chosen:") == out.count("allowed 1.05") == 4
        assert time.monotonic() - begun < 180


@pytest.mark.parametrize("arguments", [
    (), (4, "no such file.py"), (4, "a", "b"), (4, EXERCISES), (9, __file__),
    ("4_autotune", __file__), ("*", __file__), ("", __file__)])
def test_nothing_to_judge_is_status_2(arguments):
    out = ended(judge(*arguments), 2)
    assert "usage: check.py NUMBER FILE, where NUMBER is one of" in out


@pytest.mark.slow
def test_a_part_is_judged_by_name_and_never_passes_for_the_whole(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + "from triton_softmax_matmul import "
                    "softmax_kernel\n")
    out = ended(judge(4, file, "softmax_kernel"), 1)
    assert "softmax_kernel: passed. Not judged: matmul_kernel" in out
    out = ended(judge(4, file, "softmax_kernel", "other"), 2)
    assert "names of kernels to judge, of matmul_kernel, softmax_kernel" in out


@pytest.mark.slow
def test_the_starter_says_what_is_missing():
    out = ended(judge(4, AUTOTUNE / "autotuned.py"), 4)
    assert "1 configs, 1 of them different; at least 8 are needed" in out
    run = subprocess.run([sys.executable, str(AUTOTUNE / "autotuned.py")],
                         text=True, capture_output=True, env=clean_env())
    assert "fill in the three TODO" in ended(run, 1)


@pytest.mark.interpreter
def test_no_gpu_is_refused_before_the_submission_is_imported():
    out = ended(judge(4, AUTOTUNE / "wrong" / "raises.py",
                      TRITON_INTERPRET=None), 1)
    assert "refused: no " in out and "not finished yet" not in out
    assert "With TRITON_INTERPRET=1 all but the time is judged" in out


@pytest.mark.slow
@pytest.mark.interpreter
def test_a_variable_that_triton_takes_for_off_is_off():
    out = ended(judge(4, AUTOTUNE / "autotuned.py", TRITON_INTERPRET="0"), 1)
    assert "refused: no " in out


def test_an_unimportable_lesson_is_status_2(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    out = ended(judge(4, AUTOTUNE / "autotuned.py", PYTHONPATH=tmp_path), 2)
    assert "loading the lesson and the exercise: " in out
    assert "no torch here" in out


@pytest.mark.slow
def test_a_warning_that_a_file_makes_an_error_is_named(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import warnings\nwarnings.simplefilter('error')\n"
                    "warnings.warn('an old name', DeprecationWarning)\n")
    out = ended(judge(4, file), 2)
    assert "made an error of a warning: DeprecationWarning: an old name" in out
    assert ", line 3 of the file" in out


@pytest.mark.parametrize("text, words", in_turn([
    ("matmul_kernel = triton.autotune([], KEY)(t.matmul_kernel)", "lacks"),
    ("matmul_kernel = triton.autotune(configs(), 'm')(t.matmul_kernel)",
     "its key is 'm'"),
    ("matmul_kernel = triton.autotune(configs(), KEY)(triton.heuristics({})("
     "t.matmul_kernel))", "is made by triton.heuristics"),
    ("matmul_kernel = triton.autotune(configs(IEEE=True), KEY)"
     "(t.matmul_kernel)", "sets IEEE, which the launcher passes"),
    ("matmul_kernel = triton.autotune(configs(GROUP_M=0), KEY)"
     "(t.matmul_kernel)", "GROUP_M=0 is no whole number from 1 up"),
    ("matmul_kernel = triton.autotune(configs(GROUP_M='4'), KEY)"
     "(t.matmul_kernel)", "GROUP_M=4 is no whole number"),
    ("matmul_kernel = triton.autotune(configs(), KEY)(t.softmax_kernel)",
     "its parameters are in_ptr, out_ptr, row_stride, n_cols, BLOCK_COLS"),
    ("matmul_kernel = triton.autotune(configs(), KEY, pre_hook=print)("
     "t.matmul_kernel)", "triton.autotune got a pre_hook"),
    ("matmul_kernel = triton.autotune(configs(), KEY)(t.matmul_kernel)\n"
     "matmul_kernel.run = print", "the tuner's 'run' was replaced"),
    ("matmul_kernel = triton.autotune(configs(), KEY)(t.matmul_kernel)\n"
     "matmul_kernel.configs[0].all_kwargs = dict",
     "has a method that was replaced"),
    ("matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={"
     "'early_config_prune': lambda *a, **k: None})(t.matmul_kernel)",
     "early_config_prune at m=2048, n=2048, k=2048 raised TypeError"),
    ("matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={"
     "'early_config_prune': lambda c, named, **k: named['M']})("
     "t.matmul_kernel)",
     f"raised KeyError: 'M', line {BEGIN.count(NEW_LINE) + 1} of mine.py"),
], 12, 3))
def test_a_form_is_wrong_in_the_learners_terms(text, words, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + text + "\n")
    assert words in ended(judge(4, file), 4)


def started(*arguments, **env):
    """The judge, running, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, str(CHECK), *map(str, arguments)], text=True,
        env=clean_env(TRITON_INTERPRET="1", OMP_NUM_THREADS="1", **env),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)


def children_of(process):
    """The processes that were started by this one and still run."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                          text=True, capture_output=True)
    return [int(number) for number in told.stdout.split()]


def runs(number):
    """Whether a process is there, and more than an entry in a list."""
    try:
        text = pathlib.Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("seconds", in_turn([5, 0.5], 2))
def test_an_interrupt_is_130_and_leaves_nobody_behind(seconds):
    run = started(4, AUTOTUNE / "wrong" / "hangs.py", CHECK_IMPORT_LIMIT="99")
    time.sleep(seconds)
    children = children_of(run)
    assert children
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    out, _ = run.communicate(timeout=60)
    assert out.endswith("interrupted\nexit 130\n")
    assert "Traceback" not in out and run.returncode == 130
    assert not any(map(runs, children))


@pytest.mark.slow
def test_children_end_with_a_judge_that_is_killed():
    run = started(4, AUTOTUNE / "wrong" / "hangs.py", CHECK_IMPORT_LIMIT="99")
    time.sleep(5)
    children = children_of(run)
    run.kill()
    run.wait()
    time.sleep(1)
    assert children and not any(map(runs, children))


def test_a_full_disk_is_status_2():
    run = judge(4, AUTOTUNE / "autotuned.py", shell="exec > /dev/full")
    assert run.returncode == 2
    assert "No space left" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.slow
def test_the_judge_says_when_it_stops_itself(tmp_path):
    """A fault of its own is no verdict on a submission."""
    folder = tmp_path / "exercises" / "5_none"
    folder.mkdir(parents=True)
    for path in [*EXERCISES.glob("*.py"), ROOT / "triton_softmax_matmul.py"]:
        target = tmp_path / path.relative_to(ROOT)
        target.write_bytes(path.read_bytes())
    (folder / "exercise.py").write_text(
        "from exercises.engine_words import Entry, Exercise\n"
        "def describe(t):\n"
        "    return Exercise([Entry('matmul_kernel', 'matmul', "
        "cases=broken)])\n"
        "def broken(config):\n    return config['NONE']\n")
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + LESSONS.replace(
        "triton.autotune(configs(), KEY)(t.matmul_kernel)",
        "t.matmul_kernel"))
    out = judge(5, file, check=tmp_path / "exercises" / "check.py").stdout
    assert "KeyError: 'NONE'" in out
