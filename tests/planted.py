"""Faults planted in the lesson script, and runs of the script with them.

A fault is one or more edits. An edit names a function of the script, or a
name that is assigned at its top level, and exchanges a fragment of it. What
the fragment has to match is not the text as it is laid out but what
ast.unparse makes of its syntax tree: no comments, no line breaks within a
statement, single quotes, no parentheses that change nothing. So prose and
layout of the script can change and the faults still fit.
"""
import ast
import collections
import importlib.util
import re
import subprocess
import sys

from conftest import SCRIPT, clean_env

EVERY = None  # in the place of a number of times
Edit = collections.namedtuple("Edit", "where old new times", defaults=[1])
Fault = collections.namedtuple("Fault", "seen edits")

# Forks a child for each script named to it, since importing torch and Triton
# takes longer than the checks. The child, which may have children of its own,
# ends as a run of the script ends.
FORKS = """
import os, runpy, signal, sys
import numpy, torch, triton
for path in map(str.strip, sys.stdin):
    child = os.fork()
    if not child:
        os.setsid()
        signal.alarm(120)
        file = os.open(path + ".out", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv = [path]
        runpy.run_path(path, run_name="__main__")
        os._exit(99)  # a run that is over has left
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody was left behind
    print(status, flush=True)
"""


def one(seen, where, old, new, times=1):
    """A fault of a single edit; seen: what the line that sees it holds."""
    return Fault(seen, [Edit(where, old, new, times)])


def names_of(node):
    """What a statement at the top level defines or assigns."""
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return [getattr(node, "name", None)]


def edited(text, where, edits):
    """The text of the script after the edits of one function or name."""
    found = [node for node in ast.parse(text).body if where in names_of(node)]
    assert len(found) == 1, f"{where} is there {len(found)} times"
    node = found[0]
    source = ast.unparse(node)
    for edit in edits:
        count = source.count(edit.old)
        right = count > 0 if edit.times is EVERY else count == edit.times
        assert right, (f"{where} holds {edit.old!r} {count} times, and not "
                       f"{edit.times} times; it is\n{source}")
        source = source.replace(edit.old, edit.new)
    ast.parse(source)
    first = min([node.lineno] + [decorator.lineno for decorator in
                                 getattr(node, "decorator_list", [])])
    lines = text.splitlines()
    lines[first - 1:node.end_lineno] = source.splitlines()
    return "\n".join(lines) + "\n"


def planted(folder, edits=(), name="planted"):
    """The path of the script with these edits, in a folder."""
    text = SCRIPT.read_text(encoding="utf-8")
    for where in dict.fromkeys(edit.where for edit in edits):
        text = edited(text, where,
                      [edit for edit in edits if edit.where == where])
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def load(path):
    """The module at path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


class Runs:
    """A server that runs scripts under the interpreter, one at a time."""

    def __init__(self):
        environment = clean_env(TRITON_INTERPRET=1, OMP_NUM_THREADS=1,
                                OPENBLAS_NUM_THREADS=1)
        self.server = subprocess.Popen(
            [sys.executable, "-c", FORKS], text=True, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, path):
        """Run a script; its exit status and its output."""
        print(path, file=self.server.stdin, flush=True)
        status = int(self.server.stdout.readline())
        return status, path.with_name(f"{path.name}.out").read_text()

    def close(self):
        """End the server."""
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


def complaints(output):
    """What a run said was wrong: FAIL lines with what is below, and errors."""
    found = []
    for line in output.splitlines():
        if line.startswith("FAIL"):
            found.append(line)
        elif found and line.startswith("      "):
            found[-1] += "\n" + line
        elif re.match(r"\w*(Error|Exception|Interrupt): ", line):
            found.append(line)
    return found


def seen(status, output, words):
    """Whether a run ended as it must, with a complaint of those words."""
    return (status == 3 and output.endswith("\nexit 3\n")
            and any(words in complaint for complaint in complaints(output)))
