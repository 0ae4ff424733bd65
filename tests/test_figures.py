"""The figures: readable by machine and by ear, and true to their sources."""
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import triton
from conftest import ROOT, clean_env

FIGURES = ROOT / "figures"
DIAGRAM = FIGURES / "where-the-barriers-went.svg"
PLOTS = ["sweep-h200.svg", "precision-h200.svg"]
SVG = "{http://www.w3.org/2000/svg}"
HEADER = """2026-11-30 04:12:08 UTC
script 0123456789ab, kernels and CONFIGS 0123456789ab
Python 3.12.3, numpy 2.5.2, torch 2.13.0+cu130, CUDA 13.0
Triton 3.7.1, torch's own pin
NVIDIA H200, compute capability 9.0, 143155 MiB, driver 580.159.04
"""
NAMES = ["torch.mm", "64,64,32", "128,64,32", "128,128,32"]
KEYS = [(p, l) for p in ("ieee", "tf32") for l in ("row-major", "K-major")]
RUN = HEADER + "".join(
    f"\n2048 cubed, {p}, {l} B: median (20 % .. 80 %), rate, speed over the "
    "first's\n" + "".join(
        f"{name:<14} 0.3432 ms (0.3428 .. 0.3439) {10 * i + j + 0.25:6.2f} "
        "TFLOP/s 1.00\n" for j, name in enumerate(NAMES))
    for i, (p, l) in enumerate(KEYS)) + """
softmax, 65536 x 1024: median (20 % .. 80 %), rate, speed over the first's
device copy    0.1314 ms (0.1307 .. 0.1330)   4.09 TB/s 1.00
exit 0
"""
FITS_NOT = RUN.replace(
    "0.3432 ms (0.3428 .. 0.3439)  33.25 TFLOP/s 1.00",
    "does not fit: shared memory, 196608 required, 101376 available")
STRINGS = ["ieee", "tf32", "tf32-rounded", "tf32x3", "bf16x3",
           "bf16x6", "torch.mm-ieee", "torch.mm-tf32"]
PRECISION = HEADER + "\n" + "".join(
    f"{name:<14} {l:<9} 128,128,32,w8,s3    0.{i + 1}{j}50    43.47  "
    f"{i + 1}.25e-0{j + 5}  4xwgmma\n"
    for j, l in enumerate(["row-major", "K-major"])
    for i, name in enumerate(STRINGS)) + "exit 0\n"


@pytest.fixture(scope="module")
def plots():
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(FIGURES))
    try:
        import plots
    finally:
        sys.path.remove(str(FIGURES))
    return plots


def said(element):
    """The text of an element, each run of blanks as one."""
    return " ".join("".join(element.itertext()).split())


def check_svg(text):
    root = ElementTree.fromstring(text)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
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
    for element in root.iter():
        for name, value in element.items():
            if name.endswith("href"):
                assert value.startswith("#")


@pytest.mark.parametrize("name", [DIAGRAM.name, *PLOTS])
def test_figure_is_sound(name):
    if name in PLOTS and not (FIGURES / name).exists():
        pytest.skip(f"{name} waits for its transcript")
    check_svg((FIGURES / name).read_text(encoding="utf-8"))


def test_diagram_says_what_the_lesson_says():
    root = ElementTree.parse(DIAGRAM).getroot()
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


COUNT = """
import json, re, triton_softmax_matmul as t
table = {}
for warps in 1, 2, 4, 8:
    compiled = t.compile_for(90, t.softmax_kernel, BLOCK_COLS=1024,
                             num_warps=warps)
    for name in "shuffles", "barriers":
        table.setdefault(name, []).append(
            len(re.findall(t.COUNTED[name], compiled.asm["ptx"])))
    table.setdefault("shared bytes", []).append(compiled.metadata.shared)
print(json.dumps(table))
"""


def test_diagram_counts_what_the_compiler_emits():
    root = ElementTree.parse(DIAGRAM).getroot()
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


def test_run_is_parsed(plots):
    assert plots.parse_run(RUN) == {
        key: {name: 10 * i + j + 0.25 for j, name in enumerate(NAMES)}
        for i, key in enumerate(KEYS)}
    assert plots.parse_run(FITS_NOT)["tf32", "K-major"] == {
        "torch.mm": 30.25, "64,64,32": 31.25, "128,64,32": 32.25,
        "128,128,32": None}


@pytest.mark.parametrize("text", [RUN, FITS_NOT])
def test_sweep_is_drawn_alike_twice(plots, text):
    drawn = plots.draw_sweep(text, "transcripts/some.txt")
    assert drawn == plots.draw_sweep(text, "transcripts/some.txt")
    check_svg(drawn)
    assert "Drawn from transcripts/some.txt." in drawn
    assert ("128,128,32 does not fit" in drawn) == (text is FITS_NOT)


@pytest.mark.parametrize(("text", "message"), [
    (RUN.replace("tf32, K-major B", "tf32"), "rows: tf32, K-major B"),
    (re.sub(r"128,64,32 .*\n", "", RUN), "lacks rows"),
    (re.sub(r"128,64,32 .*\n", "", RUN, count=1), "lacks rows"),
    (RUN.replace("torch.mm", "torch_mm"), "a row is not the sweep's"),
    (RUN.replace(" TFLOP/s", ""), "a row is not the sweep's"),
    (RUN.replace("H200", "L4"), "NVIDIA L4, not an NVIDIA H200"),
    (re.sub("NVIDIA.*\n", "", RUN), "lacks a card"),
    (RUN.replace("Triton", "Tritium"), "lacks Triton's version"),
    ("", "lacks")])
def test_a_run_that_lacks_something_is_refused(plots, text, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_sweep(text, "transcripts/some.txt")


def test_command_line_says_what_is_missing(plots, tmp_path, monkeypatch,
                                           capsys):
    monkeypatch.setattr(plots, "TRANSCRIPTS", tmp_path)
    monkeypatch.setattr(plots, "HERE", tmp_path)
    assert plots.main([]) == 1
    assert (f"nothing drawn: no run-h200-triton{plots.pinned()}-*.txt in"
            in capsys.readouterr().out)
    assert plots.main([str(tmp_path / "none.txt")]) == 1
    assert "nothing drawn" in capsys.readouterr().out
    assert not [*tmp_path.iterdir()]


def test_precision_is_parsed_and_drawn(plots):
    assert plots.parse_precision(PRECISION) == {
        l: {name: (float(f"0.{i + 1}{j}5"), float(f"{i + 1}.25e-0{j + 5}"))
            for i, name in enumerate(STRINGS)}
        for j, l in enumerate(["row-major", "K-major"])}
    drawn = plots.draw_precision(PRECISION, "transcripts/some.txt")
    assert drawn == plots.draw_precision(PRECISION, "transcripts/some.txt")
    check_svg(drawn)
    for name in STRINGS:
        assert drawn.count(f">{name}<") == 2


@pytest.mark.parametrize(("text", "message"), [
    (re.sub("bf16x6 .*\n", "", PRECISION),
     "lacks rows: bf16x6, with row-major B"),
    (re.sub("torch.mm-tf32 +K.*\n", "", PRECISION),
     "lacks rows: torch.mm-tf32, with K-major B"),
    (re.sub(r"(tf32x3 .*) \S+e-\d+ .*\n", r"\1\n", PRECISION),
     "lacks rows: tf32x3"),
    (HEADER, "lacks rows"), (RUN, "lacks rows")])
def test_a_precision_run_that_lacks_rows_is_refused(plots, text, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_precision(text, "transcripts/some.txt")


def test_newest_transcripts_are_drawn(plots, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "TRANSCRIPTS", tmp_path)
    monkeypatch.setattr(plots, "HERE", tmp_path)
    monkeypatch.setattr(plots, "PINS", tmp_path / "pins")
    (tmp_path / "pins").write_text("torch==2\ntriton==3.5\n")
    assert plots.pinned() == "3.5"
    for name, day, text in (
            ("run-h200-triton3.5-b.txt", "2026-11-29", RUN),
            ("run-h200-triton3.5-c.txt", "2026-11-28", RUN),  # last by name
            ("run-h200-triton3.51-b.txt", "2026-11-30", RUN),  # not pinned
            ("precision-h200-b.txt", "2026-11-29", PRECISION),
            ("precision-h200-c.txt", "2026-11-28", PRECISION)):
        (tmp_path / name).write_text(text.replace("2026-11-30", day),
                                     encoding="utf-8")
    assert plots.main([]) == 0
    for what, name in zip(("run-h200-triton3.5", "precision-h200"), PLOTS):
        drawn = (tmp_path / name).read_text(encoding="utf-8")
        assert f"/{what}-b.txt." in drawn


@pytest.mark.parametrize("name", PLOTS)
def test_plot_is_what_its_transcript_draws(plots, name):
    if not (FIGURES / name).exists():
        pytest.skip(f"{name} waits for its transcript")
    drawn = (FIGURES / name).read_text(encoding="utf-8")
    version, = re.findall(r"Matplotlib v([\w.]+)", drawn)
    if version != plots.matplotlib.__version__:
        pytest.skip(f"drawn by matplotlib {version}, which places some things "
                    f"otherwise than {plots.matplotlib.__version__}")
    source, = re.findall(r"Drawn from (transcripts/\S+)\.</desc>", drawn)
    text = (ROOT / source).read_text(encoding="utf-8")
    assert plots.PLOTS[name](text, source) == drawn
