"""How far is the library: the lesson's two kernels beside torch, rung by rung.

    python3 experiments/library_speed.py                 an NVIDIA GPU of 9.0
    python3 experiments/library_speed.py tf32-2048 ieee  these parts alone

Parts: check (the lesson's checks on the kernels of library_kernels.py),
tf32-2048, tf32-4096, tf32-8192, softmax-narrow, softmax-wide, softmax-widest
and ieee are run if none is named.  Besides there are check-small (check
without the largest sizes), soak (does any launch of many differ in a bit?) and
hazard (an operand in registers, in plain Triton: what the compiled code says,
and what comes out).  soak:2000 and hazard:500 set the number of launches.

However many parts are asked for, the header is printed once, and each part
between a line with its name and a line with its verdict and its seconds.

A ratio is the library's time over ours on the same operands: over 1 is faster.
Rows of one table take turns, several rounds, and each is the median of its
rounds.  The last line is the exit status: 0 fine, 1 refused, 2 a wrong
argument, 3 a check failed or a launch differed.
"""
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
sys.path.append(str(ROOT / "experiments"))
import library_kernels as kernels
import library_reading as reading
import torch
import triton

import triton_softmax_matmul as t

config = reading.config
ROUNDS = 3  # of each table
THREADS = 12  # that compile, at most


# ---------------------------------------------------------------- compile first

def compile_ahead(runs):
    """Launch each of our own kernels once, many beside each other.

    Most of this program's time would go into compiling, one kernel after the
    other, and most of that is done outside of Python, so that threads help.
    What fails here fails again, and is told, where it is run for good.
    """
    runs = list(runs)
    # A thread has no device of its own choice before it sets one.
    with concurrent.futures.ThreadPoolExecutor(
            min(THREADS, os.cpu_count() or 1),
            initializer=torch.cuda.set_device,
            initargs=(torch.cuda.current_device(),)) as pool:
        for run in runs:
            pool.submit(run)
    torch.cuda.synchronize()


# ------------------------------------------------------------ taking turns

def reason(error):
    """An exception in a line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]:.90}"


def usable(runs):
    """Run each once; those that ran, and why the others did not."""
    works, reasons = {}, {}
    for name, run in runs.items():
        try:
            run()
            torch.cuda.synchronize()
            works[name] = run
        except (ValueError, RuntimeError, triton.OutOfResources,
                triton.CompilationError) as error:
            reasons[name] = reason(error)
    return works, reasons


def recorded(run):
    """The replay of a CUDA graph of a run that was run before: what the card
    does, without the time that Python takes to ask for it."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def timed(run, warmup=25, rep=100):
    """The median milliseconds of a run; warmup and rep in milliseconds."""
    return triton.testing.do_bench(run, warmup=warmup, rep=rep,
                                   quantiles=[0.5])


def medians(runs, rounds=ROUNDS):
    """{name: milliseconds} of runs that take turns."""
    replays, seen = {}, collections.defaultdict(list)
    for name, run in runs.items():
        # Inside a graph a copy becomes a node of its own, and slower.
        replays[name] = run if name == "device copy" else recorded(run)
    for _ in range(rounds):
        for name, replay in replays.items():
            seen[name].append(timed(replay))
    return {name: statistics.median(times) for name, times in seen.items()}


def fastest(candidates):
    """The (name, run) of the candidate that is quickest."""
    works, reasons = usable(candidates)
    if not works:
        raise ValueError("; ".join(sorted(set(reasons.values()))))
    times = {}
    for name, run in works.items():
        # Measured for a moment: enough to choose.
        times[name] = timed(recorded(run), warmup=5, rep=30)
    best = min(times, key=times.get)
    return best, works[best]


def result_of(run, out):
    """What a run computes: what it returns, or what it leaves in out."""
    out.fill_(torch.nan)
    back = run()
    return back if isinstance(back, torch.Tensor) else out


def every(rungs, but=None):
    """The candidates of all rungs, {rung: {name: run}}, in a list; without
    those of a rung whose kernels another one has as well."""
    runs = []
    for rung, candidates in rungs.items():
        if rung != but:
            runs.extend(candidates.values())
    return runs


def bind(function, *args, **named):
    """function with its arguments, to be called without any."""
    def run():
        return function(*args, **named)
    return run


# ----------------------------------------------------------- tf32, the ladder

# What a search over many configs found fastest (transcripts/search-*).
SEARCHED = {
    "row-major": [config(256, 64, 32, 8, 4), config(256, 128, 32, 8, 4)],
    "K-major": [config(128, 256, 32, 8, 3), config(128, 256, 32, 8, 4),
                config(128, 128, 32, 4, 3)],
    "swapped": [config(64, 256, 32, 4, 4), config(64, 256, 32, 8, 4)],
    "in registers": [config(256, 128, 32, 8, 4), config(128, 128, 32, 4, 4),
                     config(128, 256, 32, 8, 3)],
}

# What the Gluon kernel may be asked to do otherwise, one thing at a time.
VARIANTS = {
    "groups of 1": dict(GROUP_M=1),
    "groups of 4": dict(GROUP_M=4),
    "groups of 16": dict(GROUP_M=16),
    "persistent": dict(PERSISTENT=True),
    "stored from registers": dict(PIECES=False),
    "persistent, from registers": dict(PERSISTENT=True, PIECES=False),
    "persistent, groups of 16": dict(PERSISTENT=True, GROUP_M=16),
    "a cluster of two": dict(CTAS=2, PIECES=False),
    "a persistent cluster": dict(CTAS=2, PIECES=False, PERSISTENT=True),
    "tiles of 256 by 128": dict(BLOCK_M=256, BLOCK_N=128),
    "left tile swizzled by 32": dict(SWIZZLE=32),
}

# How the variants round: the most exact way that this Triton has.
ROUND = "descriptors" if kernels.CAN_ROUND else "registers"

# Wanted on an H200: the least ratio without and with descriptors that round.
WANTED = {
    ("row-major", 2048): (1.00, 1.03), ("K-major", 2048): (0.99, 1.01),
    ("row-major", 4096): (0.96, 0.96), ("K-major", 4096): (0.96, 0.96),
    ("row-major", 8192): (0.97, 0.97), ("K-major", 8192): (0.97, 0.97),
}


def operands(size, layout):
    """a by rows, and b in one of the layouts of t.B_LAYOUTS."""
    generator = torch.Generator(t.DEVICE).manual_seed(86)
    a = torch.randn(size, size, device=t.DEVICE, generator=generator)
    b = torch.randn(size, size, device=t.DEVICE, generator=generator)
    return a, t.as_layout(b, layout)


def by_config(configs, run_with):
    """{config's name: run} for candidates that differ in their config."""
    runs = {}
    for each in configs:
        name = (f"{t.config_name(each)} w{each['num_warps']} "
                f"s{each['num_stages']}")
        runs[name] = bind(run_with, each)
    return runs


def plain_rungs(a, b, out, layout):
    """{rung: candidates}, up to where plain Triton goes."""
    scratch = torch.empty(b.shape[1], b.shape[0], device=b.device)

    def straight(config):
        t.matmul(a, b, False, config, out)

    def swapped(config):
        t.matmul(b.t(), a.t(), False, config, out.t())

    def torch_copied(config):
        scratch.copy_(b.t())
        t.matmul(a, scratch.t(), False, config, out)

    def copied(config):
        kernels.transposed_copy(b, scratch)
        t.matmul(a, scratch.t(), False, config, out)

    def in_registers(config):
        t.matmul(b.t(), a.t(), False, config, out.t(),
                 kernel=kernels.rounding_kernel)

    rungs = {"the lesson's kernel": by_config(t.CONFIGS, straight),
             "the search": by_config(SEARCHED[layout], straight)}
    if layout == "row-major":
        rungs |= {
            "operands swapped": by_config(SEARCHED["swapped"], swapped),
            "B copied by torch": by_config(SEARCHED["K-major"], torch_copied),
            "B copied by a kernel": by_config(SEARCHED["K-major"], copied),
            "UNSAFE: B^T in registers": by_config(SEARCHED["in registers"],
                                                  in_registers)}
    return rungs


def gluon_rungs(layout):
    """{rung: options} of the Gluon kernel's rungs, and of its variants."""
    rungs = {"Gluon": {}}
    if layout == "row-major":
        rungs["Gluon, B^T rounded"] = dict(ROUND="registers")
    rungs["Gluon, descriptors round"] = dict(ROUND="descriptors")
    for name, changes in VARIANTS.items():
        rungs["  " + name] = dict(ROUND=ROUND) | changes
    return rungs


@dataclasses.dataclass
class Reference:
    """What a product is compared with: some rows of it, in float64."""
    rows: slice
    want: object
    scale: object

    def error(self, out):
        """max |c - c64| / (|a| |b|) over the rows; NaN where c has one."""
        got = out[self.rows].double().cpu().numpy()
        return (abs(got - self.want) / self.scale).max()


def reference(a, b):
    """256 rows of a @ b, spread evenly."""
    rows = slice(0, None, max(a.shape[0] // 256, 1))
    want, scale = t.matmul64(a[rows].cpu().numpy(), b.cpu().numpy())
    return Reference(rows, want, scale)


def ladder(size, layout):
    """Measure one ladder and print it; whether every safe rung was right."""
    a, b = operands(size, layout)
    out = torch.empty(size, size, device=t.DEVICE)
    print(f"\ntf32, {size} cubed, {layout} B: ms, TFLOP/s, ratio to torch.mm, "
          "error, over torch.mm's error", flush=True)
    runs = {"torch.mm": bind(t.pinned_mm, a, b, "tf32", out)}
    labels, reasons, gluon = {}, {}, {}
    for rung, options in gluon_rungs(layout).items():
        gluon[rung] = bind(kernels.multiply, a, b, options, out)
    plain = plain_rungs(a, b, out, layout)
    compile_ahead([*gluon.values(), *every(plain, but="B copied by torch")])
    for rung, candidates in plain.items():
        try:
            labels[rung], runs[rung] = fastest(candidates)
        except ValueError as error:
            reasons[rung] = str(error)
    runs, failed = usable(runs | gluon)
    ms = medians(runs)
    check = reference(a, b)
    limit, _ = t.matmul_tolerance(size, "tf32")
    errors = {}
    for rung, run in runs.items():
        errors[rung] = check.error(result_of(run, out))
    right = True
    for rung in runs:
        verdict = labels.get(rung, "")
        if not errors[rung] <= limit:
            verdict += " WRONG"
            right = right and "UNSAFE" in rung
        print(f"{rung:<28} {ms[rung]:8.4f} {2e-9 * size**3 / ms[rung]:7.1f} "
              f"{ms['torch.mm'] / ms[rung]:6.3f}  {errors[rung]:.2e} "
              f"{errors[rung] / errors['torch.mm']:5.2f}  {verdict}")
    for rung, why in (reasons | failed).items():
        print(f"{rung:<28} cannot: {why}")
    verdicts(size, layout, ms, errors)
    return right


def verdicts(size, layout, ms, errors):
    """Print what was wanted of the Gluon kernel and what it reached."""
    gluon = [rung for rung in ms if rung.startswith(("Gluon", "  "))]
    best = min(gluon, key=ms.get)
    without, rounding = WANTED[layout, size]
    wanted = rounding if kernels.CAN_ROUND else without
    print(f"best in Gluon: {best.strip()}, {ms['torch.mm'] / ms[best]:.3f}; "
          f"wanted: {wanted:.2f}")
    if kernels.CAN_ROUND:
        rung = "Gluon, descriptors round"
        over = errors[rung] / errors["torch.mm"]
        print(f"descriptors that round: {over:.3f} of torch.mm's error; "
              "wanted: at most 1.02")


def tf32(size):
    """The ladders of one size, for both layouts of B."""
    right = True
    for layout in t.B_LAYOUTS:
        right = ladder(size, layout) and right
    return right


# ---------------------------------------------------------------------- checks

ROW, COLUMN, STEPS = t.LAYOUTS[:3]
# The layouts of a and b for each way to multiply.
WAYS = ((ROW, ROW), (ROW, COLUMN), (COLUMN, COLUMN))


def in_words(options):
    """What differs from the options that the kernel has by itself."""
    changed = []
    for name, value in options.items():
        if value != kernels.OPTIONS[name]:
            changed.append(f"{name}={value}")
    return " ".join(changed) or "as it is"


def say_options():
    """Print the options that the kernel has by itself, once for all lines."""
    told = " ".join(f"{name}={value}"
                    for name, value in kernels.OPTIONS.items())
    print(f"\nmultiply has, but where another is named:\n{told}", flush=True)


def launch(a, b, ieee, options, out):
    """multiply() in the place of the lesson's matmul, which does ieee."""
    if ieee:
        raise ValueError("multiply() has no ieee: check it in tf32 alone")
    return kernels.multiply(a, b, options, out)


def takes(case):
    """Whether multiply() takes the operands of one of the lesson's cases.

    Without steps, their memory has rows of a multiple of 16 bytes and begins
    at one, so it is the layouts that decide.
    """
    return 0 in case.sizes or case.layouts[:2] in WAYS


def few_cases(options):
    """What every set of options has to pass, with a kernel for each way.

    Wherever the kernel stores through the copy engine, these results let it:
    their rows are whole pieces of 16 bytes.
    """
    cases = []
    for way in WAYS:
        # Rests on every side, several tiles, several steps and a rest of K.
        cases.append(t.Case("edges of tiles", (259, 516, 101), (*way, ROW)))
    cases += [
        t.Case("an earlier result", (35, 36, 35), (ROW, ROW, ROW),
               relaunched=True),
        t.Case("an earlier result", (35, 36, 35), (ROW, COLUMN, ROW),
               relaunched=True),
        t.Case("NaN, inf and -0.0", (9, 8, 41), (ROW, ROW, ROW),
               "NaN, inf and -0.0", t.LARGE),
        t.Case("whole numbers", (20, 36, 96), (ROW, COLUMN, ROW),
               "whole numbers"),
        t.Case("2^100 and 2^-100", (40, 28, 65), (COLUMN, COLUMN, ROW),
               "scaled")]
    if options["PERSISTENT"]:
        # More tiles than there are programs: some have a second one.
        for way in WAYS[:2]:
            cases.append(t.Case("a second tile", (1100, 4132, 40),
                                (*way, ROW)))
    return [dataclasses.replace(case, config=options) for case in cases]


def many_cases(options):
    """The lesson's cases as well, and results of every kind."""
    cases = few_cases(options)
    for case in t.matmul_cases(configs=[options]):
        if takes(case):
            cases.append(case)
        else:
            cases.append(dataclasses.replace(case, refused=True))
    for way in WAYS:
        # Rows that the copy engine cannot store, tiny ones, other strides.
        for sizes, result in (((259, 517, 101), ROW), ((4, 4, 4), ROW),
                              ((132, 1030, 256), ROW), ((70, 300, 64), COLUMN),
                              ((132, 516, 70), STEPS)):
            cases.append(t.Case("results", sizes, (*way, result),
                                config=options))
    return cases


def checked_options():
    """[(options, thorough)]: each rounding, and each variant with the best of
    them; thoroughly as it is, and stored from registers."""
    several = [({"ROUND": ROUND}, True),
               ({"ROUND": ROUND, "PIECES": False}, True)]
    for rounding in kernels.ROUNDINGS:
        several.append(({"ROUND": rounding}, False))
    for changes in VARIANTS.values():
        several.append(({"ROUND": ROUND} | changes, False))
    able, seen = [], []
    for changes, thorough in several:
        options = kernels.OPTIONS | changes
        try:
            kernels.check_options(options)
        except ValueError:
            continue
        if options not in seen:
            able.append((options, thorough))
            seen.append(options)
    return able


def planned(small):
    """[(options, cases)] of the product's checks."""
    plan = []
    for options, thorough in checked_options():
        cases = few_cases(options)
        if thorough:
            cases = many_cases(options)
        elif not small:
            for way in WAYS[:2]:
                cases.append(t.Case("every tile", (t.SIZE,) * 3, (*way, ROW),
                                    config=options))
        if small:
            cases = [case for case in cases if case.sizes != (t.SIZE,) * 3]
        plan.append((options, cases))
    return plan


def rehearsal(case):
    """A launch of a case, its operands placed as the checks place them."""
    m, n, k = case.sizes
    block_m, block_n, block_k = t.block_shape(case.config)
    a = t.place(torch.zeros(m, k), case.layouts[0], 0.0, t.DEVICE,
                (block_m, block_k))
    b = t.place(torch.zeros(k, n), case.layouts[1], 0.0, t.DEVICE,
                (block_k, block_n), 16)
    out = t.place_result((m, n), case.layouts[2], t.DEVICE,
                         (block_m, block_n), 32)
    return bind(kernels.multiply, a.view, b.view, case.config, out.view)


def rehearsals(cases):
    """A launch for each kernel that these cases compile, or about that."""
    runs = {}
    for case in cases:
        if case.config["CTAS"] == 2:
            # Where blocks wait for each other, one that errs waits for good.
            # Then the last line that was printed should name the options.
            continue
        m, n, _ = case.sizes
        # Triton compiles anew for a number that is 1, or 16 times some.
        kind = (case.layouts, n % 4 == 0, m % 16 == 0, n % 16 == 0, m == 1,
                n == 1)
        if not case.refused and kind not in runs:
            runs[kind] = rehearsal(case)
    return list(runs.values())


def check(small=False):
    """The lesson's checks with the kernels of this program; all passed?"""
    plan, right = planned(small), True
    runs = []
    for _, cases in plan:
        runs.extend(rehearsals(cases))
    for run, lowest, highest in softmax_launchers().values():
        for case in softmax_cases(lowest, highest):
            if not case.refused:
                runs.append(softmax_rehearsal(case, run))
    start = time.perf_counter()
    compile_ahead(runs)
    print(f"\n{len(runs)} launches ahead of the checks, to compile: "
          f"{time.perf_counter() - start:.0f} s")
    say_options()
    for options, cases in plan:
        print(f"\nmultiply, {in_words(options)}", flush=True)
        # What is not tf32 would be the lesson's kernel, checked elsewhere.
        right = t.matmul_checks(t.DEVICE, launch=launch, cases=cases,
                                precisions=("tf32",)) and right
    for name, (run, lowest, highest) in softmax_launchers().items():
        print(f"\nsoftmax, {name}", flush=True)
        cases = softmax_cases(lowest, highest)
        right = t.softmax_checks(t.DEVICE, launch=run, cases=cases) and right
    return right


def check_small():
    """The checks without the largest sizes: compute-sanitizer has time."""
    return check(small=True)


def softmax_cases(lowest, highest):
    """The lesson's cases, and wider ones, for a kernel of so many columns."""
    cases = t.softmax_cases()
    for case in t.softmax_cases():
        if case.values != "normal":
            # Each kind of value by rows, whatever its turn gave it before.
            cases.append(dataclasses.replace(case, sizes=(3, 3000),
                                             layouts=(ROW, ROW)))
    cases.append(t.Case("four pieces and one more", (3, 4097), (ROW, ROW)))
    for at, case in enumerate(cases):
        if case.layouts != (ROW, ROW) or not lowest <= case.sizes[1] <= highest:
            cases[at] = dataclasses.replace(case, refused=True)
    return cases


def softmax_rehearsal(case, run):
    """A launch of a case, its operands placed as the checks place them."""
    reach = (2, triton.next_power_of_2(case.sizes[1]))
    x = t.place(torch.zeros(case.sizes), case.layouts[0], 0.0, t.DEVICE, reach)
    out = t.place_result(case.sizes, case.layouts[1], t.DEVICE, reach)
    return bind(run, x.view, out.view)


def softmax_launchers():
    """{name: (launch(x, out), fewest columns, most)} of the softmaxes
    besides the lesson's."""
    def rows(x, out):
        return kernels.softmax_rows(x, out, rows=4, num_warps=4)

    def pieces(x, out):
        return kernels.softmax_pieces(x, out, 1024, 4, back=False)

    def backwards(x, out):
        return kernels.softmax_pieces(x, out, 1024, 4, back=True)

    def over_a_cluster(x, out):
        return kernels.softmax_cluster(x, out, ctas=4, num_warps=4)

    launchers = {"four rows a program": (rows, 1, 4096),
                 "in pieces": (pieces, 1, 2**20),
                 "in pieces, backwards": (backwards, 1, 2**20)}
    if kernels.CAN_CLUSTER:
        launchers["over a cluster"] = (over_a_cluster, 1025, 2**20)
    return launchers


# ------------------------------------------------------------------------ soak

COLD = 2**26  # values written to empty the cache: 256 MB, five times L2
BUSY = 4096  # the size of the product on the other stream
SOAKED = 2304  # 162 tiles: with 132 SMs a persistent program has a second


def soaked(name, run, out, count):
    """Launch many times; print how many differed in a bit; whether none did."""
    side = torch.cuda.Stream()
    cold = torch.empty(COLD, device=t.DEVICE)
    other = torch.randn(BUSY, BUSY, device=t.DEVICE)
    product = torch.empty_like(other)
    differed = torch.zeros((), dtype=torch.int64, device=t.DEVICE)
    run()
    expected = out.clone().view(torch.int32)

    def warm():
        out.fill_(torch.nan)
        run()
        differed.add_((out.view(torch.int32) != expected).any())

    def after_clearing():
        cold.zero_()
        warm()

    told = []
    for condition, once in (("cold cache", after_clearing),
                            ("warm cache", warm), ("busy stream", warm)):
        replay = recorded(once)  # Python would take longer than the card
        differed.zero_()
        for turn in range(count):
            if condition == "busy stream" and turn % 8 == 0:
                with torch.cuda.stream(side):
                    t.pinned_mm(other, other, "tf32", product)
            replay()
            if turn % 64 == 0:
                torch.cuda.synchronize()  # neither stream runs far ahead
        torch.cuda.synchronize()
        told.append((condition, int(differed)))
    words = ", ".join(f"{condition} {number}" for condition, number in told)
    print(f"{name:<52} differed: {words}", flush=True)
    return all(number == 0 for _, number in told)


def soaked_options(layout):
    """Each rounding, and the ways to run and to store with the best one."""
    roundings, best = list(kernels.ROUNDINGS), ROUND
    if layout == "K-major":
        # Nothing is in registers, where it could be rounded.
        roundings.remove("registers")
        best = "descriptors" if kernels.CAN_ROUND else "no"
    several = [{"ROUND": rounding} for rounding in roundings]
    for changes in (dict(PERSISTENT=True), dict(PIECES=False),
                    dict(PIECES=False, CTAS=2),
                    dict(PIECES=False, CTAS=2, PERSISTENT=True)):
        several.append({"ROUND": best} | changes)
    able = []
    for changes in several:
        options = kernels.OPTIONS | changes
        try:
            kernels.check_options(options)
        except ValueError:
            continue
        able.append(options)
    return able


def soak(count=20000):
    """Every Gluon kernel and every softmax, this often in each condition."""
    print(f"\nsoak: {count} launches in each condition, every bit compared")
    say_options()
    runs = {}
    out = torch.empty(SOAKED, SOAKED, device=t.DEVICE)
    for layout in t.B_LAYOUTS:
        a, b = operands(SOAKED, layout)
        for options in soaked_options(layout):
            runs[f"{layout} B, {in_words(options)}"] = bind(
                kernels.multiply, a, b, options, out)
    compile_ahead(runs.values())
    right = True
    for name, run in runs.items():
        right = soaked(name, run, out, count) and right
    x = torch.randn(256, 65536, device=t.DEVICE)
    out = torch.empty_like(x)
    for name, (run, _, highest) in softmax_launchers().items():
        if highest >= x.shape[1]:
            right = soaked(f"softmax 256 x 65536 {name}", bind(run, x, out),
                           out, count) and right
    return right


# ---------------------------------------------------------------- the hazard
#
# In plain Triton an operand in registers is loaded for the next step while the
# wgmma of this step may still read the last: library_reading.py finds it in
# the compiled code.  Whether it shows depends on the config, and on luck.

def hazard_launch(a, b, ieee, each, out):
    """The unsafe kernel in the place of the lesson's matmul."""
    if ieee:
        return t.matmul(a, b, True, None, out)
    t.matmul(b.t(), a.t(), False, each, out.t(),
             kernel=kernels.rounding_kernel)
    return out


def wrong_launches(each, a, b, count):
    """How many of many launches are off, and the largest distance seen."""
    want = t.pinned_mm(a, b, "ieee")
    limit = (t.matmul_tolerance(a.shape[1], "tf32")[0]
             * t.pinned_mm(a.abs(), b.abs(), "ieee"))
    out = torch.empty_like(want)
    wrong = torch.zeros((), dtype=torch.int64, device=t.DEVICE)
    worst = torch.zeros((), device=t.DEVICE)
    for _ in range(count):
        out.fill_(torch.nan)
        hazard_launch(a, b, False, each, out)
        off = (out - want).abs()
        wrong += (~(off <= limit)).any()
        worst = torch.maximum(worst, off.max())
    return int(wrong), float(worst)


def hazard(count=2000):
    """Read and run the unsafe kernel; show that the lesson's check sees it."""
    print("\nan operand in registers, in plain Triton: what the compiled code "
          f"says, and of\n{count} launches those with a value off, and the "
          "largest distance from torch.mm ieee")
    a, b = operands(t.SIZE, "row-major")
    out, runs = torch.empty_like(a), []
    for each in reading.HAZARD:
        runs.append(bind(reading.compile_rounding, each))
        runs.append(bind(hazard_launch, a, b, False, each, out))
    compile_ahead(runs)
    most, worst_config = -1, None
    for each in reading.HAZARD:
        says = reading.told(reading.compile_rounding(each))
        wrong, worst = wrong_launches(each, a, b, count)
        print(f"{t.config_name(each):<10} w{each['num_warps']} "
              f"s{each['num_stages']}  {says}; wrong {wrong}, {worst:.3g}",
              flush=True)
        if wrong > most:
            most, worst_config = wrong, each
    ours = kernels.compile_product(a, b, torch.empty_like(a))
    print(f"the Gluon kernel    {reading.told(ours)}")
    print("\nwhat the lesson's own checks say of the one that was wrong most "
          f"often, w{worst_config['num_warps']} "
          f"s{worst_config['num_stages']}:")
    case = t.Case("the hazard", (t.SIZE,) * 3, ("row-major",) * 3,
                  config=worst_config)
    passed = t.matmul_checks(t.DEVICE, launch=hazard_launch, cases=[case])
    passed = t.repeat_checks(hazard_launch, [worst_config]) and passed
    print("the checks let it pass" if passed else "the checks saw it")
    ptx = reading.read_ptx(ours.asm["ptx"])
    return ptx.running_at_loads == 0 and not ptx.overwriting


# --------------------------------------------------------------------- softmax

NARROW = (32, 64, 128, 256, 384, 512, 768, 1000, 1024, 2048, 3000, 4096)
WIDE = (8192, 12000, 16384, 30000, 50000, 100000, 200000)
WIDEST = (32768, 65536, 131072, 262144)  # where a row outgrows a program
ELEMENTS = 2**28  # a tensor of 1 GB


def lesson_candidates(x, out):
    """The lesson's kernel, with its launcher's warps and with others."""
    cols = x.shape[1]
    block = triton.next_power_of_2(cols)
    runs = {}
    if cols > 65536:
        return runs
    runs["its launcher"] = bind(t.softmax, x, out)
    for warps in (1, 2, 4, 8, 16, 32):
        if 4 <= block // (32 * warps) <= 64:
            runs[f"w{warps}"] = bind(
                t.softmax_kernel[(x.shape[0],)], x, out, x.stride(0), cols,
                BLOCK_COLS=block, num_warps=warps)
    return runs


def rows_candidates(x, out):
    """Several rows a program, for rows that a few warps hold."""
    block = triton.next_power_of_2(x.shape[1])
    runs = {}
    for rows in (2, 4, 8, 16, 32, 64):
        for warps in (1, 2, 4, 8):
            if 4 <= rows * block // (32 * warps) <= 32 and block <= 1024:
                runs[f"{rows} rows w{warps}"] = bind(
                    kernels.softmax_rows, x, out, rows, warps)
    return runs


def pieces_candidates(x, out):
    """Two passes in pieces, forwards or back, for rows of several pieces."""
    runs = {}
    for piece, warps in ((4096, 8), (8192, 16), (16384, 16), (16384, 32)):
        if x.shape[1] > piece and x.shape[1] >= 16384:
            for back in (False, True):
                name = f"{piece} w{warps}" + " back" * back
                runs[name] = bind(kernels.softmax_pieces, x, out, piece, warps,
                                  back)
    return runs


def cluster_candidates(x, out):
    """A row over several SMs, each with 16 to 128 values a thread."""
    block = triton.next_power_of_2(x.shape[1])
    runs = {}
    for ctas in (2, 4, 8, 16):
        for warps in (8, 16):
            share = block // (ctas * 32 * warps)
            if 16 <= share <= 128 and x.shape[1] >= 16384:
                runs[f"{ctas} SMs w{warps}"] = bind(
                    kernels.softmax_cluster, x, out, ctas, warps)
    return runs


FAMILIES = {"lesson": lesson_candidates, "rows": rows_candidates,
            "pieces": pieces_candidates, "cluster": cluster_candidates}
PEERS = ("Liger", "FlagGems")


def peers():
    """({name: its softmax and matmul}, {name: why it is not there})."""
    found, missing = {}, {}
    try:
        from liger_kernel.ops.softmax import LigerSoftmaxFunction
        found["Liger"] = LigerSoftmaxFunction.apply, None
    except ModuleNotFoundError:
        missing["Liger"] = "not installed"
    except Exception as error:
        missing["Liger"] = reason(error)
    try:
        from flag_gems.ops import mm, softmax
        found["FlagGems"] = softmax, mm
    except ModuleNotFoundError:
        missing["FlagGems"] = "not installed"
    except Exception as error:
        missing["FlagGems"] = reason(error)
    return found, missing


def softmax_runs(x, out, found):
    """({name: run}, {name: label or why not}) at one width."""
    runs = {"device copy": bind(out.copy_, x),
            "torch": bind(torch.softmax, x, 1, out=out)}
    labels, families = {}, {}
    for family, candidates in FAMILIES.items():
        several = candidates(x, out)
        if several:
            families[family] = several
    compile_ahead(every(families))
    for family, several in families.items():
        try:
            labels[family], runs[family] = fastest(several)
        except ValueError as error:
            labels[family] = str(error)
    if "Liger" in found:
        runs["Liger"] = bind(found["Liger"][0], x)
    if "FlagGems" in found:
        runs["FlagGems"] = bind(found["FlagGems"][0], x, 1)
    works, reasons = usable(runs)
    return works, labels | reasons


def softmax_right(run, out, want, limit):
    """Whether a run's first rows are within the lesson's tolerance."""
    got = result_of(run, out)[:len(want)].double().cpu().numpy()
    error = abs(got - want) / want.max(axis=1, keepdims=True)
    return error.max() <= limit


def softmax_width(cols, found):
    """One row of the table; whether every family was right."""
    generator = torch.Generator(t.DEVICE).manual_seed(86)
    x = torch.randn(ELEMENTS // cols, cols, device=t.DEVICE,
                    generator=generator)
    out = torch.empty_like(x)
    runs, labels = softmax_runs(x, out, found)
    want = t.softmax64(x[:4].cpu().numpy())
    limit, _ = t.softmax_tolerance(cols)
    ms = medians(runs)
    cells, wrong = [], []
    for name in ("torch", *FAMILIES, *PEERS):
        cell = "-"
        if name in ms:
            cell = f"{ms['device copy'] / ms[name]:.3f}"
            if not softmax_right(runs[name], out, want, limit):
                wrong.append(name)
        cells.append(f"{cell:>9}")
    best = min((name for name in FAMILIES if name in ms), key=ms.get)
    print(f"{cols:>7} {ms['device copy']:>8.4f}{''.join(cells)}   {best} "
          f"({labels[best]}), {ms['torch'] / ms[best]:.3f}", flush=True)
    for name in wrong:
        print(f"        WRONG: {name}")
    for name, why in labels.items():
        if name not in ms:
            print(f"        {name} cannot: {why}")
    return not set(wrong) & set(FAMILIES)


def softmax(widths):
    """Every width: each family's best, and the peers, beside a device copy."""
    found, missing = peers()
    print(f"\nsoftmax of {ELEMENTS} values: columns, ms of a device copy, that "
          "time over each\nkernel's; then the best of ours, and torch's time "
          "over its")
    for name, why in missing.items():
        print(f"{name}: {why}")
    if not kernels.CAN_CLUSTER:
        print(f"cluster: Triton {triton.__version__} reduces within a block")
    names = "".join(f"{name:>9}" for name in ("torch", *FAMILIES, *PEERS))
    print(f"{'columns':>7} {'copy ms':>8}{names}")
    right = True
    for cols in widths:
        right = softmax_width(cols, found) and right
    return right


# ------------------------------------------------------------------------ ieee

IEEE = [config(64, 128, 32, 8, 4), config(128, 64, 32, 8, 4),
        config(128, 128, 32, 8, 3), config(128, 128, 32, 8, 4),
        config(256, 64, 32, 8, 4), config(128, 128, 16, 8, 4)]


def ieee():
    """The lesson's kernel with A by columns: as a view, and by a copy."""
    a, b = operands(t.SIZE, "row-major")
    out = torch.empty_like(a)
    by_columns = a.t().contiguous().t()
    scratch = torch.empty_like(a)
    found, missing = peers()

    def straight(config):
        t.matmul(a, b, True, config, out)

    def a_view(config):
        t.matmul(by_columns, b, True, config, out)

    def copied(config):
        kernels.transposed_copy(a, scratch)
        t.matmul(scratch.t(), b, True, config, out)

    runs = {"torch.mm": bind(t.pinned_mm, a, b, "ieee", out),
            "torch.mm, A by columns": bind(t.pinned_mm, by_columns, b, "ieee",
                                           out),
            "the transposing copy alone": bind(kernels.transposed_copy, a,
                                               scratch),
            "torch's copy alone": bind(scratch.copy_, a.t())}
    rungs = {"the lesson's kernel": by_config(t.CONFIGS, straight),
             "the search": by_config(IEEE, straight),
             "A by columns": by_config(IEEE, a_view),
             "A copied by columns": by_config(IEEE, copied)}
    compile_ahead(every(rungs, but="A copied by columns"))
    labels, reasons = {}, {}
    for rung, candidates in rungs.items():
        try:
            labels[rung], runs[rung] = fastest(candidates)
        except ValueError as error:
            reasons[rung] = str(error)
    if "FlagGems" in found:
        runs["FlagGems"] = bind(found["FlagGems"][1], a, b)
        runs["FlagGems, A by columns"] = bind(found["FlagGems"][1], by_columns,
                                              b)
    else:
        reasons["FlagGems"] = missing["FlagGems"]
    return ieee_table(runs, labels, reasons, out, reference(a, b))


def ieee_table(runs, labels, reasons, out, check):
    """Time and print the rows of ieee(); whether all were right."""
    runs, failed = usable(runs)
    ms = medians(runs)
    limit, _ = t.matmul_tolerance(t.SIZE, "ieee")
    print(f"\nieee, {t.SIZE} cubed, row-major B: ms, ratio to torch.mm on the "
          "same operands, error")
    right = True
    for rung, run in runs.items():
        if "alone" in rung:
            print(f"{rung:<27} {ms[rung]:.4f}")
            continue
        base = "torch.mm"
        if rung.endswith("A by columns"):
            base = "torch.mm, A by columns"
        error = check.error(result_of(run, out))
        verdict = labels.get(rung, "")
        if not error <= limit:
            verdict += " WRONG"
            right = right and "FlagGems" in rung
        print(f"{rung:<27} {ms[rung]:.4f} {ms[base] / ms[rung]:6.3f}  "
              f"{error:.2e}  {verdict}")
    for rung, why in (reasons | failed).items():
        print(f"{rung:<27} cannot: {why}")
    return right


# ------------------------------------------------------------------------ main

def tf32_2048():
    return tf32(2048)


def tf32_4096():
    return tf32(4096)


def tf32_8192():
    return tf32(8192)


def softmax_narrow():
    return softmax(NARROW)


def softmax_wide():
    return softmax(WIDE)


def softmax_widest():
    return softmax(WIDEST)


PARTS = {"check": check, "tf32-2048": tf32_2048, "tf32-4096": tf32_4096,
         "tf32-8192": tf32_8192, "softmax-narrow": softmax_narrow,
         "softmax-wide": softmax_wide, "softmax-widest": softmax_widest,
         "ieee": ieee}
EXTRA = {"check-small": check_small, "soak": soak, "hazard": hazard}
COUNTED = ("soak", "hazard")  # those that take a number of launches


def chosen(arguments):
    """[(part's name, its function)], or ValueError for what is no part."""
    parts = []
    for argument in arguments or PARTS:
        name, colon, number = argument.removeprefix("--").partition(":")
        function = (PARTS | EXTRA).get(name)
        if function is None:
            raise ValueError(f"{argument!r} is no part; parts: "
                             f"{', '.join(PARTS | EXTRA)}")
        if colon:
            if name not in COUNTED or not number.isdecimal():
                raise ValueError(f"{argument!r}: a number of launches goes "
                                 f"with {' and '.join(COUNTED)} alone")
            function = bind(function, int(number))
        parts.append((argument, function))
    return parts


def refusal():
    """Why this program does not run here, or None."""
    if t.INTERPRET:
        return "the interpreter has no Hopper instructions, and no time"
    no_gpu = t.refusal()
    if no_gpu:
        return no_gpu
    capability = torch.cuda.get_device_capability()
    if capability != (9, 0):
        return (f"{torch.cuda.get_device_name()} has capability "
                f"{capability[0]}.{capability[1]}; wgmma is there on 9.0 alone")
    return None


def main():
    """Run the parts that were asked for; return the exit status."""
    try:
        parts = chosen(sys.argv[1:])
    except ValueError as error:
        print(error)
        return 2
    t.header()
    why = refusal()
    if why:
        print(f"\nrefused: {why}")
        return 1
    t.check_cache()
    wrong = []
    for name, run in parts:
        print(f"\n===== {name}", flush=True)
        start = time.perf_counter()
        right = run()
        if not right:
            wrong.append(name)
        print(f"===== {name}: {'right' if right else 'WRONG'}, "
              f"{time.perf_counter() - start:.0f} s", flush=True)
    if wrong:
        print(f"\nwrong: {', '.join(wrong)}")
        return 3
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    if sys.argv[1:] == ["--help"]:
        t.leave(0, __doc__.strip())
    t.leave(t.reported(main))
