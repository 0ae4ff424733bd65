"""experiments/speed.py, search.py and precision.py, without their hours.

What they measure needs a GPU; that they refuse to measure without one, what
they would time, and how they print it does not. Here the sizes are small, and
under the interpreter a stand-in for the clock counts up.
"""
import importlib.util
import inspect
import re
import statistics
import sys

import numpy as np
import pytest
import torch
import triton
from conftest import DEVICE, GPU, ROOT, ended, in_turn, run_script

sys.path.insert(0, str(ROOT / "experiments"))
import precision  # noqa: E402
import search  # noqa: E402
import speed  # noqa: E402
import triton_softmax_matmul as t  # noqa: E402

def load_archive():
    """transcripts/archive.py; the folder of transcripts gets no __pycache__."""
    spec = importlib.util.spec_from_file_location(
        "archive", ROOT / "transcripts" / "archive.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


archive = load_archive()
PROGRAMS = ["speed", "search", "precision"]
MS = r"\d+\.\d{{4}}"
ROW = rf"^{{}} +{MS} ms \({MS} \.\. {MS}\) +\d+\.\d\d {{}} \d"


@pytest.fixture
def clock(monkeypatch):
    """In the interpreter's place of a clock: each timing takes 1 ms longer.

    On a GPU the real one stays. The list holds what was timed: (run, graph).
    """
    timed = []

    def milliseconds(run, graph=True):
        run()
        timed.append((run, graph))
        now = float(len(timed))
        return now, now - 0.5, now + 0.25

    if not GPU:
        monkeypatch.setattr(t, "milliseconds", milliseconds)
        monkeypatch.setattr(search, "glance",
                            lambda run: milliseconds(run)[0])
        monkeypatch.setattr(t, "sweep_operands", small_operands)
        monkeypatch.setattr(torch.cuda, "get_device_capability",
                            lambda: (9, 0))
    return timed


def small_operands():
    """What t.sweep_operands gives, where there is no GPU."""
    generator = torch.Generator("cpu").manual_seed(86)
    return torch.randn(2, t.SIZE, t.SIZE, generator=generator)


def rows_read(printed):
    """The rows with times that the archive's tool finds in what was printed."""
    return archive.read_rows(printed.splitlines())[0]


# ------------------------------------------------------- ways in, and ways out
@pytest.mark.interpreter
@pytest.mark.parametrize("mode", in_turn(["1", None], 2))
@pytest.mark.parametrize("name", in_turn(PROGRAMS, 3))
def test_nothing_is_measured_without_a_gpu(name, mode):
    out = ended(run_script(script=ROOT / "experiments" / f"{name}.py",
                           env={"TRITON_INTERPRET": mode}), 1)
    lines = out.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", lines[0])
    assert lines[1].startswith("script ")
    if mode:
        assert "\nrefused: TRITON_INTERPRET is set" in out
    else:
        assert "\nrefused: no " in out
    assert " ms" not in out


@pytest.mark.parametrize("program", [speed, search, precision])
def test_arguments(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["the program", "--help"])
    assert program.main() == 0
    out = capsys.readouterr().out
    assert f"python3 experiments/{program.__name__}.py " in out
    assert "exit status" in out
    monkeypatch.setattr(sys, "argv", ["the program", "2048"])
    assert program.main() == 2
    out = capsys.readouterr().out
    assert out.startswith("usage: ") and "2048" in out


# ------------------------------------------------------------------------ speed
@pytest.mark.parametrize("cols", speed.WIDTHS)
def test_the_launchers_warps_are_one_for_512_lanes(cols):
    block, warps = speed.launchers_choice(cols)
    assert block == triton.next_power_of_2(cols)
    assert warps == max(1, min(32, block // 512))
    around = speed.warps_around(warps)
    assert warps in around and around == sorted(set(around))
    assert all(1 <= number <= 32 for number in around)
    # It is compared with fewer warps and with more, where there are such.
    assert min(around) < warps or warps == 1
    assert max(around) > warps or warps == 32


def test_warps_around():
    assert speed.warps_around(1) == [1, 2, 4]
    assert speed.warps_around(2) == [1, 2, 4, 8]
    assert speed.warps_around(8) == [2, 4, 8, 16, 32]
    assert speed.warps_around(32) == [8, 16, 32]


def test_softmax_with_warps_of_ones_own(device):
    x = torch.randn(3, 300, device=device)
    out = speed.softmax_with(x, torch.empty_like(x), 512, 4)
    want = t.softmax64(x.cpu().numpy())
    assert np.abs(out.cpu().numpy() - want).max() < 1e-6


def test_summary_of_a_width():
    times = {"device copy": 0.5, "torch.softmax": 0.6, "1 warp": 0.4,
             "2 warps": 0.5, "4 warps": 0.625, "8 warps": 1.0}
    assert speed.summary(1024, 2, times) == (
        "  1024 columns, 2 warps    1.000  1.200  0.800  best with 1 warp")
    del times["2 warps"]
    assert "2 warps do not fit" in speed.summary(1024, 2, times)


def test_int64_differs_in_one_line():
    lesson = inspect.getsource(t.plain_function(t.matmul_kernel)).splitlines()
    wide = speed.int64_source().splitlines()[-len(lesson):]
    differ = [pair for pair in zip(lesson, wide, strict=True)
              if pair[0] != pair[1]]
    assert differ == [("    pid = tl.program_id(0)",
                       "    pid = tl.program_id(0).to(tl.int64)")]


def test_int64_kernel_passes_the_lessons_checks(tmp_path, device, capsys):
    wide = speed.int64_kernel(tmp_path)

    def launch(a, b, ieee, config, out):
        return t.matmul(a, b, ieee, config, out, wide)

    assert t.matmul_checks(device, launch, t.matmul_cases()[:4])
    assert capsys.readouterr().out.count("pass") == 8


def test_rounds_take_turns(monkeypatch):
    order = []
    times = {"one": iter([3, 1, 2]), "two": iter([9, 4, 5])}

    def milliseconds(run):
        order.append(run())
        return next(times[order[-1]]), 0, 0

    monkeypatch.setattr(t, "milliseconds", milliseconds)
    runs = {"one": lambda: "one", "two": lambda: "two"}
    assert speed.medians_in_turns(runs) == {
        "one": statistics.median([3, 1, 2]), "two": 5}
    assert order == ["one", "two"] * speed.ROUNDS


def test_softmax_by_width_prints_rows_and_a_summary(monkeypatch, clock,
                                                    capsys):
    monkeypatch.setattr(speed, "ELEMENTS", 2**12)
    monkeypatch.setattr(speed, "WIDTHS", (200, 1024))
    speed.softmax_by_width()
    out = capsys.readouterr().out
    for name in ("device copy", r"torch\.softmax", "1 warp", "2 warps",
                 "4 warps"):
        assert len(re.findall(ROW.format(name, "TB/s"), out, re.M)) == 2
    assert len(re.findall(ROW.format("8 warps", "TB/s"), out, re.M)) == 1
    assert "\nsoftmax, 20 x 200: median" in out
    assert "\nsoftmax, 4 x 1024: median" in out
    last = out.splitlines()[-2:]
    assert re.match(r" +200 columns, 1 warp +\d\.\d{3}  \d", last[0])
    assert re.match(r" +1024 columns, 2 warps +\d\.\d{3}  \d", last[1])
    assert len(rows_read(out)) == 11
    if not GPU:
        graphs = [graph for _, graph in clock]
        # The copy is the first of each width, and the one that is no graph.
        assert graphs == [False, *[True] * 4, False, *[True] * 5]


def test_offsets_are_compared_in_every_case(monkeypatch, clock, tmp_path,
                                            capsys):
    monkeypatch.setattr(t, "SIZE", 64)
    monkeypatch.setattr(t, "CONFIGS", t.CONFIGS[:2])
    speed.time_offsets(speed.int64_kernel(tmp_path))
    rows = rows_read(capsys.readouterr().out)
    assert len(rows) == len({row["name"] for row in rows}) == 8
    for row in rows:
        ratio = float(row["table"]["ms"]) / float(row["table"]["ms with 32"])
        assert float(row["table"]["ratio"]) == pytest.approx(ratio, rel=0.02)


# ----------------------------------------------------------------------- search
def test_what_is_searched():
    assert len(search.ways()) == len(set(search.ways())) == 8
    for precision_, layout, way in search.ways():
        if way != "as it is":
            assert layout == search.DISLIKED[precision_]
    for name in t.PRECISIONS:
        found = search.configs(name)
        assert len({search.full_name(config) for config in found}) == len(
            found) > 40
        for config in found:
            m, n, k = t.block_shape(config)
            assert (m + n) * k * 4 * config["num_stages"] <= 227 * 1024
    big = {"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_K": 16, "GROUP_M": 4,
           "num_warps": 4, "num_stages": 3}
    assert search.worth_trying("tf32", big)
    assert not search.worth_trying("ieee", big)
    assert search.worth_trying("ieee", {**big, "num_warps": 8})
    assert not search.worth_trying("tf32", {**big, "num_stages": 12})


def test_all_that_is_timed_is_compiled_first():
    compiled = {}
    for precision_, layout, way, config in search.cases_to_compile():
        settings = tuple(config.items())
        compiled.setdefault((precision_, layout, way), set()).add(settings)
    for precision_, layout, way in search.ways():
        if way == "B copied":  # multiplied in the other layout
            layout, way = search.OTHER[layout], "as it is"
        for config in search.configs(precision_):
            assert tuple(config.items()) in compiled[precision_, layout, way]
    for config in search.GROUP_CONFIGS:
        for group in search.GROUPS:
            settings = tuple({**config, "GROUP_M": group}.items())
            assert settings in compiled["tf32", "K-major", "as it is"]
    sizes = [search.size_of_code(case) for case in search.cases_to_compile()]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1] == 0


@pytest.mark.parametrize("way", search.ways())
def test_every_way_is_the_same_product(way):
    operands = search.Operands(96)
    for layout, stride in ("row-major", (96, 1)), ("K-major", (1, 96)):
        assert operands.b[layout].stride() == stride
        assert operands.scratch[layout].stride() == stride
    config = {**t.CONFIGS[0], "BLOCK_N": 128}
    out = search.product(operands, *way, config)
    want, scale = t.matmul64(operands.a.cpu().numpy(),
                             operands.b["K-major"].cpu().numpy())
    error = (np.abs(operands.out.cpu().numpy() - want) / scale).max()
    assert error <= t.matmul_tolerance(96, way[0])[0]
    assert out.data_ptr() == operands.out.data_ptr()
    operands.out.zero_()
    search.library(operands, *way[:2])
    assert np.abs(operands.out.cpu().numpy() - want).max() < 0.1


def test_what_is_multiplied_after_a_copy_has_the_other_layout(monkeypatch):
    strides = []

    def matmul(a, b, ieee, config, out):
        strides.append((a.stride(), b.stride(), out.stride(), ieee))

    monkeypatch.setattr(t, "matmul", matmul)
    operands = search.Operands(8)
    search.product(operands, "tf32", "row-major", "B copied", {})
    search.product(operands, "ieee", "K-major", "B copied", {})
    search.product(operands, "tf32", "row-major", "swapped", {})
    search.product(operands, "tf32", "row-major", "as it is", {})
    assert strides == [((8, 1), (1, 8), (8, 1), False),
                       ((8, 1), (8, 1), (8, 1), True),
                       ((1, 8), (1, 8), (1, 8), False),
                       ((8, 1), (8, 1), (8, 1), False)]


def test_the_three_fastest_are_timed_with_care(monkeypatch, clock, capsys):
    """And a config that does not run is left out, and stops nothing."""
    monkeypatch.setattr(t, "SIZE", 64)
    full = search.configs("tf32")
    monkeypatch.setattr(search, "configs", lambda name: full[:6])
    times = iter([5, 3, 9, 1, 2])

    def glance(run):
        if run.args[-1] == full[2]:
            raise triton.OutOfResources(300, 200, "shared memory")
        return next(times)

    monkeypatch.setattr(search, "glance", glance)
    operands = search.Operands(64)
    found = search.best_configs(operands, "tf32", "K-major", "as it is")
    assert found == [full[4], full[5], full[1]]
    times = iter([5, 3, 9, 1, 2])
    search.search(operands, "tf32", "K-major", "as it is")
    out = capsys.readouterr().out
    assert out.startswith("\n64 cubed, tf32, K-major B, as it is: median")
    names = [row["name"] for row in rows_read(out)]
    assert names == ["torch.mm", *(search.full_name(config).strip()
                                   for config in found)]
    stops = [line.index(" ms (") for line in out.splitlines()[2:]]
    assert len(set(stops)) == 1  # the columns stand below each other


@pytest.mark.gpu
def test_cases_are_compiled_in_other_processes(monkeypatch, capsys):
    fits = {**search.GROUP_CONFIGS[0]}
    does_not = {**search.GROUP_CONFIGS[2], "num_stages": 12}
    monkeypatch.setattr(search, "cases_to_compile", lambda: [
        ("tf32", "K-major", "as it is", fits),
        ("tf32", "K-major", "as it is", does_not)])
    search.compile_all()
    assert capsys.readouterr().out == (
        "\n2 kernels compiled, of which 1 do not run on this card\n"
        "    1 times OutOfResources\n")
    operands = search.Operands(256)
    assert 0 < search.glance(lambda: search.library(operands, "tf32",
                                                    "K-major")) < 10


def test_groups_are_timed_beside_groups_of_one(monkeypatch, clock, capsys):
    monkeypatch.setattr(search, "GROUP_CONFIGS", search.GROUP_CONFIGS[:2])
    search.time_groups(128)
    rows = rows_read(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [
        "GROUP_M 1", "GROUP_M 4", "GROUP_M 8", "GROUP_M 16",
        "GROUP_M 1, again"] * 2
    assert {row["section"] for row in rows} == {
        "128 cubed, tf32, K-major B, 64,64,32 w4 s3",
        "128 cubed, tf32, K-major B, 128,128,32 w4 s3"}
    if not GPU:
        asked = [run.args[-1]["GROUP_M"] for run, _ in clock]
        assert asked == [1, 4, 8, 16, 1] * 2


def test_the_groups_that_are_asked_for_are_searched():
    assert search.GROUPS == (1, 4, 8, 16) and 8192 in search.GROUP_SIZES
    assert t.SIZE in search.GROUP_SIZES
    names = [search.full_name(config).strip()
             for config in search.GROUP_CONFIGS]
    assert names == ["64,64,32 w4 s3", "128,128,32 w4 s3", "128,256,32 w8 s3"]


# -------------------------------------------------------------------- precision
def test_the_kernel_is_the_lessons_but_for_the_string():
    lesson = code_of(t.matmul_kernel)
    ours = code_of(precision.matmul_kernel)
    branch = ["if IEEE:", 'acc = tl.dot(a, b, acc, input_precision="ieee")',
              "else:", 'acc = tl.dot(a, b, acc, input_precision="tf32")']
    at = lesson.index(branch[0])
    assert lesson[at:at + 4] == branch
    lesson[at:at + 4] = ["acc = tl.dot(a, b, acc, input_precision=PRECISION)"]
    end = lesson.index("IEEE: tl.constexpr):")
    lesson[end] = "IEEE: tl.constexpr, PRECISION: tl.constexpr):"
    assert ours == lesson


def code_of(kernel):
    """The lines of a kernel that are neither blank nor comment, stripped."""
    lines = inspect.getsource(t.plain_function(kernel)).splitlines()
    return [line.strip() for line in lines
            if line.strip() and not line.strip().startswith("#")]


@pytest.mark.parametrize(("name", "count"), [("tf32", 1), ("tf32x3", 3)])
def test_instructions_are_counted_by_name(name, count):
    told = precision.instructions(90, name, "K-major", precision.CONFIGS[-1])
    alone = precision.instructions(90, "tf32", "K-major",
                                   precision.CONFIGS[-1])
    number, _, instruction = told.partition("x")
    assert instruction.startswith("wgmma.mma_async") and "tf32" in instruction
    assert int(number) == count * int(alone.partition("x")[0])
    assert " " not in told


def test_a_table_of_precisions(monkeypatch, clock, capsys):
    monkeypatch.setattr(t, "SIZE", 64)
    monkeypatch.setattr(precision, "instructions", lambda *args: "4xwgmma")
    monkeypatch.setattr(precision, "NAMES",
                        ("ieee", "tf32", "tf32-rounded", "tf32x3", "none"))
    assert precision.measure() == 0
    out = capsys.readouterr().out
    rows = rows_read(out)
    assert len(rows) == len({row["name"] for row in rows}) == 14
    for layout in t.B_LAYOUTS:
        reason, = (row["reason"] for row in rows
                   if row["name"] == f"none {layout}")
        assert reason.startswith("cannot: ")
        errors = {}
        for row in rows:
            if row["name"].endswith(layout) and not row["reason"]:
                errors[row["name"].split()[0]] = float(row["table"]["error"])
                assert row["low"] < row["milliseconds"] < row["high"] or GPU
        assert errors.keys() == {"ieee", "tf32", "tf32-rounded", "tf32x3",
                                 "torch.mm-ieee", "torch.mm-tf32"}
        # Rounded operands are off by more than float32 is, anywhere.
        assert 1e-5 < errors["tf32-rounded"] < 2e-3
        assert errors["ieee"] < 1e-6 and errors["torch.mm-ieee"] < 1e-6
    columns, = re.findall("^precision .*", out, re.M)
    assert re.split(r"\s\s+", columns) == [
        "precision", "B", "config", "ms", "20 %", "80 %", "TFLOP/s", "error",
        "instructions"]


def test_a_card_that_no_config_fits_has_a_row_that_says_so(monkeypatch, capsys):
    def milliseconds(run, graph=True):
        raise triton.OutOfResources(300, 200, "shared memory")

    monkeypatch.setattr(t, "milliseconds", milliseconds)
    a = torch.ones(8, 8, device=DEVICE)
    precision.triton_row("ieee", a, a, "row-major", None)
    assert capsys.readouterr().out == (
        "ieee           row-major cannot: ValueError: no config fits this "
        "card\n")


def test_the_fastest_config_is_taken(monkeypatch):
    times = iter([(3, 2, 4), (1, 0.5, 2), (2, 1, 3)])
    monkeypatch.setattr(t, "milliseconds", lambda run: next(times))
    assert precision.fastest(None, None, "ieee", None) == (
        (1, 0.5, 2), precision.CONFIGS[1])
