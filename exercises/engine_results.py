"""Is it right? Every kernel with every config, by the lesson's own checks."""
import dataclasses
import functools
import inspect

from exercises import engine_cases
from exercises.engine_compiled import wrong_dots
from exercises.engine_form import (BLOCKS, Complaint, config_text,
                                   parameters_of, with_defaults)
from exercises.engine_run import TRYING, Job
from exercises.engine_tuned import Pruning


class Watched:
    """A kernel of ours that keeps what was compiled for its launches."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.fn = inspect.unwrap(kernel.fn)
        self.arg_names = list(parameters_of(kernel))
        # {id: (what was compiled, the settings of a launch)}
        self.ran = {}

    def __getitem__(self, grid):
        def launch(*arguments, **settings):
            return self.run(*arguments, grid=grid, warmup=False, **settings)
        return launch

    def run(self, *arguments, **settings):
        """Launch, and keep what ran."""
        compiled = self.kernel.run(*arguments, **settings)
        if compiled is not None:
            self.ran[id(compiled)] = compiled, settings
        return compiled


class Results:
    """The jobs of a submission.

    skipped: {entry: {number of a config: {precision: why it is not compiled}}}
    beside_gpu: whether these jobs are interpreted while a GPU runs the others.
    """

    def __init__(self, t, skipped=None, beside_gpu=False):
        self.t, self.beside_gpu = t, beside_gpu
        self.skipped = skipped or {}

    def jobs(self, taken):
        """All jobs of an entry, but for memory that ends."""
        jobs = []
        if taken.entry.kind == "softmax":
            for config in taken.configs:
                jobs.append(Job(taken.entry.name, label_of(taken, config),
                                functools.partial(self.check_softmax, taken,
                                                  config), 100,
                                taken.entry.about))
            return jobs
        for number in self.tried(taken):
            label = label_of(taken, taken.configs[number], number)
            jobs.append(Job(taken.entry.name, label,
                            functools.partial(self.check_matmul, taken, number),
                            self.cost(taken, number), taken.entry.about))
        return jobs

    def tried(self, taken):
        """The numbers of the configs that are tried: all of them, but that
        the interpreter knows neither warps nor stages, so that those which
        differ in nothing else are one program there."""
        first = {}
        for number, config in enumerate(taken.configs):
            program = number
            if self.t.INTERPRET:
                program = program_of(taken, config)
            first.setdefault(program, number)
        return list(first.values())

    def cost(self, taken, number):
        """How long a config takes: interpreted by its number of programs, on
        a GPU by how long its largest tile takes to compile."""
        config = self.runnable(taken, number)
        if self.t.INTERPRET:
            return 40 + 10 * engine_cases.group_of(config)
        return self.t.tile_size(config)

    def end_jobs(self, taken):
        """The job of an entry in memory that ends, interpreted; a list."""
        entry = taken.entry
        if not entry.ends:
            return []
        if entry.kind == "matmul":
            make = functools.partial(self.matmul_steps, taken)
        else:
            make = functools.partial(softmax_steps, self.t, taken)

        def run():
            """Take the steps that only now are made."""
            return self.take_steps(make())

        return [Job(entry.name, f"{entry.name}, where memory ends", run, 50,
                    entry.about)]

    def take_steps(self, steps):
        """Whether all steps are right; prints a line before and after each.

        Beside a GPU, what the interpreter cannot do is nobody's mistake.
        """
        passed = True
        for label, step in steps:
            print(f"{TRYING}{label}")
            try:
                right = step()
            except OSError as error:
                print(f"skip  {label}: not enough addresses here, {error}")
                continue
            except self.t.WrongResult as problem:
                print(f"FAIL  {label}\n      {problem}")
                right = False
            except Exception as error:
                said = f"{label}: {type(error).__name__}: {error}"
                if self.beside_gpu:
                    print(f"skip  {said}")
                    continue
                print(f"FAIL  {said}")
                right = False
            else:
                print("pass " if right else "FAIL ", label)
            passed &= right
        return passed

    def check_softmax(self, taken, config):
        """Whether a softmax passes all cases with a config."""
        entry = taken.entry
        launch = softmax_launch(self.t, taken, config)
        cases = entry.cases(config) if entry.cases else None
        passed = self.t.softmax_checks(self.t.DEVICE, launch, cases,
                                       entry.rows_at_once)
        if entry.checks:
            passed &= bool(entry.checks(launch, self.t.DEVICE))
        return passed

    def check_matmul(self, taken, number):
        """Whether a matmul is right with one config, without the others."""
        launch = matmul_launch(self.t, taken)
        passed, ran = True, False
        for case, precisions in self.cases_of(taken, number):
            right = self.try_case(launch, case, precisions)
            passed &= right is not False
            ran |= right is not None
        if taken.entry.checks:
            passed &= bool(taken.entry.checks(launch, self.t.DEVICE))
        if passed and ran and not self.t.INTERPRET:
            passed &= self.repeats(taken, number, launch)
        return passed

    def try_case(self, launch, case, precisions):
        """Whether a case passes; None if it does not fit this card.

        What Triton's search skips is skipped here, one precision at a time.
        """
        t = self.t
        try:
            return t.matmul_checks(t.DEVICE, launch, [case],
                                   precisions=precisions)
        except skipped_errors(t) as error:
            if len(precisions) == 1:
                print(f"skip  {precisions[0]}, {case.catches}: {error}")
                return None
        rights = [self.try_case(launch, case, [precision])
                  for precision in precisions]
        rights = [right for right in rights if right is not None]
        return all(rights) if rights else None

    def runnable(self, taken, number):
        """A config with the default of each block size that it leaves out."""
        config = taken.configs[number]
        filled = with_defaults(config, taken.kernel)
        sizes = {name: filled[name] for name in (*BLOCKS, "GROUP_M")
                 if name in filled}
        return {**sizes, **config}

    def runs(self, taken, number, precision):
        """runs(sizes, *layouts): whether the file's pruning leaves a config
        in; one layout stands for all three matrices."""
        pruning = None
        if taken.tuner is not None:
            pruning = Pruning(self.t, taken)

        def left_in(sizes, *layouts):
            """Whether it is left in at these sizes."""
            if pruning is None:
                return True
            if len(layouts) == 1:
                layouts *= 3
            return number in pruning.kept(sizes, layouts, precision == "ieee")
        return left_in

    def sizes_for(self, taken, number, case, precision):
        """The sizes at which a case is tried with a config, or None."""
        if not engine_cases.wanted_at(self.t, case, precision):
            return None
        runs = self.runs(taken, number, precision)

        def left_in(sizes):
            """Whether the config is left in at these sizes."""
            return runs(sizes, *case.layouts)

        return engine_cases.fitting_sizes(self.t, case, self.runnable(
            taken, number), left_in)

    def cases_of(self, taken, number):
        """[(case, precisions)] of one config."""
        t, config = self.t, self.runnable(taken, number)
        precisions = self.precisions_of(taken, number)
        wanted = []
        if taken.entry.cases:
            own = taken.entry.cases(dict(config))
        else:
            own = engine_cases.own_cases(t, config)
            if not t.INTERPRET:
                own += engine_cases.gpu_cases(t)
            wanted = self.shared_cases_of(taken, number)
        wanted = [(case, precisions) for case in own] + wanted
        found = []
        for case, precisions in wanted:
            at_sizes = {}
            for precision in precisions:
                sizes = self.sizes_for(taken, number, case, precision)
                if sizes is not None:
                    at_sizes.setdefault(sizes, []).append(precision)
            for sizes, together in at_sizes.items():
                sized = dataclasses.replace(case, sizes=sizes,
                                            config=dict(config))
                found += one_by_one(t, sized, together)
        if not found:
            print("skip  is run at none of the sizes that the judge tries")
        return found

    def shared_cases_of(self, taken, number):
        """[(case, precisions)] of those that fall to this config."""
        tried = self.tried(taken)
        configs = [self.runnable(taken, other) for other in tried]
        mine = []
        for case, order in engine_cases.shared_cases(self.t, configs):
            order = [tried[place] for place in order]
            precisions = [
                precision for precision in self.t.PRECISIONS
                if self.taker(taken, order, case, precision) == number]
            if precisions:
                mine.append((case, precisions))
        return mine

    def taker(self, taken, order, case, precision):
        """Which config tries a case: the first whose pruning leaves it in at
        the case's sizes, else at larger ones; None if there is none."""
        at_larger = None
        for number in order:
            if precision not in self.precisions_of(taken, number):
                continue
            sizes = self.sizes_for(taken, number, case, precision)
            if sizes == case.sizes:
                return number
            if sizes and at_larger is None:
                at_larger = number
        return at_larger

    def precisions_of(self, taken, number):
        """The precisions at which a config compiles."""
        reasons = self.skipped.get(taken.entry.name, {}).get(str(number), {})
        return [precision for precision in self.t.PRECISIONS
                if precision not in reasons]

    def matmul_steps(self, taken):
        """Steps in memory that ends: each config, multiplier and layout."""
        t, steps = self.t, []
        launch = matmul_launch(t, taken)
        if taken.entry.steps:
            return taken.entry.steps(launch)
        for number in self.tried(taken):
            for precision in self.precisions_of(taken, number):
                steps += engine_cases.end_steps(
                    t, launch, self.runnable(taken, number), precision,
                    self.runs(taken, number, precision))
        return steps

    def repeats(self, taken, number, launch):
        """On a GPU: whether launches at 2048 cubed give the same bits."""
        t, config = self.t, self.runnable(taken, number)
        a, b = t.sweep_operands()
        passed = True
        for layout in t.B_LAYOUTS:
            b = t.as_layout(b, layout)
            others = {"K-major": "column-major"}.get(layout, layout)
            for precision in self.precisions_of(taken, number):
                runs = self.runs(taken, number, precision)
                if not runs((t.SIZE,) * 3, "row-major", others, "row-major"):
                    continue
                try:
                    passed &= t.same_bits(
                        f"{precision} {config_text(config)}, {layout} B",
                        t.with_precision(launch, precision, config), a, b)
                except skipped_errors(t) as error:
                    print(f"skip  {precision}, {layout} B: {error}")
        return passed


def skipped_errors(t):
    """What Triton's search skips: a config that the card or the kernel's own
    assertion rules out."""
    triton = t.triton
    return (triton.OutOfResources,
            triton.compiler.errors.CompileTimeAssertionFailure,
            triton.runtime.errors.PTXASError)


def one_by_one(t, case, precisions):
    """[(case, precisions)]: at once, or under the interpreter one by one,
    where the two results need not be the same to the bit."""
    if t.INTERPRET:
        return [(case, [precision]) for precision in precisions]
    return [(case, precisions)]


def program_of(taken, config):
    """What tells one program of the interpreter from another, as text."""
    names = parameters_of(taken.kernel)
    filled = with_defaults(config, taken.kernel)
    return repr(sorted((name, repr(value)) for name, value in filled.items()
                       if name in names))


def label_of(taken, config, number=None):
    """What to call an entry with one of its configs."""
    words = [taken.entry.name]
    if taken.tuner is not None:
        words = [f"config {number + 1} of {len(taken.configs)}"]
    if config and len(taken.configs) > 1:
        words.append(config_text(config))
    return ", ".join(words)


def softmax_launch(t, taken, config):
    """launch(x, out) of a kernel with a config; {} is what the file chooses.
    """
    entry, kernel = taken.entry, taken.launched
    chosen = {}

    def launch(x, out):
        """The softmax of x's rows, in out."""
        if entry.launcher is None:
            return t.softmax(x, out, kernel=kernel)
        settings = config
        if taken.choose is not None and not config:
            shape = tuple(x.shape)
            if shape not in chosen:
                chosen[shape] = taken.choose(*shape)
            settings = chosen[shape]
        return entry.launcher(kernel, dict(settings), x, out)
    return launch


def matmul_launch(t, taken):
    """launch(a, b, ieee, config, out) of a kernel."""
    entry, kernel = taken.entry, taken.launched

    def launch(a, b, ieee, config, out):
        """a times b, in out."""
        if entry.launcher is None:
            return t.matmul(a, b, ieee, config, out, kernel=kernel)
        return entry.launcher(kernel, dict(config), a, b, ieee, out)
    return launch


def softmax_steps(t, taken):
    """Steps in memory that ends, of a softmax with its first config."""
    launch = softmax_launch(t, taken, taken.configs[0])
    if taken.entry.steps:
        return taken.entry.steps(launch)
    # The softmax's own come first, and then those of a matmul.
    return t.memory_end_steps(launch, None, t.CONFIGS[:1])[:2]


def choice_faults(t, taken):
    """What a file's choice of settings says at the sizes of the cases."""
    cases = taken.entry.cases({}) if taken.entry.cases else t.softmax_cases()
    for sizes in {case.sizes for case in cases}:
        try:
            taken.choose(*sizes)
        except Complaint as complaint:
            return complaint.lines
    return []


def ran_faults(t, taken):
    """On a GPU: what the kernels that ran multiply otherwise than they were
    asked to, a line each; and how many of them there were."""
    faults, count = set(), 0
    for compiled, settings in taken.launched.ran.values():
        if "ttir" not in compiled.asm or "ptx" not in compiled.asm:
            continue  # from a cache of binaries alone
        made = {name: compiled.asm[name] for name in ("ttir", "ptx")}
        count += 1
        precision = "ieee" if settings["IEEE"] else "tf32"
        problem = (t.wrong_multiplier(made, precision)
                   or wrong_dots(made["ttir"], precision))
        if problem:
            shown = {name: value for name, value in settings.items()
                     if name not in ("grid", "warmup")}
            faults.add(f"{precision} {config_text(shown)} {problem}")
    return sorted(faults), count
