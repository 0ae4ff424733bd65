"""Judge an autotuned matmul kernel: correct first, then within 5 %.

    python3 exercises/check.py 4 path/to/autotuned.py                 on a GPU
    TRITON_INTERPRET=1 python3 exercises/check.py 4 path/to/autotuned.py

The second makes every check but the timing on any Linux machine.  The last line
is the exit status:
    0  passed             3  wrong results
    1  not judged         4  wrong form: no autotuner, its configs or its key
    2  could not start    5  slower than 1.05 of the best hand-written row
"""
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import statistics
import sys

from steps import serve

IMPORT_LIMIT = float(os.environ.get("CHECK_IMPORT_LIMIT", "20"))  # seconds
LIMIT = 1800  # seconds for any later step, a cold search among them
ALLOWED = 1.05  # times the best hand-written row's
ROUNDS, SETS = 5, 3  # of a case, while the noise hides the verdict
CASES = [(p, l) for p in ("ieee", "tf32") for l in ("row-major", "K-major")]

CHILDREN = []  # the processes to end before the verdict

class Child:
    """A process of its own, asked for one step after another."""

    def __init__(self, **environment):
        before = {name: os.environ.get(name, "") for name in environment}
        os.environ.update(environment)
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=serve, args=(end,), daemon=True)
        self.process.start()
        os.environ.update(before)
        end.close()
        CHILDREN.append(self.process)
        self.facts = self.ask(2, "start")

    def ask(self, status, step, *arguments, limit=LIMIT):
        """The answer to a step; where none comes, status is the verdict."""
        self.begin(step, *arguments)
        return self.answer(status, step, limit)

    def begin(self, step, *arguments):
        """Have the child begin a step; its answer is fetched later."""
        with contextlib.suppress(BrokenPipeError):
            self.pipe.send_bytes(json.dumps([step, arguments]).encode())

    def answer(self, status, step, limit=LIMIT):
        """The answer to the step that was begun."""
        what = f"the step '{step}'"
        if not multiprocessing.connection.wait(
                [self.pipe, self.process.sentinel], limit):
            leave(status, f"{what} was not done after {limit:g} s")
        try:
            if not self.pipe.poll(1):  # ended, but its children hold the pipe
                raise EOFError
            answer = json.loads(self.pipe.recv_bytes())
        except (EOFError, ConnectionError):
            self.process.join(5)
            leave(status, f"{what} ended its process, with status "
                  f"{self.process.exitcode} and without an answer")
        if "raised" in answer:
            leave(status, f"{what} raised {answer['raised']}")
        return answer["answer"]

VERDICTS = {0: "passed", 1: "not judged", 2: "could not start",
            3: "wrong results", 4: "wrong form", 5: "too slow"}

def leave(status, *lines):
    """End every child, print the verdict and end with its status."""
    for process in CHILDREN:
        process.kill()
    print("", *lines, VERDICTS[status], f"exit {status}", sep="\n")
    sys.exit(status)

def rounds(worker, baseline, case, count):
    """Times by both sides in turn, each first every other time."""
    times = {worker: [], baseline: []}
    for turn in range(count):
        for side in (worker, baseline) if turn % 2 else (baseline, worker):
            events, clock = side.ask(1, "time", *case, 100 if turn else 1000)
            if clock > 2 * events:
                leave(1, f"{', '.join(case)}: impossible time, {events:.4f} ms "
                      f"by CUDA events where the clock says {clock:.4f}; "
                      "allowed: half of the clock's")
            times[side].append(events)
    return times[worker], times[baseline]

def compare(worker, baseline, case):
    """Time one case against the best hand-written row; whether it passes."""
    row, mm = baseline.ask(1, "hand_written", *case)
    chosen, configs, seconds = worker.ask(3, "search", *case)
    print(f"\n{', '.join(case)} B\n  first launch: {seconds:.2f} s, the search "
          f"over {configs} configs, compiled by the checks above\n"
          f"  chosen: {chosen}")
    mine, best = [], []
    for _ in range(SETS):
        more = rounds(worker, baseline, case, ROUNDS)
        mine, best = mine + more[0], best + more[1]
        ratios = sorted(a / b for a, b in zip(mine, best))
        ratio, low = statistics.median(ratios), ratios[len(ratios) // 5]
        if ratio <= ALLOWED or low > ALLOWED:
            break  # not a matter of noise
    for name, times in (("tuned", mine), (f"hand-written {row}", best)):
        print(f"  {name:<24} {statistics.median(times):.4f} ms "
              f"({min(times):.4f} .. {max(times):.4f}, {len(times)} rounds)")
    print(f"  {'torch.mm':<24} {mm:.4f} ms\n  tuned / hand-written {ratio:.3f} "
          f"({ratios[0]:.3f} .. {ratios[-1]:.3f}), allowed {ALLOWED}")
    if statistics.median(mine) < mm / 2:
        leave(1, f"impossible time: {statistics.median(mine):.4f} ms is less "
              f"than half of torch.mm's {mm:.4f}")
    return ratio <= ALLOWED

def alone(worker, path, interpret):
    """Whether every config is right alone, by as many processes as there are
    cores to compile for them; the search then finds all of them compiled."""
    print("\neach config alone,", "its blocks once: warps and stages mean "
          "nothing here" if interpret else "2048 cubed, too")
    team = [worker]
    while not interpret and len(team) < min(4, os.cpu_count() // 4):
        team.append(Child())
        team[-1].ask(2, "load", path, limit=IMPORT_LIMIT)
    for turn, side in enumerate(team):
        numbers = side.ask(3, "prepare")
        side.begin("right_alone", numbers[turn::len(team)])
    answers = [side.answer(3, "right_alone") for side in team]
    return all(answers)

def main():
    """Ask for every step in its order and leave with the verdict."""
    if sys.argv[1:] == ["--help"]:
        print(__doc__.strip())
        leave(0)
    if (len(sys.argv) != 3 or sys.argv[1] != "4"
            or not pathlib.Path(sys.argv[2]).is_file()):
        leave(2, "usage: check.py 4 FILE, where 4 is the exercise's number and "
              f"FILE exists; got {sys.argv[1:]}")
    path = str(pathlib.Path(sys.argv[2]).resolve())
    worker = Child()
    if reason := worker.ask(2, "header"):
        leave(1, f"refused: {reason}; under TRITON_INTERPRET=1 everything but "
              "the timing is judged")
    interpret = worker.facts["interpret"]
    if complaint := worker.ask(2, "load", path, limit=IMPORT_LIMIT):
        leave(4, complaint)
    if faults := worker.ask(4, "form") or worker.ask(3, "key"):
        leave(4, *faults)
    compiler = Child(TRITON_INTERPRET="0") if interpret else worker
    if interpret:
        compiler.ask(2, "load", path, limit=IMPORT_LIMIT)
    if not (worker.ask(3, "prepare") and worker.ask(3, "right_softmax")
            and alone(worker, path, interpret)
            and worker.ask(3, "right_tuned")):
        leave(3, "a check above failed, so nothing was timed")
    if faults := compiler.ask(3, "emitted", *([80] if interpret else [])):
        leave(3, *faults)
    if interpret:
        leave(0, "the measurement half was not judged: the interpreter has no "
              "time worth measuring")
    baseline = Child()
    slow = [case for case in CASES if not compare(worker, baseline, case)]
    print("\nthe timed launches, checked afterwards")
    if not worker.ask(3, "again"):
        leave(3, "a timed launch is wrong")
    if slow:
        leave(5, f"over {ALLOWED} of the best hand-written row: {slow}")
    leave(0)

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.stdout.reconfigure(line_buffering=True)
    try:
        main()
    except KeyboardInterrupt:
        leave(1, "interrupted")
