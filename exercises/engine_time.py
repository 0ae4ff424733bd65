"""Is it fast? What a child process holds ready and times, on a GPU.

A launch is recorded into a CUDA graph, and what is timed is its replay under
do_bench. Before every launch that counts, outside its two events, the result
is filled with NaN, so that nobody is fast by finding an old one.
"""
import dataclasses
import functools
import statistics
import time

from exercises import engine_results, engine_tuned
from exercises.engine_form import config_text, make_tuner


@dataclasses.dataclass
class Held:
    """A launch that is ready to be timed, and its result."""

    launch: object
    out: object


class Refill:
    """Fills a result with NaN wherever do_bench sets a gradient to None.

    do_bench does that before each launch that it times, and outside of what
    it times; it is the one place where something can be done there.
    """

    def __init__(self, t, out):
        object.__setattr__(self, "fill", functools.partial(
            t.bits(out).fill_, t.UNWRITTEN))

    def __setattr__(self, name, value):
        self.fill()


class Timer:
    """What is held ready in one process: baselines, or the submission."""

    most = 100  # replays that are timed by the clock

    def __init__(self, t, exercise):
        self.t = t
        self.timed = {timed.label: timed for timed in exercise.timed}
        self.held, self.made, self.chosen = {}, {}, {}
        # Bound before a submission is imported.
        self.do_bench, self.clock = t.triton.testing.do_bench, time.perf_counter
        self.synchronize = t.torch.cuda.synchronize

    def operands(self, label):
        """A case's inputs, and memory for its result; made once."""
        if label not in self.made:
            inputs = self.timed[label].operands()
            shape = (inputs[0].shape[0], inputs[-1].shape[1])
            self.made[label] = inputs, self.t.torch.empty(
                shape, dtype=self.t.torch.float32, device=inputs[0].device)
        return self.made[label]

    def hold(self, run, out, as_it_is=False):
        """A Held of run, which has been compiled by one launch."""
        run()
        self.synchronize()
        return Held(run if as_it_is else self.record(run), out)

    def record(self, run):
        """The replay of a CUDA graph of run."""
        graph = self.t.torch.cuda.CUDAGraph()
        with self.t.torch.cuda.graph(graph):
            run()
        return graph.replay

    def hold_baselines(self, number, count):
        """Hold this process's share of all baselines; [[label, name], ...] of
        those that fit the card."""
        turn, found = 0, []
        for label, timed in self.timed.items():
            inputs, out = self.operands(label)
            for name, run in timed.baselines(*inputs, out).items():
                mine = turn % count == number
                turn += 1
                if not mine:
                    continue
                try:
                    held = self.hold(run, out, name in timed.direct)
                except self.t.triton.OutOfResources:
                    continue
                self.held[label, name] = held
                found.append([label, name])
        return found

    def time(self, label, name, milliseconds):
        """Median milliseconds of a launch by events, and those of the clock.

        The clock's go first, so that what lies in the result afterwards was
        written by a launch that was timed.
        """
        held = self.held[label, name]
        count = min(max(milliseconds // 2, 1), self.most)
        start = self.clock()
        for _ in range(count):
            held.launch()
        self.synchronize()
        clock = (self.clock() - start) / count * 1e3
        times = self.do_bench(held.launch, warmup=milliseconds // 2,
                              rep=milliseconds, return_mode="all",
                              grad_to_none=[Refill(self.t, held.out)])
        return statistics.median(times), clock

    # The submission

    def hold_submission(self, label, everything):
        """Hold the submission's launch of a case; what it chose, as text."""
        t, timed = self.t, self.timed[label]
        taken, = [taken for taken in everything
                  if taken.entry.name == timed.entry]
        inputs, out = self.operands(label)
        if taken.tuner is not None:
            config, text = self.search(taken, timed, inputs, out)
        else:
            config = taken.configs[0]
            text = config_text(config)
            if taken.choose is not None:
                text = config_text(taken.choose(*out.shape))
        if taken.entry.kind == "softmax":
            launch = engine_results.softmax_launch(t, taken, config)
            run = functools.partial(launch, *inputs, out)
        else:
            launch = t.with_precision(engine_results.matmul_launch(t, taken),
                                      timed.precision, config)
            run = functools.partial(launch, *inputs, out)
        self.held[label, "submission"] = self.hold(run, out)
        self.chosen[label] = config
        return text

    def search(self, taken, timed, inputs, out):
        """The config that a search takes, and a line about it."""
        t = self.t
        pruning = engine_tuned.Pruning(t, taken)
        tuner = make_tuner(t, taken.configs, taken.tuner.keys, taken.launched,
                           pruning.arguments(), self.do_bench)
        start = self.clock()
        t.matmul(*inputs, timed.precision == "ieee", {}, out, kernel=tuner)
        self.synchronize()
        seconds = self.clock() - start
        chosen = engine_tuned.settings_dict(tuner.best_config)
        return chosen, (f"{config_text(chosen)}; the first launch, a search "
                        f"over {len(taken.configs)} configs compiled by the "
                        f"checks above, took {seconds:.2f} s")

    def time_elsewhere(self, label, everything):
        """{case: milliseconds} of the config that was chosen for this case, in
        all cases of the same entry: what one winner for all would cost."""
        t, times = self.t, {}
        entry = self.timed[label].entry
        taken, = [taken for taken in everything if taken.entry.name == entry]
        for other, timed in self.timed.items():
            if timed.entry != entry or taken.tuner is None:
                continue
            inputs, out = self.operands(other)
            run = t.with_precision(engine_results.matmul_launch(t, taken),
                                   timed.precision, self.chosen[label])
            try:
                self.held[other, label] = self.hold(
                    functools.partial(run, *inputs, out), out)
            except engine_results.skipped_errors(t):
                continue
            times[other] = self.time(other, label, 100)[0]
            del self.held[other, label]
        return times

    # Afterwards

    def again(self):
        """Whether the launches that were timed are right; prints lines."""
        passed = True
        for label, name in list(self.held):
            if name == "submission":
                passed &= self.right_again(label)
        return passed

    def right_again(self, label):
        """Whether a case's timed launch is right: its last result, the next
        one after a change of an element, and once more into NaN."""
        t, held = self.t, self.held[label, "submission"]
        inputs, out = self.operands(label)
        same = all(mine.equal(fresh) for mine, fresh in
                   zip(inputs, self.timed[label].operands(), strict=True))
        if not same:
            print(f"FAIL  {label}: wrote on an input")
        passed = same and self.right(label, "as it was timed")
        # Not in a corner, where somebody may look whether it is still right.
        inputs[0][inputs[0].shape[0] // 2, 0] += 3
        inputs[-1][0, inputs[-1].shape[1] // 2] += 3
        held.launch()
        passed &= self.right(label, "an element changed")
        before = t.bits(out).clone()
        t.bits(out).fill_(t.UNWRITTEN)
        held.launch()
        if not t.bits(out).equal(before):
            print(f"FAIL  {label}: two launches on the same inputs differ")
            return False
        return passed

    def right(self, label, what):
        """Whether what lies in a case's result is right; prints a line."""
        t, timed = self.t, self.timed[label]
        inputs, out = self.operands(label)
        self.synchronize()
        arrays = [matrix.cpu().numpy() for matrix in inputs]
        if timed.precision:
            want, scale = t.matmul64(*arrays)
            limit, words = t.matmul_tolerance(arrays[0].shape[1],
                                              timed.precision)
        else:
            want = t.softmax64(*arrays)
            scale = want.max(axis=1, keepdims=True)
            limit, words = t.softmax_tolerance(want.shape[1])
        got = out.cpu().numpy().astype(t.np.float64)
        error, problem = t.judge_values(got, want, scale, limit)
        return t.report(f"{label}, {what}", error, limit, words,
                        [problem] if problem else [])
