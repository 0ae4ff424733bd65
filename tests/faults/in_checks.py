"""Faults in the checks themselves, which no run of the script can see.

JUDGES let made-up results pass that are wrong, or fail right ones
(made_up.py). LOST loses a verdict on the way from a check to the exit status:
beside each stands a fault in a kernel or launcher that the run then no longer
tells.
"""
from planted import EVERY, Edit


def judge(where, old, new, times=1):
    """The edits of a fault in a check: one."""
    return [Edit(where, old, new, times)]


JUDGES = {
    "written as error > limit": judge(
        "judge_values", "~(errors <= limit)", "errors > limit"),
    "result against itself": judge(
        "judge_values", "np.abs(got - want)", "np.abs(got - got)"),
    "reference for result": judge(
        "judge_values", "np.abs(got - want)", "np.abs(want - want)"),
    "NaN always right": judge(
        "judge_values", "np.isnan(got) & np.isnan(want)", "np.isnan(got)"),
    "NaN excuses all": judge(
        "judge_values", "np.isnan(got) & np.isnan(want)", "np.isnan(want)"),
    "equal infinity wrong": judge(
        "judge_values", "(got == want) | np.isnan(got)", "np.isnan(got)"),
    "mean, not maximum": judge(
        "judge_values", "errors = np.abs(got - want) / scale",
        "errors = (np.abs(got - want) / scale).mean(keepdims=True) + 0 * want"),
    "out starts as 0": judge(
        "place_result", "bits(result.memory).fill_(UNWRITTEN)",
        "bits(result.memory).fill_(0)"),
    "guard not read": judge(
        "look_at_memory", "problems.append('wrote outside the result')",
        "pass"),
    "inputs not read": judge(
        "look_at_memory", "problems.append('wrote on an input')", "pass"),
    "inputs not kept": judge(
        "launched", "bits(operand.memory).clone()", "bits(operand.memory)"),
    "always passes": judge("report", "return not problems", "return True"),
    "k for sqrt(k)": judge("matmul_tolerance", "4 * np.sqrt(k) *", "4 * k *"),
    "k squared": judge("matmul_tolerance", "4 * np.sqrt(k) *", "4 * k ** 2 *"),
    "k left out": judge("matmul_tolerance", "4 * np.sqrt(k) *", "4 *"),
    "a bit lost": judge(
        "matmul_tolerance", "np.sqrt(k) * 2 ** (-24)",
        "np.sqrt(k) * 2 ** (-23)"),
    "tf32 for ieee": judge(
        "matmul_tolerance", "if precision == 'tf32':", "if True:"),
    "ieee for tf32": judge(
        "matmul_tolerance", "if precision == 'tf32':", "if False:"),
    "tf32 too wide": judge(
        "matmul_tolerance", "2 * 2 ** (-10) +", "4 * 2 ** (-10) +"),
    "n for sqrt(n)": judge("softmax_tolerance", "(np.sqrt(n) + 8)", "(n + 8)"),
    "exp too wide": judge(
        "softmax_tolerance", "(np.sqrt(n) + 8)", "(np.sqrt(n) + 80)"),
}
NEW_JUDGES = {
    "tf32 too narrow": judge(
        "matmul_tolerance", "2 * 2 ** (-10) +", "2 ** (-10) +"),
    "lambda of 8": judge("matmul_tolerance", "4 * np.sqrt(k)", "8 * np.sqrt(k)"),
    "lambda of 2": judge("matmul_tolerance", "4 * np.sqrt(k)", "2 * np.sqrt(k)"),
    "any infinity for any other": judge(
        "judge_values", "(got == want)",
        "(got == want) | np.isinf(got) & np.isinf(want)"),
    "the scale of the largest": judge(
        "judge_values", "np.abs(got - want) / scale",
        "np.abs(got - want) / np.max(scale)"),
    "rows alone": judge(
        "judge_values", "~(errors <= limit)",
        "~(errors.min(axis=1, keepdims=True) <= limit)"),
    "the last column is not looked at": judge(
        "judge_values", "~(errors <= limit)",
        "~(errors[:, :max(errors.shape[1] - 1, 1)] <= limit)"),
    "unwritten is not told": judge(
        "look_at_memory", "if missing:", "if False:"),
    "unwritten only if all is": judge(
        "look_at_memory", "if missing:", "if missing == result.view.numel():"),
    "NaN outside is nothing": judge(
        "look_at_memory", "bits(around).eq(UNWRITTEN)",
        "(bits(around).eq(UNWRITTEN) | around.isnan())"),
    "inputs compared as numbers": judge(
        "look_at_memory", "bits(operand.memory).equal(was)",
        "operand.memory.nansum() == was.view(torch.float32).nansum()"),
    "another result is told nowhere": judge(
        "launched", "problems.append('did not return its out')", "pass"),
    "exact is not exact": judge(
        "check_matmul", "limit, arithmetic = (0, 'exact')",
        "arithmetic = 'exact'"),
    "exact by name alone": judge(
        "check_matmul", "limit, arithmetic = (0, 'exact')",
        "limit, arithmetic = (2 ** (-24), 'exact')"),
    "a problem is not kept": judge(
        "check_matmul", "if problem:", "if False:"),
    "a softmax problem is not kept": judge(
        "check_softmax", "if problem:\n        problems.append(problem)",
        "if False:\n        problems.append(problem)"),
    "row sums are not looked at": judge(
        "check_softmax", "judge_values(sums, right_sums, 1, limit)",
        "(0, None)"),
    "sums of the reference": judge(
        "check_softmax", "for y in (got, want)", "for y in (want, want)"),
    "softmax against its sum": judge(
        "check_softmax", "largest = want.max(", "largest = want.sum("),
    "the same bits are not asked for": judge(
        "right_multipliers", "return False", "return True"),
    "a refusal is believed": judge(
        "refuses", "was not refused with a ValueError')\n    return False",
        "was not refused with a ValueError')\n    return True"),
    "a late refusal is believed": judge(
        "refuses", "bits(result.memory).eq(UNWRITTEN).all()", "True"),
    "the first launch of a case is lost": judge(
        "softmax_checks", "passed &= check_softmax(label, ",
        "check_softmax(label, "),
    "the second launch of a case is lost": judge(
        "softmax_checks", "passed &= check_softmax(label + ",
        "check_softmax(label + "),
    "the last softmax decides": judge(
        "softmax_checks", "passed &= check_softmax", "passed = check_softmax",
        EVERY),
    "the last product decides": judge(
        "matmul_checks", "passed &= check_matmul", "passed = check_matmul",
        EVERY),
    "no product decides": judge(
        "matmul_checks", "passed &= check_matmul", "check_matmul", EVERY),
    "the multipliers decide": judge(
        "check_matmul", "return passed and right", "return right"),
    "the multipliers decide nothing": judge(
        "check_matmul", "return passed and right_multipliers(case, results)",
        "return passed"),
    "a refusal decides nothing": judge(
        "check_matmul", "passed &= refuses", "refuses"),
    "nothing changes before the second launch": judge(
        "matmul_checks", "+= 3", "+= 0", EVERY),
    "a step decides nothing": judge(
        "take_steps", "passed &= right", "pass"),
    "the last step decides": judge(
        "take_steps", "passed &= right", "passed = right"),
    "a step that raises decides nothing": judge(
        "take_steps", "{error}')\n            passed = False",
        "{error}')"),
    "a signal decides nothing": judge(
        "finish_child", "return status == 0", "return status <= 0"),
    "a child decides nothing": judge(
        "finish_child", "return status == 0", "return status >= 0"),
    "one child is enough": judge(
        "side_by_side", "all(verdicts)", "any(verdicts)"),
    "the page behind may be touched": judge(
        "fenced", "protect(start + page + size, page, no_access)", "pass"),
    "the page before may be touched": judge(
        "fenced", "protect(start, page, no_access)", "pass"),
    "fenced operands may be written": judge(
        "fenced", "if not writable:", "if False:"),
    "nothing begins where memory begins": judge(
        "fenced", "if at_start else", "if False else"),
    "small numbers are all alike": judge(
        "small_numbers", "numbers * 5 % 7 - 3", "numbers * 0 + 1"),
    "rows far apart lie together": judge(
        "far_apart", "(rows, cols), (stride, 1)", "(rows, cols), (cols, 1)"),
    "a tile where memory ends is not compared": judge(
        "right_tile", "if problem:", "if False:"),
    "rows where memory ends are not compared": judge(
        "right_rows", "if problem:", "if False:"),
    "a wrong result where memory ends decides nothing": judge(
        "take_steps", "{problem}')\n            passed = False",
        "{problem}')"),
    "no columns where memory ends": judge(
        "right_tile", "if by_columns:", "if False:"),
    "a changed tensor is told nowhere": judge(
        "launched", "problems.append(\"changed a tensor's shape, strides or "
        "memory\")", "pass"),
    "views are judged as they came back": judge(
        "launched", "result.view[:]", "result.view"),
    "what a task returns is lost": judge(
        "start_child", "0 if right else 3", "0"),
}

ONE_SOFTMAX = "softmax: wrong in a full block"  # seen by a single case
ONE_PRODUCT = "matmul: wrong from the 65th step on"
ONE_LONG_M = "matmul: wrong for m over 2048"
ONE_ERROR = "matmul: an error for a long K"
ONE_STEP = "softmax: row numbers of 32 bits without a sign"
SECOND_TILE = "matmul: m not wrapped from the second tile on"

LOST = {
    "softmax verdicts": (judge(
        "softmax_checks", "passed &= check_softmax", "passed = check_softmax",
        EVERY), ONE_SOFTMAX),
    "matmul verdicts": (judge(
        "matmul_checks", "passed &= check_matmul", "passed = check_matmul",
        EVERY), ONE_PRODUCT),
    "either half": (judge("side_by_side", "all(verdicts)", "any(verdicts)"),
                    ONE_SOFTMAX),
    "exit status": (judge("main", "return 3", "return 0"), ONE_SOFTMAX),
    "the status that Python ends with": (judge(
        "leave", "sys.exit(status)", "sys.exit(0)"), ONE_SOFTMAX),
    "the last line": (judge(
        "leave", "print(*lines, f'exit {status}', sep='\\n', flush=True)",
        "print(*lines, sep='\\n', flush=True)"), ONE_SOFTMAX),
    "what the run returns": (judge(
        "run_script", "leave(reported(main))",
        "reported(main)\n    leave(0)"), ONE_SOFTMAX),
    "softmax in the first half": (judge(
        "interpreted_checks", "matmul_checks(DEVICE, cases=cases[1::2]) and "
        "passed", "matmul_checks(DEVICE, cases=cases[1::2])"), ONE_SOFTMAX),
    "products in the second half": (judge(
        "interpreted_checks", "take_steps(steps) and passed",
        "take_steps(steps)"), ONE_LONG_M),
    "memory that ends": (judge(
        "interpreted_checks", "take_steps(steps) and passed",
        "(take_steps(steps) or True) and passed"), ONE_STEP),
    "one tile where memory ends": (judge(
        "memory_end_steps", "config['BLOCK_M'] + 20", "20"), SECOND_TILE),
    "an error is no failure": (judge(
        "reported", "print_error(error)\n        return 3",
        "print_error(error)\n        return True"), ONE_ERROR),
    "what a child returns": (judge(
        "start_child", "0 if right else 3", "0"), ONE_SOFTMAX),
    "how a child ends": (judge(
        "finish_child", "return status == 0", "return status <= 0"),
        SECOND_TILE),
    "what is reported": (judge("report", "return not problems", "return True"),
                         ONE_SOFTMAX),
    "the word FAIL": (judge(
        "report", "'FAIL' if problems else 'pass'", "'pass'"), ONE_SOFTMAX),
}
