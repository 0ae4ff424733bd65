"""The steps of the judge, in child processes: check.py asks for them.

A child imports the lesson as a module of its own, binds what it measures with,
and only then imports a submission; the one that times the hand-written rows
never imports one.
"""
import contextlib
import functools
import importlib.util
import io
import json
import pathlib
import signal
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[1]
AT_LEAST = 8
# What can change the winner: one launch after the first, alike but for this.
CHANGES = {
    "m": dict(m=48), "n": dict(n=48), "k": dict(k=48),
    "IEEE": dict(ieee=False), "stride_bk (or stride_bn)": dict(k_major=True)}

def describe(config):
    """A triton.Config in one line."""
    blocks = ",".join(str(config.kwargs[f"BLOCK_{side}"]) for side in "MNK")
    return " ".join([blocks, *(
        f"{name}={value}" for name, value in config.all_kwargs().items()
        if not name.startswith("BLOCK_") and (name, value) != ("num_ctas", 1))])

def area(config):
    """The work of one block, to put the smallest first."""
    return (config.kwargs["BLOCK_M"] * config.kwargs["BLOCK_N"]
            * config.kwargs["BLOCK_K"])

class Side:
    """What a child process can be asked; most methods are one step each."""
    path = None  # of the submission

    def start(self):
        """Load a copy of the lesson that no submission gets its hands on."""
        spec = importlib.util.spec_from_file_location(
            "lesson", ROOT / "triton_softmax_matmul.py")
        self.t = t = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(t)
        # Bound here, before a submission can be imported.
        self.torch, self.Autotuner = t.torch, t.triton.runtime.Autotuner
        self.autotune = t.triton.autotune
        self.do_bench = t.triton.testing.do_bench
        self.device = "cpu" if t.INTERPRET else "cuda"
        self.timed = {}
        return {"interpret": t.INTERPRET}

    def header(self):
        """Print the versions and the card; return why there is no card."""
        self.t.header()
        reason = None if self.t.INTERPRET else self.t.refusal()
        if not (self.t.INTERPRET or reason):
            card = self.torch.cuda.get_device_properties()
            print(f"{card.name}, compute capability {card.major}.{card.minor}")
        return reason

    def load(self, path):
        """Import the submission; return a complaint about its form, if any."""
        self.path = path
        sys.path[:0] = [str(pathlib.Path(path).parent), str(ROOT)]
        spec = importlib.util.spec_from_file_location("submission", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["submission"] = module
        try:
            spec.loader.exec_module(module)
        except ValueError as error:  # Triton 3.9 refuses a misspelt key itself
            if "not kernel arguments" not in str(error):
                raise
            return str(error)
        self.kernel = getattr(module, "matmul_kernel", None)
        self.softmax = getattr(module, "softmax_kernel", self.t.softmax_kernel)
        if self.kernel is None:
            raise ImportError("the file defines no matmul_kernel")

    def tuner(self, configs=None, do_bench=None):
        """The submission's kernel, configs and key in a tuner of our own, so
        that neither a hook nor a cached result stands in the way."""
        prune = {"early_config_prune": self.kernel.early_config_prune,
                 "perf_model": self.kernel.perf_model,
                 "top_k": self.kernel.configs_top_k}
        tuner = self.autotune(
            sorted(configs or self.kernel.configs, key=area), self.kernel.keys,
            prune, do_bench=do_bench)(self.kernel.fn)
        tuner.cache_results = False
        return tuner

    def form(self):
        """What the form lacks, a line each."""
        kernel, lesson = self.kernel, self.t.matmul_kernel
        if type(kernel) is not self.Autotuner:
            return [f"matmul_kernel is of type {type(kernel).__name__}; "
                    "triton.autotune makes an Autotuner"]
        if type(kernel.fn) is not type(lesson):
            return [f"triton.autotune stands over a {type(kernel.fn).__name__};"
                    " it has to stand right over @triton.jit"]
        names, wanted = list(kernel.arg_names), list(lesson.arg_names)
        if names[:12] != wanted[:12] or not {*names} >= {*wanted}:
            return [f"its parameters are {', '.join(names)}; the lesson's are "
                    f"{', '.join(wanted)}"]
        faults = [
            f"{config}: BLOCK_M, BLOCK_N and BLOCK_K must be powers of two "
            "from 16 up" for config in kernel.configs if not all(
                size >= 16 and size & (size - 1) == 0 for size in
                (config.kwargs.get(f"BLOCK_{side}", 0) for side in "MNK"))]
        faults += [f"{config}: its pre_hook runs before the kernel, which needs"
                   " none" for config in kernel.configs if config.pre_hook]
        distinct = {str(sorted(c.all_kwargs().items())) for c in kernel.configs}
        if len(distinct) < AT_LEAST:
            faults.append(f"{len(kernel.configs)} configs, {len(distinct)} of "
                          f"them distinct; at least {AT_LEAST} are needed")
        return faults + [
            f"the key names {name}, which is no parameter of the kernel: "
            "before 3.9 Triton leaves such a name out without a word"
            for name in kernel.keys or () if name not in names]

    def key(self):
        """What the key lacks, a line each, shown by counting searches."""
        trials = []
        kernel = self.tuner(do_bench=lambda call, quantiles: (
            trials.append(call), [1.0] * 3)[1])
        memory = self.torch.zeros(2, 64, 64, device=self.device)

        def searched(m=32, n=32, k=32, ieee=True, k_major=False):
            # Views of the same memory: the strides stay while the sizes change.
            a, b = memory.clone()
            before = len(trials)
            self.t.matmul(a[:m, :k], (b.t() if k_major else b)[:k, :n], ieee,
                          {}, a.new_empty(64, 64)[:m, :n], kernel)
            return len(trials) > before

        if not searched() or searched():
            return ["a second launch, alike but for the tensors' addresses, "
                    "searched again; or the first did not search"]
        tried = len(trials)
        missing = [n for n, change in CHANGES.items() if not searched(**change)]
        print(f"key {list(kernel.keys)}: {tried} configs a search; one change "
              f"of each of {len(CHANGES)} kinds began "
              f"{len(CHANGES) - len(missing)} searches")
        return [f"{name} changed, nothing else, and the launch began no search:"
                f" the config chosen for one value runs the other.  Add {name} "
                "to the key" for name in missing]

    def prepare(self):
        """Make the frames as wide as the blocks; return the numbers of the
        configs to check, which are fewer under the interpreter, where those
        with the same blocks are the same program."""
        t, configs, alone = self.t, self.kernel.configs, {}
        self.torch.manual_seed(86)
        self.small = [case for case in t.MATMUL_CASES if case[0] != t.SIZE]
        t.FRAME = 16 + max(config.kwargs[f"BLOCK_{side}"]
                           for config in configs for side in "MNK")
        for number, config in enumerate(configs, 1):
            alone.setdefault(str(config.kwargs) if t.INTERPRET else number,
                             number)
        return list(alone.values())

    def right_softmax(self):
        """Whether the softmax passes the lesson's checks."""
        print("\nthe softmax")
        return bool(self.t.softmax_checks(self.device, self.softmax))

    def right_alone(self, numbers):
        """Whether each of these configs is right without the others."""
        right = [self.alone(n, self.kernel.configs[n - 1]) for n in numbers]
        return all(right)

    def alone(self, number, config):
        """Whether one config is right without the others, one line if it is."""
        t, sizes, lines = self.t, config.kwargs, io.StringIO()
        # One tile row more than a group, a tile column and a step of K more.
        t.MATMUL_CASES = [
            (sizes["BLOCK_M"] * sizes.get("GROUP_M", 1) + 5,
             sizes["BLOCK_N"] + 3, sizes["BLOCK_K"] + 7), (5, 6, 7),
            *([] if t.INTERPRET else [(t.SIZE,) * 3])]
        name = (f"config {number} of {len(self.kernel.configs)}, "
                f"{describe(config)}")
        try:
            with contextlib.redirect_stdout(lines):
                passed = t.matmul_checks(self.device, [{}],
                                         self.tuner([config]))
        except t.triton.OutOfResources as error:  # the tuner skips it as well
            print(f"skip   {name}: does not fit this card, {error}")
            return True
        except Exception as error:
            print(f"FAIL   {name}: raised {type(error).__name__}: {error}")
            return False
        shown = lines.getvalue().splitlines()
        failed = [line for line in shown if not line.startswith("pass")]
        print("FAIL  " if failed else "pass  ", f"{name}: {len(shown)} checks",
              *failed[:4], *[f"... {len(failed)} failed"] * bool(failed),
              sep="\n       " if failed else " ")
        return passed

    def refilled(self, what, precision, inputs, out, launch):
        """Whether launch() is right in memory that holds NaN, then in memory
        that holds the last result, and gives the same bits twice."""
        t, passed = self.t, True
        out.fill_(self.torch.nan)
        for turn in ("NaN in out", "new inputs, old out"):
            for view, _ in inputs:
                view.normal_()
            want, scale = t.matmul64(*(x.cpu().numpy() for x, _ in inputs))
            passed &= t.check(
                f"{precision} {what}, {turn}",
                lambda a, b, judged: (launch(), judged.copy_(out))[1], inputs,
                want, scale, t.matmul_tolerance(inputs[0][0].shape[1],
                                                precision))[0]
        before = out.clone()
        launch()
        if not before.equal(out):
            print("FAIL  two launches on the same inputs differ in",
                  self.torch.count_nonzero(before != out).item(), "elements")
        return passed and before.equal(out)

    def right_tuned(self):
        """Whether the autotuned kernel is right, and again on new inputs."""
        t = self.t
        print("\nthe autotuned kernel, searches cut short")
        t.MATMUL_CASES = self.small
        kernel = self.tuner(do_bench=lambda call, quantiles: [1.0] * 3)
        passed = t.matmul_checks(self.device, [{}], kernel)
        for p in t.PRECISIONS:
            a, b, out = [t.framed(self.torch.zeros(shape), self.device)
                         for shape in ((97, 83), (83, 61), (97, 61))]
            passed &= self.refilled(
                "97x61x83", p, [a, b], out[0], lambda: t.matmul(
                    a[0], b[0], p == "ieee", {}, out[0], kernel))
        return passed

    def emitted(self, capability=None):
        """What a multiplier compiled to that it must not, a line each."""
        t, faults = self.t, []
        if not capability:
            major, minor = self.torch.cuda.get_device_capability()
            capability = 10 * major + minor
        config = min(self.kernel.configs, key=area)
        print(f"\ncompiled for sm_{capability}, {describe(config)}")
        for p in t.PRECISIONS:
            ptx = t.compile_for(
                capability, self.kernel.fn, **config.all_kwargs(),
                IEEE=p == "ieee", stride_ak=1, stride_bn=1, stride_cn=1
            ).asm["ptx"]
            found = sorted({*t.re.findall(t.COUNTED["tensor"], ptx)})
            shown = ", ".join(found) or "no tensor-core instruction"
            print(f"{p}: {shown}")
            if (p == "tf32") != bool(found) or (p == "tf32") != (
                    "tf32" in str(found)):
                faults.append(f"{p} compiled to {shown}; tf32 wants a tf32 "
                              "tensor-core instruction and ieee wants none")
        return faults

    # The rest needs a GPU.
    @functools.cached_property
    def operands(self):
        """The timed inputs, the same in every process: a, and b by layout."""
        g = self.torch.Generator("cuda").manual_seed(86)
        a, b = self.torch.randn(2, self.t.SIZE, self.t.SIZE, device="cuda",
                                generator=g)
        return {"a": a, "row-major": b, "K-major": b.t().contiguous().t()}

    def hold(self, p, l, config, kernel):
        """Keep a CUDA graph of one launch, so that Python's part of it is not
        timed; return the seconds that the first launch took."""
        a, b = self.operands["a"], self.operands[l]
        out = self.torch.empty_like(a)

        def launch():
            self.t.matmul(a, b, p == "ieee", config, out, kernel)
            self.torch.cuda.synchronize()

        start = time.perf_counter()
        launch()
        seconds = time.perf_counter() - start
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self.t.matmul(a, b, p == "ieee", config, out, kernel)
        self.timed[p, l] = graph.replay, [(a, a), (b, b)], out
        return seconds

    def time(self, p, l, warmup):
        """Milliseconds of a launch, by CUDA events and by the wall clock."""
        replay, count = self.timed[p, l][0], 200
        events = self.do_bench(replay, warmup=warmup, rep=200,
                               return_mode="median")
        start = time.perf_counter()
        for _ in range(count):
            replay()
        self.torch.cuda.synchronize()
        return events, (time.perf_counter() - start) / count * 1e3

    def hand_written(self, p, l):
        """The best of the lesson's CONFIGS, and torch.mm's milliseconds."""
        t, times = self.t, {}
        for i, config in enumerate(t.CONFIGS):
            with contextlib.suppress(t.triton.OutOfResources):
                self.hold(p, l, config, t.matmul_kernel)
                times[i] = self.time(p, l, 1000)[0]
        best = t.CONFIGS[min(times, key=times.get)]
        self.hold(p, l, best, t.matmul_kernel)
        a, b = self.operands["a"], self.operands[l]
        return t.shape(best), self.do_bench(
            lambda: t.pinned_mm(a, b, p), warmup=100, rep=200,
            return_mode="median")

    def search(self, p, l):
        """The config that a search takes, and its first launch's seconds."""
        kernel = self.tuner()
        seconds = self.hold(p, l, {}, kernel)
        return describe(kernel.best_config), len(kernel.configs), seconds

    def again(self):
        """Whether the very launches that were timed are right."""
        right = [self.refilled(f"{l} timed", p, inputs, out, replay)
                 for (p, l), (replay, inputs, out) in self.timed.items()]
        return all(right)

def serve(pipe):
    """Answer the parent over a pipe of its own, whatever a step does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.reconfigure(line_buffering=True)
    side = Side()
    with contextlib.suppress(EOFError):
        while True:
            step, arguments = json.loads(pipe.recv_bytes())
            try:
                answer = {"answer": getattr(side, step)(*arguments)}
            except BaseException as error:  # sys.exit is one, too
                at = [f", line {frame.lineno} of the file" for frame in
                      traceback.extract_tb(error.__traceback__)
                      if frame.filename == side.path]
                answer = {"raised": f"{type(error).__name__}: {error}"
                          + "".join(at[-1:])}
            pipe.send_bytes(json.dumps(answer).encode())
