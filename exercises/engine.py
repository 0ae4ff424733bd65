"""A child process of the judge: it does what check.py asks for.

It loads the lesson and the exercise's description, and only when it is told
to a submission. It answers over a pipe of its own, whatever a step does.
"""
import base64
import contextlib
import ctypes
import importlib.util
import io
import json
import linecache
import os
import pathlib
import signal
import sys
import traceback
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.dont_write_bytecode = True
LESSON, EXERCISE = "the judge's lesson", "the judge's exercise"
OWN_MODULES = ("exercises", LESSON, EXERCISE)
WANTED = ("Wanted are a list of triton.Config, and a key: a list of the names "
          "of those parameters whose change starts a new search. ")

from exercises import (engine_compiled, engine_form, engine_results, engine_run,
                       engine_state, engine_time, engine_tuned)
from exercises.engine_form import Complaint


def load(name, path, source=None):
    """A file as a module, from its source and not from cached bytecode.

    What asks for the source later, as Triton does, is given the same.
    """
    module = types.ModuleType(name)
    module.__file__ = path = str(path)
    if source is None:
        source = pathlib.Path(path).read_bytes()
    code = compile(source, path, "exec", dont_inherit=True)
    lines = importlib.util.decode_source(source).splitlines(keepends=True)
    never_checked = None
    linecache.cache[path] = len(source), never_checked, lines, path
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(code, vars(module))  # noqa: S102, as an import does
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


class Judge:
    """What a child can be asked; each public method is a step."""

    def __init__(self):
        self.path = None
        self.taken = []

    # Before a submission is imported

    def start(self, folder, names):
        """Load the lesson and the description; what the parent has to know.

        names: the entries that are to be judged; all if there are none.
        """
        self.t = t = load(LESSON, ROOT / "triton_softmax_matmul.py")
        if t.INTERPRET:
            engine_state.undefined_without_other(t)
        else:
            t.check_cache()
        self.exercise = load(EXERCISE, pathlib.Path(folder)
                             / "exercise.py").describe(t)
        entries = [entry.name for entry in self.exercise.entries]
        if names:
            self.exercise = self.exercise.reduced(names)
        self.timer = engine_time.Timer(t, self.exercise)
        # A file may have an `exercises` beside it, and none of these is its.
        for name in [name for name in sys.modules
                     if name.partition(".")[0] in OWN_MODULES]:
            del sys.modules[name]
        sys.path.remove(str(ROOT))
        return {
            "interpret": t.INTERPRET,
            "entries": entries,
            "allowed": self.exercise.allowed,
            "next_step": self.exercise.next_step,
            "timed": {timed.label: {"against": timed.against,
                                    "floor": timed.floor}
                      for timed in self.exercise.timed},
            "processors": processors()}

    def header(self):
        """Print the versions and the card; why there is none, or None."""
        self.t.header()
        return None if self.t.INTERPRET else self.t.refusal()

    # The submission

    def load(self, path, source):
        """Import the submission and take from it what the exercise names."""
        self.path = path
        knobs = self.t.triton.knobs
        # Whatever the file sets, this process goes on as it began.
        knobs.runtime.interpret = self.t.INTERPRET
        # ptxas cannot read a path that is not ASCII, and nobody reads lines.
        knobs.compilation.disable_line_info = True
        surroundings = engine_state.Surroundings(self.t)
        folder = str(pathlib.Path(path).parent)
        sys.path[:0] = [folder, str(ROOT)]
        name = pathlib.Path(path).stem
        if name in sys.modules or name in sys.stdlib_module_names:
            name = "submission"
        try:
            module = load(name, path, base64.b64decode(source))
        finally:
            surroundings.put_back()
            sys.path[:] = [*surroundings.path, folder, str(ROOT)]
        self.take(module)

    def take(self, module):
        """Take every entry; one Complaint about all that is missing."""
        faults, self.taken = [], []
        for entry in self.exercise.entries:
            try:
                taken = engine_form.take(self.t, entry, module)
            except Complaint as complaint:
                faults += complaint.lines
                continue
            if taken is None:
                continue
            if not self.t.INTERPRET:
                taken.launched = engine_results.Watched(taken.kernel)
            self.taken.append(taken)
        if faults:
            raise Complaint(*faults)

    def fingerprints(self):
        """{entry: what has to be the same in every process}."""
        return {taken.entry.name: engine_form.fingerprint(self.t, taken)
                for taken in self.taken}

    def form(self):
        """What is wrong with how keys, pruning and choices behave."""
        faults = []
        for taken in self.taken:
            if taken.tuner is not None:
                faults += engine_tuned.search_faults(self.t, taken)
                faults += engine_tuned.pruning_faults(self.t, taken)
            if taken.choose is not None:
                faults += engine_results.choice_faults(self.t, taken)
        if faults:
            raise Complaint(*faults)

    def multipliers(self, capability=None):
        """Read every dot; {entry: faults}, and what could not be compiled."""
        if capability is None:
            major, minor = self.t.torch.cuda.get_device_capability()
            capability = 10 * major + minor
        faults, skipped = {}, {}
        for taken in self.taken:
            if taken.entry.kind != "matmul":
                wrong = engine_compiled.compile_faults(self.t, taken,
                                                       capability)
                if wrong:
                    faults[taken.entry.name] = wrong
                continue
            reading = engine_compiled.Multipliers(self.t, taken, capability)
            wrong = reading.read({name: self.t.UNIT_STRIDES[name]
                                  for name in engine_compiled.FIRST})
            if not taken.entry.multipliers:
                wrong = reading.read({"K-major":
                                      self.t.UNIT_STRIDES["K-major"]})
                if wrong:
                    faults[taken.entry.name] = wrong
                continue
            if taken.tuner is not None and not wrong:
                self.count(taken, reading)
            wrong = reading.read_all()
            for precision in self.t.PRECISIONS:
                count = reading.compiled_in(precision)
                if not wrong and count < taken.entry.at_least:
                    raise Complaint(
                        f"{taken.entry.name}: {count} configs compile in "
                        f"{precision}; wanted are {taken.entry.at_least}: "
                        f"{next(iter(reading.skipped.values()))}")
            if not wrong:
                wrong = engine_compiled.emitted_faults(
                    self.t, taken, capability, reading.skipped)
            faults[taken.entry.name] = wrong
            skipped[taken.entry.name] = reading.skipped
        return faults, skipped

    def count(self, taken, reading):
        """Complain if too few configs make programs of their own."""
        given = [number for number in range(len(taken.configs))
                 if number not in taken.pruned]
        left = reading.different(given, taken.entry.at_least)
        fault = engine_form.count_fault(
            taken.entry, left, len(taken.configs),
            "different programs that run and fit a supported card", "at most ")
        if fault:
            raise Complaint(*fault)

    # Is it right?

    def list_jobs(self, skipped, wrong):
        """Make the jobs; the cost of each. skipped: from multipliers. wrong:
        entries that have failed already."""
        results = engine_results.Results(self.t, skipped)
        taken = [taken for taken in self.taken
                 if taken.entry.name not in wrong]
        self.jobs = []
        for one in taken:
            self.jobs += results.jobs(one)
        if self.t.INTERPRET:
            for one in taken:
                self.jobs += results.end_jobs(one)
        return [job.cost for job in self.jobs]

    def run_jobs(self, numbers):
        """Run these jobs; {entry: whether right}, with a line printed each."""
        jobs = [self.jobs[number] for number in numbers]
        if self.t.INTERPRET:
            outcomes = engine_run.run_forked(self.t, jobs, processors())
        else:
            outcomes = engine_run.run_here(jobs)
        return verdicts(jobs, outcomes)

    def run_ends(self):
        """Memory that ends, interpreted, since a GPU's does not."""
        results = engine_results.Results(self.t, beside_gpu=True)
        jobs = []
        for taken in self.taken:
            jobs += results.end_jobs(taken)
        return verdicts(jobs, engine_run.run_forked(self.t, jobs, 2))

    def ran(self):
        """On a GPU: what the kernels that ran multiply otherwise than asked,
        and their number, {entry: (faults, number)}."""
        return {taken.entry.name: engine_results.ran_faults(self.t, taken)
                for taken in self.taken
                if taken.entry.kind == "matmul" and taken.entry.multipliers}

    # Is it fast? See engine_time.Timer.

    def hold_baselines(self, number, count):
        """Compile and keep a share of what a submission is measured against.
        """
        return self.timer.hold_baselines(number, count)

    def hold_submission(self, label):
        """Search where there is a tuner, and keep the launch; its text."""
        return self.timer.hold_submission(label, self.taken)

    def time(self, label, name, milliseconds):
        """Median milliseconds by CUDA events, and by the clock."""
        return self.timer.time(label, name, milliseconds)

    def time_elsewhere(self, label):
        """What the config chosen for a case takes in the others."""
        return self.timer.time_elsewhere(label, self.taken)

    def again(self):
        """Whether the very launches that were timed are right."""
        return self.timer.again()


def processors():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def verdicts(jobs, outcomes):
    """{entry: whether all of its jobs were right}; prints a line for each."""
    right, explained = {}, set()
    printed = io.StringIO()
    for job, outcome in zip(jobs, outcomes, strict=True):
        with contextlib.redirect_stdout(printed):
            if job.about and job.entry not in right:
                print(f"{job.entry}: {job.about}")
            passed = engine_run.print_summary(job.label, outcome, explained)
        right[job.entry] = right.get(job.entry, True) and passed
    # At once, since other processes print beside this one.
    print(printed.getvalue(), end="")
    return right


def answer_to(judge, step, arguments):
    """The answer to a step, or what it raised and the status that goes with
    it: None where the parent knows better."""
    try:
        return {"answer": getattr(judge, step)(*arguments)}
    except Complaint as complaint:
        return {"raised": complaint.lines, "status": 4}
    except BaseException as error:  # sys.exit is one, too
        return raised(judge, error)


def raised(judge, error):
    """What to say of an error, and the status that goes with it, if any."""
    text = f"{type(error).__name__}: {error}".strip()[:1000]
    status, words = environments_fault(judge, error)
    frames = traceback.extract_tb(error.__traceback__)
    files = [pathlib.Path(frame.filename) for frame in frames]
    parsed = isinstance(error, SyntaxError) and error.filename == judge.path
    if parsed:
        status = 2
        words = f"line {error.lineno} of the file does not parse: "
    elif files and files[-1].parent == ROOT / "exercises" and (
            str(files[-1]) != judge.path):
        status = 2
        words = (f"the judge itself stopped, in line {frames[-1].lineno} of "
                 f"{files[-1].name}: ")
    if not judge.taken and any(file.name == "autotuner.py" for file in files):
        status, words = 4, "triton.autotune refuses its arguments. " + WANTED
    lines = [frame.lineno for frame in frames if frame.filename == judge.path]
    if lines:
        text += f", line {lines[-1]} of the file"
    return {"raised": [words + text], "status": status}


def environments_fault(judge, error):
    """The status and the words of an error that is not the submission's."""
    t = getattr(judge, "t", None)
    if isinstance(error, Warning):
        return 2, ("warnings.simplefilter or PYTHONWARNINGS made an error of "
                   "a warning: ")
    if "C compiler" in str(error):
        return 2, "Triton needs a C compiler: "
    if t is None:
        return None, ""
    if isinstance(error, t.torch.OutOfMemoryError):
        return 1, "the GPU's memory is taken: "
    full = isinstance(error, OSError) and error.errno in t.FULL
    if full or isinstance(error, t.Unusable):
        return 2, ""
    return None, ""


def serve(reader, writer):
    """Answer until the parent closes its end."""
    judge = Judge()
    requests = os.fdopen(reader, "rb")
    for line in requests:
        step, arguments = json.loads(line)
        answer = answer_to(judge, step, arguments)
        sys.stdout.flush()
        os.write(writer, json.dumps(answer).encode() + b"\n")


def begin():
    """Set this process up, and serve the pipe that the parent names."""
    reader, writer = int(sys.argv[1]), int(sys.argv[2])
    for number in (reader, writer):
        os.set_inheritable(number, False)
    die_with_parent = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number, rule in enumerate(warnings.filters):
        if rule[0] == "error":  # torch and Triton warn as they are imported
            warnings.filters[number] = ("default", *rule[1:])
    sys.argv[1:] = []
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        serve(reader, writer)
    finally:
        os._exit(0)


if __name__ == "__main__":
    begin()
