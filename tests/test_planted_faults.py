"""Faults planted in the script one at a time: something must go red.

RUN are seen by the script's own run under the interpreter, which has to end
with status 3 and with a complaint that names the case or the problem. The
others cannot be seen there: EMITTED are in what the compiled code multiplies
with, PROBED in what a launcher asks for, JUDGES in the checks themselves, and
LOST in the way from a check to the exit status.

planted.py says how a fault is planted, and faults/ holds the tables.
"""
import ast
import contextlib
import io
import subprocess
import sys

import compiled_right
import made_up
import pytest
import torch
from conftest import clean_env, in_turn
from faults import elsewhere, in_checks, in_matmul, in_softmax
from planted import Runs, complaints, load, planted, seen

RUN = {}
for place, tables in (("softmax", in_softmax), ("matmul", in_matmul)):
    for name, fault in {**tables.OLD, **tables.NEW}.items():
        RUN[f"{place}: {name}"] = fault
JUDGES = {**in_checks.JUDGES, **in_checks.NEW_JUDGES}
LOST = in_checks.LOST
PROBED = elsewhere.PROBED
EMITTED = elsewhere.EMITTED
LOADED = elsewhere.LOADED
COUNT = sum(map(len, (RUN, JUDGES, LOST, PROBED, EMITTED, LOADED)))


@pytest.fixture(scope="module")
def run():
    """Run a script interpreted; its exit status and its output."""
    runs = Runs()
    yield runs.run
    runs.close()


def test_nothing_planted(tmp_path, run):
    """Each function goes through the syntax tree, and nothing else changes."""
    path = planted(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(ast.unparse(ast.parse(text)), encoding="utf-8")
    status, output = run(path)
    assert status == 0 and not complaints(output) and "pass" in output


# Each is a whole run of the script.
@pytest.mark.parametrize("name", in_turn(RUN, 99, 20))
def test_the_run_fails(name, tmp_path, run):
    fault = RUN[name]
    status, output = run(planted(tmp_path, fault.edits))
    assert seen(status, output, fault.seen), f"{status}\n{output}"


@pytest.mark.parametrize("name", in_turn(LOST, 16, 3))
def test_a_lost_verdict_is_seen(name, tmp_path, run):
    """What test_the_run_fails asserts does not hold with the verdict lost."""
    edits, other = LOST[name]
    fault = RUN[other]
    status, output = run(planted(tmp_path, edits + fault.edits))
    assert status in (0, 3) and "pass" in output, f"{status}\n{output}"
    assert not seen(status, output, fault.seen), output


def misjudged(path):
    """Made-up results on which the checks in a file judge wrongly."""
    module = load(path)
    with contextlib.redirect_stdout(io.StringIO()):
        return made_up.misjudged(module)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", in_turn([None, *JUDGES], 40, 6))
def test_a_wrong_judge_is_seen(name, tmp_path):
    """The script's checks judge every made-up run rightly, the faulty not."""
    wrong = misjudged(planted(tmp_path, JUDGES.get(name, ())))
    assert bool(wrong) is bool(name), wrong


class Noted:
    """Stands for a kernel: notes what it was launched with."""

    def __init__(self):
        self.grid, self.named = None, {}

    def __getitem__(self, grid):
        def launch(*arguments, **named):
            self.grid, self.named = grid, named
        return launch


def unanswered(t):
    """What t's launchers do wrong that no case of the script can show."""
    x = torch.arange(12, dtype=torch.float32).view(3, 4)
    wrong = []
    for ieee in (True, False):
        kernel = Noted()
        t.matmul(x, x.t(), ieee, kernel=kernel)
        if kernel.named.get("IEEE") is not ieee:
            wrong.append(f"IEEE for {ieee}")
    kernel = Noted()
    config = {"BLOCK_M": 2, "BLOCK_N": 2, "own": 7}
    t.matmul(x, x.t(), True, config, kernel=kernel)
    if kernel.named.get("own") != 7 or kernel.grid(kernel.named) != (4,):
        wrong.append("a config and a grid of its own")
    if config != {"BLOCK_M": 2, "BLOCK_N": 2, "own": 7}:
        wrong.append("a config that stays as it is")
    kernel = Noted()
    t.softmax(x, kernel=kernel)
    if kernel.grid != (3,):
        wrong.append("a grid for a softmax kernel of its own")
    if not t.softmax(x).allclose(torch.softmax(x, 1)):
        wrong.append("softmax without out")
    y = torch.arange(20, dtype=torch.float32).view(4, 5)
    if not t.matmul(x, y, True).equal(x @ y):
        wrong.append("matmul without out")
    return wrong


def answers(path):
    """What the launchers in a file do wrong, an error included."""
    try:
        return unanswered(load(path))
    except Exception as error:
        return [repr(error)]


@pytest.mark.interpreter
@pytest.mark.parametrize("name", [None, *PROBED])
def test_a_wrong_launcher_is_seen(name, tmp_path):
    wrong = answers(planted(tmp_path, PROBED.get(name, ())))
    assert bool(wrong) is bool(name), wrong


@pytest.mark.slow
def test_what_is_compiled_is_looked_at(tmp_path):
    """The table has a verdict, and a masked lane has a value, on 8.0, 9.0."""
    faults = {"none": [], **EMITTED, **LOADED}
    names = {}
    for number, (name, edits) in enumerate(faults.items()):
        names[f"planted{number}"] = name
        planted(tmp_path, edits, f"planted{number}")
    result = subprocess.run(
        [sys.executable, compiled_right.__file__, *names], cwd=tmp_path,
        env=clean_env(), text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    found = {}
    for line in result.stdout.splitlines():
        if line.startswith("found"):
            _, module, wrong = line.split(maxsplit=2)
            found[names[module]] = wrong
    for name in faults:
        assert (found[name] == "[]") is (name == "none"), found


def test_count():
    """The number that the README gives is one of different faults."""
    assert COUNT >= 107 + 40
    texts = [repr(edits) for edits in (
        *[fault.edits for fault in RUN.values()], *JUDGES.values(),
        *PROBED.values(), *EMITTED.values(), *LOADED.values())]
    assert len(set(texts)) == len(texts)
