"""The half of the judge that times, with a clock that the tests set.

No GPU: the whole sequence runs in this process, on interpreted kernels, with
a timer whose launches are direct and whose milliseconds are made up.
"""
import dataclasses
import itertools
import sys

import pytest
import torch
from conftest import ROOT, in_turn, run_script
from judging import BEGIN, LESSONS, own_kernel

import triton_softmax_matmul as t
from exercises import engine_cases, engine_children, engine_gpu

DESCRIPTION = """
import functools
from exercises.engine_words import Entry, Exercise, Timed

def describe(t):
    config = t.CONFIGS[0]
    timed = []
    for precision in t.PRECISIONS:
        timed.append(Timed(
            precision, "matmul_kernel",
            operands=functools.partial(operands, t),
            baselines=functools.partial(baselines, t, precision),
            against=["row 1", "row 2", "row 3"], floor="torch.mm",
            direct=["torch.mm"], precision=precision))
    return Exercise([Entry(
        "matmul_kernel", "matmul", tuned=True, at_least=8, ends=False,
        cases=functools.partial(cases, t))], timed)

def cases(t, config):
    row = t.LAYOUTS[0]
    return [t.Case("one tile", (20, 24, 40), (row, row, row))]

def operands(t):
    generator = t.torch.Generator("cpu").manual_seed(86)
    return list(t.torch.randn(2, 64, 64, generator=generator))

def baselines(t, precision, a, b, out):
    runs = {"torch.mm": functools.partial(t.torch.mm, a, b, out=out)}
    for number, config in enumerate(t.CONFIGS, 1):
        runs[f"row {number}"] = functools.partial(
            t.matmul, a, b, precision == "ieee", config, out)
    return runs
"""


class Clock:
    """In do_bench's place: it launches once, and says what it was told to.

    times: {a word in the name of the launch's owner: milliseconds}, in turn.
    """

    def __init__(self, times, factor=1.0):
        self.times = {name: itertools.cycle(row)
                      for name, row in times.items()}
        self.factor = factor
        self.asked = []

    def of(self, name):
        """The next time of a launch of this name."""
        self.asked.append(name)
        kind = "submission" if name == "submission" else name.split()[0]
        return next(self.times[kind])


def first_is_best(call, quantiles):
    """In do_bench's place in a search, where the first of equals wins."""
    call()
    return [1.0, 1.0, 1.0]


class InProcess:
    """In a child's place, in this process."""

    clock = None
    left_out = ()

    def __init__(self, task, **environment):
        from exercises import engine, engine_time
        self.engine = engine
        self.judge = engine.Judge()
        self.facts = self.judge.start(*task) | {
            "interpret": False, "processors": 6}

        class Timer(engine_time.Timer):
            """Launches directly; its milliseconds are the test's."""

            most = 1

            def record(timer, run):
                return run

            def time(timer, label, name, milliseconds):
                held = timer.held[label, name]
                filled = []

                def bench(launch, warmup, rep, return_mode, grad_to_none):
                    for one in grad_to_none:
                        one.grad = None
                    filled.append(bool(torch.isnan(held.out).all()))
                    launch()
                    return [self.clock.of(name)]

                timer.do_bench = bench
                events, _ = super().time(label, name, milliseconds)
                timer.do_bench = first_is_best
                assert filled == [True]
                return events, events * self.clock.factor

        self.judge.timer = Timer(self.judge.t, self.judge.exercise)
        self.judge.timer.synchronize = int
        self.judge.timer.do_bench = first_is_best
        self.begun = []

    def started(self):
        return self.facts

    def begin(self, step, *arguments):
        self.begun.append((step, arguments))

    def answer(self, status, step, limit=None):
        step, arguments = self.begun.pop(0)
        if step in ("header", "ran", "run_ends"):
            return {} if step != "header" else None
        if step == "multipliers":
            return {}, {}
        answer = self.engine.answer_to(self.judge, step, arguments)
        if "raised" in answer:
            raise engine_children.Left(answer["status"] or status,
                                       *answer["raised"])
        return answer["answer"]

    def ask(self, status, step, *arguments, limit=None):
        self.begin(step, *arguments)
        return self.answer(status, step)

    def stop(self):
        """There is no process to end."""

    def load(self, submission):
        self.ask(2, "load", *submission.arguments())

    def look_at_form(self):
        self.ask(4, "form")


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """judged(text, clock): the Left of a submission, or None, and what was
    printed."""
    def run(text, clock):
        (tmp_path / "exercise.py").write_text(DESCRIPTION)
        file = tmp_path / "mine.py"
        file.write_text(text)
        monkeypatch.setattr(InProcess, "clock", clock)
        monkeypatch.setattr(engine_gpu, "Child", InProcess)
        monkeypatch.setattr(engine_gpu, "empty_folder", tmp_path.resolve)
        path = list(sys.path)
        left = None
        try:
            task = str(tmp_path), []
            worker = InProcess(task)
            engine_gpu.Compiled(
                task, engine_children.Submission(file), worker).judge()
        except engine_children.Left as error:
            left = error
        finally:
            sys.path[:] = path
        return left, capsys.readouterr().out
    return run


FAST = {"submission": [0.4], "row": [0.5, 0.45, 0.6], "torch.mm": [0.3],
        "ieee": [0.4], "tf32": [0.4]}


@pytest.mark.interpreter
def test_a_fast_one_passes_and_the_lines_say_against_what(judged):
    left, out = judged(BEGIN + LESSONS, Clock(FAST))
    assert left is None
    assert out.count("chosen: 32,32,32 GROUP_M=3 num_warps=2") == 2
    assert "a search over 8 configs" in out
    assert out.count("allowed 1.05") == 2
    assert out.count("an element changed") == 2
    assert "the largest change is a factor of" in out
    assert "what each case's winner takes in every case" in out
    assert "FAIL" not in out


@pytest.mark.interpreter
@pytest.mark.parametrize("times, factor, status, words", in_turn([
    ({"submission": [0.64]}, 1.0, 5, "over 1.05 of the best baseline: ieee; "
                                     "tf32"),
    ({"submission": [0.14]}, 1.0, 1, "less than half of torch.mm's 0.3000"),
    ({}, 2.5, 1, "impossible time, 0.5000 ms by CUDA events where the clock "
                 "says 1.2500")], 0))
def test_a_time_that_does_not_do(judged, times, factor, status, words):
    left, _ = judged(BEGIN + LESSONS, Clock(FAST | times, factor))
    assert left.status == status
    assert words in " ".join(left.lines)


@pytest.mark.interpreter
@pytest.mark.slow
def test_a_timed_launch_that_finds_its_result_is_wrong(judged):
    """It passes all that is asked before, since it looks for a large matrix;
    NaN in the result makes it compute, and the element that changed shows."""
    skips = own_kernel().replace(
        "tl.store(c_ptr + rows * stride_cm + cols * stride_cn, acc,\n"
        "             mask=(rows < m) & (cols < n))",
        "at = c_ptr + rows * stride_cm + cols * stride_cn\n"
        "    inside = (rows < m) & (cols < n)\n"
        "    old = tl.load(at, mask=inside, other=0.0)\n"
        "    first = (rows == 0) & (cols == 0)\n"
        "    wrong = tl.where(first & inside & (m > 50), tl.abs(old - acc), "
        "0.0)\n"
        "    right = (tl.sum(wrong) < 1e-3) & (m > 50) & (tl.sum("
        "tl.where(old == old, 0, 1)) == 0)\n"
        "    tl.store(at, acc, mask=inside & (right == 0))")
    left, out = judged(skips, Clock(FAST))
    assert left.status == 3 and left.lines == ("A timed launch is wrong.",)
    assert "FAIL  ieee, an element changed" in out


def compiled_for(case):
    """What Triton tells kernels apart by: which sizes and strides are 1, which
    16 divides, and which matrices begin at a multiple of 16 bytes."""
    m, n, k = case.sizes
    block_m, block_n, block_k = t.block_shape(case.config)
    placed = [t.place(torch.zeros(m, k), case.layouts[0], 0.0, "cpu",
                      (block_m, block_k)),
              t.place(torch.zeros(k, n), case.layouts[1], 0.0, "cpu",
                      (block_k, block_n), 16),
              t.place_result((m, n), case.layouts[2], "cpu",
                             (block_m, block_n), 32)]
    numbers = [m, n, k]
    for matrix in placed:
        numbers += matrix.view.stride()
    aligned = [matrix.view.data_ptr() % 16 == 0 for matrix in placed]
    return tuple((number == 1, number % 16 == 0)
                 for number in numbers), tuple(aligned)


@pytest.mark.parametrize("block", [(64, 128, 32), (256, 64, 16), (32, 32, 32),
                                   (128, 256, 64)])
def test_a_gpu_compiles_a_config_a_few_times(block, monkeypatch):
    # In ieee each takes seconds, and the judge has three minutes.
    monkeypatch.setattr(t, "INTERPRET", False)
    monkeypatch.setattr(engine_cases.random, "randint", lambda low, high: high)
    config = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block, strict=True),
                  GROUP_M=4)
    cases = engine_cases.own_cases(t, config) + engine_cases.gpu_cases(t)
    shared = [case for case, order in engine_cases.shared_cases(t, [config] * 4)
              if order[0] == 0]
    cases += shared
    kernels = {}
    for case in cases:
        if 0 not in case.sizes and max(case.sizes) != t.SIZE:
            case = dataclasses.replace(case, config=config)
            kernels.setdefault(compiled_for(case), []).append(case.catches)
    assert len(shared) == 1
    assert len(kernels) <= 6, kernels


def test_jobs_are_shared_out_by_their_cost():
    assert engine_gpu.shares([1, 9, 2, 8, 3], 2) == [[1, 2, 0], [3, 4]]
    assert engine_gpu.shares([5], 3) == [[0], [], []]


class Side:
    """In a child's place: times in ms, round after round, and a clock."""

    def __init__(self, *times, clock=1.0):
        self.times, self.clock, self.asked = itertools.cycle(times), clock, 0

    def ask(self, status, step, *arguments):
        self.asked += 1
        milliseconds = next(self.times)
        return milliseconds, milliseconds * self.clock


def compared(mine):
    """The ratio of this side to one that always takes 1 ms."""
    before = {"row 1": 1.0, "torch.mm": 0.9}
    return engine_gpu.compare(mine, Side(1.0), "a case", "row 1", before,
                              "torch.mm", 1.05)


@pytest.mark.parametrize("mine, passes, asked", [
    ([1.04], True, 5), ([1.06], False, 5),
    ([1.06, 1.02], True, 10),  # five rounds are over, ten are not
    ([1.07, 1.04, 1.06], False, 15)])
def test_a_case_is_repeated_while_noise_decides(mine, passes, asked):
    side = Side(*mine)
    assert (compared(side) <= 1.05) == passes
    assert side.asked == asked


@pytest.mark.parametrize("change, shown", [
    (1.0, "1.000"), (1.1, "1.100 (a case, row 1)"),
    (0.5, "0.500 (a case, row 1)")])
def test_a_change_of_the_baselines_is_told(change, shown, capsys):
    engine_gpu.print_change({"a case": {"row 1": 2.0}},
                            {"a case": {"row 1": 2.0 * change}})
    assert f"a factor of {shown}\n" in capsys.readouterr().out


READS = """
import sys, types
sys.path.append({root!r})
import triton_softmax_matmul as t
from exercises import engine_results

settings = dict(t.CONFIGS[0], **t.UNIT_STRIDES["K-major"])
compiled = {{ieee: t.compile_for(80, t.matmul_kernel, IEEE=ieee, **settings)
            for ieee in (True, False)}}
for told in (False, True):
    watched = types.SimpleNamespace(ran={{
        number: (compiled[ieee], {{"IEEE": ieee != told, "grid": None,
                                  "warmup": False, **t.CONFIGS[0]}})
        for number, ieee in enumerate(compiled)}})
    taken = types.SimpleNamespace(launched=watched)
    print(engine_results.ran_faults(t, taken))
"""


@pytest.mark.interpreter
@pytest.mark.slow
def test_what_ran_is_read(tmp_path):
    """The text of compiled kernels, with the right and the wrong promise."""
    file = tmp_path / "reads.py"
    file.write_text(READS.format(root=str(ROOT)))
    out = run_script(script=file).stdout.splitlines()
    assert out[-2] == "([], 2)"
    assert "tf32 64,64,32 IEEE=False GROUP_M=4" in out[-1]
    assert "has a dot of f32 and f32 in ieee" in out[-1]
    assert "in tf32" in out[-1]
