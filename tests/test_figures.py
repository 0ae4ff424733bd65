"""The figures: readable by machine and by ear, and true to their sources."""
import collections
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import triton
from conftest import ROOT, clean_env

FIGURES = ROOT / "figures"
sys.path.insert(0, str(FIGURES))
import diagrams  # noqa: E402
import drawing  # noqa: E402
import plots  # noqa: E402
import triton_softmax_matmul as t  # noqa: E402

DIAGRAM = FIGURES / "where-the-barriers-went.svg"
SVG = "{http://www.w3.org/2000/svg}"
NAMES = sorted(path.name for path in FIGURES.glob("*.svg"))
DRAWN = [name for name in NAMES if name != DIAGRAM.name]  # by drawing.py
HEADER = """2026-11-30 04:12:08 UTC
script 0123456789ab, kernels and CONFIGS 0123456789ab
Python 3.12.3, numpy 2.5.2, torch 2.13.0+cu130, CUDA 13.0
Triton 3.7.1, torch's own pin
NVIDIA H200, compute capability 9.0, 143155 MiB, driver 580.159.04
"""
ROWS = ["torch.mm", "64,64,32", "128,64,32", "128,128,32"]
SPEEDS = {  # TFLOP/s of the rows above
    ("ieee", "row-major"): [50.25, 40.25, 30.25, 20.25],
    ("ieee", "K-major"): [50.5, 10.5, 20.5, 25.5],
    ("tf32", "row-major"): [330.75, 45.75, 75.75, 70.75],
    ("tf32", "K-major"): [340.25, 180.25, 200.25, 280.25]}
WORK = 2 * 2048**3 * 1e-9
RUN = HEADER
for (precision, layout), speeds in SPEEDS.items():
    RUN += (f"\n2048 cubed, {precision}, {layout} B: median (20 % .. 80 %), "
            "rate, speed over the first's\n")
    for name, rate in zip(ROWS, speeds, strict=True):
        ms = WORK / rate
        RUN += (f"{name:<14} {ms:.4f} ms ({0.96 * ms:.4f} .. {1.08 * ms:.4f}) "
                f"{rate:6.2f} TFLOP/s {rate / speeds[0]:.2f}\n")
RUN += """
softmax, 65536 x 1024: median (20 % .. 80 %), rate, speed over the first's
device copy    0.1314 ms (0.1307 .. 0.1330)   4.09 TB/s 1.00
exit 6
"""
FITS_NOT = re.sub(r"(?m)^(128,128,32 ) .* 280\.25 TFLOP.*$",
                  r"\1     does not fit: shared memory, 196608 required, "
                  "101376 available", RUN)
STRINGS = ["ieee", "tf32", "tf32-rounded", "tf32x3", "bf16x3",
           "bf16x6", "torch.mm-ieee", "torch.mm-tf32"]
PRECISION = HEADER + "\n2048 cubed, the fastest of 3 configs\n"
for at, layout in enumerate(["row-major", "K-major"]):
    for turn, name in enumerate(STRINGS):
        PRECISION += (f"{name:<14} {layout:<9} 128,128,32,w8,s3    "
                      f"0.{turn + 1}{at}50   0.{turn + 1}{at}40   "
                      f"0.{turn + 1}{at}70    43.47 {turn + 1}.25e-0{at + 5}"
                      "  4xwgmma\n")
PRECISION += "exit 0\n"
# A rung's ratio and its error over torch.mm's; the last are a variant's.
RUNGS = {
    "row-major": {"torch.mm": ("1.000", "1.00"),
                  "the lesson's kernel": ("0.215", "2.61"),
                  "UNSAFE: B^T in registers": ("0.825", "9.99"),
                  "Gluon": ("1.035", "2.63"),
                  "  groups of 1": ("1.099", "1.01")},
    "K-major": {"torch.mm": ("1.000", "1.00"),
                "the lesson's kernel": ("0.812", "2.64"),
                "Gluon": ("0.985", "2.65"),
                "  groups of 1": ("1.098", "1.02")}}
LADDER = HEADER + "\n===== ieee\n\nieee, 2048 cubed, row-major B: ms\n"
LADDER += "torch.mm                    0.3412  1.000  3.1e-07  \n"
for size in (2048, 4096):
    for layout, rungs in RUNGS.items():
        LADDER += (f"\ntf32, {size} cubed, {layout} B: ms, TFLOP/s, ratio to "
                   "torch.mm, error, over torch.mm's error\n")
        for name, (ratio, error) in rungs.items():
            label = "128,128,32 w4 s3" if "kernel" in name else ""
            label += " WRONG" * name.startswith("UNSAFE")
            LADDER += (f"{name:<28}   0.0520   330.6  {ratio}  5.09e-05  "
                       f"{error}  {label}\n")
        LADDER += "  a cluster of two           cannot: ValueError: no\n"
        LADDER += "best in Gluon: groups of 1, 1.099; wanted: 1.03\n"
LADDER += "===== tf32-2048: right, 21 s\nexit 0\n"


def said(element):
    """The text of an element, each run of blanks as one."""
    return " ".join("".join(element.itertext()).split())


def figure(name):
    """The root of a figure in the folder."""
    return ElementTree.parse(FIGURES / name).getroot()


# ------------------------------------------------------------------- every one
def check_svg(text):
    root = ElementTree.fromstring(text)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert root.get("width") == "700"
    assert root.get("viewBox") == f"0 0 700 {root.get('height')}"
    for name in ("title", "desc"):
        element, = root.findall(SVG + name)
        assert element.get("id") == name
        assert said(element)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert root.findall(f".//{SVG}text"), "text is not text"
    # No path of somebody's machine, and nothing loaded from elsewhere.
    assert not re.search(r"(?<![\w:/.])/(home|root|tmp|usr|work)/|file:|\\\\",
                         text)
    assert "nan" not in text and "inf\"" not in text
    for element in root.iter():
        for name, value in element.items():
            if name.endswith("href"):
                assert value.startswith("#")


def test_all_figures_are_here():
    assert {"tile-order.svg", "masked-tail.svg", "sweep-h200.svg",
            "precision-h200.svg", DIAGRAM.name} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_figure_is_sound(name):
    check_svg((FIGURES / name).read_text(encoding="utf-8"))


def schemes(style):
    """{selector: colours} on paper and light screens, and on dark ones."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    dark = re.search(r"@media screen and \(prefers-color-scheme: dark\) \{"
                     r"((?:[^{}]*\{[^{}]*\})*)\s*\}", style)
    found = []
    for part in (style.replace(dark[0], ""), dark[1]):
        colours = {}
        for selectors, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", part):
            for selector in selectors.split(","):
                for rule, value in re.findall(
                        r"(fill|stroke):\s*(#[0-9a-f]+)", rules):
                    colours[selector.strip(), rule] = value
        found.append(colours)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_colour_has_a_dark_one(name):
    root = figure(name)
    light, dark = schemes(root.find(SVG + "style").text)
    assert light[".page", "fill"] == "#fff"
    assert light["text", "fill"] != dark["text", "fill"]
    used = {"text"}
    for element in root.iter():
        for word in (element.get("class") or "").split():
            used.add("." + word)
        assert not re.search("#[0-9a-f]{3}", element.get("fill") or "")
        assert element.get("style") is None
    lacking = set()
    for selector, rule in light:
        if selector in used and (selector, rule) not in dark:
            lacking.add((selector, rule))
    # What is white on a coloured ground may be so on any screen.
    assert not lacking - {(".node", "stroke")}
    page = root.find(f"{SVG}rect[@class='page']")
    assert page.get("width") == "700"
    assert page.get("height") == root.get("height")


def luminance(colour):
    """The relative luminance of "#rrggbb" or "#rgb"."""
    digits = colour[1:]
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    parts = []
    for start in (0, 2, 4):
        part = int(digits[start:start + 2], 16) / 255
        parts.append(part / 12.92 if part <= 0.04045
                     else ((part + 0.055) / 1.055) ** 2.4)
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_letters_stand_out_in_both_schemes(scheme):
    colours = schemes(drawing.STYLE)[scheme]
    pairs = [("text", ground) for ground in (
        ".page", ".panel", ".plain", ".loaded", ".first", ".wrapped",
        ".masked", ".band")]
    pairs += [(".muted", ".page"), (".muted", ".panel"), (".muted", ".plain")]
    for letters, ground in pairs:
        one, other = sorted((luminance(colours[letters, "fill"]),
                             luminance(colours[ground, "fill"])))
        assert (other + 0.05) / (one + 0.05) >= 4.5, (letters, ground)


@pytest.mark.parametrize("name", DRAWN)
def test_no_word_leaves_the_page(name):
    root = figure(name)
    for text in root.iter(SVG + "text"):
        classes = text.get("class").split()
        letter = 8.6 if "head" in classes else 7.9
        for word, width in (("small", 5.9), ("tiny", 6.2), ("code", 6.7)):
            if word in classes:
                letter = width
        wide = letter * len(said(text))
        left = float(text.get("x"))
        if "mid" in classes:
            left -= wide / 2
        if "end" in classes:
            left -= wide
        assert left >= 4 and left + wide <= 696, said(text)
        assert 8 <= float(text.get("y")) <= float(root.get("height")) - 4


# --------------------------------------------------- where the barriers went
def test_diagram_says_what_the_lesson_says():
    root = figure(DIAGRAM.name)
    texts = [said(e) for e in root.iter(SVG + "text")]
    for caption in (
            "40 lines, 5 barriers, 2 trees, all written by you.",
            "11 lines, no barrier in the source.",
            "the same machinery, sized by two compile-time numbers."):
        assert caption in texts
    assert said(root.find(SVG + "desc")).startswith(
        "The same 1024-column softmax row twice. Forty lines of CUDA spend "
        "five barriers and two shared-memory trees. Eleven lines of Triton "
        "spend none, and the compiler emits the same machinery from two "
        "numbers.")


def test_every_barrier_of_the_diagram_is_in_its_legend():
    root = figure(DIAGRAM.name)
    legend = root.find(f"{SVG}g[@id='legend']")
    numbers, words = [], []
    for text in legend.findall(SVG + "text"):
        if text.get("class") == "number":
            numbers.append(said(text))
        else:
            words.append(said(text))
    assert numbers == ["1", "2", "3", "4", "5"]
    assert len(words) == 5 and len(set(words)) == 5
    everywhere = {said(e) for e in root.iter(SVG + "text")
                  if e.get("class") == "number"}
    assert everywhere == set(numbers)


COUNT = """
import json, triton_softmax_matmul as t
table = {}
rows = [{"BLOCK_COLS": 1024, "num_warps": warps} for warps in (1, 2, 4, 8)]
for made in t.compiled(t.softmax_kernel, 90, rows):
    counts = t.counts(made)
    for name in "shuffles", "barriers":
        table.setdefault(name, []).append(counts[name])
    table.setdefault("shared bytes", []).append(counts["shared"])
print(json.dumps(table))
"""


@pytest.mark.slow
def test_diagram_counts_what_the_compiler_emits():
    root = figure(DIAGRAM.name)
    header, *rows = root.findall(f".//{SVG}g[@id='counts']/{SVG}text")
    assert said(header).endswith("num_warps 1 2 4 8")
    table = {}
    for row in rows:
        label, *numbers = re.fullmatch(
            r"(.+?)" + r" (\d+)" * 4, said(row)).groups()
        table[label] = [int(number) for number in numbers]
    ours = [label for label in table
            if triton.__version__ in label.replace(",", "").split()]
    if not ours:
        pytest.skip(f"the diagram does not name Triton {triton.__version__}")
    table["barriers"] = table[ours[0]]
    # Compiled, so in a process that does not interpret.
    done = subprocess.run([sys.executable, "-c", COUNT], cwd=ROOT, text=True,
                          env=clean_env(), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name, counts in json.loads(done.stdout).items():
        assert table[name] == counts, name


# --------------------------------------------------------------- the tile order
@pytest.mark.parametrize("tiles", [(6, 16, 4), (5, 4, 2), (3, 3, 8), (7, 1, 3),
                                   (1, 5, 1)])
def test_the_kernel_takes_the_tiles_that_are_drawn(tiles):
    """The kernel itself, in blocks of one number, against tile_of."""
    tiles_m, tiles_n, group = tiles
    for pid in range(tiles_m * tiles_n):
        watched = diagrams.watch(
            t.matmul_kernel, pid, 0, 0, 0, tiles_m, tiles_n, 1, 1, 1, tiles_n,
            1, tiles_n, 1, BLOCK_M=1, BLOCK_N=1, BLOCK_K=1, GROUP_M=group,
            IEEE=True)
        (addresses, mask), = watched.stores
        assert mask.all()
        assert divmod(int(addresses[0, 0]), tiles_n) == t.tile_of(pid, *tiles)


def test_every_tile_has_the_number_of_its_program():
    cells = {}  # (y, x) of a number: the number and whether it stands out
    for text in figure("tile-order.svg").iter(SVG + "text"):
        if "tiny" in text.get("class").split():
            place = float(text.get("y")), float(text.get("x"))
            cells[place] = int(said(text)), "bold" in text.get("class").split()
    lines = sorted({y for y, _ in cells})
    columns = sorted({x for _, x in cells})
    assert len(lines) == 12 and len(columns) == 16
    for start, group in ((0, 1), (6, t.CONFIGS[0]["GROUP_M"])):
        for (y, x), (pid, bold) in cells.items():
            row = lines.index(y) - start
            if 0 <= row < 6:
                assert t.tile_of(pid, 6, 16, group) == (row, columns.index(x))
                assert bold == (pid < 16)
    first = [cells[lines[6], x][0] for x in columns[:5]]
    assert first == [0, 4, 8, 12, 16]


def test_what_the_first_programs_read_is_counted_and_coloured():
    assert diagrams.panels_read(1) == ({0}, set(range(16)))
    assert diagrams.panels_read(4) == ({0, 1, 2, 3}, {0, 1, 2, 3})
    root = figure("tile-order.svg")
    texts = [said(text) for text in root.iter(SVG + "text")]
    assert ("Programs 0 to 15 read 1 row of A and 16 columns of B: 17 panels."
            in texts)
    assert ("Programs 0 to 15 read 4 rows of A and 4 columns of B: 8 panels."
            in texts)
    coloured = collections.Counter()
    for rect in root.iter(SVG + "rect"):
        if rect.get("class") == "first":
            coloured[rect.get("width"), rect.get("height")] += 1
    assert coloured["118", "18"] == 1 + 4  # rows of A
    assert coloured["27", "40"] == 16 + 4  # columns of B
    assert coloured["27", "18"] == 16 + 16  # tiles of C


# ------------------------------------------------------------ over the edge
def test_lanes_of_a_row():
    watched = diagrams.watch_softmax()
    (addresses, mask), = watched.loads
    assert addresses.tolist() == list(range(8))
    assert mask.tolist() == [True] * 5 + [False] * 3
    (stored, stored_mask), = watched.stores
    assert np.array_equal(stored, addresses)
    assert np.array_equal(stored_mask, mask)


def test_lanes_of_a_tile():
    found = {name: set(kinds) for name, kinds in diagrams.edges().items()}
    a, b, c = (found[name] for name in "ABC")
    assert places_of(a, "loaded") == {(4, 4), (4, 5), (5, 4), (5, 5)}
    assert places_of(a, "ghost") == {(6, 4), (6, 5), (7, 4), (7, 5)}
    assert places_of(a, "wrapped") == {(0, 4), (0, 5), (1, 4), (1, 5)}
    assert places_of(a, "masked") == {(row, col) for row in range(4, 8)
                                      for col in (6, 7)}
    assert places_of(b, "loaded") == {(row, col) for row in (4, 5)
                                      for col in (4, 5, 6)}
    assert places_of(b, "ghost") == {(4, 7), (5, 7)}
    assert places_of(b, "wrapped") == {(4, 0), (5, 0)}
    assert places_of(b, "masked") == {(row, col) for row in (6, 7)
                                      for col in range(4, 8)}
    assert places_of(c, "loaded") == {(row, col) for row in (4, 5)
                                      for col in (4, 5, 6)}
    assert len(places_of(c, "ghost")) == 16 - 6


def places_of(kinds, wanted):
    """The (row, column) of each lane of that kind."""
    return {(row, col) for kind, row, col in kinds if kind == wanted}


def test_what_is_drawn_is_what_was_found():
    """As many squares of each kind as there are lanes, and those of a legend.
    """
    want = collections.Counter({"loaded": 1, "ghost": 1, "wrapped": 1,
                                "masked": 1})
    for kinds in diagrams.edges().values():
        want.update(kind for kind, _, _ in kinds)
    want.update({"loaded": 5, "masked": 3})  # the row of a softmax
    drawn = collections.Counter(
        rect.get("class") for rect in figure("masked-tail.svg").iter(
            SVG + "rect"))
    assert {kind: drawn[kind] for kind in want} == dict(want)


def altered(kernel, old, new, folder):
    """A kernel with other words in it, as a function that can be watched."""
    source = inspect.getsource(t.plain_function(kernel))
    assert source.count(old) == 1
    path = folder / "altered.py"
    path.write_text("import triton.language as tl\n\n\n"
                    + source[source.index("def "):].replace(old, new), "utf-8")
    spec = importlib.util.spec_from_file_location("altered", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel.__name__)


@pytest.mark.parametrize(("old", "new"), [
    ("(offs_m % m)", "offs_m"), ("(offs_n % n)", "offs_n"),
    ("mask=offs_k[None, :] < left", "mask=offs_k[None, :] <= left"),
    ("mask=offs_k[:, None] < left", "mask=offs_k[:, None] < k"),
    ("(offs_m < m) & (offs_n < n)", "(offs_m < m) & (offs_n <= n)"),
    ("pid_m = first_m + ((pid % per_group) % rows_here)", "pid_m = 0")])
def test_another_kernel_would_be_another_picture(monkeypatch, tmp_path, old,
                                                 new):
    before = diagrams.edges(), diagrams.masked_tail()
    monkeypatch.setattr(t, "matmul_kernel",
                        altered(t.matmul_kernel, old, new, tmp_path))
    after = diagrams.edges(), diagrams.masked_tail()
    assert after[0] != before[0] and after[1] != before[1]


@pytest.mark.parametrize("name", diagrams.FIGURES)
def test_diagrams_are_what_their_program_draws(name):
    drawn = diagrams.FIGURES[name]()
    check_svg(drawn)
    assert drawn == (FIGURES / name).read_text("utf-8"), (
        "python3 figures/diagrams.py draws it anew")


# -------------------------------------------------------------------- the sweep
def test_run_is_read():
    sweep = plots.read_sweep(RUN)
    assert list(sweep) == list(SPEEDS)
    for key, speeds in SPEEDS.items():
        assert list(sweep[key]) == ROWS
        for (ms, low, high, rate), speed in zip(sweep[key].values(), speeds,
                                                strict=True):
            assert rate == speed and low < ms < high
            assert ms == pytest.approx(WORK / speed, abs=1e-4)
    sweep = plots.read_sweep(FITS_NOT)
    assert sweep["tf32", "K-major"]["128,128,32"] is None
    assert sweep["tf32", "K-major"]["128,64,32"][3] == 200.25


@pytest.mark.parametrize("text", [RUN, FITS_NOT])
def test_sweep_is_drawn_alike_twice(text):
    drawn = plots.draw_sweep(text, "transcripts/some.txt")
    assert drawn == plots.draw_sweep(text, "transcripts/some.txt")
    check_svg(drawn)
    assert "Drawn from transcripts/some.txt." in drawn
    assert ("128,128,32 does not fit" in drawn) == (text is FITS_NOT)
    assert (">tf32: does not fit<" in drawn) == (text is FITS_NOT)


def test_prediction_2_can_be_read_off():
    drawn = plots.draw_sweep(RUN, "transcripts/some.txt")
    assert ("row-major B: the best tf32 config (128,64,32) is 1.9 times as "
            "fast as the best ieee one (64,64,32).") in drawn
    assert ("K-major B: the best tf32 config (128,128,32) is 11.0 times as "
            "fast as the best ieee one (128,128,32).") in drawn
    root = ElementTree.fromstring(drawn)
    # One scale for both: the dots of a precision and the band lie on it.
    at = {}
    for circle in root.iter(SVG + "circle"):
        at.setdefault(float(circle.get("cx")), circle)
    scale = plots.LogScale(*plots.extent(plots.read_sweep(RUN), 2048,
                                         "NVIDIA H200"), plots.LEFT,
                           plots.RIGHT)
    for (precision, _), speeds in SPEEDS.items():
        if precision == "ieee":
            for speed in speeds:
                assert round(scale(speed), 2) in at
    bands = [rect for rect in root.iter(SVG + "rect")
             if rect.get("class") == "band"][1:]  # the first is the legend's
    for band, best in zip(bands, (40.25, 25.5), strict=True):
        start = float(band.get("x"))
        assert start == pytest.approx(scale(best), abs=0.01)
        assert start + float(band.get("width")) == pytest.approx(
            scale(2 * best), abs=0.02)


def test_whiskers_reach_from_quantile_to_quantile():
    drawn = plots.draw_sweep(RUN, "transcripts/some.txt")
    found = [tuple(map(float, ends)) for ends in re.findall(
        r'class="whisker" d="M ([\d.]+) [\d.]+ V [\d.]+ M ([\d.]+) ', drawn)]
    assert len(found) == 1 + 16  # one of them in the legend
    sweep = plots.read_sweep(RUN)
    scale = plots.LogScale(*plots.extent(sweep, 2048, "NVIDIA H200"),
                           plots.LEFT, plots.RIGHT)
    for rows in sweep.values():
        for _, fast, slow, _ in rows.values():
            ends = scale(WORK / slow), scale(WORK / fast)
            assert any(ends == pytest.approx(pair, abs=0.01) for pair in found)


@pytest.mark.parametrize(("text", "message"), [
    (RUN.replace("tf32, K-major B", "tf32"), "rows: tf32, K-major B"),
    (re.sub(r"128,64,32 .*\n", "", RUN, count=1), "lacks rows"),
    (re.sub(r"(64|128),.* TFLOP.*\n", "", RUN), "lacks rows"),
    (RUN.replace("torch.mm", "torch_mm"), "lacks rows"),
    (RUN.replace(" TFLOP/s", ""), "a row is not the sweep's"),
    (re.sub("NVIDIA.*\n", "", RUN), "lacks a card"),
    (RUN.replace("Triton", "Tritium"), "lacks Triton's version"),
    ("", "lacks")])
def test_a_run_that_lacks_something_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_sweep(text, "transcripts/some.txt")


def test_a_card_that_nothing_fits_is_refused():
    text = re.sub(r"(?m)^(\S+) .* TFLOP/s.*$", r"\1      does not fit: x, 2, 1",
                  RUN)
    with pytest.raises(ValueError, match="lacks a config that fits"):
        plots.draw_sweep(text, "transcripts/some.txt")


def test_peaks_are_drawn_where_they_are_known():
    known = plots.draw_sweep(RUN, "transcripts/some.txt")
    assert ">FP32 peak 67<" in known and ">TF32 peak 494.5<" in known
    assert "Data sheet peaks (FACT-SHEET 5.4): FP32 67, TF32 494.5." in known
    both = plots.draw_sweep(RUN.replace("NVIDIA H200", "NVIDIA GeForce RTX "
                                        "3090"), "transcripts/some.txt")
    assert ">FP32 and TF32 peak 35.6<" in both
    unknown = plots.draw_sweep(RUN.replace("H200", "Z1"), "transcripts/x.txt")
    assert "peak" not in unknown and 'class="dashed"' not in unknown
    assert "NVIDIA Z1" in unknown


@pytest.mark.parametrize("card", plots.PEAKS)
def test_peaks_are_in_the_fact_sheet(card):
    fact, peaks = plots.PEAKS[card]
    row, = re.findall(rf"^\| {re.escape(fact)} \|.*$",
                      (ROOT / "FACT-SHEET.md").read_text("utf-8"), re.M)
    assert set(peaks) == {"FP32", "TF32"}
    fp32, tf32 = f"{peaks['FP32']:g}", f"{peaks['TF32']:g}"
    assert re.search(rf"FP32 {re.escape(fp32)}\b", row)
    same = fp32 == tf32 and "tf32 the same as FP32" in row
    assert same or re.search(rf"tf32 {re.escape(tf32)}\b", row)


def test_log_scale():
    scale = plots.LogScale(1, 100, 0, 200)
    assert [scale(value) for value in (1, 10, 100)] == [0, 100, 200]
    assert scale.ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert plots.LogScale(3, 40, 0, 1).ticks() == [5, 10, 20]
    assert plots.LogScale(2e-7, 3e-5, 0, 1).ticks(digits=(1,)) == [1e-6, 1e-5]


# ----------------------------------------------------------- error against time
def test_precision_is_read_and_drawn():
    table = plots.read_precisions(PRECISION)
    for at, layout in enumerate(["row-major", "K-major"]):
        for turn, name in enumerate(STRINGS):
            assert table[layout][name] == (
                float(f"0.{turn + 1}{at}5"), float(f"0.{turn + 1}{at}4"),
                float(f"0.{turn + 1}{at}7"), float(f"{turn + 1}.25e-0{at + 5}"))
    drawn = plots.draw_precision(PRECISION, "transcripts/some.txt")
    assert drawn == plots.draw_precision(PRECISION, "transcripts/some.txt")
    check_svg(drawn)
    for name in STRINGS:
        assert drawn.count(f">{name}<") == 2
    assert drawn.count('class="whisker"') == 16


def test_older_precisions_have_no_quantiles():
    older = re.sub(r"(w8,s3 +\S+) +\S+ +\S+ ", r"\1 ", PRECISION)
    assert plots.read_precisions(older)["K-major"]["tf32"] == (
        0.215, 0.215, 0.215, 2.25e-6)
    assert "whisker" not in plots.draw_precision(
        older, "transcripts/some.txt").partition("</style>")[2]


@pytest.mark.parametrize(("text", "message"), [
    (re.sub("bf16x6 .*\n", "", PRECISION, count=1),
     "lacks rows: bf16x6, with row-major B"),
    (re.sub("torch.mm-tf32 +K.*\n", "", PRECISION),
     "lacks rows: torch.mm-tf32, with K-major B"),
    (re.sub(r"(tf32x3 .*) \S+e-\d+ .*\n", r"\1\n", PRECISION),
     "lacks rows: tf32x3"),
    (HEADER, "lacks rows"), (RUN, "lacks rows")])
def test_a_precision_run_that_lacks_rows_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_precision(text, "transcripts/some.txt")


def test_labels_keep_clear_of_points_and_of_each_other():
    taken = [(95, 95, 105, 105), (110, 90, 120, 110)]
    placed = []
    for x in (100, 115):
        placed.append(plots.place_label("torch.mm", x, 100, taken))
    boxes = taken[2:]
    assert len(boxes) == 2
    for box in boxes:
        for other in taken:
            assert other is box or not plots.boxes_meet(box, other)
    assert placed[0][:2] != placed[1][:2]


# ------------------------------------------------------------------ the ladder
def test_ladder_is_read():
    size, ladder = plots.read_ladder(LADDER)
    assert size == 2048 and list(ladder) == list(RUNGS)
    for layout, rungs in RUNGS.items():
        want = [name for name in rungs if not name.startswith(" ")]
        assert list(ladder[layout]) == want
        for name in want:
            ratio, error, config, wrong = ladder[layout][name]
            assert (ratio, error) == rungs[name]
            assert (config == "128,128,32 w4 s3") == ("kernel" in name)
            assert wrong == name.startswith("UNSAFE")


def test_ladder_is_drawn_to_scale():
    drawn = plots.draw_ladder(LADDER, "transcripts/some.txt")
    assert drawn == plots.draw_ladder(LADDER, "transcripts/some.txt")
    check_svg(drawn)
    assert "Drawn from transcripts/some.txt." in drawn
    bars = []
    for rect in ElementTree.fromstring(drawn).iter(SVG + "rect"):
        if float(rect.get("x")) == plots.FOOT:
            bars.append((rect.get("class"), float(rect.get("width"))))
    want = []
    for rungs in RUNGS.values():
        for name, (ratio, _) in rungs.items():
            if not name.startswith(" "):
                want.append((plots.sort_of(name), float(ratio)))
                assert f">{ratio}<" in drawn
    assert [sort for sort, _ in bars] == [sort for sort, _ in want]
    assert {sort for sort, _ in bars} == {"masked", "loaded", "ghost", "tf32"}
    for (_, width), (_, ratio) in zip(bars, want, strict=True):
        assert width == pytest.approx(
            (plots.HEAD - plots.FOOT) * ratio / 1.035, abs=0.01)
    # As fast as the library: where its own bars end.
    ends = re.findall(r'class="dashed" d="M ([\d.]+) ', drawn)
    for end in ends:
        assert float(end) == pytest.approx(plots.FOOT + bars[0][1], abs=0.02)
    assert len(ends) == 2


@pytest.mark.parametrize(("text", "message"), [
    (LADDER.replace("tf32, 2048 cubed, K-major", "tf32, 2048, K-major"),
     "lacks the ladder's rows: K-major B"),
    (re.sub("(?m)^Gluon .*\n", "", LADDER), "no torch.mm or no Gluon"),
    (LADDER.replace("torch.mm   ", "torch_mm   "), "no torch.mm or no Gluon"),
    (RUN, "lacks a ladder")])
def test_a_ladder_that_lacks_something_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_ladder(text, "transcripts/some.txt")


def test_the_newest_ladder_is_drawn(folder, monkeypatch, capsys):
    monkeypatch.setattr(plots, "pinned", lambda: "3.7.1")
    without = LADDER[:LADDER.index("\ntf32, 2048")] + "exit 0\n"
    for name, day, text in (
            ("a", "27", LADDER), ("b", "28", LADDER),
            ("c", "29", LADDER.replace("exit 0", "exit 3")),
            ("d", "29", LADDER.replace("Triton 3.7.1", "Triton 3.9.0")),
            ("e", "29", without),
            ("f", "29", LADDER.replace("2048 cubed", "4096 cubed"))):
        (folder / f"library-speed-h200-{name}.txt").write_text(
            text.replace("2026-11-30", f"2026-11-{day}"), "utf-8")
    assert plots.main([]) == 0
    assert capsys.readouterr().out == (
        "library-speed-h200-b.txt: drew ladder-h200.svg\n")
    check_svg((folder / "ladder-h200.svg").read_text("utf-8"))


def test_the_ladder_is_what_its_transcript_draws():
    newest = plots.newest().get("ladder-h200.svg")
    if newest is None:
        pytest.skip("there is no complete transcripts/library-speed-h200-"
                    f"triton{plots.pinned()}-*.txt that holds a ladder yet")
    drawn = (FIGURES / "ladder-h200.svg").read_text("utf-8")
    again = "python3 figures/plots.py draws it anew"
    assert plots.draw(newest) == ("ladder-h200.svg", drawn), again
    transcript = newest.read_text("utf-8")
    told, = re.findall(r"<desc.*?>(.*?)</desc>", drawn)
    numbers = re.findall(r" (\d\.\d+)\b", told)
    assert len(numbers) >= 2 * (10 + 5)
    for number in numbers:
        assert f" {number} " in transcript, number


# ---------------------------------------------------------------- what is drawn
@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty folder in the place of all that plots.py reads and writes."""
    monkeypatch.setattr(plots, "TRANSCRIPTS", tmp_path)
    monkeypatch.setattr(plots, "HERE", tmp_path)
    return tmp_path


def test_command_line_says_what_is_missing(folder, capsys):
    assert plots.main([]) == 1
    assert ("not drawn: no complete transcript of Triton "
            f"{plots.pinned()} in ") in capsys.readouterr().out
    assert plots.main([str(folder / "none.txt")]) == 1
    assert "not drawn: " in capsys.readouterr().out
    assert not [*folder.iterdir()]


def test_the_pinned_triton_is_drawn():
    assert plots.pinned() == "3.7.1"


def test_newest_complete_transcripts_of_the_pinned_triton(
        folder, monkeypatch, capsys):
    monkeypatch.setattr(plots, "pinned", lambda: "3.7.1")
    other_card = RUN.replace("NVIDIA H200", "NVIDIA GeForce RTX 4090")
    for name, day, text in (
            ("run-h200-b.txt", "28", RUN),
            ("run-h200-c.txt", "27", RUN),  # last by name, not by date
            ("run-h200-d.txt", "29", RUN.replace("exit 6", "exit 3")),
            ("run-h200-e.txt", "29", RUN.replace("exit 6\n", "")),
            ("run-h200-f.txt", "29", RUN.replace("3.7.1", "3.7.10")),
            ("run-rtx4090-a.txt", "20", other_card.replace("exit 6",
                                                            "exit 0")),
            ("precision-h200-b.txt", "28", PRECISION),
            ("precision-h200-c.txt", "29", PRECISION.replace("exit 0",
                                                              "exit 6")),
            ("precision-h200-d.txt", "27", PRECISION)):
        (folder / name).write_text(text.replace("2026-11-30",
                                                f"2026-11-{day}"), "utf-8")
    assert plots.main([]) == 0
    printed = sorted(capsys.readouterr().out.splitlines())
    assert printed == ["precision-h200-b.txt: drew precision-h200.svg",
                       "run-h200-b.txt: drew sweep-h200.svg",
                       "run-rtx4090-a.txt: drew sweep-rtx-4090.svg"]
    for name in ("sweep-h200", "sweep-rtx-4090", "precision-h200"):
        check_svg((folder / f"{name}.svg").read_text("utf-8"))
    assert plots.main([str(folder / "run-h200-d.txt")]) == 1
    assert "is not complete" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in NAMES
                                  if name.startswith(("sweep", "precision"))])
def test_plot_is_what_its_transcript_draws(name):
    drawn = (FIGURES / name).read_text("utf-8")
    source, = re.findall(r"Drawn from (transcripts/\S+)\.</desc>", drawn)
    again = "python3 figures/plots.py draws it anew"
    assert plots.draw(ROOT / source) == (name, drawn), again
    newest = plots.newest().get(name)
    assert newest is None or newest == ROOT / source, again
    # Every number that is told can be looked up in the transcript.
    transcript = (ROOT / source).read_text("utf-8")
    told, = re.findall(r"<desc.*?>(.*?)</desc>", drawn)
    told = re.sub(r"Data sheet.*", "", told)
    numbers = re.findall(r" (\d+\.\d+(?:e-\d+)?)\b", told)
    assert len(numbers) >= 16
    for number in numbers:
        assert f" {number} " in transcript, number
