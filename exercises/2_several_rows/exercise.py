"""The second exercise, as the judge reads it."""
import functools

from exercises.engine_words import Entry, Exercise, Timed

WIDTHS = (32, 64, 128, 256)
# Tried besides what the file chooses.
FOUR = {"BLOCK_ROWS": 4, "num_warps": 4}
NEXT = """\
Next: the first check above that failed; on a GPU, the first width that was too
slow.
exercises/2_several_rows/README.md has hints that open one by one."""


def describe(t):
    """A softmax with several rows a program; t is the judge's lesson."""
    entry = Entry(
        "rows_kernel", "softmax",
        parameters=["in_ptr", "out_ptr", "row_stride", "n_rows", "n_cols",
                    "BLOCK_ROWS", "BLOCK_COLS"],
        choice="choose", configs=[FOUR], rows_at_once=512,
        powers={"BLOCK_ROWS": 512},
        launcher=functools.partial(launch, t),
        cases=functools.partial(cases, t),
        checks=functools.partial(check_neighbours, t),
        steps=functools.partial(end_steps, t))
    timed = []
    for cols in WIDTHS:
        timed.append(Timed(
            f"{cols} columns", "rows_kernel",
            operands=functools.partial(operands, t, cols),
            baselines=functools.partial(baselines, t),
            against=["torch.softmax"], floor="device copy",
            direct=["device copy"]))
    return Exercise([entry], timed, next_step=NEXT)


def launch(t, kernel, config, x, out):
    """The lesson's launcher, but for a grid of blocks of rows."""
    rows, cols = x.shape
    source, target = x, out
    if x.stride() != out.stride() or x.stride(1) != 1:
        source = x.contiguous()
        target = t.torch.empty_like(source)
    grid = (t.triton.cdiv(rows, config["BLOCK_ROWS"]),)
    kernel[grid](source, target, source.stride(0), rows, cols,
                 BLOCK_COLS=t.triton.next_power_of_2(cols), **config)
    if target is not out:
        out.copy_(target)
    return out


def cases(t, config):
    """The lesson's cases as far as they are narrow, and numbers of rows that
    leave some over."""
    row, col, steps = t.LAYOUTS[:3]
    case = t.Case
    if config:  # one that the file did not choose
        return [
            case("one row", (1, 5), (row, row)),
            case("one row too few", (7, 32), (row, row), around=t.LARGE),
            case("whole blocks", (8, 16), (row, row)),
            case("one row too many", (9, 33), (row, row), around=t.LARGE),
            case("a row of -inf", (6, 40), (row, row), "a row of -inf"),
            case("16 divides the columns", (9, 48), (row, row),
                 around=t.LARGE),
        ]
    own = [
        case("one row", (1, 256), (row, row)),
        case("whole blocks", (128, 32), (row, row)),
        case("one row too many", (65, 32), (row, row), around=t.LARGE),
        case("one row too few", (63, 64), (row, row)),
        case("some rows over", (37, 128), (row, row), around=t.LARGE),
        case("three rows", (3, 255), (row, row)),
        case("16 divides the columns", (33, 48), (row, row), around=t.LARGE),
        case("rows of one number", (150, 1), (row, row)),
        case("columns first", (33, 17), (col, steps), around=t.LARGE),
    ]
    return own + [other for other in t.softmax_cases()
                  if other.sizes[1] <= 1024]


def check_neighbours(t, launch, device):
    """Whether rows that a program does together leave each other alone."""
    generator = t.torch.Generator("cpu").manual_seed(86)
    x = t.torch.randn(26, 32, generator=generator, dtype=t.torch.float32)
    x[1] -= 3000
    x[3] += 3000
    x[5] = -t.torch.inf
    x[7, 31] = t.torch.inf
    x[9, 0] = t.torch.nan
    x[11] = x[11].clamp(-3, 3) * 1e38
    x[13] = -x[13].clamp(-3, 3).abs() * 1e38
    x[15, 31] = 100
    operand = t.place(x, "row-major", t.LARGE, device, (64, 32))
    result = t.place_result((26, 32), "row-major", device, (64, 32))
    return t.check_softmax("softmax 26x32, rows of many kinds", launch,
                           operand, result)


def end_steps(t, launch):
    """Rows that end where memory ends, and rows that lie far apart."""
    fenced_result = functools.partial(t.fenced, writable=True)
    far = functools.partial(t.far_apart, stride=2**30)
    steps = []
    for rows, cols in ((19, 5), (19, 32), (7, 64), (5, 128), (3, 256),
                       (3, 333)):
        steps.append((f"{rows} x {cols}, where memory ends", functools.partial(
            right_rows, t, launch, rows, cols, t.fenced, fenced_result)))
    steps.append(("6 x 5, rows 2^30 elements apart", functools.partial(
        right_rows, t, launch, 6, 5, far, far)))
    return steps


def right_rows(t, launch, rows, cols, put, put_result):
    """The lesson's, where rows that hang over may make numpy warn."""
    with t.np.errstate(all="ignore"):
        return t.right_rows(launch, put, put_result, rows, cols)


def operands(t, cols):
    """2^26 numbers in rows of that width, the same in every process."""
    generator = t.torch.Generator("cuda").manual_seed(86)
    return [t.torch.randn(2**26 // cols, cols, device="cuda",
                          dtype=t.torch.float32, generator=generator)]


def baselines(t, x, out):
    """torch.softmax, the lesson's kernel, and a copy as the limit."""
    return {"torch.softmax": functools.partial(t.torch.softmax, x, 1, out=out),
            "the lesson's": functools.partial(t.softmax, x, out),
            "device copy": functools.partial(out.copy_, x)}
