"""The judge's child processes, as check.py sees them.

This half imports neither torch nor Triton, so that a wrong argument is told
at once, and a submission never runs in the process that gives the verdict.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STEP_LIMIT = 1800.0  # seconds for a step, a cold search among them
FORM_LIMIT = 60.0  # seconds for what a submission's own functions take
MAIN = ('What a file reports or tries out belongs under '
        'if __name__ == "__main__":')
STEPS = {
    "start": "loading the lesson and the exercise",
    "header": "the header",
    "load": "importing the file",
    "form": "looking at its key and its pruning",
    "fingerprints": "reading the sources",
    "multipliers": "reading the multipliers",
    "list_jobs": "the checks",
    "run_jobs": "the checks",
    "run_ends": "memory that ends",
    "ran": "reading what ran",
    "hold_baselines": "compiling what it is measured against",
    "hold_submission": "the search",
    "time": "timing",
    "time_elsewhere": "timing one winner for all cases",
    "again": "checking what was timed",
}

CHILDREN = []  # to be ended before the verdict
FOLDERS = []  # to be deleted then


class Left(Exception):
    """The verdict: a status, and what to say before it."""

    def __init__(self, status, *lines):
        super().__init__(status)
        self.status, self.lines = status, lines


class Submission:
    """A file, as it was when the judge began: every child gets this text."""

    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())
        try:
            self.source = pathlib.Path(path).read_bytes()
        except OSError as error:
            raise Left(2, f"{path}: {error.strerror}") from error
        limit = os.environ.get("CHECK_IMPORT_LIMIT", "20")
        try:
            self.limit = float(limit)  # seconds that its import may take
        except ValueError:
            raise Left(2, f"CHECK_IMPORT_LIMIT is {limit!r}, and not a number "
                       "of seconds") from None

    def arguments(self):
        """What a child is told of it."""
        return self.path, base64.b64encode(self.source).decode()


class Child:
    """A process of its own, asked for one step after another.

    task: the folder of an exercise, and the names of the entries to judge.
    """

    def __init__(self, task, **environment):
        reader, self.writer = os.pipe()
        self.reader, writer = os.pipe()
        self.unread = b""
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "engine.py"), str(reader), str(writer)],
            pass_fds=(reader, writer), stdin=subprocess.DEVNULL,
            env=child_environment(**environment), start_new_session=True)
        CHILDREN.append(self)
        os.close(reader)
        os.close(writer)
        self.begin("start", *task)

    def started(self):
        """Wait until it has loaded the lesson; what it says of it."""
        self.facts = self.answer(2, "start")
        return self.facts

    def begin(self, step, *arguments):
        """Have it begin a step, whose answer is fetched later."""
        try:
            os.write(self.writer, json.dumps([step, arguments]).encode()
                     + b"\n")
        except BrokenPipeError:
            pass  # it has ended, and the answer will say so

    def ask(self, status, step, *arguments, limit=STEP_LIMIT):
        """The answer to a step; where none comes, status is the verdict."""
        self.begin(step, *arguments)
        return self.answer(status, step, limit)

    def load(self, submission):
        """Have it import the submission."""
        self.ask(2, "load", *submission.arguments(), limit=submission.limit)

    def look_at_form(self):
        """Have it look at what the submission's own functions do."""
        self.ask(4, "form", limit=FORM_LIMIT)

    def answer(self, status, step, limit=STEP_LIMIT):
        """The answer to the step that was begun."""
        try:
            line = self.read_line(limit)
        except TimeoutError:
            self.leave(status, step, f"not done after {limit:g} s")
        if line is None:
            self.leave(status, step, self.end_words())
        answer = json.loads(line)
        if "raised" not in answer:
            return answer["answer"]
        if answer["status"] is not None:
            status = answer["status"]
        if status == 4:  # the lines say what is wanted
            raise Left(status, *answer["raised"])
        self.leave(status, step, answer["raised"][0])

    def leave(self, status, step, words):
        """Raise the Left of a step that did not come to its end."""
        lines = [f"{STEPS[step]}: {words}"]
        if step == "load" and any(word in words for word in (
                "SystemExit", "ended its process", "not done after")):
            lines.append(MAIN)
        raise Left(status, *lines)

    def read_line(self, limit):
        """A line from its pipe; None if it has ended."""
        end = time.monotonic() + limit
        while b"\n" not in self.unread:
            ended = self.process.poll() is not None
            if select.select([self.reader], [], [], 0 if ended else 0.1)[0]:
                part = os.read(self.reader, 1 << 16)
                if not part:
                    self.process.wait()
                    return None
                self.unread += part
            elif ended:
                return None
            elif time.monotonic() > end:
                raise TimeoutError
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def end_words(self):
        """What to say of a process that ended by itself."""
        code = self.process.returncode
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        return f"ended its process with status {code}"

    def stop(self):
        """End it, and whatever it has started."""
        for stop in (os.killpg, os.kill):
            try:
                stop(self.process.pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended
        self.process.wait()


def check_same(interpreted, compiled):
    """Raise a Left unless a file is the same in both kinds of processes."""
    if interpreted.ask(4, "fingerprints") != compiled.ask(4, "fingerprints"):
        raise Left(4, "The file has another kernel, another constant or other "
                   "configs where it is interpreted than where it is "
                   "compiled: it has to be one and the same")


def child_environment(**changes):
    """The environment of a child: None takes a variable out.

    Variables by which Triton compiles otherwise are left out. So are threads
    for the interpreter's small products: they cost more than they save.
    """
    kept = {}
    for name, value in os.environ.items():
        if not left_out(name):
            kept[name] = value
    if "TRITON_INTERPRET" in kept:
        kept["OPENBLAS_NUM_THREADS"] = "1"
    kept |= changes
    return {name: value for name, value in kept.items() if value is not None}


def left_out(name):
    """Whether a variable would change what Triton compiles, or from where."""
    if name in ("TRITON_INTERPRET", "TRITON_PRINT_AUTOTUNING"):
        return False
    if name.startswith("TRITON_"):
        return not name.endswith(("_DIR", "_HOME", "_PATH"))
    return name in ("DISABLE_PTXAS_OPT", "PTXAS_OPTIONS", "USE_IR_LOC")


def print_left_out():
    """Say which variables do not reach the judge's processes."""
    for name in sorted(os.environ):
        if left_out(name):
            print(f"{name} is set, and left out here")


def stop_children():
    """End every child and delete what was made for them."""
    for child in CHILDREN:
        child.stop()
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
