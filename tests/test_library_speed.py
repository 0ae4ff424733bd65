"""experiments/library_*.py: what can be known of them without a Hopper.

The Gluon kernels are compiled for capability 9.0 in a process of their own,
since in this one Triton may be interpreting; any Triton that PYTHONPATH puts
first is the one tested.  What is read in the code is read by
experiments/library_reading.py, so that reader is tested here as well, on code
written by hand and on a kernel that is known to be unsafe.
"""
import contextlib
import dataclasses
import io
import json
import subprocess
import sys

import pytest
import torch
import triton
from conftest import (DEVICE, GPU, ROOT, clean_env, ended, in_turn,
                      run_script)

sys.path.insert(0, str(ROOT / "experiments"))
import library_kernels as kernels
import library_reading as reading
import library_speed as speed

import triton_softmax_matmul as t

SPEED = ROOT / "experiments" / "library_speed.py"
READING = ROOT / "experiments" / "library_reading.py"
VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
HOPPER = GPU and torch.cuda.get_device_capability() == (9, 0)


# ------------------------------------------------------- compiled for a Hopper

WORKER = """
import dataclasses, json, re, sys, torch
import library_kernels as kernels, library_reading as reading
import triton_softmax_matmul as t

TMA_STORE = r"cp[.]async[.]bulk[.]tensor\\S*[.]global[.]shared"
# What storing a quarter takes, a letter each: a wait for the copy engine to
# have read the last one, a barrier, stores, a fence, a barrier, the engine.
STEPS = {"w": r"cp[.]async[.]bulk[.]wait_group[.]read", "b": r"bar[.]sync",
         "s": r"st[.]shared|stmatrix", "f": r"fence[.]proxy[.]async",
         "t": TMA_STORE}

def quarters(ptx):
    letters = ""
    for line in ptx.splitlines():
        for letter, pattern in STEPS.items():
            if re.search(pattern, line):
                letters += letter
    return len(re.findall("wbs+fbt", letters))

def facts(compiled):
    ptx, cubin = compiled.asm["ptx"], compiled.asm["cubin"]
    sass = reading.read_sass(cubin)
    return {
        "ptx": dataclasses.asdict(reading.read_ptx(ptx)),
        "sass": None if sass is None else dataclasses.asdict(sass),
        "shared": compiled.metadata.shared,
        "wgmma": sorted(set(re.findall(r"wgmma[.]mma_async[.][^ ]+", ptx))),
        "four_byte": reading.four_byte_copies(ptx),
        "copies": len(re.findall(r"cp[.]async[.]c[ag]", ptx)),
        "tma": len(re.findall(r"cp[.]async[.]bulk[.]tensor", ptx)),
        "multicast": len(re.findall(r"multicast::cluster", ptx)),
        "remote": len(re.findall(r"mbarrier.arrive[.]shared::cluster", ptx)),
        "rounded": ptx.count("cvt.rna.tf32"),
        "cluster": len(re.findall(r"barrier[.]cluster", ptx)),
        "stores": len(re.findall(TMA_STORE, ptx)),
        "in_order": quarters(ptx),
        "local": len(re.findall(r"[.]local", ptx))}

a, b = torch.empty(2, 2048, 2048)
out = torch.empty_like(a)
wanted, found = json.loads(sys.argv[1]), {}
for name, (left, right, options) in wanted.items():
    x = a.t() if left == "columns" else a
    y = b.t() if right == "K-major" else b
    try:
        found[name] = facts(kernels.compile_product(x, y, out, options))
    except ValueError as error:
        found[name] = str(error)
if not wanted:
    if kernels.CAN_CLUSTER:
        found["cluster softmax"] = facts(
            kernels.compile_softmax_cluster(131072, 8, 16))
    found["hazard"] = facts(reading.compile_rounding(reading.HAZARD[0]))
    found["lesson"] = facts(t.compile_for(
        90, t.matmul_kernel, **t.CONFIGS[0], IEEE=False,
        **t.UNIT_STRIDES["row-major"]))
print(json.dumps(found))
"""
# Each group is compiled by one process.
GROUPS = {
    "registers": {
        "rounded in registers": ("rows", "row-major", {"ROUND": "registers"}),
        "descriptors round": ("rows", "row-major", {"ROUND": "descriptors"}),
        "from registers": ("rows", "row-major", {"PIECES": False}),
        "a cluster": ("rows", "row-major", {"CTAS": 2, "PIECES": False}),
        "A by columns": ("columns", "K-major", {"SWIZZLE": 32}),
        # Where a piece is not square, its two sides cannot be confused.
        "A by columns, long pieces": ("columns", "K-major",
                                      {"BLOCK_M": 256, "BLOCK_N": 128}),
        "long pieces": ("rows", "row-major",
                        {"BLOCK_M": 256, "BLOCK_N": 128})},
    "shared": {
        "as it is": ("rows", "K-major", {}),
        "descriptors round": ("rows", "K-major", {"ROUND": "descriptors"}),
        "from registers": ("rows", "K-major", {"PIECES": False}),
        "a cluster": ("rows", "K-major", {"CTAS": 2, "PIECES": False}),
        "tiles of 256 by 128": ("rows", "K-major",
                                {"BLOCK_M": 256, "BLOCK_N": 128})}}


def compiled(wanted):
    """{name: facts, or the ValueError's text}."""
    path = (f"{ROOT}:{ROOT / 'experiments'}:"
            f"{clean_env().get('PYTHONPATH', '')}")
    result = subprocess.run(
        [sys.executable, "-c", WORKER, json.dumps(wanted)], text=True,
        capture_output=True, env=clean_env(
            PYTHONPATH=path, TRITON_DISABLE_LINE_INFO=1))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("group", in_turn(GROUPS, 0))
def test_gluon_kernels(group):
    found = compiled(GROUPS[group])
    assert found.keys() == GROUPS[group].keys()
    for name, facts in found.items():
        if name == "descriptors round" and not kernels.CAN_ROUND:
            assert "no descriptors that round" in facts
            continue
        if name == "a cluster" and not kernels.CAN_CLUSTER:
            assert "no barrier that two blocks share" in facts
            continue
        from_registers = group == "registers"
        ptx = facts["ptx"]
        # Two consumers, each with four wgmma of 8 steps of K, in tf32 and in
        # nothing else; the left operand from where it should come.
        assert facts["wgmma"] and all(
            name.endswith(".f32.tf32.tf32") for name in facts["wgmma"])
        assert ptx["wgmmas"] >= 2 * 4
        assert ptx["from_registers"] == from_registers * ptx["wgmmas"]
        # All copies are the copy engine's; none moves single values.
        assert facts["tma"] and not facts["copies"] and not facts["four_byte"]
        # Nothing runs where an operand's registers are loaded again.
        assert ptx["running_at_loads"] == 0 and ptx["overwriting"] == []
        if facts["sass"]:
            assert facts["sass"]["wgmmas"] == ptx["wgmmas"]
            assert facts["sass"]["from_registers"] == ptx["from_registers"]
            assert facts["sass"]["overwriting"] == []
            assert facts["sass"]["spills"] == 0
        assert facts["local"] == 0
        assert facts["shared"] <= 227 * 1024
        assert bool(facts["rounded"]) == (name == "rounded in registers")
        # Two consumers store four quarters each, every one in due order; from
        # registers the copy engine stores nothing.
        quarters = 0 if not GROUPS[group][name][2].get("PIECES", True) else 8
        assert facts["stores"] == facts["in_order"] == quarters
        # In a cluster one copy serves both blocks, and both say when they
        # have read it: an arrival that stays in its block would be a race.
        in_cluster = name == "a cluster"
        assert bool(facts["multicast"]) == in_cluster
        assert bool(facts["remote"]) == in_cluster


@pytest.mark.slow
def test_the_hazard_and_the_contrast():
    """The reader does find what it is there to find."""
    found = compiled({})
    hazard = found["hazard"]
    assert hazard["ptx"]["from_registers"] == hazard["ptx"]["wgmmas"] > 0
    assert hazard["four_byte"] == 0  # which is what makes it fast
    # A group runs on while the next step's operand is loaded: in all versions.
    assert hazard["ptx"]["running_at_loads"] >= 1
    # From 3.8 on what is loaded is copied after a wait, and the copy is what
    # wgmma reads: in PTX that is right.  The assembler of 3.8, as the older
    # ones, makes one register of the two again; that of 3.9 does not.
    assert bool(hazard["ptx"]["overwriting"]) == (VERSION < (3, 8))
    if hazard["sass"]:
        assert bool(hazard["sass"]["overwriting"]) == (VERSION < (3, 9))
    # The lesson's kernel: both operands in shared memory, and B, row-major,
    # brought there value by value.
    lesson = found["lesson"]
    assert lesson["four_byte"] > 0 and not lesson["ptx"]["from_registers"]
    assert lesson["ptx"]["overwriting"] == []
    assert ("cluster softmax" in found) == kernels.CAN_CLUSTER
    if kernels.CAN_CLUSTER:
        assert found["cluster softmax"]["cluster"] > 0
        assert found["cluster softmax"]["local"] == 0


# ----------------------------------------------------------------- the reader

LOOP = """
$L__BB0_1:
    ld.shared.b32 %r1, [%r9];
    {copy}
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {{%f1,%f2}}, \
{{{operand}}}, %rd1, 1, 1, 1;
    wgmma.commit_group.sync.aligned;
    {extra}
    wgmma.wait_group.sync.aligned {wait};
    @%p1 bra $L__BB0_1;
    ret;
"""


@pytest.mark.parametrize("operand, copy, extra, wait, running, overwriting", [
    # One wgmma a step: the wait for 0 is what makes the next load safe.
    ("%r1", "", "", 0, 0, 0),
    ("%r1", "", "", 1, 1, 1),
    ("%r1", "", "add.s32 %r1, %r2, %r3;", 0, 0, 1),
    ("%r1", "", "st.shared.b32 [%r1], %r2;", 0, 0, 0),
    ("%r1", "", "@%p2 mov.b32 %r1, %r2;", 0, 0, 1),
    ("%r1", "", "ld.shared.v2.b32 {%r1, %r4}, [%r9];", 0, 1, 1),
    # A value that is made of what was loaded, and a copy of it.
    ("%r5", "and.b32 %r5, %r1, -8192;", "", 1, 1, 1),
    ("%r5", "and.b32 %r5, %r1, -8192;", "", 0, 0, 0),
    # A load that feeds no operand is nobody's business.
    ("%r5", "mov.b32 %r5, %r2;", "", 0, 0, 0)])
def test_reader_of_ptx(operand, copy, extra, wait, running, overwriting):
    text = LOOP.format(operand=operand, copy=copy, extra=extra, wait=wait)
    found = reading.read_ptx(text)
    assert (found.wgmmas, found.from_registers) == (1, 1)
    assert found.running_at_loads == running
    assert len(found.overwriting) == overwriting


def test_reader_takes_turns():
    """Two groups in turn, each with registers of its own: wait 1 will do if
    each is written after the other's start, as Triton 3.8's copies are."""
    group = ("mov.b32 %r{0}, %r2;\n"
             "wgmma.mma_async.x {{%f1}}, {{%r{0}}}, %rd1;\n"
             "wgmma.commit_group.x;\nwgmma.wait_group.x {1};\n")
    for waits, overwriting in (((1, 1), 0), ((2, 2), 2), ((2, 1), 1)):
        text = "$L__BB0_1:\n" + group.format(7, waits[0]) + group.format(
            8, waits[1]) + "@%p1 bra $L__BB0_1;\nret;\n"
        assert len(reading.read_ptx(text).overwriting) == overwriting


def test_reader_follows_jumps():
    text = """
    $L_brx_0: .branchtargets $L__BB0_1, $L__BB0_2;
    wgmma.mma_async.x {%f1}, {%r1}, %rd1;
    wgmma.commit_group.x;
    brx.idx %r3, $L_brx_0;
$L__BB0_1:
    wgmma.wait_group.x 0;
    bra.uni $L__BB0_3;
$L__BB0_2:
    nop;
$L__BB0_3:
    ld.shared.b32 %r1, [%r9];
    ret;
    mov.b32 %r1, %r2;
"""
    found = reading.read_ptx(text)
    assert found.running_at_loads == 1
    assert found.overwriting == ["ld.shared.b32 %r1, [%r9];"]
    waited = text.replace("    nop;", "    wgmma.wait_group.x 0;")
    assert reading.read_ptx(waited).overwriting == []
    in_shared = text.replace("{%r1}", "%rd7")
    assert reading.read_ptx(in_shared) == reading.Reading(1, 0, 0, [])


@pytest.mark.parametrize("line, overwriting", [
    ("LDS R90, [R2+UR4]", 1), ("LDS.128 R88, [R2+UR4]", 1),
    ("LDS.64 R86, [R2+UR4]", 0), ("@P1 IMAD.MOV R91, RZ, RZ, R3", 1),
    ("IMAD.WIDE R91, R3, R4, R6", 1), ("LOP3.LUT P0, R90, R1, R2, RZ", 1),
    ("STS [R90], R91", 0), ("ISETP.NE.AND P0, PT, R90, RZ, PT", 0),
    ("IADD3 R92, R90, R91, RZ", 0)])
def test_reader_of_machine_code(line, overwriting):
    text = f"""
.L_x_1:
        /*0100*/    HGMMA.64x128x8.F32.TF32 R24, R88, gdesc[UR4], R24, gsb0 ;
        /*0110*/    {line} ;
        /*0120*/    WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0130*/    {line} ;
        /*0140*/    @P0 BRA `(.L_x_1) ;
        /*0150*/    EXIT ;
"""
    found = reading.follow(reading.sass_code(text))
    assert (found.wgmmas, found.from_registers) == (1, 1)
    assert len(found.overwriting) == overwriting
    later = text.replace("0x0 ;", "0x1 ;")  # the second line is too early, too
    assert len(reading.follow(reading.sass_code(later)).overwriting
               ) == 2 * overwriting


# -------------------------------------------------------- before the launch

def matrix(rows, cols, layout="rows"):
    if layout == "columns":
        return torch.randn(cols, rows, device=DEVICE).t()
    return torch.randn(rows, cols, device=DEVICE)


@pytest.mark.parametrize("a, b, in_registers, transposed", [
    ("rows", "columns", False, False), ("rows", "rows", True, True),
    ("columns", "columns", True, False)])
def test_which_way(a, b, in_registers, transposed):
    a, b = matrix(8, 12, a), matrix(12, 16, b)
    left, right, *way = kernels.sides(a, b)
    assert way == [in_registers, transposed]
    # Whatever the way, left and right are the operands, K contiguous or not.
    if in_registers:
        left = left.t()
    product = left @ right.t()
    torch.testing.assert_close(product.t() if transposed else product, a @ b)
    assert right.stride(1) == 1


@pytest.mark.parametrize("a, b, words", [
    (matrix(8, 12, "columns"), matrix(12, 16), "copy one"),
    (matrix(8, 24)[:, ::2], matrix(12, 16), r"a \(8, 12\) by rows: .*stride 2"),
    (matrix(8, 13)[:, :12], matrix(12, 16), "52 bytes apart"),
    (matrix(8, 16)[:, 1:13], matrix(12, 16), "does not begin at a multiple"),
    (matrix(8, 12), matrix(12, 15, "columns")[:, :15], None),
    (matrix(8, 12), matrix(12, 17)[:, :16], r"b \(12, 16\) by rows: .*68 byt"),
    (matrix(1, 12).expand(8, 12), matrix(12, 16), "rows overlap")])
def test_what_descriptors_cannot_take(a, b, words):
    if words is None:
        assert kernels.sides(a, b)
        return
    with pytest.raises(ValueError, match=words):
        kernels.sides(a, b)
    out = torch.empty(a.shape[0], b.shape[1], device=DEVICE)
    with pytest.raises(ValueError, match=words):
        kernels.multiply(a, b, out=out)


def test_what_does_not_fit():
    a, b = matrix(8, 12), matrix(12, 16)
    for wrong in (torch.empty(8, 12, device=DEVICE), matrix(8, 1).expand(8, 16),
                  torch.empty(1, device=DEVICE).expand(8, 16)):
        with pytest.raises(ValueError):
            kernels.multiply(a, b, out=wrong)
    with pytest.raises(ValueError, match="k differs"):
        kernels.multiply(a, matrix(8, 16))
    with pytest.raises(ValueError, match="overlaps an input"):
        square = matrix(16, 16)
        kernels.multiply(square, square, out=square)
    with pytest.raises(TypeError, match="float32"):
        kernels.multiply(a.double(), b)
    for options in ({"ROUND": "up"}, {"CTAS": 2, "PIECES": True}):
        with pytest.raises(ValueError):
            kernels.multiply(a, b, options)


@pytest.mark.parametrize("cols, layout, pieces", [
    (16, "rows", True), (4, "rows", True), (516, "rows", True),
    (1, "rows", False), (35, "rows", False), (517, "rows", False),
    (1030, "rows", False), (16, "columns", False)])
@pytest.mark.parametrize("a, b", [("rows", "rows"), ("rows", "columns"),
                                  ("columns", "columns")])
def test_how_the_result_is_stored(cols, layout, pieces, a, b):
    """The copy engine writes 16 bytes or none, so it gets no row that is not
    so many times 16 bytes; and whatever it gets lies as out does."""
    a, b = matrix(8, 12, a), matrix(12, cols + -cols % 4, b)[:, :cols]
    # Rows of memory of a multiple of 16 bytes: a descriptor could be made.
    if layout == "rows":
        out = matrix(8, cols + -cols % 4)[:, :cols]
    else:
        out = matrix(8, cols, "columns")
    options = kernels.OPTIONS | {"BLOCK_M": 256, "BLOCK_N": 128}
    positional, named = kernels.arguments(a, b, out, options)
    transposed = kernels.sides(a, b)[3]
    assert named["PIECES"] == pieces and named["TRANSPOSED"] == transposed
    descriptor, pointer, *strides = positional[2:6]
    if not pieces:
        assert descriptor is None and pointer is out
        assert strides == list(out.stride()[::-1 if transposed else 1])
        return
    assert pointer is None
    assert descriptor.base is out and descriptor.shape == out.shape
    # 128 rows of the product that is computed, 32 of its columns.
    assert descriptor.block_shape == [[128, 32], [32, 128]][transposed]
    from_registers = options | {"PIECES": False}
    assert not kernels.arguments(a, b, out, from_registers)[1]["PIECES"]


def test_nothing_to_multiply():
    out = torch.full((8, 16), torch.nan, device=DEVICE)
    empty = torch.empty(8, 0, device=DEVICE), torch.empty(0, 16, device=DEVICE)
    assert kernels.multiply(*empty, out=out) is out and not out.any()
    assert kernels.multiply(torch.empty(0, 8, device=DEVICE),
                            matrix(8, 16)).shape == (0, 16)


def quiet(check, *args, **named):
    """What a check returns, and what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        passed = check(*args, **named)
    return passed, printed.getvalue()


def one_way(a, b, options, out):
    """multiply() with torch in the place of its kernel."""
    options = kernels.OPTIONS | options
    kernels.check_arguments(a, b, out)
    kernels.check_options(options)
    if out.numel() and a.shape[1]:
        kernels.arguments(a, b, out, options)
    return out.copy_(a.double() @ b.double())


@pytest.mark.interpreter
@pytest.mark.parametrize("small", [False, True])
def test_cases_are_refused_as_they_are_marked(small, monkeypatch):
    """The lesson's checks with everything of multiply() but the kernel."""
    monkeypatch.setattr(kernels, "multiply", one_way)
    for options, cases in speed.planned(small):
        whole = [case for case in cases if max(case.sizes) < 2048]
        passed, printed = quiet(t.matmul_checks, DEVICE, launch=speed.launch,
                                cases=whole, precisions=("tf32",))
        assert passed, printed
        refused = [case for case in whole if case.refused]
        assert len(refused) == printed.count(" refused: ")
        if not refused:
            continue
        assert len(refused) < len(whole) / 2
        # A case that is marked wrongly fails, either way.
        for case in (refused[0], next(c for c in whole if not c.refused)):
            wrong = dataclasses.replace(case, refused=not case.refused)
            try:
                assert not quiet(t.matmul_checks, DEVICE, launch=speed.launch,
                                 cases=[wrong], precisions=("tf32",))[0]
            except ValueError:
                assert case.refused


def test_what_is_checked():
    """Every set of options that can run, all of it for two of them."""
    plan = speed.planned(small=True)
    checked = [options for options, _ in plan]
    for rounding in kernels.ROUNDINGS[:2 + kernels.CAN_ROUND]:
        assert kernels.OPTIONS | {"ROUND": rounding} in checked
    for changes in speed.VARIANTS.values():
        options = kernels.OPTIONS | {"ROUND": speed.ROUND} | changes
        able = options["CTAS"] == 1 or kernels.CAN_CLUSTER
        assert (options in checked) == able
    assert [len(cases) > 20 for _, cases in plan] == (
        [True, True] + [False] * (len(plan) - 2))
    assert [options["PIECES"] for options in checked[:2]] == [True, False]
    for options, cases in plan:
        names = [case.catches for case in cases if not case.refused]
        for name in ("edges of tiles", "an earlier result", "whole numbers",
                     "NaN, inf and -0.0", "2^100 and 2^-100"):
            assert name in names
        # K with a rest, each way; and what a persistent program is for.
        rests = {case.layouts[:2] for case in cases
                 if case.sizes[2] % options["BLOCK_K"]}
        assert rests >= set(speed.WAYS)
        assert ("a second tile" in names) == options["PERSISTENT"]
        for case in cases:
            if case.catches == "a second tile":
                m, n, _ = case.sizes
                for rows, cols in ((m, n), (n, m)):
                    assert -(-rows // 128) * -(-cols // 256) > 132
    many = speed.planned(small=False)
    assert any(case.sizes == (t.SIZE,) * 3 for case in many[-1][1])


# What Triton compiles a number in for, or compiles anew for.
def kind(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return "1" if value == 1 else f"times 16: {value % 16 == 0}"
    if isinstance(value, torch.Tensor):
        return "pointer"
    return repr(getattr(value, "block_shape", value))


def test_few_kernels_are_compiled_and_all_of_them_ahead(monkeypatch):
    """check-small compiles a kernel for each way, and few for the results;
    what is rehearsed is all that is launched."""
    seen = set()

    def note(a, b, options, out):
        if out.numel() and a.shape[1]:
            positional, named = kernels.arguments(a, b, out, options)
            # k, the last, is not specialised.
            seen.add((*map(kind, positional[:-1]), *named.items()))
    monkeypatch.setattr(kernels, "multiply", note)
    plan = speed.planned(small=True)
    for _, cases in plan:
        for run in speed.rehearsals(cases):
            run()
    rehearsed = set(seen)
    for _, cases in plan:
        for case in cases:
            if not case.refused:
                speed.rehearsal(case)()
    in_clusters = {each for each in seen if ("CTAS", 2) in each}
    assert seen == rehearsed | in_clusters and not rehearsed & in_clusters
    assert bool(in_clusters) == kernels.CAN_CLUSTER
    assert len(seen) <= 3 * len(plan) + 12


# --------------------------------------------------- kernels in plain Triton

@pytest.mark.parametrize("name", ["four rows a program", "in pieces",
                                  "in pieces, backwards"])
def test_softmaxes(name):
    run, lowest, highest = speed.softmax_launchers()[name]
    cases = []
    for case in speed.softmax_cases(lowest, highest):
        if GPU or max(case.sizes) < 5000:
            cases.append(case)
    passed, printed = quiet(t.softmax_checks, DEVICE, launch=run, cases=cases)
    assert passed, printed
    assert printed.count("pass  ") >= 25


@pytest.mark.parametrize("rows, cols", [(1, 1), (64, 64), (70, 130), (3, 200)])
def test_transposed_copy(rows, cols):
    x = torch.randn(rows + 1, cols + 3, device=DEVICE)[1:, 3:]
    memory = torch.full((cols + 2, rows + 2), 7.0, device=DEVICE)
    out = kernels.transposed_copy(x, memory[1:-1, 1:-1])
    assert torch.equal(out, x.t())
    memory[1:-1, 1:-1] = 7
    assert (memory == 7).all()
    with pytest.raises(ValueError):
        kernels.transposed_copy(x, torch.empty(rows, cols + 1, device=DEVICE))


@pytest.mark.interpreter
def test_rounding_kernel_rounds():
    """On a GPU it may go wrong; in the interpreter it is the lesson's, with a
    rounded to the nearest tf32."""
    a, b = matrix(70, 40), matrix(40, 30)
    got = t.matmul(a, b, False, t.CONFIGS[0], kernel=kernels.rounding_kernel)
    bits = (a.view(torch.int32) + 0x1000) & -0x2000
    want = t.matmul(bits.view(torch.float32), b, False, t.CONFIGS[0])
    assert got.equal(want)
    assert not got.equal(t.matmul(a, b, False, t.CONFIGS[0]))
    exact = t.matmul(a, b, True, t.CONFIGS[0], kernel=kernels.rounding_kernel)
    assert exact.equal(t.matmul(a, b, True, t.CONFIGS[0]))


# ---------------------------------------------------------------- the program

@pytest.mark.parametrize("args, status, words", in_turn([
    (["--help"], 0, "How far is the library"),
    (["tf32-1024"], 2, "'tf32-1024' is no part; parts: check, tf32-2048"),
    (["ieee", "soak:many"], 2, "a number of launches goes with"),
    (["ieee:5"], 2, "goes with soak and hazard alone")], 0, 2))
def test_arguments(args, status, words):
    assert words in ended(run_script(*args, script=SPEED), status)


def test_parts_are_chosen():
    names = [name for name, _ in speed.chosen([])]
    assert names == list(speed.PARTS) and "soak" not in names
    chosen = speed.chosen(["--soak:7", "ieee"])
    assert [name for name, _ in chosen] == ["--soak:7", "ieee"]


@pytest.mark.parametrize("script", in_turn([SPEED, READING], 0))
def test_refused_when_interpreting(script):
    out = ended(run_script(script=script, env={"TRITON_INTERPRET": "1"}), 1)
    assert "refused: " in out


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_refused_without_a_gpu():
    assert "refused: no" in ended(run_script("ieee", script=SPEED), 1)


def test_other_cards_are_refused(monkeypatch):
    monkeypatch.setattr(t, "INTERPRET", False)
    monkeypatch.setattr(t, "refusal", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A CARD")
    for capability, refused in (((8, 0), True), ((9, 0), False),
                                ((10, 0), True), ((12, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability",
                            lambda capability=capability: capability)
        words = speed.refusal()
        assert bool(words) == refused
        assert not refused or "A CARD has capability" in words


@pytest.fixture
def without_a_card(monkeypatch):
    """The program's parts with small sizes and a made-up clock, and torch in
    the place of every kernel."""
    def matmul(a, b, ieee, config=None, out=None, kernel=None):
        return out.copy_(a.double() @ b.double())

    def softmax(x, out, *_):
        return out.copy_(torch.softmax(x.double(), 1))

    def timed(run, warmup=0, rep=0):
        run()
        return 0.5

    class SoftmaxKernel:
        def __getitem__(self, grid):
            return lambda x, out, *_, **__: softmax(x, out)

    monkeypatch.setattr(kernels, "multiply", one_way)
    for name in ("softmax_rows", "softmax_pieces"):
        monkeypatch.setattr(kernels, name, softmax)
    monkeypatch.setattr(t, "matmul", matmul)
    monkeypatch.setattr(t, "softmax", softmax)
    monkeypatch.setattr(t, "softmax_kernel", SoftmaxKernel())
    monkeypatch.setattr(t, "SIZE", 64)
    monkeypatch.setattr(speed, "timed", timed)
    monkeypatch.setattr(speed, "recorded", lambda run: run)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(speed, "ELEMENTS", 2**16)
    monkeypatch.setattr(speed, "WANTED", {
        (layout, 96): (1, 1) for layout in t.B_LAYOUTS})
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return monkeypatch


@pytest.mark.interpreter
def test_ladder(without_a_card):
    right, printed = quiet(speed.tf32, 96)
    assert right, printed
    for rung in ("torch.mm", "the lesson's kernel", "the search",
                 "operands swapped", "B copied by torch",
                 "B copied by a kernel", "UNSAFE: B^T in registers", "Gluon",
                 "Gluon, B^T rounded", "  persistent",
                 "  stored from registers"):
        assert f"\n{rung}  " in printed
    for rung, can in (("Gluon, descriptors round", kernels.CAN_ROUND),
                      ("  a cluster of two", kernels.CAN_CLUSTER)):
        line = next(line for line in printed.splitlines()
                    if line.startswith(rung))
        assert ("cannot: " in line) != can


@pytest.mark.interpreter
def test_ladder_with_a_wrong_rung(without_a_card):
    honest = kernels.multiply
    without_a_card.setattr(kernels, "multiply",
                           lambda *args: honest(*args).mul_(1.01))
    right, printed = quiet(speed.tf32, 96)
    assert not right and " WRONG" in printed
    # But for the one that is there to be wrong.
    without_a_card.setattr(kernels, "multiply", honest)
    plain = t.matmul

    def wrong_in_registers(*args, kernel=None):
        out = plain(*args)
        if kernel is kernels.rounding_kernel:
            out += 1
        return out
    without_a_card.setattr(t, "matmul", wrong_in_registers)
    right, printed = quiet(speed.tf32, 96)
    assert right and printed.count(" WRONG") == 1


@pytest.mark.interpreter
def test_other_parts(without_a_card):
    right, printed = quiet(speed.ieee)
    assert right and "\nA copied by columns" in printed
    assert "FlagGems" in printed
    right, printed = quiet(speed.softmax, (32, 1000, 20000))
    assert right and "\n     32 " in printed and "\n  20000 " in printed
    without_a_card.setattr(kernels, "softmax_rows", lambda x, out, *_: out)
    right, printed = quiet(speed.softmax, (32,))
    assert not right and "WRONG: rows" in printed


@pytest.mark.interpreter
def test_soak_counts(without_a_card):
    """A launch that differs in one bit is seen, in each condition."""
    without_a_card.setattr(torch.cuda, "Stream", lambda: None)
    without_a_card.setattr(torch.cuda, "stream",
                           lambda stream: contextlib.nullcontext())
    without_a_card.setattr(speed, "COLD", 16)
    without_a_card.setattr(speed, "BUSY", 16)
    out, launches = torch.empty(4, 4), []

    def run():
        launches.append(0)
        out.fill_(1.0 + (len(launches) == odd) * 2**-23)
    # The first launch says what is expected, then there are three of each.
    for odd, differed in ((0, "cold cache 0, warm cache 0, busy stream 0"),
                          (5, "cold cache 0, warm cache 1, busy stream 0"),
                          (10, "cold cache 0, warm cache 0, busy stream 1")):
        launches.clear()
        right, printed = quiet(speed.soaked, "name", run, out, 3)
        assert right == (odd == 0) and differed in printed


@pytest.mark.interpreter
def test_soak_says_the_options(without_a_card):
    lines = []
    without_a_card.setattr(speed, "SOAKED", 64)
    without_a_card.setattr(
        speed, "soaked", lambda name, run, out, count: lines.append(name) or 1)
    right, printed = quiet(speed.soak, 5)
    assert right and "soak: 5 launches" in printed
    assert "PIECES=True" in printed  # what holds where nothing is said
    assert len(lines) == len(set(lines))
    for layout in t.B_LAYOUTS:
        rounds = f" ROUND={speed.ROUND}"
        if layout == "K-major" and not kernels.CAN_ROUND:
            rounds = ""
        for told in ("as it is", "PIECES=False" + rounds,
                     "PERSISTENT=True" + rounds):
            assert f"{layout} B, {told}" in lines
    clusters = [line for line in lines if "CTAS=2" in line]
    assert len(clusters) == 4 * kernels.CAN_CLUSTER


@pytest.mark.interpreter
def test_ahead_of_time(without_a_card):
    """Every run is launched, also behind one that fails."""
    done = []

    def fails():
        raise ValueError("this one cannot")
    speed.compile_ahead([fails, *(speed.bind(done.append, i)
                                  for i in range(30))])
    assert sorted(done) == [*range(30)]


@pytest.mark.interpreter
def test_parts_share_a_header(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["library_speed.py", "ieee", "hazard"])
    monkeypatch.setattr(speed, "refusal", lambda: None)
    monkeypatch.setitem(speed.PARTS, "ieee", lambda: True)
    monkeypatch.setitem(speed.EXTRA, "hazard", lambda: False)
    assert speed.main() == 3
    printed = capsys.readouterr().out
    assert printed.count(" UTC\n") == printed.count("\nTriton ") == 1
    for words in ("\n===== ieee\n", "\n===== ieee: right, ",
                  "\n===== hazard\n", "\n===== hazard: WRONG, ",
                  "\nwrong: hazard\n"):
        assert printed.count(words) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not HOPPER, reason="needs a GPU of capability 9.0")
def test_checks_on_a_hopper():
    passed, printed = quiet(speed.check_small)
    assert passed, printed
