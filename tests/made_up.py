"""Made-up results, right and wrong, on which the script's checks must judge.

Nothing here launches a kernel: a launcher computes in float64 what is right,
and then spoils it or not. Every function of the script is called through the
module that it is given, so that a fault planted there shows as a verdict that
is wrong.
"""
import dataclasses
import functools
import os
import signal

import numpy as np
import torch


@dataclasses.dataclass
class Run:
    """A made-up launcher, and whether the checks have to let it pass."""

    name: str
    right: bool
    check: object  # called without arguments; what it returns is the verdict


def product64(a, b):
    """a @ b and |a| @ |b| of two tensors, as float64 arrays."""
    a, b = a.double().numpy(), b.double().numpy()
    with np.errstate(all="ignore"):
        return a @ b, np.abs(a) @ np.abs(b)


def shares64(x):
    """The softmax of a tensor's rows, as a float64 array."""
    x = x.double().numpy()
    with np.errstate(all="ignore"):
        weights = np.exp(x - x.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


def write(out, values):
    """Write an array into a tensor and return the tensor."""
    return out.copy_(torch.from_numpy(values))


# What is made of a right product (c, scale) before it is written.
def as_it_is(c, scale):
    return c


def zeros(c, scale):
    return 0 * scale


def its_mean(c, scale):
    return 0 * c + c.mean()


def all_nan(c, scale):
    return c * np.nan


def put(row, col, value):
    """A function that puts a value into c."""
    def change(c, scale):
        c[row, col] = value
        return c
    return change


def off_by(share, limit):
    """A function that errs in one element, by a share of the limit."""
    def change(c, scale):
        c[4, 5] += share * limit * scale[4, 5]
        return c
    return change


def off_by_a_bit(c, scale):
    c[4, 5] += np.spacing(np.float32(c[4, 5]))
    return c


def writes(change, only=None):
    """A matmul launcher that writes what `change` makes; only: "ieee"..."""
    def launch(a, b, ieee, config, out):
        c, scale = product64(a, b)
        if only is None or ieee == (only == "ieee"):
            c = change(c, scale)
        return write(out, c)
    return launch


def does_not_write(a, b, ieee, config, out):
    return out


def leaves_one_out(a, b, ieee, config, out):
    c, _ = product64(a, b)
    write(out[:, :-1], c[:, :-1])
    return out


def leaves_nan_out(a, b, ieee, config, out):
    c = torch.from_numpy(product64(a, b)[0]).float()
    out.copy_(torch.where(c.isnan(), out, c))
    return out


def returns_another(a, b, ieee, config, out):
    write(out, product64(a, b)[0])
    return out.clone()


def writes_before_it(a, b, ieee, config, out):
    write(out, product64(a, b)[0])
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(0)
    return out


def writes_nan_behind_it(a, b, ieee, config, out):
    write(out, product64(a, b)[0])
    end = out.storage_offset() + (out.shape[0] - 1) * out.stride(0)
    out.as_strided((1,), (1,), end + out.shape[1] * out.stride(1)).fill_(
        torch.nan)
    return out


def writes_on_b(a, b, ieee, config, out):
    write(out, product64(a, b)[0])
    b[-1, -1] = 0
    return out


def writes_beside_a(a, b, ieee, config, out):
    write(out, product64(a, b)[0])
    a.as_strided((1,), (1,), a.storage_offset() - 1).fill_(0)
    return out


def refuses(a, b, ieee, config, out):
    raise ValueError("not this one")


def refuses_too_late(a, b, ieee, config, out):
    out.zero_()
    raise ValueError("not this one, but it was written on")


class Remembers:
    """A matmul launcher that gives its first result again and again."""

    def __init__(self):
        self.results = {}

    def __call__(self, a, b, ieee, config, out):
        result = self.results.setdefault((ieee, a.shape, b.shape),
                                         product64(a, b)[0])
        return write(out, result)


class WrongOnce:
    """A launcher that returns zeros in its launch number `turn` alone."""

    def __init__(self, turn, right):
        self.turn, self.right, self.count = turn, right, 0

    def __call__(self, *arguments):
        out = self.right(*arguments)
        if self.count == self.turn:
            out.zero_()
        self.count += 1
        return out


def matmul_runs(t):
    """Runs of t.matmul_checks."""
    row = t.LAYOUTS[0]
    plain = t.Case("made up", (5, 6, 64), (row, row, row), config=t.CONFIGS[0])
    special = dataclasses.replace(plain, sizes=(9, 8, 41),
                                  values="NaN, inf and -0.0")
    whole = dataclasses.replace(plain, values="whole numbers")
    powers = dataclasses.replace(plain, values="powers of two")
    refused = dataclasses.replace(plain, refused=True)
    again = dataclasses.replace(plain, relaunched=True)

    def run(name, right, launch, *cases, precisions=("ieee",)):
        return Run(name, right, functools.partial(
            t.matmul_checks, "cpu", launch, list(cases or [plain]),
            precisions=precisions))

    right = writes(as_it_is)
    runs = [
        run("right", True, right), run("zeros", False, writes(zeros)),
        run("constant", False, writes(its_mean)),
        run("NaN", False, writes(all_nan)),
        run("a NaN", False, writes(put(4, 5, np.nan))),
        run("an inf", False, writes(put(4, 5, np.inf))),
        run("not written", False, does_not_write),
        run("zeros not written", False, does_not_write,
            dataclasses.replace(plain, sizes=(5, 6, 0))),
        run("one not written", False, leaves_one_out),
        run("returns another", False, returns_another),
        run("before the result", False, writes_before_it),
        run("NaN behind the result", False, writes_nan_behind_it),
        run("on an input", False, writes_on_b),
        run("beside an input", False, writes_beside_a),
        run("special", True, right, special),
        run("NaN missed", False, writes(put(0, 0, 0.5)), special),
        run("NaN for inf", False, writes(put(1, 0, np.nan)), special),
        run("inf of the other sign", False, spoils_an_infinity, special),
        run("NaN not written", False, leaves_nan_out, special),
        run("elsewhere", False, writes(put(6, 6, 99.0)), special),
        run("whole", True, right, whole), run("powers", True, right, powers),
        run("whole, a bit off", False, writes(off_by_a_bit), whole),
        run("whole, a bit off in tf32", False, writes(off_by_a_bit), whole,
            precisions=("tf32",)),
        run("powers, a bit off", False, writes(off_by_a_bit), powers),
        run("ieee and tf32 differ", False, writes(off_by_a_bit, "tf32"),
            precisions=t.PRECISIONS),
        run("refused", True, refuses, refused),
        run("not refused", False, right, refused),
        run("refused after writing", False, refuses_too_late, refused),
        run("again", True, right, again),
        run("remembers", False, Remembers(), again),
        run("wrong in ieee", False, writes(zeros, "ieee"),
            precisions=t.PRECISIONS),
        run("wrong in tf32", False, writes(zeros, "tf32"),
            precisions=t.PRECISIONS),
    ]
    for turn in range(5):
        runs.append(run(f"wrong in launch {turn}", False,
                        WrongOnce(turn, right), plain, again, plain))
    return runs + limit_runs(t, run)


def spoils_an_infinity(a, b, ieee, config, out):
    """A launcher that turns the sign of the first infinity."""
    c, _ = product64(a, b)
    row, col = np.argwhere(np.isinf(c))[0]
    c[row, col] *= -1
    return write(out, c)


def limit_runs(t, run):
    """Runs that err by a little less, or more, than the design allows."""
    row = t.LAYOUTS[0]
    runs = []
    for k in (16, 64, 900):
        case = t.Case("made up", (5, 6, k), (row, row, row),
                      config=t.CONFIGS[0])
        limits = {"ieee": 4 * k**0.5 * 2**-24}
        limits["tf32"] = limits["ieee"] + 2 * 2**-10 + 2**-20
        for precision, limit in limits.items():
            for share in (0.9, 1.1):
                runs.append(run(
                    f"{share} of the limit, {precision}, k {k}", share < 1,
                    writes(off_by(share, limit)), case,
                    precisions=(precision,)))
    return runs


def softmax_off_by(share, limit):
    """A softmax launcher that errs in each row's largest share."""
    def launch(x, out):
        y = shares64(x)
        for row in y:
            row[row.argmax()] *= 1 + share * limit
        return write(out, y)
    return launch


def small_errors_that_add_up(x, out):
    """Each share is off by less than it may be, and their sum by more."""
    y = shares64(x)
    limit = (x.shape[1]**0.5 + 8) * 2**-24
    return write(out, y + 0.5 * limit * y.max(axis=1, keepdims=True))


def right_softmax(x, out):
    return write(out, shares64(x))


def softmax_zeros(x, out):
    return write(out, 0 * shares64(x))


def softmax_uniform(x, out):
    return out.fill_(1 / x.shape[1])


def softmax_returns_another(x, out):
    return right_softmax(x, out).clone()


def softmax_on_input(x, out):
    right_softmax(x, out)
    x[0, 0] += 1
    return out


def softmax_turns(which):
    """Right, but one of the two tensors has other strides afterwards."""
    def launch(x, out):
        right_softmax(x, out)
        (x, out)[which].t_()
        return out
    return launch


def softmax_elsewhere(x, out):
    """Lets the result's tensor be of other memory, in which it is right."""
    return out.set_(right_softmax(x, torch.empty(out.shape)))


def softmax_refuses(x, out):
    raise ValueError("not this one")


def softmax_runs(t):
    """Runs of t.softmax_checks."""
    row = t.LAYOUTS[0]
    plain = t.Case("made up", (3, 64), (row, row))
    again = dataclasses.replace(plain, relaunched=True)
    refused = dataclasses.replace(plain, refused=True)

    def run(name, right, launch, *cases):
        return Run(f"softmax, {name}", right, functools.partial(
            t.softmax_checks, "cpu", launch, list(cases or [plain])))

    limit = 16 * 2**-24
    runs = [
        run("right", True, right_softmax), run("zeros", False, softmax_zeros),
        run("uniform", False, softmax_uniform),
        run("returns another", False, softmax_returns_another),
        run("on its input", False, softmax_on_input),
        run("turns its input", False, softmax_turns(0)),
        run("turns its result", False, softmax_turns(1)),
        run("elsewhere", False, softmax_elsewhere),
        run("again", True, right_softmax, again),
        run("refused", True, softmax_refuses, refused),
        run("not refused", False, right_softmax, refused),
        run("0.9 of the limit", True, softmax_off_by(0.9, limit)),
        run("1.1 of the limit", False, softmax_off_by(1.1, limit)),
        run("sums", False, small_errors_that_add_up),
    ]
    for turn in range(4):
        runs.append(run(f"wrong in launch {turn}", False,
                        WrongOnce(turn, right_softmax), plain, again, plain))
    return runs


def well():
    return True


def badly():
    return False


def raises():
    raise RuntimeError("a step that raises")


def ends_itself():
    os.kill(os.getpid(), signal.SIGSEGV)


def other_runs(t):
    """Runs of what collects verdicts: steps, and children."""
    runs = []
    for name, step, right in (("well", well, True), ("badly", badly, False),
                              ("raises", raises, False)):
        for place in range(3):
            steps = [(f"step {turn}", step if turn == place else well)
                     for turn in range(3)]
            runs.append(Run(f"step {place} {name}", right,
                            functools.partial(t.take_steps, steps)))
    children = (("well", well, True), ("badly", badly, False),
                ("raises", raises, False), ("ends itself", ends_itself, False))
    for name, task, right in children:
        for tasks in ((task, well), (well, task)):
            place = tasks.index(task)
            runs.append(Run(f"child {place} {name}", right,
                            functools.partial(t.side_by_side, *tasks)))
    return runs


def touches(which, where, write=False):
    """A matmul launcher that touches memory `where` elements off a matrix.

    which: 0, 1 or 2, for a, b or out. where: -1 is before its first element,
    0 is that element, and 1 is behind its last.
    """
    def launch(a, b, ieee, config, out):
        x = (a, b, out)[which]
        place = x.storage_offset() + where
        if where > 0:
            place += x.numel() - 1
        number = x.as_strided((1,), (1,), place)
        if write:
            number.copy_(number.clone())
        else:
            number.clone()
        return write_product(a, b, ieee, config, out)
    return launch


def write_product(a, b, ieee, config, out):
    return write(out, product64(a, b)[0])


def no_product(a, b, ieee, config, out):
    return out.zero_()


def turns_rows(a, b, ieee, config, out):
    """Right but for rows without gaps, which it reads from their ends."""
    if a.is_contiguous():
        a = a.flip(1)
    return write_product(a, b, ieee, config, out)


def turns_columns(a, b, ieee, config, out):
    """Right but for columns without gaps, which it reads from their ends."""
    if a.t().is_contiguous():
        a = a.flip(0)
    return write_product(a, b, ieee, config, out)


def not_far_apart(launch):
    """A launcher that does nothing where a stride has over 16 bits."""
    def limited(*arguments):
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        if max(max(x.stride()) for x in tensors) > 65535:
            return tensors[-1]
        return launch(*arguments)
    return limited


def memory_runs(t):
    """Runs of the steps in memory that ends; some end the child they are in."""
    right = t.memory_end_steps(right_softmax, write_product, t.CONFIGS)
    zeros = t.memory_end_steps(softmax_zeros, no_product, t.CONFIGS)
    runs = [Run("all steps", True, functools.partial(t.take_steps, right))]
    for label, step in zeros:
        runs.append(Run(f"zeros in {label}", False, functools.partial(
            t.take_steps, [(label, step)])))

    def some(name, launch, word):
        """The steps whose label has the word, in a child of their own."""
        steps = t.memory_end_steps(not_far_apart(right_softmax), launch,
                                   t.CONFIGS)
        chosen = [step for step in steps if word in step[0]]
        for number, step in enumerate(chosen):
            runs.append(Run(f"{name}, {number}", False, functools.partial(
                t.side_by_side, functools.partial(t.take_steps, [step]))))

    some("packed rows", turns_rows, "row-major where memory ends")
    some("packed columns", turns_columns, "column-major where memory ends")
    some("far apart", not_far_apart(write_product), "elements apart")
    for which, name in enumerate("ab"):
        some(f"behind {name}", touches(which, 1), "major where memory ends")
        some(f"before {name}", touches(which, -1), "matrices that begin")
        some(f"on {name}", touches(which, 0, True), "major where memory ends")
    some("behind out", touches(2, 1, True), "major where memory ends")
    return runs


def misjudged(t):
    """Names of the runs on which the checks of t give a wrong verdict."""
    wrong = []
    for run in (matmul_runs(t) + softmax_runs(t) + other_runs(t)
                + memory_runs(t)):
        try:
            verdict = run.check()
        except Exception as error:
            verdict = error
        if verdict is not run.right:
            wrong.append(f"{run.name}: {verdict!r}")
    return wrong
