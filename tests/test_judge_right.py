"""Right submissions that a judge might refuse, and did, or might have."""
import shutil

import pytest
from conftest import GPU, ROOT, ended, in_turn
from judging import BEGIN, DOT, EXERCISES, LESSONS, judge, own_kernel

# The small blocks of these submissions are no match for the lesson's.
PASSED = 5 if GPU else 0

EVEN_K = BEGIN + """
def prune(configs, named_args, **settings):
    '''Those for whole blocks only where K is made of whole blocks.'''
    return [config for config in configs if not config.kwargs["EVEN_K"]
            or named_args["k"] % config.kwargs["BLOCK_K"] == 0]


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr, EVEN_K: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(n, BLOCK_N)
    rows = (pid // across * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (pid % across * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a_at = a_ptr + rows % m * stride_am + (start + ks[None, :]) * stride_ak
        b_at = b_ptr + (start + ks[:, None]) * stride_bk + cols % n * stride_bn
        if EVEN_K:
            a = tl.load(a_at)
            b = tl.load(b_at)
        else:
            a = tl.load(a_at, mask=ks[None, :] < k - start, other=0.0)
            b = tl.load(b_at, mask=ks[:, None] < k - start, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee" if IEEE else "tf32")
    tl.store(c_ptr + rows * stride_cm + cols * stride_cn, acc,
             mask=(rows < m) & (cols < n))


matmul_kernel = triton.autotune(
    configs(EVEN_K=False)[::2] + configs(EVEN_K=True)[::2], KEY,
    prune_configs_by={"early_config_prune": prune})(matmul_kernel)
"""
STATIC_ASSERT = own_kernel(
    before="", dot="tl.static_assert(BLOCK_M * BLOCK_N <= 4096)\n        "
    + DOT, tuned="""
large = triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32,
                       "GROUP_M": 1})
matmul_kernel = triton.autotune(configs() + [large], KEY)(matmul_kernel)
""")
# At its import it does to its process what a file may well do.
SETS_THINGS = """
import builtins, gc, os, signal, sys, warnings
import numpy as np
import torch
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_grad_enabled(False)
torch.set_num_threads(1)
torch.set_flush_denormal(True)
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
np.seterr(all="raise")
np.set_printoptions(precision=2)
warnings.simplefilter("error")
gc.disable()
os.chdir("/")
sys.argv.append("--fast")
sys.setrecursionlimit(5000)
signal.signal(signal.SIGINT, signal.SIG_DFL)
builtins.print = lambda *words, **settings: None
sys.stdout = open(os.devnull, "w")
""" + BEGIN + LESSONS
# tf32 as a tensor core would have it, rounded to the nearest: the interpreter
# sees another result than in ieee, and a better one than a card truncates to.
ROUNDS_ITSELF = own_kernel(dot="""if not IEEE:
            a = ((a.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(
                tl.float32, bitcast=True)
            b = ((b.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(
                tl.float32, bitcast=True)
        """ + DOT)
MODEL = BEGIN + """
def model(BLOCK_M, BLOCK_N, **others):
    '''The larger, the better.'''
    return -BLOCK_M * BLOCK_N


def bench(call, quantiles):
    return [1.0, 1.0, 1.0]


matmul_kernel = triton.autotune(
    tuple(configs()), tuple(KEY), prune_configs_by={"perf_model": model,
    "top_k": 1}, reset_to_zero=["c_ptr"], restore_value=["a_ptr"],
    do_bench=bench, cache_results=True)(t.matmul_kernel)
"""
NEEDS_GPU = BEGIN + """
def prune(configs, named_args, **settings):
    '''Those that fit this card.'''
    card = t.torch.cuda.get_device_properties(0)
    return [config for config in configs if card.total_memory]


matmul_kernel = triton.autotune(configs(), KEY, prune_configs_by={
    "early_config_prune": prune})(t.matmul_kernel)
"""
TRANSPOSED = own_kernel(dot="""if IEEE:
            turned = tl.dot(tl.trans(b), tl.trans(a), input_precision="ieee")
        else:
            turned = tl.dot(tl.trans(b), tl.trans(a), input_precision="tf32")
        acc += tl.trans(turned)""")
PERSISTENT = own_kernel().replace("""
    pid = tl.program_id(0)
    across = tl.cdiv(n, BLOCK_N)
""", """
    across = tl.cdiv(n, BLOCK_N)
    pid = tl.program_id(0)
    tiles = tl.cdiv(m, BLOCK_M) * across
    for tile in range(pid, tiles, tl.num_programs(0)):
        pid = tile
""")
FACTORY = BEGIN + """
one = tl.constexpr(1.0)
""" + own_kernel(stored="acc * one")[len(BEGIN):]
BLOCK_POINTERS = own_kernel().replace("""
        a = tl.load(a_ptr + rows % m * stride_am + (start + ks[None, :])
                    * stride_ak, mask=ks[None, :] < k - start, other=0.0)
        b = tl.load(b_ptr + (start + ks[:, None]) * stride_bk + cols % n
                    * stride_bn, mask=ks[:, None] < k - start, other=0.0)
""", """
        a_block = tl.make_block_ptr(
            a_ptr, (m, k), (stride_am, stride_ak),
            (pid // across * BLOCK_M, start), (BLOCK_M, BLOCK_K), (1, 0))
        b_block = tl.make_block_ptr(
            b_ptr, (k, n), (stride_bk, stride_bn),
            (start, pid % across * BLOCK_N), (BLOCK_K, BLOCK_N), (1, 0))
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
""")
MARKED = own_kernel().replace(
    "@triton.jit\ndef matmul", "@triton.jit(do_not_specialize=['m', 'n'], "
    "debug=True, noinline=False)\ndef matmul")
OPTIONS = BEGIN + """
space = configs(GROUP_M=1000)
for config in space[:2]:
    config.maxnreg = 128
    config.num_ctas = 1
matmul_kernel = triton.autotune(space, KEY)(t.matmul_kernel)
"""
RIGHT = {
    "a default that no config sets": own_kernel(
        more=", OUT: tl.constexpr = tl.float32", stored="acc.to(OUT)"),
    "configs for whole blocks of K": EVEN_K,
    "a static_assert that rules a config out": STATIC_ASSERT,
    "TRITON_INTERPRET in its first line":
        "import os\nos.environ['TRITON_INTERPRET'] = '1'\n" + BEGIN + LESSONS,
    "torch, numpy and Python set otherwise": SETS_THINGS,
    "tf32 rounded by itself": ROUNDS_ITSELF,
    "a model that leaves one config": MODEL,
    "pruning that asks the card": NEEDS_GPU,
    "the product of the transposed": TRANSPOSED,
    "persistent programs, one a tile": PERSISTENT,
    "a global constexpr": FACTORY,
    "block pointers": BLOCK_POINTERS,
    "arguments of triton.jit": MARKED,
    "a large group, and all options": OPTIONS,
    "postponed annotations": "from __future__ import annotations\n"
                             + own_kernel(),
    "everything imported from the lesson": BEGIN
        + "from triton_softmax_matmul import *\n" + LESSONS,
    "sizes that are compiled in": own_kernel().replace(
        "m, n, k, stride_am", "m: tl.constexpr, n, k, stride_am"),
}


@pytest.mark.parametrize("name", in_turn(RIGHT, 0, 20))
def test_a_right_submission_passes(name, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT[name])
    out = ended(judge(4, file), PASSED)
    assert "FAIL" not in out


@pytest.mark.slow
def test_a_config_that_a_static_assert_rules_out_is_told(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(STATIC_ASSERT.replace("configs() +", "configs()[:7] +"))
    out = ended(judge(4, file), 4)
    assert "at most 7 of them different programs" in out
    assert "config 8 (128,128,32 GROUP_M=1" in out


POOL = """
import concurrent.futures

def square(x):
    return x * x

with concurrent.futures.ProcessPoolExecutor(2) as pool:
    assert list(pool.map(square, range(4))) == [0, 1, 4, 9]
"""


@pytest.mark.thorough
def test_names_folders_and_pools(tmp_path):
    """No .py, a folder that is not ASCII, helpers that are called like the
    judge's own files, and a pool of processes at the import."""
    folder = tmp_path / "übung ✓"
    folder.mkdir()
    for helper in ("engine", "engine_form", "check", "exercises", "lesson",
                   "exercise", "judge"):
        (folder / f"{helper}.py").write_text("mine = True\n")
    file = folder / "autotuned"
    file.write_text("import engine, engine_form, check, exercises, lesson, "
                    "exercise, judge\nassert engine.mine and check.mine and "
                    "exercises.mine and lesson.mine\n" + POOL + BEGIN
                    + LESSONS)
    ended(judge(4, file, cwd=folder), PASSED)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["triton.py", "torch.py", "statistics.py"])
def test_a_file_may_be_called_like_a_package(name, tmp_path):
    file = tmp_path / "mine" / name
    file.parent.mkdir()
    file.write_text(BEGIN + LESSONS)
    ended(judge(4, file), PASSED)


@pytest.mark.thorough
def test_the_repository_may_lie_in_a_folder_that_is_not_ascii(tmp_path):
    copy = tmp_path / "Übungen"
    shutil.copytree(EXERCISES, copy / "exercises")
    shutil.copy(ROOT / "triton_softmax_matmul.py", copy)
    file = copy / "mine.py"
    file.write_text(BEGIN.replace(str(ROOT), str(copy)) + LESSONS)
    ended(judge(4, file, check=copy / "exercises" / "check.py",
                TRITON_CACHE_DIR=tmp_path / "cache"), PASSED)


@pytest.mark.thorough
@pytest.mark.parametrize("variables, flags", [
    ({"TRITON_STORE_BINARY_ONLY": "1", "TRITON_CACHE_AUTOTUNING": "1",
      "TRITON_F32_DEFAULT": "ieee", "TRITON_KERNEL_OVERRIDE": "1"}, []),
    ({"PYTHONSAFEPATH": "1", "PYTHONOPTIMIZE": "2"}, ["-OO"]),
    ({"PYTHONWARNINGS": "error"}, ["-W", "error"]),
    ({"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, ["-P"])])
def test_the_environment_does_not_matter(variables, flags, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("print('\\N{CHECK MARK}')\n" + BEGIN + LESSONS)
    ended(judge(4, file, cwd=tmp_path, flags=flags, **variables), PASSED)


@pytest.mark.thorough
def test_stdout_may_be_closed(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + LESSONS)
    run = judge(4, file, shell="exec >&-")
    assert (run.returncode, run.stdout, run.stderr) == (PASSED, "", "")


@pytest.mark.slow
def test_a_default_precision_is_not_saved_by_the_environment(tmp_path):
    """TRITON_F32_DEFAULT would make a dot without a string ieee."""
    file = tmp_path / "mine.py"
    file.write_text(own_kernel(dot="acc = tl.dot(a, b, acc)"))
    out = ended(judge(4, file, TRITON_F32_DEFAULT="ieee"), 3)
    assert "TRITON_F32_DEFAULT is set, and left out here" in out
    assert "has a dot of f32 and f32 in tf32; wanted is f32 and f32 in" in out


@pytest.mark.parametrize("variable", in_turn(
    ["TRITON_CACHE_DIR", "TRITON_HOME"], 2))
def test_a_cache_that_cannot_be_written_is_named(variable):
    out = ended(judge(4, EXERCISES / "4_autotune" / "autotuned.py",
                      **{variable: "/dev/null/here"}), 2)
    assert "set TRITON_CACHE_DIR to a folder" in out


@pytest.mark.interpreter
def test_a_triton_that_cannot_interpret_is_named(tmp_path):
    """Triton 3.5.1 beside numpy 2.4, as far as their versions go."""
    (tmp_path / "sitecustomize.py").write_text(
        "import builtins\nbefore = builtins.__import__\n"
        "def after(name, *rest, **more):\n"
        "    module = before(name, *rest, **more)\n"
        "    if name == 'triton':\n"
        "        module.__version__ = '3.5.1'\n"
        "    if name == 'numpy':\n"
        "        module.__version__ = '2.4.0'\n"
        "    return module\n"
        "builtins.__import__ = after\n")
    out = ended(judge(4, EXERCISES / "4_autotune" / "autotuned.py",
                      PYTHONPATH=tmp_path), 2)
    assert "Triton 3.5.1 cannot interpret with numpy 2.4" in out


@pytest.mark.thorough
def test_changed_files_change_nothing(tmp_path):
    """The judge has read its own files before a submission is imported."""
    shutil.copytree(EXERCISES, tmp_path / "exercises")
    shutil.copy(ROOT / "triton_softmax_matmul.py", tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(BEGIN.replace(str(ROOT), str(tmp_path)) + LESSONS + f"""
import pathlib
for path in pathlib.Path({str(tmp_path)!r}).rglob("engine*.py"):
    path.write_text("raise SystemExit('changed')")
lesson = pathlib.Path({str(tmp_path)!r}) / "triton_softmax_matmul.py"
lesson.write_text(lesson.read_text().replace(
    "def matmul64(a, b):", "def matmul64(a, b):\\n    raise SystemExit\\n"))
""")
    ended(judge(4, file, check=tmp_path / "exercises" / "check.py"), PASSED)
    assert "raise SystemExit" in (tmp_path / "triton_softmax_matmul.py"
                                  ).read_text()


def test_help_also_where_docstrings_are_dropped():
    out = ended(judge("--help", flags=["-OO"]), 0)
    assert "4    wrong form" in out
