"""What compiled code does with the registers of a running wgmma.

    python3 experiments/library_reading.py        needs no GPU

A wgmma runs on its own.  What it was given in registers has to stay there
until it is done, and it is known to be done only after a wait: wait_group 1
says that all groups but the newest are.  (Accessing those registers earlier is
undefined: PTX manual, wgmma.wait_group.)  So the code is followed along every
path, with the groups that may still be running, and two things are noted: how
many there are where a register operand is loaded, and each instruction that
writes to a register that one of them reads.  That is done in PTX, where every
value has a register of its own, and in the machine code (SASS), where the
assembler has dealt out the few that there are.

Run as a program it compiles the unsafe kernel of library_kernels.py and the
Gluon kernels for capability 9.0, and prints what it reads in each.  The last
line is the exit status: 0 read, 1 refused, 2 a wrong argument.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
sys.path.append(str(ROOT / "experiments"))
import library_kernels as kernels
import torch
import triton

import triton_softmax_matmul as t


class Code:
    """A kernel as a list of what matters here, and the ways through it.

    An event is (kind, value): ("wgmma", registers it reads), ("commit", ...)
    and ("wait", n); ("load" or "write", registers written); ("branch" or
    "goto", labels), ("end", ...).
    """

    def __init__(self):
        self.events, self.texts, self.labels = [], [], {}

    def label(self, name):
        self.labels[name] = len(self.events)

    def add(self, text, kind, value=frozenset()):
        self.events.append((kind, value))
        self.texts.append(text)

    def after(self, at):
        """The places where the code may go on after the event at a place."""
        kind, value = self.events[at]
        places = []
        if kind in ("branch", "goto"):
            for name in value:
                if name in self.labels:
                    places.append(self.labels[name])
        if kind not in ("goto", "end"):
            places.append(at + 1)
        return places


@dataclasses.dataclass
class Reading:
    """What one compiled kernel says."""
    wgmmas: int  # instructions
    from_registers: int  # those of them with the left operand in registers
    running_at_loads: int  # most groups running where such an operand is loaded
    overwriting: list  # instructions that write to what a running wgmma reads
    spills: int = 0  # in machine code: registers sent to memory and back


def follow(code, horizon=16):
    """The Reading of a Code: every path, with every set of running groups."""
    most, overwriting, wgmmas = 0, set(), {}
    todo, seen = [(0, (), frozenset())], set()
    while todo:
        state = todo.pop()
        at, running, newest = state
        if state in seen or at >= len(code.events):
            continue
        seen.add(state)
        kind, value = code.events[at]
        if kind == "wgmma":
            wgmmas[at] = value
            newest = newest | value
        elif kind == "commit":
            running = (*running, newest)[-horizon:]
            newest = frozenset()
        elif kind == "wait":
            done = max(len(running) - value, 0)  # the oldest are done
            running = running[done:]
        elif kind in ("load", "write"):
            if value & newest.union(*running):
                overwriting.add(at)
            if kind == "load":
                most = max(most, len(running) + bool(newest))
        for place in code.after(at):
            todo.append((place, running, newest))
    texts = []
    for at in sorted(overwriting):
        texts.append(code.texts[at])
    return Reading(len(wgmmas), sum(map(bool, wgmmas.values())), most, texts)


# ----------------------------------------------------------------------- PTX

# A name, and the register or registers that it writes: mov.b32 %r1, %r2;
WRITES = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+"
                    r"(\{[^}]*\}|%\w+(?:\|%\w+)?)\s*,")
# Where the first operand is an address, a barrier or a target, not written.
WRITE_NOTHING = ("st.", "bra", "brx", "bar", "wgmma", "cp.", "mbarrier",
                 "fence", "ret", "setmaxnreg", "prefetch", "red.", "call")
WGMMA = re.compile(r"wgmma\.mma_async\S*\s+\{[^}]*\},\s*(\{[^}]*\}|%\w+)")


def registers(text):
    """The registers named in a piece of PTX."""
    return frozenset(re.findall(r"%\w+", text))


def instructions(ptx):
    """The lines of PTX that hold an instruction or a label."""
    lines = []
    for line in ptx.splitlines():
        line = line.partition("//")[0].strip()
        if line and line not in "{}()":
            lines.append(line)
    return lines


def left_operand(line):
    """The registers of a wgmma's left operand: none in shared memory."""
    left = WGMMA.match(line)[1]
    return registers(left) if left.startswith("{") else frozenset()


def written(line):
    """(name, the registers that an instruction writes)."""
    match = WRITES.match(line)
    if not match or match[1].startswith(WRITE_NOTHING):
        return "", frozenset()
    return match[1], registers(match[2])


def made_of(lines, operands):
    """The operands' registers and those from which their values are made."""
    sources = {}
    for line in lines:
        name, made = written(line)
        if not name.startswith("ld"):  # a load makes its value of an address
            for register in made:
                used = registers(line.partition(",")[2])
                sources[register] = sources.get(register, frozenset()) | used
    found, todo = set(), list(operands)
    while todo:
        register = todo.pop()
        if register not in found:
            found.add(register)
            todo.extend(sources.get(register, ()))
    return found


def tables(ptx):
    """{name: labels} of the jump tables, which warps that part ways use."""
    found = {}
    for name, labels in re.findall(
            r"(\$?\w+):\s*\.branchtargets\s+([^;]*);", ptx):
        found[name] = re.findall(r"\$?\w+", labels)
    return found


def ptx_event(line, jump_tables):
    """(kind, value) of a jump, a wait and the like; None for the rest."""
    jump = re.match(r"(@!?%\w+\s+)?bra(?:\.uni)?\s+(\$L\w+)", line)
    table = re.match(r"brx\.idx\s+%\w+,\s*(\$?\w+)", line)
    if jump:
        return "branch" if jump[1] else "goto", [jump[2]]
    if table:
        return "goto", jump_tables[table[1]]
    if line.startswith("ret"):
        return "end", None
    if line.startswith("wgmma.mma_async"):
        return "wgmma", left_operand(line)
    if line.startswith("wgmma.commit_group"):
        return "commit", None
    if line.startswith("wgmma.wait_group"):
        return "wait", int(re.search(r"(\d+)\s*;", line)[1])
    return None


def read_ptx(ptx):
    """The Reading of PTX."""
    lines, jump_tables = instructions(ptx), tables(ptx)
    operands = frozenset()
    for line in lines:
        if line.startswith("wgmma.mma_async"):
            operands |= left_operand(line)
    sources = made_of(lines, operands)
    code = Code()
    for line in lines:
        label = re.fullmatch(r"(\$L\w+):", line)
        event = ptx_event(line, jump_tables)
        name, made = written(line)
        if label:
            code.label(label[1])
        elif event:
            code.add(line, *event)
        elif name.startswith(("ld.shared", "ldmatrix")) and made & sources:
            code.add(line, "load", made)
        elif made & operands:
            code.add(line, "write", made)
    return follow(code)


def four_byte_copies(ptx):
    """How many instructions copy single values into shared memory."""
    return len(re.findall(
        r"cp\.async\.ca\.shared\.global\s+\[[^\]]*\],\s*\[[^\]]*\],"
        r"\s*(?:0x)?4\b", ptx))


# ---------------------------------------------------------------------- SASS

def nvdisasm():
    """The disassembler that comes with Triton, or None."""
    path = pathlib.Path(triton.__file__).parent
    path = path / "backends" / "nvidia" / "bin" / "nvdisasm"
    return path if os.access(path, os.X_OK) else None


SASS_WRITES_NOTHING = (
    "ST", "RED", "BAR", "ISETP", "FSETP", "R2UR", "R2P", "LDGSTS", "SYNCS",
    "UTMA", "UBLKCP", "PLOP3", "VOTEU", "NOP", "DEPBAR", "MEMBAR", "FENCE")


def sass_written(line):
    """The numbers of the registers that a machine instruction writes."""
    line = re.sub(r"^@!?U?P\w+\s+", "", line)
    name, _, rest = line.partition(" ")
    first = re.match(r"\s*(?:U?P\w,\s*)?R(\d+)\b", rest)
    if not first or name.startswith(SASS_WRITES_NOTHING):
        return frozenset()
    width = 1
    if ".128" in name or ".M88.4" in name:
        width = 4
    elif ".64" in name or ".WIDE" in name or name == "CS2R":
        width = 2
    return frozenset(range(int(first[1]), int(first[1]) + width))


def sass_add(code, line, labels):
    """Add what one machine instruction does."""
    if "HGMMA" in line:  # wgmma: its accumulator, its left operand, ...
        left = re.search(r"HGMMA\S*\s+R\d+,\s*R(\d+)", line)
        read = frozenset()
        if left:
            read = frozenset(range(int(left[1]), int(left[1]) + 4))
        code.add(line, "wgmma", read)
        if line.endswith("gsb0"):
            code.add(line, "commit")
    elif "WARPGROUP.DEPBAR" in line:
        code.add(line, "wait", int(re.search(r"0x([0-9a-f]+)", line)[1], 16))
    elif re.search(r"\b(BRA|BRX)\b", line):
        code.add(line, "branch" if line.startswith("@") else "goto", labels)
    elif line.startswith("EXIT"):
        code.add(line, "end")
    elif sass_written(line):
        code.add(line, "write", sass_written(line))


def read_sass(cubin):
    """The Reading of machine code, whose loads are not told from other
    writes; None where this Triton has no disassembler."""
    if nvdisasm() is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([nvdisasm(), "-c", file.name], text=True,
                              check=True, capture_output=True).stdout
    found = follow(sass_code(text))
    found.spills = len(re.findall(r"\b(?:STL|LDL)\b", text))
    return found


def sass_code(text):
    """The Code of disassembled machine code."""
    code = Code()
    for line in text.splitlines():
        label = re.match(r"\s*(\.L_x_\d+):", line)
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
        if label:
            code.label(label[1])
        if instruction:
            sass_add(code, instruction[1], re.findall(r"\.L_x_\d+", line))
    return code


# ------------------------------------------------------------ what is compiled

def config(m, n, k, warps, stages):
    """A config of the lesson's kernel."""
    return dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=4, num_warps=warps,
                num_stages=stages)


# The first was wrong in every launch on Triton 3.6.0 and 3.7.1 on an H200.
HAZARD = [config(128, 128, 32, 8, 3), config(128, 128, 32, 8, 4),
          config(128, 128, 32, 4, 3), config(128, 128, 32, 4, 4),
          config(256, 128, 32, 8, 3), config(256, 128, 32, 8, 4),
          config(128, 256, 32, 8, 3), config(64, 256, 32, 4, 4),
          config(256, 64, 32, 8, 4), config(128, 64, 32, 8, 4),
          config(128, 64, 32, 4, 3), config(64, 128, 32, 4, 3)]


def compile_rounding(each):
    """rounding_kernel for 9.0 as a launch with swapped operands has it: B^T
    and A^T by columns, and so the result."""
    return t.compile_for(90, kernels.rounding_kernel, **each, IEEE=False,
                         stride_am=1, stride_bk=1, stride_cm=1)


def told(compiled):
    """What is read in a compiled kernel, in a line."""
    ptx = read_ptx(compiled.asm["ptx"])
    sass = read_sass(compiled.asm["cubin"])
    machine = "-" if sass is None else len(sass.overwriting)
    return (f"running at a load {ptx.running_at_loads}, overwritten in PTX "
            f"{len(ptx.overwriting):>3}, in SASS {machine:>3}")


def main():
    """Print what is read in the unsafe kernel and in the Gluon kernels."""
    if t.INTERPRET:
        print("refused: under TRITON_INTERPRET nothing is compiled; unset it")
        return 1
    print(f"Triton {triton.__version__}, capability 9.0: groups of wgmma that "
          "run where a register\noperand is loaded; writes to registers that "
          "one of them reads\n")
    for each in HAZARD:
        print(f"unsafe {t.config_name(each):<10} w{each['num_warps']} "
              f"s{each['num_stages']}  {told(compile_rounding(each))}")
    a, b = torch.empty(2, 2048, 2048)
    for layout, right in (("row-major", b), ("K-major", b.t())):
        ours = kernels.compile_product(a, right, torch.empty_like(a))
        print(f"Gluon, {layout} B".ljust(25), told(ours))
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        t.leave(0, __doc__.strip())
    if sys.argv[1:]:
        t.leave(2, f"usage: --help is the only argument, not {sys.argv[1:]}")
    t.leave(t.reported(main))
