"""The judge: mistakes of kinds that once passed, and right answers that once
did not, each the lesson's kernel, or a solution, with an edit.
"""
import re

import pytest
from conftest import GPU, ROOT, ended, in_turn
from judging import BEGIN, EXERCISES, judge

LESSON = (ROOT / "triton_softmax_matmul.py").read_text(encoding="utf-8")
KERNEL = re.search(r"^@triton\.jit\ndef matmul_kernel\(.*?(?=\n\n\n)", LESSON,
                   re.M | re.S)[0]
PASSED = 5 if GPU else 0  # right, and of blocks that are too small to be fast
PLAIN = "@triton.autotune(configs(), KEY)\n"
LOOP = KERNEL[KERNEL.index("    for step in"):KERNEL.index("    # What hangs")]
OPEN = re.sub(r", mask=offs_k.*?other=0\.0", "", LOOP)
LOAD_A = "tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)"
LOAD_B = "tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)"
WIDE = """
    if tiles_m < tiles_n:
        per_group = GROUP_M * tiles_m
        pid_n = (pid // per_group) * GROUP_M + (pid % per_group) % GROUP_M
        pid_m = (pid % per_group) // GROUP_M
    # My rows of A"""
PRUNED = """
def prune(configs, named_args, **settings):
    even = named_args["k"] % 16 == 0
    return [config for config in configs
            if even or not config.kwargs["EVEN_K"]]


@triton.autotune(configs(EVEN_K=False)[::2] + configs(EVEN_K=True)[::2], KEY,
                 prune_configs_by={"early_config_prune": prune})
"""
NO_ROW = """
def prune(configs, named_args, **settings):
    largest = 32 if named_args["m"] == 1 else 64
    return [config for config in configs
            if config.kwargs["BLOCK_M"] <= largest]


@triton.autotune(configs(), KEY, prune_configs_by={"early_config_prune": prune})
"""
MODEL = """
def cost(M, N, K, BLOCK_M, BLOCK_N, **settings):
    return M * N * K / (BLOCK_M * BLOCK_N)


@triton.autotune(configs(), KEY,
                 prune_configs_by={"perf_model": cost, "top_k": 4})
"""
NONE_LEFT = MODEL.replace("M, N, K, B", "m, n, k, B").replace(
    "M * N * K /", "m * n * k /").replace('"top_k": 4', '"top_k": 0.1')


def indented(text):
    """A text one step further to the right."""
    return re.sub("^(?=.)", "    ", text, flags=re.M)


def two_loops(when):
    """Edits for a loop without masks along K where `when` holds."""
    return [(LOOP, f"    if {when}:\n{indented(OPEN)}    else:\n"
                   f"{indented(LOOP)}")]


# What was done to the lesson's kernel; the status; words of the verdict; and
# what stands above the kernel.
WRONG = {
    "loads without other": (
        [(", other=0.0", "", 2)], 3, "FAIL  ieee", PLAIN),
    "a last group of the remainder": (
        [("min(tiles_m - first_m, GROUP_M)",
          "GROUP_M if first_m + GROUP_M < tiles_m else tiles_m % GROUP_M")],
        3, "a full group", PLAIN),
    "another order where it is wide": (
        [("\n    # My rows of A", WIDE)], 3, "wider than tall", PLAIN),
    "no mask along K where 16 divides k": (
        two_loops("k % 16 == 0"), 3, "FAIL  ieee", PLAIN),
    "no mask on C where 16 divides its sides": (
        [("(offs_m < m) & (offs_n < n)",
          "(offs_m < m) & (offs_n < n) | (m % 16 == 0) & (n % 16 == 0)")],
        3, "outside the result", PLAIN),
    "pruning that takes 16 for a block": (
        [("IEEE: tl.constexpr)", "IEEE: tl.constexpr, EVEN_K: tl.constexpr)"),
         *two_loops("EVEN_K")], 3, "FAIL  ieee", PRUNED),
    "four steps lost": (
        [("tl.cdiv(k, BLOCK_K))", "tl.cdiv(k, BLOCK_K) - "
          "(4 if k // BLOCK_K % 4 == 0 and k >= 4 * BLOCK_K else 0))")],
        3, "steps of K", PLAIN),
    "one step where there is one row": (
        [("tl.cdiv(k, BLOCK_K))", "1 if m == 1 else tl.cdiv(k, BLOCK_K))")],
        3, "one row", PLAIN),
    "one step where there is one row, and half of the configs": (
        [("tl.cdiv(k, BLOCK_K))", "1 if m == 1 else tl.cdiv(k, BLOCK_K))")],
        3, "one row", NO_ROW),
    "ieee left out": (
        [("    pid = tl", "    tl.static_assert(not IEEE, 'later')\n"
          "    pid = tl")], 4, "0 configs compile in ieee", PLAIN),
    "K-major B left out": (
        [("stride_bk, stride_bn,", "stride_bk: tl.constexpr, stride_bn,"),
         ("    pid = tl", "    tl.static_assert(stride_bk != 1, 'later')\n"
          "    pid = tl"), ("c_ptrs, acc,", "c_ptrs, acc * 2,")],
        3, "K-major: a static_assert fails", PLAIN),
    "a model that raises": ([], 4, "perf_model at m=2048, n=2048, k=2048 "
                            "raised TypeError", MODEL),
    "a model that leaves nothing": ([], 4, "top_k leaves no config over",
                                    NONE_LEFT),
    "a hint that no compiler takes": (
        [("stride_am + offs_k", "tl.multiple_of(stride_am, 16) + offs_k")],
        3, "column-major A, does not compile", PLAIN),
}
RIGHT = {
    "an outer product where k is 1": [
        (LOOP, "    if k == 1:\n        acc = tl.load(a_ptr + (offs_m % m) * "
               "stride_am) * tl.load(b_ptr + (offs_n % n) * stride_bn)\n"
               f"    else:\n{indented(LOOP)}")],
}


def edited(text, edits):
    """A text after edits, each of which has to find its place."""
    for old, new, *times in edits:
        assert text.count(old) == (times[0] if times else 1), old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", in_turn(WRONG, 0, 6))
def test_a_mistake_that_once_passed(name, tmp_path):
    edits, status, words, above = WRONG[name]
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + above + edited(KERNEL, edits) + "\n")
    assert words in ended(judge(4, file), status)


@pytest.mark.parametrize("name", in_turn(RIGHT, 0))
def test_a_right_answer_that_once_did_not_pass(name, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BEGIN + PLAIN + edited(KERNEL, RIGHT[name]) + "\n")
    assert "FAIL" not in ended(judge(4, file), PASSED)


SOLUTIONS = {
    2: (EXERCISES / "2_several_rows" / "solution" / "several_rows.py"
        ).read_text(encoding="utf-8"),
    3: (EXERCISES / "3_wide_rows" / "solution" / "wide_rows.py"
        ).read_text(encoding="utf-8"),
}
INT64 = "tl.program_id(0).to(tl.int64)"
CHOICE = '{"BLOCK_ROWS": max(512 // block, 4), "num_warps": 4}'
SOFTMAX = {
    "columns open where 16 divides them": (
        2, [("& (cols < n_cols)", "& ((cols < n_cols) | (n_cols % 16 == 0))")],
        3, "16 divides the columns"),
    "row numbers without a sign": (
        2, [(INT64, INT64.replace("int64", "uint32"))], 3,
        "rows 2^30 elements apart"),
    "small shares made larger": (
        2, [("num = tl.exp(x - tl.max(x, axis=1, keep_dims=True))",
             "num = tl.where(mask, tl.exp(tl.maximum(x - tl.max(x, axis=1, "
             "keep_dims=True), -20.0)), 0.0)")], 3, "small shares are off"),
    "a chained comparison": (
        2, [("(cols < n_cols)", "(0 <= cols < n_cols)")], 3,
        "it does not compile: "),
    "three warps": (2, [(CHOICE, CHOICE.replace("4}", "3}"))], 4,
                    "num_warps=3; wanted is one of 1, 2, 4, 8, 16, 32"),
    "three rows": (2, [(CHOICE, CHOICE.replace("max(512 // block, 4)", "3"))],
                   4, "BLOCK_ROWS=3; wanted is a power of two"),
    "the launcher's block": (
        2, [(CHOICE, CHOICE.replace("}", ', "BLOCK_COLS": block}'))], 4,
        "sets BLOCK_COLS, which the launcher passes"),
    "rows left out": (2, [(CHOICE, '{"num_warps": 4}')], 4,
                      "leaves out BLOCK_ROWS"),
    "a choice that asks the GPU": (
        2, [(CHOICE, '{"num_warps": t.torch.cuda.get_device_properties(0)'
             '.major}')], 4, "where there is none, it has to return"),
    "a plain global": (
        3, [("LOWEST = tl.constexpr(-(2.0 - 2.0**-23) * 2.0**127)",
             "LOWEST = -(2.0 - 2.0**-23) * 2.0**127")], 3,
        "it does not compile: "),
    "pieces open where 16 divides the columns": (
        3, [("mask=cols < n_cols, other=-float",
             "mask=(cols < n_cols) | (n_cols % 16 == 0), other=-float")], 3,
        "16 divides the columns"),
    "right: a choice that is kept": (
        2, [("def choose(", "@functools.cache\ndef choose(")], 0, "passed"),
    "right: rows by default": (
        2, [("BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr",
             "BLOCK_ROWS: tl.constexpr = 4, BLOCK_COLS: tl.constexpr = 64"),
            (CHOICE, '{"num_warps": 4}')], 0, "passed"),
    "right: powers of two in place of exp": (
        2, [("num = tl.exp(x - tl.max(x, axis=1, keep_dims=True))",
             "num = tl.exp2((x - tl.max(x, axis=1, keep_dims=True)) * "
             "1.4426950408889634)")], 0, "passed"),
}


@pytest.mark.interpreter
@pytest.mark.parametrize("name", in_turn(SOFTMAX, 14, 3))
def test_softmaxes_that_were_once_misjudged(name, tmp_path):
    number, edits, status, words = SOFTMAX[name]
    text = SOLUTIONS[number].replace(
        "pathlib.Path(__file__).resolve().parents[3]", repr(str(ROOT)))
    file = tmp_path / "mine.py"
    file.write_text(edited(text, edits))
    assert words in ended(judge(number, file), status)


def test_a_file_that_does_not_parse_is_its_own_fault(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import triton\n\nx = (1))\n")
    out = ended(judge(4, file), 2)
    assert "line 3 of the file does not parse: SyntaxError: unmatched" in out
    assert "judge itself" not in out
