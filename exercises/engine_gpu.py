"""The judge on a GPU: which processes there are, and what they are asked."""
import os
import statistics
import tempfile

from exercises.engine_children import (FOLDERS, Child, Left, check_same,
                                       print_left_out)
from exercises.engine_verdicts import (entry_verdicts, print_faults, print_ran,
                                       print_verdicts, wrong_among)

ROUNDS, SETS = 5, 3  # of a timed case, while the noise hides the verdict


class Compiled:
    """The judge on a GPU: its children, and what they are asked."""

    def __init__(self, task, submission, worker):
        self.task, self.submission = task, submission
        self.worker = worker
        self.baselines = {}

    def start(self):
        """Start all processes, before the submission is imported.

        Those that time the baselines have an empty cache each, so that they
        run what they have compiled themselves, and they do so before.
        """
        facts = self.worker.facts
        self.timed, self.allowed = facts["timed"], facts["allowed"]
        reason = self.worker.ask(2, "header")
        print_left_out()
        if reason:
            raise Left(1, f"refused: {reason}.", "With TRITON_INTERPRET=1 all "
                       "but the time is judged, on any Linux machine.")
        cores = facts["processors"]
        sides = []
        for _ in range(min(cores // 2, 8) if self.timed else 0):
            cache = empty_folder()
            sides.append(Child(self.task, TRITON_CACHE_DIR=cache))
        for number, side in enumerate(sides):
            side.started()
            side.begin("hold_baselines", number, len(sides))
        self.start_team(cores)
        for side in sides:
            for label, name in side.answer(1, "hold_baselines"):
                self.baselines.setdefault(label, {})[name] = side
        for child in (*self.team[1:], self.ends):
            child.started()
        self.before = self.time_baselines(50)

    def start_team(self, cores):
        """Begin to start the processes that check beside the worker, and the
        one that tries memory that ends, interpreted."""
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        count = max(min(cores - 4, 12, memory // (4 << 30)), 1)
        threads = str(max(cores // count, 1))
        self.team = [self.worker]
        for _ in range(count - 1):
            self.team.append(Child(self.task, OMP_NUM_THREADS=threads,
                                   OPENBLAS_NUM_THREADS=threads))
        self.ends = Child(self.task, TRITON_INTERPRET="1",
                          OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    def time_baselines(self, milliseconds):
        """{label: {name: median milliseconds}}, one after another."""
        times = {}
        for label, sides in self.baselines.items():
            times[label] = {}
            for name, side in sides.items():
                times[label][name], _ = side.ask(1, "time", label, name,
                                                 milliseconds)
        return times

    def judge(self):
        """Take all steps; raises a Left unless the submission passes."""
        self.start()
        print()
        self.worker.load(self.submission)
        self.worker.look_at_form()
        for child in (*self.team[1:], self.ends):
            child.begin("load", *self.submission.arguments())
        for child in self.team[1:]:
            child.answer(2, "load", self.submission.limit)
        ends = self.begin_ends()
        right = self.results()
        if ends:
            right = entry_verdicts(right, self.ends.answer(3, "run_ends"))
        print_verdicts(right)
        if not all(right.values()):
            raise Left(3, "A check above failed, so nothing was timed.")
        for child in (*self.team[1:], self.ends):
            child.stop()
        if self.timed:
            self.times()
        return []

    def begin_ends(self):
        """Have memory that ends tried, interpreted; whether it can be."""
        try:
            self.ends.answer(2, "load", self.submission.limit)
        except Left as left:
            print("note  memory that ends is not tried: in the interpreter",
                  *left.lines)
            return False
        check_same(self.ends, self.worker)
        self.ends.begin("run_ends")
        return True

    def results(self):
        """{entry: whether right}, by as many processes as there are."""
        faults, skipped = self.worker.ask(3, "multipliers")
        right = print_faults(faults)
        print()
        for child in self.team:
            child.begin("list_jobs", skipped, wrong_among(right))
        answers = [child.answer(3, "list_jobs") for child in self.team]
        for child, numbers in zip(self.team, shares(answers[0], len(self.team)),
                                  strict=True):
            child.begin("run_jobs", numbers)
        parts = [child.answer(3, "run_jobs") for child in self.team]
        ran = [child.ask(3, "ran") for child in self.team]
        return entry_verdicts(right, *parts, print_ran(ran))

    def times(self):
        """Time every case, and check what was timed."""
        slow = []
        for label, timed in self.timed.items():
            sides = self.baselines.get(label, {})
            chosen = self.worker.ask(3, "hold_submission", label)
            print(f"\n{label}\n  chosen: {chosen}")
            against = [(self.before[label][name], name)
                       for name in timed["against"] if name in sides]
            if not against:
                raise Left(1, f"{label}: nothing that it is measured against "
                           "fits this card")
            best = min(against)[1]
            ratio = compare(self.worker, sides[best], label, best,
                            self.before[label], timed["floor"], self.allowed)
            if not ratio <= self.allowed:
                slow.append(label)
        print("\nthe timed launches, checked afterwards")
        right = self.worker.ask(3, "again")
        ran = print_ran([self.worker.ask(3, "ran")])
        if not right or not all(ran.values()):
            raise Left(3, "A timed launch is wrong.")
        print_change(self.before, self.time_baselines(100))
        self.print_elsewhere()
        if slow:
            raise Left(5, f"over {self.allowed} of the best baseline: "
                       f"{'; '.join(slow)}")


    def print_elsewhere(self):
        """Print what each case's winner takes in the other cases."""
        rows = {label: self.worker.ask(3, "time_elsewhere", label)
                for label in self.timed}
        rows = {label: row for label, row in rows.items() if len(row) > 1}
        if not rows:
            return
        print("\nwhat each case's winner takes in every case, ms")
        print(" " * 20, *[f"{label:>18}" for label in self.timed])
        for label, row in rows.items():
            cells = [f"{row[other]:18.4f}" if other in row else f"{'-':>18}"
                     for other in self.timed]
            print(f"{label:<20}", *cells)


def shares(costs, count):
    """The numbers of jobs for each of so many processes: the longest first,
    each to the process that has least to do."""
    jobs = [[] for _ in range(count)]
    loads = [0.0] * count
    longest_first = sorted(((cost, -number) for number, cost
                            in enumerate(costs)), reverse=True)
    for cost, number in longest_first:
        least = loads.index(min(loads))
        jobs[least].append(-number)
        loads[least] += cost
    return jobs


def empty_folder():
    """A new folder, which is deleted in the end."""
    try:
        folder = tempfile.mkdtemp(prefix="judge-")
    except OSError as error:
        raise Left(2, f"no place for a temporary folder: {error}; set TMPDIR "
                   "to a folder that can be written to") from error
    FOLDERS.append(folder)
    return folder


def time_in_turn(worker, side, label, best, count):
    """Times of the submission and of the best baseline, each first every
    other time."""
    runs = {"submission": worker, best: side}
    times = {name: [] for name in runs}
    for turn in range(count):
        order = list(runs) if turn % 2 else list(runs)[::-1]
        for name in order:
            # The first of all warms the card up for a second.
            events, clock = runs[name].ask(1, "time", label, name,
                                           200 if turn else 1000)
            if clock > 2 * events:
                raise Left(1, f"{label}: impossible time, {events:.4f} ms by "
                           f"CUDA events where the clock says {clock:.4f}; "
                           "allowed: half of the clock's")
            times[name].append(events)
    return times["submission"], times[best]


def compare(worker, side, label, best, before, floor, allowed):
    """Time a case against its best baseline; the median ratio."""
    mine, theirs = [], []
    for _ in range(SETS):
        more = time_in_turn(worker, side, label, best, ROUNDS)
        mine, theirs = mine + more[0], theirs + more[1]
        ratios = sorted(one / other for one, other in zip(mine, theirs))
        ratio, low = statistics.median(ratios), ratios[len(ratios) // 5]
        if ratio <= allowed or low > allowed:
            break  # it is not the noise that decides
    for name, times in (("submission", mine), (best, theirs)):
        print(f"  {name:<26} {statistics.median(times):.4f} ms "
              f"({min(times):.4f} .. {max(times):.4f}, {len(times)} rounds)")
    for name, milliseconds in before.items():
        if name != best:
            print(f"  {name:<26} {milliseconds:.4f} ms (once, beforehand)")
    print(f"  submission / {best} {ratio:.3f} ({ratios[0]:.3f} .. "
          f"{ratios[-1]:.3f}), allowed {allowed}")
    if floor in before and statistics.median(mine) < before[floor] / 2:
        raise Left(1, f"{label}: impossible time, {statistics.median(mine):.4f}"
                   f" ms is less than half of {floor}'s {before[floor]:.4f}")
    return ratio


def print_change(before, after):
    """Print by how much the baselines' times have changed at most."""
    worst, where = 1.0, ""
    for label, times in before.items():
        for name, milliseconds in times.items():
            change = after[label][name] / milliseconds
            if max(change, 1 / change) > max(worst, 1 / worst):
                worst, where = change, f" ({label}, {name})"
    print(f"\nthe baselines, timed before the file was imported and now: the "
          f"largest change is a factor of {worst:.3f}{where}")
