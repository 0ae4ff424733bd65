"""The fourth exercise, as the judge reads it."""
import functools

from exercises.engine_words import Entry, Exercise, Timed

LESSONS_KEY = (["m", "n", "k"], """\
This is the key that the lesson prints, and it is not enough: whatever case \
runs first decides for all that follow. The winner in ieee, on the FMA units, \
then runs tf32 on the tensor cores, and the winner for one layout of B runs \
the other. The page of this exercise says what that cost on an H200.""")


def describe(t):
    """The matmul kernel under triton.autotune; t is the judge's lesson."""
    entries = [
        Entry("matmul_kernel", "matmul", tuned=True, at_least=8,
              known_key=LESSONS_KEY),
        Entry("softmax_kernel", "softmax", optional=True),
    ]
    timed = []
    for precision in t.PRECISIONS:
        for layout in t.B_LAYOUTS:
            timed.append(Timed(
                f"{precision}, {layout} B", "matmul_kernel",
                operands=functools.partial(operands, t, layout),
                baselines=functools.partial(baselines, t, precision),
                against=hand_written(t), floor="torch.mm",
                precision=precision))
    return Exercise(entries, timed)


def operands(t, layout):
    """a and b, 2048 x 2048, the numbers of the lesson's sweep."""
    a, b = t.sweep_operands()
    return [a, t.as_layout(b, layout)]


def hand_written(t):
    """Names of the lesson's three configs."""
    return [f"hand-written {name}" for name in t.row_names(t.CONFIGS)]


def baselines(t, precision, a, b, out):
    """torch.mm, and the lesson's kernel with each of its configs."""
    runs = {"torch.mm": functools.partial(t.pinned_mm, a, b, precision, out)}
    for name, config in zip(hand_written(t), t.CONFIGS, strict=True):
        runs[name] = functools.partial(t.matmul, a, b, precision == "ieee",
                                       config, out)
    return runs
