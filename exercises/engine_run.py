"""Runs the judge's jobs, and says in a line how each of them ended."""
import contextlib
import dataclasses
import functools
import io
import os
import select
import signal
import warnings

SHOWN = 1  # failed checks that are printed of a job
ENOUGH = 2  # jobs of an entry that failed, after which no more are begun
FINISHED = "finished, and right: "  # and True or False
TRYING = "try   "  # and what comes next


@dataclasses.dataclass
class Job:
    """Something that is judged by itself: a kernel with one of its configs.

    run() prints lines that begin with "pass", "FAIL" or "skip", and returns
    whether all was right. cost says how long it takes, among others.
    """

    entry: str
    label: str
    run: object
    cost: float
    about: str = ""


@dataclasses.dataclass
class Outcome:
    """What a job printed, what it said at its end (None if it never got
    there), and the signal, if one ended it."""

    lines: list
    right: bool
    ended_by: str = None

    def passed(self):
        """Whether all that it printed was well, and it said so at its end."""
        failed = any(line.startswith("FAIL") for line in self.lines)
        return self.right is True and not failed


def root_cause(error):
    """The error that another one was raised from, if any."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def where(error):
    """The innermost line that an error came through of a file that is neither
    Triton's nor the judge's, as text."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        own = "/exercises/engine" in file or file.endswith(
            ("/exercise.py", "/triton_softmax_matmul.py"))
        if "/triton/" not in file and not own:
            place = f", line {trace.tb_lineno} of {file.rpartition('/')[2]}"
        trace = trace.tb_next
    return place


def run_job(job):
    """Run a job; print what it raises, and that it got to its end."""
    right = False
    try:
        with warnings.catch_warnings():
            # numpy's, of NaN and infinities in the interpreter.
            warnings.simplefilter("ignore", RuntimeWarning)
            right = bool(job.run())
    except Exception as error:
        cause = root_cause(error)
        print(f"FAIL  raised {type(cause).__name__}: {str(cause)[:300]}"
              f"{where(cause)}")
    print(f"{FINISHED}{right}")
    return True


def outcome(text, ended_by=None):
    """The Outcome of a job that printed this."""
    lines = text.splitlines()
    right = None
    if lines and lines[-1].startswith(FINISHED):
        right = lines.pop() == f"{FINISHED}True"
    return Outcome(lines, right, ended_by)


def enough(job, jobs, outcomes):
    """Whether so many jobs of the same entry have failed that this one need
    not be begun."""
    failed = [number for number, outcome in outcomes.items()
              if outcome is not None and not outcome.passed()
              and jobs[number].entry == job.entry]
    return len(failed) >= ENOUGH


def run_here(jobs):
    """Run jobs in this process; a list of Outcomes, None for one that was not
    begun: after an error of the GPU no launch in this process works."""
    outcomes, usable = {}, True
    for number, job in enumerate(jobs):
        outcomes[number] = None
        if usable and not enough(job, jobs, outcomes):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                run_job(job)
            outcomes[number] = outcome(printed.getvalue())
            usable = "CUDA error" not in printed.getvalue()
    return list(outcomes.values())


def run_forked(t, jobs, processes):
    """The same in forked children, so many at a time, the longest first.

    A child that dies takes no other job with it.
    """
    def cost_of(number):
        """How long a job takes, among others."""
        return jobs[number].cost

    order = sorted(range(len(jobs)), reverse=True, key=cost_of)
    outcomes, running = {}, {}
    while order or running:
        while order and len(running) < processes:
            number = order.pop(0)
            if enough(jobs[number], jobs, outcomes):
                outcomes[number] = None
                continue
            child, reader = t.start_child(functools.partial(run_job,
                                                            jobs[number]))
            running[reader] = number, child, []
        if not running:
            break
        for reader in select.select(list(running), [], [])[0]:
            number, child, parts = running[reader]
            part = os.read(reader, 1 << 16)
            parts.append(part)
            if not part:
                del running[reader]
                os.close(reader)
                outcomes[number] = ended(child, b"".join(parts))
    return [outcomes[number] for number in range(len(jobs))]


def ended(child, printed):
    """The Outcome of a child that has closed its end of the pipe."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    name = None
    if status < 0:
        name = signal.Signals(-status).name
    return outcome(printed.decode(errors="backslashreplace"), name)


def print_summary(label, outcome, explained):
    """Print a job's line, and its first failures; whether it passed.

    explained: the signals that were explained before; they are added to.
    """
    if outcome is None:
        print(f"skip  {label}: not tried after what failed")
        return False
    lines = outcome.lines
    checks = [line for line in lines if line.startswith(("pass", "FAIL"))]
    failed = [number for number, line in enumerate(lines)
              if line.startswith("FAIL")]
    if failed:
        print(f"FAIL  {label}: {len(failed)} of {len(checks)} checks failed; "
              "the first:")
        for number in failed[:SHOWN]:
            print_failure(lines, number)
    if outcome.right is None:
        words = end_words(outcome.ended_by)
        if outcome.ended_by in explained:
            words = f"ended by {outcome.ended_by}, as above"
        elif outcome.ended_by:
            explained.add(outcome.ended_by)
        print(f"FAIL  {label}: {words}")
        if lines and lines[-1].startswith(TRYING):
            print(f"      It was in {lines[-1].removeprefix(TRYING)}")
        elif lines:
            print(f"      It came after this line: {lines[-1]}")
        return False
    if failed:
        return False
    if not outcome.right:
        print(f"FAIL  {label}: is not right, and no check says why")
        return False
    skipped = [line for line in lines if line.startswith("skip")]
    if checks:
        print(f"pass  {label}: {len(checks)} checks")
    else:
        print(f"skip  {label}: nothing of it was tried")
    for line in skipped[:SHOWN]:
        print(f"      {line}")
    if len(skipped) > SHOWN:
        print(f"      ... and {len(skipped) - SHOWN} more")
    return True


def print_failure(lines, number):
    """Print the line of a failed check, and what stands below it."""
    print(f"      {lines[number]}")
    for line in lines[number + 1:]:
        if not line.startswith(" "):
            break
        print(f"      {line}")


def end_words(ended_by):
    """What it means that a job never got to its end."""
    if ended_by in ("SIGSEGV", "SIGBUS"):
        return (f"ended by {ended_by}: a load or a store went past the end of "
                "a matrix, where\n      memory ends. A mask, or a wrap with "
                "%, is missing, or an offset does\n      not fit into 32 bits")
    if ended_by:
        return (f"ended by {ended_by}, as when memory is written that is not "
                "one's own")
    return "ended its process before the checks were done"
