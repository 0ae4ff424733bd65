"""Says what is wrong with the compiled code of each script named to it.

    python compiled_right.py NAME ...

Each NAME is a module in the current folder. test_planted_faults.py runs this
in a process of its own, in which the kernels are not interpreted.
"""
import importlib
import re
import sys


def open_loads(made):
    """Loads with a mask, and no value for the lanes that it leaves out."""
    found = []
    for line in made["ttir"].splitlines():
        load = re.search(r"tt\.load (%[^:{]*)", line)
        if load and load[1].count("%") == 2:  # pointers and mask
            found.append(line.strip())
    return found


def wrongly_compiled(t):
    """What is wrong with the code that t's kernels are compiled to."""
    del t.CONFIGS[1:]
    wrong = []
    for capability in (80, 90):
        if not t.emitted(capability):
            wrong.append(f"the table for {capability}")
    settings = {**t.CONFIGS[0], "IEEE": True, **t.UNIT_STRIDES["row-major"]}
    made, = t.compiled(t.matmul_kernel, 80, [settings])
    wrong += open_loads(made)
    made, = t.compiled(t.softmax_kernel, 80, [{"BLOCK_COLS": 256}])
    return wrong + open_loads(made)


if __name__ == "__main__":
    sys.path.insert(0, "")  # the current folder
    for name in sys.argv[1:]:
        print("found", name, wrongly_compiled(importlib.import_module(name)))
