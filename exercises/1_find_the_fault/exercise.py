"""The first exercise, as the judge reads it."""
import functools

from exercises.engine_words import Entry, Exercise

# One member of the family is enough to show each fault. Its groups are neither
# one row of tiles nor a power of two of them.
CONFIG = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 3,
          "num_warps": 4, "num_stages": 3}
SYMPTOMS = {
    "softmax_1": "rows far below 0 come out as zeros, or nearly so",
    "softmax_2": "numbers far from 0 come out as NaN",
    "softmax_3": "a part of a wider matrix: all rows but the first are wrong",
    "softmax_4": "right in every test, until a matrix is very large",
    "matmul_1": "wrong, NaN or right, depending on what lies behind A and B",
    "matmul_2": "the numbers are right, and now and then the process dies",
    "matmul_3": "other elements are wrong at each run, and what lies behind C "
                "is overwritten",
    "matmul_4": "some tiles in the lower rows of C are never written",
    "matmul_5": "in a part of a larger matrix the numbers land in wrong places",
    "matmul_6": "right when interpreted; in ieee on a GPU, 1 times 8191 is not "
                "8191",
    "matmul_7": "a long k gives the result of the last columns of A alone",
    "matmul_8": "the second call into the same memory gives another result",
}

NEXT = """\
Next: take the first kernel above that fails, read its symptom again, and find
the line that explains it. Each has two hints in
exercises/1_find_the_fault/README.md."""


def describe(t):
    """Twelve kernels with a mistake in each; t is the judge's lesson."""
    entries = []
    for name, symptom in SYMPTOMS.items():
        if name.startswith("softmax"):
            entries.append(Entry(
                name, "softmax", about=symptom,
                checks=functools.partial(check_far_rows, t)))
        else:
            entries.append(Entry(
                name, "matmul", about=symptom, configs=[CONFIG],
                cases=functools.partial(matmul_cases, t),
                multipliers=name == "matmul_6",
                steps=functools.partial(matmul_steps, t)))
    return Exercise(entries, next_step=NEXT)


def matmul_cases(t, config):
    """Few cases, and sharp ones: the lesson's own take a minute for eight
    kernels."""
    block_m, block_n, block_k = t.block_shape(config)
    row, col, steps = t.LAYOUTS[:3]
    few = (9, 8, block_k + 9)
    case = t.Case
    return [
        case("two groups, one not full",
             (3 * block_m + 5, block_n + 3, 2 * block_k + 5), (row, row, col)),
        case("whole blocks", (block_m, 2 * block_n, 2 * block_k),
             (col, row, row)),
        case("a full group", (3 * block_m, 2 * block_n, block_k + 8),
             (row, row, col)),
        case("16 divides all sides", (48, 48, 48), (row, row, row),
             around=t.LARGE),
        case("one step of K", (block_m - 1, block_n + 1, block_k),
             (row, col, row), around=t.LARGE),
        case("all in steps", (block_m + 1, block_n - 1, block_k + 7),
             (steps, steps, steps), around=t.LARGE),
        case("three steps of K", (3, 5, 2 * block_k + 1), (col, col, steps)),
        case("a single row", (1, 40, 7), (row, col, col)),
        case("nothing to add up", (5, 6, 0), (row, row, row)),
        case("whole numbers", few, (row, col, steps), "whole numbers"),
        case("2^100 and 2^-100", few, (col, row, col), "scaled"),
        case("NaN, inf and -0.0", few, (row, row, row), "NaN, inf and -0.0",
             t.LARGE),
        case("an earlier result", few, (steps, row, row), relaunched=True),
    ]


def matmul_steps(t, launch):
    """Products of matrices that end where memory ends, of two tiles each."""
    fenced_result = functools.partial(t.fenced, writable=True)
    steps = []
    for shape in ((CONFIG["BLOCK_M"] + 20, 24, 40),
                  (20, CONFIG["BLOCK_N"] + 24, 40)):
        for by_columns in (False, True):
            label = (f"{'x'.join(map(str, shape))}, {t.LAYOUTS[by_columns]}, "
                     "where memory ends")
            steps.append((label, functools.partial(
                t.right_tile, launch, t.fenced, fenced_result, CONFIG, "ieee",
                shape, by_columns)))
    return steps


def check_far_rows(t, launch, device):
    """Whether rows from element 2^31 on are read and written where they lie.

    Addresses are taken for more rows in front, so that a row number that
    wraps to below 0 finds other numbers instead of ending the process. On a
    GPU this is left to memory that ends, which is tried in an interpreter.
    """
    if device != "cpu":
        return True
    try:
        x = t.far_apart(t.small_numbers(8, 7), 2**30)[2:]
        out = t.far_apart(t.small_numbers(8, 7).zero_(), 2**30)[2:]
    except OSError as error:
        print(f"skip  rows 2^30 elements apart: no addresses here, {error}")
        return True
    want = t.softmax64(x.numpy())
    with t.np.errstate(all="ignore"):
        launch(x, out)
    got = out.numpy().astype(t.np.float64)
    limit, arithmetic = t.softmax_tolerance(7)
    error, problem = t.judge_values(got, want, want.max(axis=1, keepdims=True),
                                    limit)
    problems = []
    if problem:
        problems = [f"{problem}; row 2 begins at element 2^31, row 4 at 2^32"]
    return t.report("softmax 6x7, rows 2^30 elements apart", error, limit,
                    arithmetic, problems)
