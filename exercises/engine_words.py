"""The words in which an exercise describes itself to the judge.

An exercise's folder holds an exercise.py with a function describe(t), which
returns an Exercise; t is the judge's own copy of the lesson. The engine knows
no exercise by name: all that it asks of a submission stands in there.
"""
import dataclasses


@dataclasses.dataclass
class Entry:
    """One kernel that a submission has to define, and how it is judged."""

    # What the file calls it, and whose reference, cases and launcher go with
    # it: "softmax" or "matmul".
    name: str
    kind: str
    # A sentence that is printed above its checks.
    about: str = ""
    # Whether a file may leave it out.
    optional: bool = False
    # Whether it has to be triton.autotune over @triton.jit, with at least so
    # many different configs; and a key that many will give, with what to say
    # to it.
    tuned: bool = False
    at_least: int = 1
    known_key: tuple = None
    # Its parameters, in order; the lesson's kernel of that kind has them if
    # there are none here.
    parameters: list = None
    # launcher(kernel, config, x, out) or launcher(kernel, config, a, b, ieee,
    # out), which returns out; the lesson's if there is none.
    launcher: object = None
    # Settings to judge it with, a dict each; those of the file if it is tuned.
    configs: list = None
    # The file's function that chooses such a dict from whole numbers.
    choice: str = None
    # {name: the most it can be} of what it chooses that is a power of two.
    powers: dict = dataclasses.field(default_factory=dict)
    # cases(config), a list of the lesson's Case; the engine's if there is none.
    cases: object = None
    # checks(launch, device), which prints lines and returns whether all passed.
    checks: object = None
    # How many rows of a softmax a program takes at once, and so how far it can
    # hang over.
    rows_at_once: int = 1
    # Whether it is tried in memory that ends, and steps(launch) for that, a
    # list of (label, function); the lesson's if there are none.
    ends: bool = True
    steps: object = None
    # Whether the dots of a matmul are read at every layout, size and card, and
    # not only with B in either layout.
    multipliers: bool = True


@dataclasses.dataclass
class Timed:
    """One case of the timing, on a GPU."""

    label: str
    # The name of the entry that is timed.
    entry: str
    # operands(), which makes the inputs, the same in every process.
    operands: object
    # baselines(*inputs, out), which returns {name: function of nothing}.
    baselines: object
    # The names among them whose fastest is what the submission is held to.
    against: list
    # The name among them under half of whose time no time is believed.
    floor: str
    # The names of those that are timed as they are, not as a CUDA graph.
    direct: list = dataclasses.field(default_factory=list)
    # "ieee" or "tf32" of a matmul.
    precision: str = None


@dataclasses.dataclass
class Exercise:
    """What a submission has to define, and what of it is timed."""

    entries: list
    timed: list = dataclasses.field(default_factory=list)
    # How many times the time of the best baseline a submission may take.
    allowed: float = 1.05
    # What to do next, for whoever has not passed.
    next_step: str = ""

    def reduced(self, names):
        """The exercise with these entries alone."""
        return dataclasses.replace(
            self,
            entries=[entry for entry in self.entries if entry.name in names],
            timed=[timed for timed in self.timed if timed.entry in names])
