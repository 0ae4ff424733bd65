"""The table, show and compare: what they print, for whom, and whether the
table counts right.  None of it needs a GPU.
"""
import re

import pytest
from conftest import SCRIPT, in_turn, run_script

import triton_softmax_matmul as t

LAST = t.CONFIGS[-1]


def statements(ptx):
    """[opcode, operand, ...] of each instruction, without its predicate."""
    found = []
    for statement in re.split(r"[;\n{}]", ptx):
        words = statement.split("//")[0].split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words:
            operands = " ".join(words[1:]).split(",")
            found.append([words[0], *[word.strip() for word in operands]])
    return found


def counted(ptx):
    """The table's counts once more, instruction by instruction."""
    count = dict.fromkeys(t.COUNTED, 0)
    for opcode, *operands in statements(ptx):
        kind = opcode.split(".")
        if kind[:3] == ["cp", "async", "bulk"]:
            # Into shared memory, so that comes first among the two spaces.
            spaces = [part.split("::")[0] for part in kind
                      if part.split("::")[0] in ("shared", "global")]
            count["bulk"] += spaces == ["shared", "global"]
        elif kind[:2] == ["cp", "async"] and "shared" in opcode:
            size = {4: "4 B", 16: "16 B"}.get(int(operands[2], 0))
            count[size] += 1
        elif opcode.startswith(("ld.shared", "ldmatrix")):
            count["ld.shared"] += 1
        elif kind[0] in ("bar", "barrier") and "sync" in kind:
            count["barriers"] += 1
        elif kind[:2] == ["shfl", "sync"]:
            count["shuffles"] += 1
        elif kind[0] == "fma" and kind[-1] in ("f32", "f32x2"):
            count["FMA"] += 1 + (kind[-1] == "f32x2")
        elif opcode.startswith(("wgmma.mma_async", "mma.sync", "tcgen05.mma")):
            count["tensor"] += 1
    return count


@pytest.mark.parametrize("capability", in_turn([90, 80, 120], 0, 3))
def test_the_table_counts_what_is_in_the_ptx(capability):
    rows = [{**LAST, "IEEE": ieee, **t.UNIT_STRIDES[layout]}
            for ieee in (True, False) for layout in t.B_LAYOUTS]
    made = [*t.compiled(t.matmul_kernel, capability, rows),
            *t.compiled(t.softmax_kernel, capability,
                        [{"BLOCK_COLS": 1024, "num_warps": 4}])]
    told = [t.counts(one) for one in made]
    for one, counts in zip(made, told, strict=True):
        assert counted(one["ptx"]) == {name: counts[name]
                                       for name in t.COUNTED}
    # Something in every column but bulk, and copies by fours on 90 alone.
    empty = {name for name in t.COUNTED
             if not any(counts[name] for counts in told)}
    assert empty == ({"bulk"} if capability == 90 else {"bulk", "4 B"})
    ieee_row, ieee_k, tf32_row, tf32_k, softmax = told
    assert softmax["barriers"] and softmax["shuffles"]
    assert ieee_row["FMA"] and ieee_k["FMA"]
    assert not ieee_row["tensor"] and tf32_row["tensor"]
    if capability == 90:
        # What section 7 is about: a row-major B comes by fours.
        assert tf32_row["4 B"] and not tf32_k["4 B"]
        assert tf32_k["16 B"] > tf32_row["16 B"]


WORDS = {"ttir": "tt.dot", "ttgir": "#ttg.", "ptx": ".target sm_90a",
         "sass": "EXIT"}


@pytest.mark.parametrize("interpret", in_turn([None, "1"], 2))
@pytest.mark.parametrize("what", in_turn(WORDS, 4, 3))
def test_show_prints_the_code(what, interpret):
    result = run_script(
        "import triton_softmax_matmul as t; "
        f"t.show(t.matmul_kernel, 90, {what!r})", script="-c",
        cwd=SCRIPT.parent, env={"TRITON_INTERPRET": interpret})
    if what == "sass" and "nvdisasm" in result.stderr:
        pytest.skip("there is no disassembler here")
    assert result.returncode == 0, result.stderr
    assert WORDS[what] in result.stdout
    assert "loc(" not in result.stdout


COMPARE = """
import triton
import triton.language as tl
import triton_softmax_matmul as t
from triton.language import cdiv

FACTOR = tl.constexpr(2.0)
KIND = tl.constexpr(tl.float32)

@triton.jit
def doubled(x):
    return (x * FACTOR).to(KIND)

@triton.jit
def mine(in_ptr, out_ptr, row_stride, n_cols, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_COLS) + cdiv(0, BLOCK_COLS)
    x = tl.load(in_ptr + row * row_stride + cols, mask=cols < n_cols)
    tl.store(out_ptr + row * row_stride + cols, doubled(x),
             mask=cols < n_cols)

t.compare(mine, t.softmax_kernel, 86, "ttir")
"""


@pytest.mark.parametrize("interpret", in_turn([None, "1"], 2))
def test_compare_sets_two_kernels_side_by_side(tmp_path, interpret):
    script = tmp_path / "two_kernels.py"
    script.write_text(COMPARE)
    result = run_script(script=script, env={
        "TRITON_INTERPRET": interpret, "PYTHONPATH": SCRIPT.parent})
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    mine, = [line for line in lines if line.startswith("mine")]
    other, = [line for line in lines if line.startswith("other")]
    assert mine.split()[1:] != other.split()[1:]
    assert "--- other" in lines and "+++ mine" in lines
    removed = [line for line in lines if line.startswith("-")]
    added = [line for line in lines if line.startswith("+")]
    assert any("math.exp" in line for line in removed)
    assert not any("math.exp" in line for line in added)
    # The helper is compiled with it, and so is the constant it refers to.
    assert any("2.000000e+00" in line for line in added)


@pytest.mark.parametrize("capability", [75, 88, 101, 130, 0, -1, "90", None])
def test_a_capability_that_nobody_compiles_for(capability):
    for ask in (lambda: t.show(t.softmax_kernel, capability),
                lambda: t.emitted(capability),
                lambda: t.compare(t.softmax_kernel, t.softmax_kernel,
                                  capability)):
        with pytest.raises(ValueError, match="take one of 80, 86"):
            ask()
    if capability == 75:
        with pytest.raises(ValueError, match="8.0 and newer"):
            t.check_capability(capability)


def test_a_text_that_does_not_exist():
    with pytest.raises(ValueError, match="what='asm'"):
        t.show(t.softmax_kernel, 80, "asm")


def test_a_row_is_printed_as_soon_as_it_is_compiled(monkeypatch, capsys):
    seen = []

    def slow(kernel, capability, rows, what=None):
        for _ in rows:
            seen.append(capsys.readouterr().out.count("\n"))
            yield {"ptx": "", "ttir": "", "ttgir": "", "shared": 0,
                   "registers": None}

    monkeypatch.setattr(t, "compiled", slow)
    assert not t.emitted(80)  # there is no dot in it
    # A line before each but the first, which finds the head of the table.
    assert seen[1:4] == [1, 1, 1]
