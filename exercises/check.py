"""Judge a submission to an exercise: right first, and then fast enough.

    python3 exercises/check.py NUMBER FILE                            on a GPU
    TRITON_INTERPRET=1 python3 exercises/check.py NUMBER FILE

NUMBER is the exercise's, such as 4; FILE is your submission. The second line
checks everything but the time, on any Linux machine. Names of kernels behind
FILE leave the others out. The last line printed is the exit status:

    0    passed; interpreted: all but the time
    1    not judged: no GPU that the kernels run on, a time that cannot be, or
         only a part, which has passed
    2    could not start: an argument, a package, the environment, or a file
         that does not load
    3    wrong results
    4    wrong form: what is wanted stands above
    5    too slow
    130  interrupted
"""
import errno
import os
import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from exercises.engine_children import (Child, Left, Submission, check_same,
                                       print_left_out, stop_children)
from exercises.engine_gpu import Compiled
from exercises.engine_verdicts import (entry_verdicts, print_faults,
                                       print_verdicts, wrong_among)

VERDICTS = {0: "passed", 1: "not judged", 2: "could not start",
            3: "wrong results", 4: "wrong form", 5: "too slow",
            130: "interrupted"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def folder_of(number):
    """The folder of an exercise, or None."""
    found = sorted(HERE.glob(f"{number}_*/exercise.py"))
    if number.isdecimal() and len(found) == 1:
        return found[0].parent
    return None


def judge_interpreted(worker, compiler, submission):
    """All but the time, on the CPU; what to say of a pass.

    The second process compiles: it reads the form and the multipliers.
    """
    worker.ask(2, "header")
    print_left_out()
    print()
    compiler.load(submission)
    compiler.look_at_form()
    worker.load(submission)
    check_same(worker, compiler)
    faults, skipped = compiler.ask(3, "multipliers", 80)
    right = print_faults(faults)
    print()
    costs = worker.ask(3, "list_jobs", skipped, wrong_among(right))
    done = worker.ask(3, "run_jobs", list(range(len(costs))))
    right = entry_verdicts(right, done)
    print_verdicts(right)
    if not all(right.values()):
        raise Left(3)
    if worker.facts["timed"]:
        return ["The measurement half was not judged: the interpreter has no "
                "time worth measuring."]
    return []


def help_text():
    """The text at the top of this file, also where python -OO dropped it."""
    if __doc__:
        return __doc__.strip()
    return pathlib.Path(__file__).read_text(encoding="utf-8").split(
        '"""')[1].strip()


def judge(arguments):
    """Judge what the arguments name; what to say of a pass, as lines."""
    folder = folder_of(arguments[0]) if arguments else None
    if folder is None or len(arguments) < 2 or not os.path.isfile(
            arguments[1]):
        known = sorted(path.parent.name.partition("_")[0]
                       for path in HERE.glob("*_*/exercise.py"))
        raise Left(2, "usage: check.py NUMBER FILE, where NUMBER is one of "
                   f"{', '.join(known)} and FILE is there; got {arguments}")
    submission, names = Submission(arguments[1]), arguments[2:]
    task = str(folder), names
    worker = Child(task)
    compiler = None
    if "TRITON_INTERPRET" in os.environ:  # what that means, Triton decides
        compiler = Child(task, TRITON_INTERPRET=None)
    facts = worker.started()
    others = [name for name in facts["entries"] if name not in names]
    if len(others) + len(set(names)) != len(facts["entries"]):
        raise Left(2, "usage: behind FILE stand names of kernels to judge, of "
                   f"{', '.join(facts['entries'])}; got {names}")
    try:
        if facts["interpret"]:
            compiler.started()
            lines = judge_interpreted(worker, compiler, submission)
        else:
            lines = Compiled(task, submission, worker).judge()
    except Left as left:
        if left.status in (3, 4, 5) and facts["next_step"]:
            left.lines = *left.lines, facts["next_step"]
        raise
    if names and others:
        raise Left(1, *lines, f"{', '.join(names)}: passed. Not judged: "
                   f"{', '.join(others)}")
    return lines


def open_standard_streams():
    """Give what is closed a place to go, so that no pipe gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, this one
            os.set_inheritable(number, True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(  # noqa: SIM115, it stays open until the end
                os.devnull, mode, encoding="utf-8")
            setattr(sys, name, nowhere)


def main():
    """Judge, end all children, print the verdict; the exit status."""
    if sys.argv[1:] == ["--help"]:
        print(help_text(), "exit 0", sep="\n")
        return 0
    status = 0
    try:
        lines = judge(sys.argv[1:])
    except Left as left:
        status, lines = left.status, left.lines
    except KeyboardInterrupt:
        status, lines = 130, []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_children()
    print("", *lines, VERDICTS[status], f"exit {status}", sep="\n")
    return status


if __name__ == "__main__":
    open_standard_streams()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        sys.exit(main())
    except OSError as error:
        if error.errno not in FULL:
            raise
        stop_children()
        print(f"cannot go on: {error}", file=sys.stderr)
        os._exit(2)  # what could not be written would only be tried again
