"""The third exercise, as the judge reads it."""
import functools

from exercises.engine_words import Entry, Exercise, Timed

# Tried besides what the file chooses: a kernel has to be right with pieces of
# any width, and in small ones there is soon one of each kind.
PIECES = (64, 16, 4, 1024)
INF, NAN = float("inf"), float("nan")
NEXT = """\
Next: the first check above that failed; on a GPU, if it is only too slow, PIECE
and num_warps. exercises/3_wide_rows/README.md has hints that open one by one."""


def describe(t):
    """A softmax in pieces; t is the judge's lesson."""
    configs = [{"PIECE": piece, "num_warps": max(piece // 128, 1)}
               for piece in PIECES]
    entry = Entry(
        "pieces_kernel", "softmax",
        parameters=["in_ptr", "out_ptr", "row_stride", "n_cols", "PIECE"],
        choice="choose", configs=configs, powers={"PIECE": 2**17},
        launcher=functools.partial(launch, t),
        cases=functools.partial(cases, t),
        checks=functools.partial(check_pieces, t),
        steps=functools.partial(end_steps, t))
    timed = [Timed("131072 columns", "pieces_kernel",
                   operands=functools.partial(operands, t),
                   baselines=functools.partial(baselines, t),
                   against=["torch.softmax"], floor="device copy",
                   direct=["device copy"])]
    return Exercise([entry], timed, next_step=NEXT)


def launch(t, kernel, config, x, out):
    """The lesson's launcher, but for rows of any width."""
    rows, cols = x.shape
    source, target = x, out
    if x.stride() != out.stride() or x.stride(1) != 1:
        source = x.contiguous()
        target = t.torch.empty_like(source)
    kernel[(rows,)](source, target, source.stride(0), cols, **config)
    if target is not out:
        out.copy_(target)
    return out


def cases(t, config):
    """The lesson's cases, and wide rows; for a small piece, short rows."""
    row, col, steps = t.LAYOUTS[:3]
    case = t.Case
    if config:  # one that the file did not choose
        piece = max(config["PIECE"], 16)
        return [
            case("one piece", (2, piece), (row, row)),
            case("one column too many", (2, piece + 1), (row, row)),
            case("one column too few", (2, 3 * piece - 1), (row, row),
                 around=t.LARGE),
            case("16 divides the columns",
                 (2, piece + (16 if piece > 16 else 8)), (row, row),
                 around=t.LARGE),
            case("columns first", (2, 2 * piece + 5), (col, steps),
                 around=t.LARGE),
        ]
    own = [
        case("whole pieces", (1, 131072), (row, row)),
        case("the widest", (1, 2**20), (row, row)),
        case("some columns over", (1, 100003), (row, row), around=t.LARGE),
    ]
    for values in ("all near -3000", "huge", "one spike", "some -inf",
                   "a row of -inf", "an inf in a row", "a NaN in a row"):
        own.append(case(values, (1, 40009), (row, row), values))
    return own + t.softmax_cases()


def rows_of_pieces(t):
    """{what a row is there to catch: the row}, 99 columns each."""
    generator = t.torch.Generator("cpu").manual_seed(86)
    usual = t.torch.randn(99, generator=generator, dtype=t.torch.float32)
    rows = {}

    def add(name, values, where=slice(None)):
        """A row like the others but for the values at some places."""
        rows[name] = usual.clone()
        rows[name][where] = values

    add("the largest value first", 9.0, 0)
    add("the largest value last", 9.0, -1)
    rows["ever larger"] = usual.abs().cumsum(0)
    rows["ever smaller"] = -usual.abs().cumsum(0)
    add("far below 0 at first", -3000.0, slice(0, 70))
    add("far below 0 later on", -3000.0, slice(30, None))
    add("pieces of -inf at first", -INF, slice(0, 70))
    add("pieces of -inf later on", -INF, slice(20, None))
    add("pieces of -inf in between", -INF, slice(1, 98))
    add("all -inf", -INF)
    add("-inf but for one number, late", -INF, slice(0, 97))
    rows["-inf but for one number, late"][98] = -INF
    add("inf first", INF, 0)
    add("inf last", INF, -1)
    add("NaN first", NAN, 0)
    add("NaN last", NAN, -1)
    add("NaN among -inf", -INF)
    rows["NaN among -inf"][50] = NAN
    add("the lowest number and -inf", t.torch.finfo(usual.dtype).min)
    rows["the lowest number and -inf"][40:] = -INF
    return rows


def check_pieces(t, launch, device):
    """Whether rows come out right in which every piece is of another kind."""
    passed = True
    for name, values in rows_of_pieces(t).items():
        operand = t.place(values[None, :], "row-major", t.LARGE, device,
                          (2, 1024))
        result = t.place_result((1, 99), "row-major", device, (2, 1024))
        passed &= t.check_softmax(f"softmax 1x99, {name}", launch, operand,
                                  result)
    return passed


def end_steps(t, launch):
    """Rows that end where memory ends, and rows that lie far apart."""
    steps = t.memory_end_steps(launch, None, [t.CONFIGS[0]])[:2]
    steps.append(("softmax, wide rows that end where memory ends",
                  functools.partial(
                      t.right_rows, launch, t.fenced,
                      functools.partial(t.fenced, writable=True), 3, 40009)))
    return steps


def operands(t):
    """2^27 numbers in rows of 131072, the same in every process."""
    generator = t.torch.Generator("cuda").manual_seed(86)
    return [t.torch.randn(1024, 131072, device="cuda", dtype=t.torch.float32,
                          generator=generator)]


def baselines(t, x, out):
    """torch.softmax, and a copy as the limit; the lesson's refuses."""
    return {"torch.softmax": functools.partial(t.torch.softmax, x, 1, out=out),
            "device copy": functools.partial(out.copy_, x)}
