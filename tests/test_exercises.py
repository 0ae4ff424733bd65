"""Exercises 1 to 3: their starters, solutions, wrong answers and pages.

Everything is judged as a learner has it judged, by exercises/check.py; under
the interpreter, but for the two answers that are merely slow.
"""
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, clean_env, ended, in_turn

EXERCISES = ROOT / "exercises"
CHECK = EXERCISES / "check.py"
FOLDERS = {1: EXERCISES / "1_find_the_fault",
           2: EXERCISES / "2_several_rows",
           3: EXERCISES / "3_wide_rows"}
FILES = {1: "faults.py", 2: "several_rows.py", 3: "wide_rows.py"}

# wrong/*.py: exercise, file, exit status, and what the judge has to say.
WRONG = [
    (1, "padding_of_minus_1e9", 3, "softmax 2x333, huge"),
    (1, "clips_before_exp", 3, "softmax 2x333, all near -3000"),
    (1, "mends_the_load_alone", 3, "wrote outside the result"),
    (1, "int64_too_late", 3, "row 2 begins at element 2^31"),
    (1, "masks_a_alone", 3, "two groups, one not full nan"),
    (1, "nan_to_zero", 3, "16 divides all sides"),
    (1, "clamps_to_m", 3, "84x24x40, row-major, where memory ends"),
    (1, "masks_n_alone", 3, "wrote outside the result"),
    (1, "last_group_of_one", 3, "elements of the result were not written"),
    (1, "one_stride_of_two", 3, "wrote outside the result"),
    (1, "tf32x3_in_ieee", 3, "in tf32x3; wanted is f32 and f32 in ieee"),
    (1, "adds_twice", 3, "two groups, one not full"),
    (1, "adds_old_numbers", 3, "an earlier result"),
    (1, "eleven_kernels", 4, "defines no matmul_8"),
    (1, "no_decorator", 4, "softmax_1 is a plain Python function"),
    (2, "no_row_mask", 3, "wrote outside the result"),
    (2, "row_mask_on_load_alone", 3, "wrote outside the result"),
    (2, "one_maximum_for_all", 3, "rows of many kinds"),
    (2, "down_the_columns", 3, "row sums"),
    (2, "int32_rows", 3, "It was in 6 x 5, rows 2^30 elements apart"),
    (2, "begins_too_early", 3, "elements of the result were not written"),
    (2, "four_rows", 3, "elements of the result were not written"),
    (2, "rows_no_power_of_two", 4, "wanted is a power of two"),
    (2, "no_rows_at_all", 4, "says BLOCK_ROWS=0"),
    (2, "a_list_of_choices", 4, "and not a dict of settings"),
    (2, "another_order", 4, "have to come first, in this order"),
    (3, "minus_inf_minus_inf", 3, "pieces of -inf at first"),
    (3, "begins_at_0", 3, "all near -3000"),
    (3, "begins_at_minus_1e30", 3, "huge"),
    (3, "never_rescales", 3, "row sums"),
    (3, "rescales_the_wrong_way", 3, "whole pieces"),
    (3, "lanes_not_rescaled", 3, "whole pieces"),
    (3, "nan_to_zero", 3, "a NaN in a row"),
    (3, "drops_the_rest", 3, "elements of the result were not written"),
    (3, "pads_with_0", 3, "some columns over"),
    (3, "stores_too_early", 3, "whole pieces"),
    (3, "one_piece", 3, "elements of the result were not written"),
    (3, "names_a_block", 4, "names BLOCK_COLS, which is no constexpr"),
]
SLOW_ON_A_GPU = [(2, "one_row_a_program"), (3, "small_pieces")]
# The others take minutes.
QUICK = {"one_maximum_for_all"}

interpreted = pytest.mark.interpreter


def judge(number, path, *names, **env):
    """Have a file judged, or these kernels of it; the completed process."""
    return subprocess.run(
        [sys.executable, str(CHECK), str(number), str(path), *names],
        text=True, env=clean_env(**env), capture_output=True, timeout=900)


def judge_interpreted(number, path):
    """The same, under the interpreter."""
    return judge(number, path, TRITON_INTERPRET="1")


def page(number):
    """The text of an exercise's page."""
    return (FOLDERS[number] / "README.md").read_text(encoding="utf-8")


def cells(text):
    """The notebook cells that a page prints."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def kernels(text):
    """{name: source} of the jitted kernels of a file."""
    found = re.findall(r"^(@triton\.jit\ndef (\w+)\(.*?)(?=\n\n\n|\Z)", text,
                       re.M | re.S)
    return {name: source for source, name in found}


# What a learner does

@interpreted
@pytest.mark.parametrize("number", in_turn([2, 1, 3], 3))
def test_the_solution_passes(number):
    out = ended(judge_interpreted(
        number, FOLDERS[number] / "solution" / FILES[number]), 0)
    assert "\npassed\nexit 0" in out and "FAIL" not in out
    if number > 1:
        assert "The measurement half was not judged" in out
    else:
        assert "12 of 12 are right" in out


@interpreted
@pytest.mark.slow
def test_one_kernel_can_be_judged_by_itself():
    wrong = FOLDERS[1] / "faults.py"
    out = ended(judge(1, wrong, "softmax_2", TRITON_INTERPRET="1"), 3)
    assert "FAIL  softmax_2: " in out
    assert "softmax_1: " not in out and "matmul_1: " not in out


@interpreted
@pytest.mark.parametrize("number, words", [
    pytest.param(1, "0 of 12 are right", marks=pytest.mark.slow),
    (2, "next is TODO 1: a program has to do BLOCK_ROWS rows"),
    (3, "next is TODO 1: the maximum and the sum of a row"),
])
def test_the_starter_fails_and_says_what_is_next(number, words):
    out = ended(judge_interpreted(number, FOLDERS[number] / FILES[number]), 3)
    assert words in out and "\nNext: " in out
    if number == 1:
        for name in kernels((FOLDERS[1] / "faults.py").read_text()):
            assert re.search(rf"^FAIL  {name}\b", out, re.M), name


@pytest.mark.parametrize("number", FOLDERS)
def test_the_starter_by_itself_names_the_next_step(number):
    path = FOLDERS[number] / FILES[number]
    out = ended(subprocess.run(
        [sys.executable, str(path)], text=True, capture_output=True,
        env=clean_env(TRITON_INTERPRET="1"), timeout=300), 1)
    assert "Next: " in out
    assert f"python3 exercises/check.py {number} {path}" in out


@interpreted
@pytest.mark.parametrize("number, name, status, words", [
    *[row for row in WRONG if row[1] in QUICK],
    *in_turn([row for row in WRONG if row[1] not in QUICK], 0, 5)])
def test_a_wrong_answer_gets_its_status(number, name, status, words):
    path = FOLDERS[number] / "wrong" / f"{name}.py"
    out = ended(judge_interpreted(number, path), status)
    assert words in out
    if number == 1 and status == 3:
        # The mistake is in one kernel, and the judge sees it in that one.
        assert "11 of 12 are right" in out
        name, = kernels(path.read_text(encoding="utf-8"))
        assert re.search(rf"^FAIL  {name}$", out, re.M)


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("number, name", SLOW_ON_A_GPU)
def test_a_slow_answer_passes_where_nothing_is_timed(number, name):
    path = FOLDERS[number] / "wrong" / f"{name}.py"
    assert "was not judged" in ended(judge_interpreted(number, path), 0)


@pytest.mark.gpu
@pytest.mark.parametrize("number, name", SLOW_ON_A_GPU)
def test_a_slow_answer_is_too_slow(number, name):
    out = ended(judge(number, FOLDERS[number] / "wrong" / f"{name}.py"), 5)
    assert "over 1.05 of the best baseline" in out


@pytest.mark.gpu
@pytest.mark.parametrize("number", FOLDERS)
def test_the_solution_passes_on_a_gpu(number):
    ended(judge(number, FOLDERS[number] / "solution" / FILES[number]), 0)


# What the pages say

@pytest.mark.parametrize("number", FOLDERS)
def test_every_wrong_answer_has_its_row(number):
    rows = re.findall(r"^\| `(\w+)\.py` \| (\d) \| .+ \|$", page(number), re.M)
    told = {name: int(status) for name, status in rows}
    known = {name: status for exercise, name, status, _ in WRONG
             if exercise == number}
    known |= {name: 5 for exercise, name in SLOW_ON_A_GPU
              if exercise == number}
    files = {path.stem for path in (FOLDERS[number] / "wrong").glob("*.py")
             if not path.name.startswith("_")}
    assert told == known and files == set(known)


@pytest.mark.parametrize("number", (2, 3))
def test_the_pages_first_cell_is_the_starter(number):
    write, judge_it = cells(page(number))
    folder = FOLDERS[number].name
    first, _, rest = write.partition("\n")
    assert first == f"%%writefile exercises/{folder}/mine.py"
    assert rest == (FOLDERS[number] / FILES[number]).read_text()
    assert judge_it.strip() == (f"!python3 exercises/check.py {number} "
                                f"exercises/{folder}/mine.py")


def test_the_first_pages_cell_begins_with_the_first_kernel():
    write, judge_it = cells(page(1))
    first, second, *_ = write.splitlines()
    assert first == "%%writefile exercises/1_find_the_fault/mine.py"
    assert second == "from faults import *"
    faults = kernels((FOLDERS[1] / "faults.py").read_text())
    assert kernels(write.rstrip()) == {"softmax_1": faults["softmax_1"]}
    assert "check.py 1 exercises/1_find_the_fault/mine.py" in judge_it


def test_each_fault_has_a_symptom_a_report_a_hint_and_one_place():
    text = (FOLDERS[1] / "faults.py").read_text()
    faults = kernels(text)
    mended = kernels((FOLDERS[1] / "solution" / "faults.py").read_text())
    assert len(faults) >= 10 and list(faults) == list(mended)
    for name, source in faults.items():
        above = text.partition(f"# {name}. ")[2].partition("@triton")[0]
        report, = re.findall(r"^# (https://github\.com/\S+)$", above, re.M)
        assert f"| {name} | [" in page(1) and f"({report})" in page(1)
        assert f"<details><summary>{name}</summary>" in page(1)
        code = [line for line in mended[name].splitlines()
                if not line.strip().startswith("#")]
        wrong = [line for line in source.splitlines()
                 if not line.strip().startswith("#")]
        assert 1 <= len(set(code) ^ set(wrong)) <= 4, name


def test_the_hints_open_and_close():
    for number in FOLDERS:
        text = page(number)
        assert text.count("<details>") == text.count("</details>") > 4
        assert text.count("<summary>") == text.count("<details>")


def test_the_index_has_every_exercise_in_order():
    text = (EXERCISES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d)\. .+?\]\((\S+?)/README\.md\) \| (.+?) \|",
                      text, re.M)
    assert [int(number) for number, *_ in rows] == [1, 2, 3, 4]
    for number, folder, time in rows:
        said = (EXERCISES / folder / "README.md").read_text(encoding="utf-8")
        assert f"**Time:** {time}." in said
        assert folder.startswith(f"{number}_")


def newest(pattern):
    """The text of the newest transcript of that name, or an empty one."""
    found = [path.read_text(encoding="utf-8")
             for path in (ROOT / "transcripts").glob(pattern)]
    # A transcript begins with its date and time.
    return max(found, default="", key=lambda text: text.splitlines()[0])


def chosen_now(number, cols):
    """What the solution chooses for rows of that width, as the judge says."""
    path = FOLDERS[number] / "solution" / FILES[number]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    solution = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(solution)
    settings = solution.choose(2**26 // cols, cols)
    return " ".join(f"{name}={value}" for name, value in settings.items())


@pytest.mark.parametrize("number", (2, 3))
def test_measured_figures_are_of_this_solution(number):
    # The newest transcript counts if it is one of what the solution chooses
    # today. Then the page has its figures, and no other; until then it has
    # {what goes there} in their places.
    told = newest(f"exercise-{number}-h200*.txt")
    report = newest("exercises-report-h200*.txt")
    chosen = re.findall(r"^(\d+) columns\n  chosen: (.+)$", told, re.M)
    fresh = bool(chosen) and all(text == chosen_now(number, int(cols))
                                 for cols, text in chosen)
    rows = re.findall(r"^\| .*\d.* \|$", page(number), re.M)
    index = (EXERCISES / "README.md").read_text(encoding="utf-8")
    rows += re.findall(rf"^\| \[{number}\. .* \|$", index, re.M)
    text = "\n".join(rows)
    figures = re.findall(r"(?<![\w.])\d+\.\d{2,4}(?![\w.])", text)
    places = re.findall(r"\{[^}]*: [^}]*\}", text)
    if fresh:
        assert len(figures) > 4 and not places
        assert not [figure for figure in figures
                    if figure not in told + report]
    else:
        assert places and not figures


@pytest.mark.slow
def test_what_page_2_says_of_the_compiled_code():
    # One load and one store of 16 bytes, shuffles, neither barriers nor
    # shared memory: looked up in a process that compiles.
    command, = re.findall(r"^    python3 -c \"\n(.*?)\"$", page(2), re.M | re.S)
    code = "\n".join(line[4:] for line in command.splitlines())
    told = subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, cwd=ROOT,
        env=clean_env(), check=True, timeout=300).stdout
    assert len(re.findall(r"\bld\.global\.v4\.b32", told)) == 1
    assert len(re.findall(r"\bst\.global\.v4\.b32", told)) == 1
    assert len(re.findall(r"\b[ls][dt]\.global", told)) == 2
    assert "shfl.sync" in told
    assert "bar.sync" not in told and "ld.shared" not in told


@interpreted
@pytest.mark.slow
def test_the_notebook_way_from_a_zip(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    inside = tmp_path / "tree" / "lesson-main"
    inside.mkdir(parents=True)
    shutil.copy(ROOT / "triton_softmax_matmul.py", inside)
    shutil.copytree(EXERCISES, inside / "exercises",
                    ignore=shutil.ignore_patterns("__pycache__", "mine*.py"))
    shutil.make_archive(str(tmp_path / "lesson-main"), "zip",
                        tmp_path / "tree")
    shutil.rmtree(tmp_path / "tree")
    index = (EXERCISES / "README.md").read_text(encoding="utf-8")
    sources = cells(index)
    for number in FOLDERS:
        sources += cells(page(number))
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}})
    python = pathlib.Path(sys.executable).parent
    client.execute(env=clean_env(
        PATH=f"{python}:/usr/local/bin:/usr/bin:/bin", OMP_NUM_THREADS=1))
    said = ["".join(output.get("text", "") for output in cell.outputs)
            for cell in notebook.cells]
    assert "ready, in" in said[0]
    for number, text in zip(FOLDERS, said[3::2], strict=True):
        assert "exit 3" in text, number
    assert "FAIL  softmax_1: " in said[3]
