"""README, FACT-SHEET and the other pages against what they speak of."""
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, clean_env

PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md")
               if not {".venv", ".pytest_cache", ".triton"} & {*path.parts})
TRANSCRIPTS = {path.name: path.read_text(encoding="utf-8", errors="replace")
               for path in sorted((ROOT / "transcripts").glob("*.txt"))}
PINNED = re.search(r"^triton==(\S+)$", (ROOT / "requirements.txt").read_text(),
                   re.M)[1]


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, kind):
    """The fenced blocks of a kind, such as sh."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", read(page), re.M | re.S)


def numbers(text):
    """What could have been measured: decimals that are no version's."""
    text = re.sub(r"\(?FACT-SHEET[^)]*\)?|https?://\S+|\]\([^)]*\)", "", text)
    return re.findall(r"(?<![\d.\w])\d+\.\d+(?:e-\d+)?(?![.\d])", text)


def section(page, start, end="\n## "):
    """A page from a heading on, up to what ends it."""
    rest = read(page).partition(start)[2]
    assert rest, start
    return rest.partition(end)[0]


def newest(kind, ending=""):
    """The text of the newest transcript whose name begins so."""
    found = [text for name, text in TRANSCRIPTS.items()
             if name.startswith(kind) and re.search(r"\nexit [06]\n\Z", text)]
    assert found, f"no complete transcript {kind}*"
    return max(found, key=lambda text: text.splitlines()[0])


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page):
    for link in re.findall(r"\]\(([^)#]+)\)", read(page)):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link).exists(), link


def test_files_that_pages_name_exist():
    for page in PAGES:
        for name in re.findall(r"\b(?:experiments|exercises|figures|tests)/"
                               r"[\w./]+\.\w+", read(page)):
            if not name.endswith("/mine.py"):  # the reader's own
                assert (ROOT / name).exists(), f"{page}: {name}"


def test_ci_runs_the_two_commands():
    # .ci/run takes them out of README, so running it is running them.
    run, (first, second) = read(".ci/run"), blocks("README.md", "sh")[:2]
    taken = subprocess.run(
        ["bash", "-c", run.partition("\necho ")[0].replace(
            'cd "$(dirname "$0")/.."', "") + '\necho "$first"; echo "$second"'],
        cwd=ROOT, text=True, capture_output=True, check=True).stdout
    assert taken == first + second
    assert 'pipefail -c "$first"' in run and 'pipefail -c "$second"' in run
    assert "TRITON_INTERPRET=1 .venv/bin/python triton_softmax" in first
    assert "-m pytest" in second


def run_block(command):
    """What a command of a page prints, run with this Python."""
    return subprocess.run(
        ["bash", "-c", command.replace(".venv/bin/python", sys.executable)],
        cwd=ROOT, env=clean_env(), text=True, capture_output=True, check=True,
    ).stdout


@pytest.mark.slow
def test_readmes_command_for_the_table_runs():
    command, = [c for c in blocks("README.md", "sh") if "emitted" in c]
    told = run_block(command)
    assert "compiled for sm_80" in told
    assert "pass  every dot is float32 times float32" in told


def test_readmes_command_counts_the_lines():
    command, = [c for c in blocks("README.md", "sh") if c.startswith("awk")]
    told = dict(reversed(line.split()) for line in
                run_block(command).splitlines())
    assert told["softmax_kernel"] == "11"
    assert told["matmul_kernel"] == "33"
    for name, count in told.items():
        if name.startswith(("softmaxRows", "matmulReg")):
            assert f"{count}, `{name}`" in read("README.md")


def test_readme_quotes_the_kernels():
    lesson = re.sub("^ *#.*\n", "", read("triton_softmax_matmul.py"),
                    flags=re.M)
    for block in blocks("README.md", "python"):
        assert block.rstrip() in lesson, block


@pytest.mark.parametrize("page", PAGES)
def test_quoted_output_is_in_a_transcript(page):
    for block in blocks(page, "text"):
        assert any(all(line.rstrip() in text for line in block.splitlines())
                   for text in TRANSCRIPTS.values()), block


@pytest.mark.parametrize("heading", [
    "## The finding: two strides", "## The four predictions",
    "## The CUDA beside it", "## How far is the library"])
def test_readmes_figures_are_in_transcripts(heading):
    printed = "\n".join(TRANSCRIPTS.values())
    known = {*derived().values()}
    told = numbers(section("README.md", heading))
    assert len(told) > 5
    lacking = [n for n in told if n not in printed and n not in known]
    assert not lacking


def best_rows(run):
    """{(precision, layout): milliseconds of the best of the three configs}."""
    best = {}
    for precision, layout, rows in re.findall(
            r"cubed, (\w+), (\S+) B:.*\n((?:.+\n)+)", run):
        best[precision, layout] = min(float(ms) for ms in re.findall(
            r"^\d\S+ +([\d.]+) ms", rows, re.M))
    return best


def derived():
    """What README computes from the newest run of the pinned Triton."""
    best = best_rows(newest(f"run-h200-triton{PINNED}"))
    return {precision: f"{best[precision, 'row-major'] / k:.{digits}f}"
            for precision, k, digits in (
                ("tf32", best["tf32", "K-major"], 1),
                ("ieee", best["ieee", "K-major"], 2))}


def test_readme_says_what_two_strides_decide():
    told = section("README.md", "## The finding: two strides")
    factors = derived()
    assert f"{factors['tf32']} times as fast" in told
    assert factors["ieee"] in told
    lesson = read("triton_softmax_matmul.py")
    best = best_rows(newest(f"run-h200-triton{PINNED}"))
    for milliseconds in best.values():
        assert f"{milliseconds:.4f}" in told
        assert f"{milliseconds:.4f}" in lesson


def test_readmes_table_by_triton_is_what_the_newest_runs_say():
    rows = re.findall(r"^\| (3\.\d\.\d) \| (.+) \|$",
                      section("README.md", "## The four predictions"), re.M)
    assert len(rows) >= 2
    for version, cells in rows:
        run = newest(f"run-h200-triton{version}-")
        tf32, ieee, row, k_major, ieee_4 = cells.split(" | ")
        for precision, said in (("tf32", tf32), ("ieee", ieee)):
            rates = re.findall(
                rf"cubed, {precision}, \S+ B: .*\n.*\n((?:\d.*\n)+)", run)
            assert said == max(line.split()[-1] for group in rates
                               for line in group.splitlines())
        for layout, said in (("row-major", row), ("K-major", k_major)):
            ratio, verdict = said.split(", ")
            assert re.search(
                rf"^Prediction 2 with {layout} B, .*: {verdict.upper()}\.\n.*\n"
                rf"    {ratio} times as fast\.$", run, re.M)
        ratio, verdict = ieee_4.split(", ")
        assert re.search(
            rf"^Prediction 4 in ieee with row-major B, .*: {verdict.upper()}"
            rf"\.\n.*\n    a ratio of {ratio}\.", run, re.M)


def test_the_lessons_figures_are_in_transcripts():
    """What GROUP_M buys, and how the predictions went."""
    prose = "\n".join(re.findall("^# .*", read("triton_softmax_matmul.py"),
                                 re.M))
    told = re.findall(r"(\d\.\d\d) times", prose)
    printed = (newest(f"search-h200-triton{PINNED}")
               + newest(f"run-h200-triton{PINNED}"))
    assert told
    assert not [number for number in told if number not in printed]


def test_newest_runs_are_linked_from_readme():
    linked = re.findall(r"\(transcripts/(\S+\.txt)\)", read("README.md"))
    tables = re.findall(r"^## ([a-z]+(?:-[a-z]+)*(?:-\d+)?)(?:: .*)?\n"
                        r"(?:\n|\|.*\n)*?\| \[(\S+\.txt)\]",
                        read("transcripts/README.md"), re.M)
    assert len(tables) > 10
    for kind, first in tables:
        # The old exercise is exercise 4 of today.
        assert kind == "exercise" or first in linked or any(
            name.startswith(f"{kind}-") for name in linked), kind


def test_the_tests_that_the_table_of_reports_names_exist():
    texts = {path.stem.removeprefix("test_"): path.read_text()
             for path in (ROOT / "tests").glob("*.py")}
    for path in (ROOT / "tests" / "faults").glob("*.py"):
        texts["planted_faults"] += path.read_text()
    rows = re.findall(r"^\| .* \| .* \| (.*) \|$", read("tests/README.md"),
                      re.M)
    named = 0
    for part in "; ".join(rows).split("; "):
        place = re.match(r"`(\w+)`: (.*)", part)
        if place:
            for words in re.findall(r"`(\w+)`|\"([^\"]+)\"", place[2]):
                assert (words[0] or words[1]) in texts[place[1]], part
                named += 1
    assert named > 50


def test_transcripts_hold_no_path_of_a_machine():
    for name, text in TRANSCRIPTS.items():
        assert "/root" not in text and "/tmp" not in text
        assert re.fullmatch(r"exit \d+", text.splitlines()[-1]), name


def test_fact_sheet_has_one_row_a_fact():
    rows = re.findall(r"^\| (\d+)\.(\d+) \|(.*)\|$", read("FACT-SHEET.md"),
                      re.M)
    seen = [(int(part), int(number)) for part, number, _ in rows]
    assert len(seen) > 60 and seen == sorted(set(seen))
    assert all(len(re.split(r"(?<!\\)\|", cells)) == 6 for *_, cells in rows)
    assert "\n## 4. Access snapshot\n" in read("FACT-SHEET.md")


def test_facts_that_are_named_exist():
    have = set(re.findall(r"^\| (\d+\.\d+) \|", read("FACT-SHEET.md"), re.M))
    sections = set(re.findall(r"^## (\d+)\. ", read("FACT-SHEET.md"), re.M))
    for page in ("README.md", "tests/README.md", "triton_softmax_matmul.py"):
        for named in re.findall(r"\(FACT-SHEET\s+([\d. to]+)\)", read(page)):
            assert set(re.findall(r"\d+\.\d+", named)) <= have
        for named in re.findall(r"FACT-SHEET section (\d+)", read(page)):
            assert named in sections


def test_nothing_speaks_of_a_machine():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                           cwd=ROOT, text=True, capture_output=True,
                           check=False).stdout.split("\n")
    kinds = {".md", ".py", ".txt", ".svg", ".yml", ".toml", ".ipynb", ".sh"}
    looked_at = 0
    for name in files:
        path = ROOT / name
        if os.path.splitext(name)[1] in kinds and path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not re.search("python" "hosted|py" r"pi\.org", text), name
            looked_at += 1
    if not looked_at:
        pytest.skip("not a git checkout")
