"""transcripts/archive.py: what it makes of programs, and of what they printed.

Programs here are a few lines each, written to a temporary folder and run with
the real command, in a process of its own.
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT, clean_env
from hypothesis import given
from hypothesis import strategies as st

FOLDER = ROOT / "transcripts"
ARCHIVE = FOLDER / "archive.py"
REAL = sorted(path.name for path in FOLDER.glob("*.txt"))
RUN_370 = "run-h200-triton3.7.1-2026-11-30.txt"
RUN_360 = "run-h200-triton3.6.0-2026-11-30.txt"


def load():
    """archive.py as a module; the folder of transcripts gets no __pycache__."""
    spec = importlib.util.spec_from_file_location("archive", ARCHIVE)
    module = importlib.util.module_from_spec(spec)
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


archive = load()

HEADER = """\
2026-11-30 23:59:59 UTC
script 0123456789ab, kernels and CONFIGS ba9876543210
Python 3.11.7, numpy 2.4.6, torch 2.13.0+cu130, CUDA 13.0
Triton 3.7.1, torch's own pin
"""
H200 = HEADER + """\
NVIDIA H200, compute capability 9.0, 143155 MiB, driver 580.159.04
"""
NEW = H200 + """
pass  a mask on K       ieee 97x61x83 row-major, 64,64,32  \
1.1e-07 <= 2.2e-06 = 4 sqrt(83) 2^-24
FAIL  a row of NaN      softmax 3x17 steps  nan <= 5.8e-07 = \
(sqrt(17) + 8) 2^-24; 2 wrong
skip  memory that ends  there is no fork here
pass  no columns: ValueError
pass  a row in steps refused: x has strides
FAIL  a column in steps
      was not refused with a ValueError
prose between the rows, of which 0.1000 ms is none
2048 cubed, tf32, row-major B: median (20 % .. 80 %), rate, \
speed over the first's
torch.mm       0.0516 ms (0.0512 .. 0.0524) 332.63 TFLOP/s 1.00
64,64,32       0.3705 ms (0.3702 .. 0.3708)  46.37 TFLOP/s 0.14
128,128,32     does not fit: shared memory, 131072 required, 101376 available

Prediction 1, tf32's error is at least 100 times ieee's: HELD.
  It is 355 times as large.
Prediction 2, tf32 is at least twice as fast as ieee, gated: FALSIFIED.
  The best ieee row took 0.4052 ms, the best tf32 row 0.2226 ms: 1.82 times.
Prediction 2 with K-major B, reported, not gated: HELD.
Prediction 2, 64,64,32 against itself, row-major B: A TIE.
Prediction 4 in tf32, K-major B, the best shape is not the smallest and
128,128,32 wins: HELD.
Predictions 3 and 5 stay open: the interpreter has no tf32, and no time.
exit 6
"""


def command(*words, **options):
    """Run archive.py; the completed process, its output as bytes."""
    return subprocess.run([sys.executable, ARCHIVE, *map(str, words)],
                          capture_output=True, timeout=60, **options)


@pytest.fixture
def program(tmp_path):
    """A function that writes a program and returns its path."""
    def write(text, name="lesson/triton_softmax_matmul.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path
    return write


@pytest.fixture
def into(tmp_path):
    """The folder that transcripts go to; run has to make it itself."""
    return tmp_path / "into"


def printing(text, status=0):
    """A program that prints a text and ends with a status."""
    return f"import sys\nprint({text!r}, end='')\nsys.exit({status})\n"


def names(folder):
    """The names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------- run

REFUSED = "\nrefused: compute capability 7.5 is below 8.0.\nexit 1\n"
T4 = HEADER + "Tesla T4, compute capability 7.5, 15095 MiB, driver 550.1\n"
INTERPRETED = HEADER + "TRITON_INTERPRET is set to 'Yes'\n"


@pytest.mark.parametrize(("text", "status", "name"), [
    (H200 + "exit 0\n", 0, "run-h200-triton3.7.1-2026-11-30"),
    (NEW, 6, "run-h200-triton3.7.1-2026-11-30"),
    (HEADER + "exit 0\n", 0, "run-cpu-triton3.7.1-2026-11-30"),
    (HEADER + REFUSED, 1, "refused-cpu-triton3.7.1-2026-11-30"),
    (T4 + REFUSED, 1, "refused-t4-triton3.7.1-2026-11-30"),
    (INTERPRETED + "exit 0\n", 0, "interpret-triton3.7.1-2026-11-30"),
    (H200 + "TRITON_INTERPRET is set to '1'\nexit 0\n", 0,
     "interpret-triton3.7.1-2026-11-30"),
    (H200 + "TRITON_INTERPRET is set to '0'\nexit 0\n", 0,
     "run-h200-triton3.7.1-2026-11-30"),
    (H200.replace("NVIDIA H200", "NVIDIA GeForce RTX 3090") + "exit 0\n", 0,
     "run-rtx3090-triton3.7.1-2026-11-30"),
    (H200.replace("NVIDIA H200", "NVIDIA A100-SXM4-40GB") + "exit 0\n", 0,
     "run-a100-sxm4-40gb-triton3.7.1-2026-11-30"),
    (H200.replace("NVIDIA H200", "../../etc/x") + "exit 0\n", 0,
     "run-etc-x-triton3.7.1-2026-11-30"),
])
def test_the_lessons_transcript_is_named_by_what_it_printed(
        program, into, text, status, name):
    result = command("run", "--into", into, program(printing(text, status)))
    assert names(into) == [f"{name}.txt"]
    assert result.returncode == status
    assert result.stdout == (into / names(into)[0]).read_bytes()
    assert archive.kind_of(name, archive.parse(text)["header"]["card"]) in (
        "run", "refused", "interpret")


def test_a_lesson_that_cannot_start_is_named_by_today(program, into):
    # A header that is not there names neither a day nor a Triton.
    text = "cannot start: no module named triton\nexit 2\n"
    assert command("run", "--into", into,
                   program(printing(text, 2))).returncode == 2
    name, = names(into)
    assert re.fullmatch(r"not-started-cpu-20\d\d-\d\d-\d\d\.txt", name)


@pytest.mark.parametrize(("path", "words", "text", "name"), [
    ("experiments/speed.py", [], H200, "speed-h200"),
    ("experiments/library_speed.py", [], H200, "library-speed-h200"),
    ("experiments/speed.py", [], HEADER + "refused: no GPU",
     "speed-refused-cpu"),
    ("exercises/check.py", ["4", "some.py"], H200, "exercise-4-h200"),
    ("exercises/check.py", ["2", "some.py"], INTERPRETED,
     "exercise-2-interpret"),
])
def test_other_transcripts_are_named_after_their_program(
        program, into, path, words, text, name):
    status = int("refused" in text)
    file = program(printing(f"{text}\nexit {status}\n", status), path)
    result = command("run", "--into", into, file, *words)
    assert names(into) == [f"{name}-triton3.7.1-2026-11-30.txt"]
    assert result.returncode == status


def test_a_name_can_be_given(program, into):
    file = program(printing(H200 + "exit 0\n"))
    command("run", "--into", into, "--name", "Exercises, all", file)
    assert names(into) == ["exercises-all-h200-triton3.7.1-2026-11-30.txt"]


def test_a_shell_script_runs_and_gets_its_arguments(program, into):
    file = program('echo "$1"; echo exit 0\n', "tests/gpu.sh")
    result = command("run", "--into", into, file, "--option")
    assert result.stdout == b"--option\nexit 0\n"
    assert names(into)[0].startswith("gpu-tests-")


def test_a_program_is_looked_for_at_the_top_of_the_repository(into, tmp_path):
    # Without a GPU it ends soon; the point is that it was found and started.
    result = command("run", "--into", into, "transcripts/archive.py", "--help",
                     cwd=tmp_path)
    assert result.returncode == 0
    assert b"compare A B" in result.stdout


EVERY_BYTE = bytes(range(256)) * 300 + b"\xff\xfe no newline at the end"


def test_every_byte_is_shown_and_kept(program, into):
    file = program(f"import sys\nsys.stdout.buffer.write({EVERY_BYTE!r})\n",
                   "bytes.py")
    result = command("run", "--into", into, file)
    name, = names(into)
    assert result.stdout == EVERY_BYTE
    assert (into / name).read_bytes() == EVERY_BYTE
    assert name.endswith("-no-exit.txt") and b"take care" in result.stderr


def test_lines_are_shown_as_they_are_printed(program, into, tmp_path):
    # The program goes on when its first line was seen here, or after 20 s.
    seen = tmp_path / "seen"
    file = program(f"""
import pathlib, time
print("first")
for _ in range(2000):
    if pathlib.Path({str(seen)!r}).exists():
        break
    time.sleep(0.01)
else:
    print("nobody saw it")
print("exit 0")
""", "slow.py")
    with subprocess.Popen(
            [sys.executable, ARCHIVE, "run", "--into", into, file],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=clean_env(PYTHONUNBUFFERED=None)) as process:
        assert process.stdout.readline() == b"first\n"
        assert len(list(into.glob("*.part"))) == 1
        assert not list(into.glob("*.txt"))
        seen.touch()
        assert process.stdout.read() == b"exit 0\n"
    assert process.returncode == 0 and len(names(into)) == 1


def test_an_old_file_is_never_written_on(program, into):
    stem = "run-h200-triton3.7.1-2026-11-30"
    for count in range(3):
        file = program(printing(f"{H200}{count}\nexit 0\n"))
        command("run", "--into", into, file)
    assert names(into) == [f"{stem}-2.txt", f"{stem}-3.txt", f"{stem}.txt"]
    for count, end in enumerate(("", "-2", "-3")):
        text = (into / f"{stem}{end}.txt").read_text(encoding="utf-8")
        assert text == f"{H200}{count}\nexit 0\n"


@pytest.mark.parametrize("status", [0, 1, 3, 6, 255])
def test_the_status_is_the_programs(program, into, status):
    file = program(printing(f"{H200}exit {status}\n", status))
    assert command("run", "--into", into, file).returncode == status
    assert names(into) == ["run-h200-triton3.7.1-2026-11-30.txt"]


HOME = "/" + "root"  # the one home that has no name in it


@pytest.mark.parametrize(("text", "end", "said"), [
    (H200 + "the end\n", "no-exit", "`exit N`"),
    (H200 + "exit 0\nthe end\n", "no-exit", "`exit N`"),
    (H200 + "exit 3\n", "exit-differs", "status 0"),
    (H200 + "in /home/ada/x.py\nexit 0\n", "home-path", "line 6"),
    (H200 + f"in {HOME}/x.py\nexit 0\n", "home-path", "line 6"),
    (H200 + "in /mnt/c/Users/ada/x.py\nthe end\n", "no-exit-home-path",
     "line 6"),
])
def test_what_should_not_be_quoted_says_so(program, into, text, end, said):
    result = command("run", "--into", into, program(printing(text)))
    assert names(into) == [f"run-h200-triton3.7.1-2026-11-30-{end}.txt"]
    assert said in result.stderr.decode() and result.returncode == 0


@pytest.mark.parametrize("line", [
    "https://example.org/home/page", "the root of /usr/lib", "/roots/of",
    "github.com/triton-lang/triton#compatibility"])
def test_other_paths_are_no_home(line):
    assert archive.home_lines(line.encode()) == []


def test_the_home_of_whoever_runs_it_is_seen(program, into):
    file = program(printing(H200 + "/data/people/ada/x.py\nexit 0\n"))
    command("run", "--into", into, file,
            env=clean_env(HOME="/data/people/ada"))
    assert names(into)[0].endswith("-home-path.txt")


def test_stderr_is_archived_only_when_asked_for(program, into):
    file = program("import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
                   "print('exit 0')\n", "both.py")
    apart = command("run", "--into", into, file)
    together = command("run", "--into", into, "--with-stderr", file)
    assert apart.stdout == b"out\nexit 0\n" and b"err\n" in apart.stderr
    assert together.stdout == b"out\nerr\nexit 0\n"
    first, second = sorted(into.iterdir(), key=lambda path: path.stat().st_size)
    assert first.read_bytes() == apart.stdout
    assert second.read_bytes() == together.stdout


def test_a_program_that_prints_nothing_leaves_nothing(program, into):
    result = command("run", "--into", into,
                     program("raise SystemExit(5)\n", "silent.py"))
    assert result.returncode == 5 and names(into) == []
    assert b"printed nothing" in result.stderr


def test_a_program_that_dies_by_a_signal_is_kept(program, into):
    file = program(f"import os\nprint({H200!r}, end='', flush=True)\n"
                   f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n")
    result = command("run", "--into", into, file)
    assert result.returncode == 128 + signal.SIGKILL
    assert names(into) == ["run-h200-triton3.7.1-2026-11-30-stopped.txt"]
    assert b"signal 9" in result.stderr


def interrupted(into, file, numbers):
    """Run a program, and send archive.py each signal after one more line.

    Returns the status and all that was shown.
    """
    # A shell has what it starts in the background ignore Ctrl-C, and these
    # tests may be such; env undoes that.
    with subprocess.Popen(
            ["env", "--default-signal=INT", sys.executable, ARCHIVE, "run",
             "--into", into, file],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        shown = process.stdout.readline()
        for number in numbers:
            process.send_signal(number)
            shown += process.stdout.readline()
        shown += process.stdout.read()
    return process.returncode, shown


POLITE = f"""
import time
try:
    print({H200!r}, end="", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", "exit 130", sep="\\n")
    raise SystemExit(130)
"""


@pytest.mark.parametrize(("text", "number", "status", "end"), [
    (POLITE, signal.SIGINT, 130, b"\ninterrupted\nexit 130\n"),
    (POLITE.replace("KeyboardInterrupt", "ImportError"), signal.SIGINT,
     130, b"driver 580.159.04\n"),
    (POLITE, signal.SIGTERM, 143, b"driver 580.159.04\n"),
])
def test_ctrl_c_keeps_what_was_printed(
        program, into, text, number, status, end):
    returned, shown = interrupted(into, program(text), [number])
    assert returned == status
    assert names(into) == ["run-h200-triton3.7.1-2026-11-30-stopped.txt"]
    kept = (into / names(into)[0]).read_bytes()
    assert kept == shown and kept.endswith(end)


def test_a_second_ctrl_c_ends_a_program_that_does_not(program, into):
    file = program(f"""
import signal, time
def handle(number, frame):
    print("not yet", flush=True)
signal.signal(signal.SIGINT, handle)
print({H200.splitlines()[0]!r}, flush=True)
for _ in range(200):
    time.sleep(0.1)
""")
    status, shown = interrupted(into, file, [signal.SIGINT, signal.SIGINT])
    assert status == 128 + signal.SIGKILL
    assert names(into) == ["run-cpu-2026-11-30-stopped.txt"]
    assert (into / names(into)[0]).read_bytes() == shown
    assert shown.endswith(b"not yet\n")


def test_what_it_started_ends_with_it(program, into, tmp_path):
    # A grandchild that holds the pipe would keep `run` waiting for ever.
    file = program(f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import signal, time; "
    "signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "print('here', flush=True); time.sleep(60)"])
print({H200!r}, flush=True)
time.sleep(60)
""")
    began = time.monotonic()
    interrupted(into, file, [signal.SIGINT, signal.SIGINT])
    assert time.monotonic() - began < 30
    assert names(into)[0].endswith("-stopped.txt")


def test_a_closed_stdout_does_not_cut_the_transcript(program, into):
    text = H200 + "a row of it\n" * 20000 + "exit 0\n"
    file = program(printing(text))
    line = f'"{sys.executable}" "{ARCHIVE}" run --into "{into}" "{file}"'
    shell = subprocess.run(["bash", "-c", line + " | head -n 1; "
                            "echo ${PIPESTATUS[0]}; " + line + " >&-"],
                           capture_output=True, timeout=60)
    assert shell.stdout == text.splitlines()[0].encode() + b"\n0\n"
    assert shell.returncode == 0 and b"stdout was closed" in shell.stderr
    assert len(names(into)) == 2
    for path in into.iterdir():
        assert path.read_text(encoding="utf-8") == text


def test_a_full_disk_is_told(program, into):
    # `ulimit -f` counts blocks of 1024 bytes in bash; what is shown goes on.
    text = H200 + "a row of it\n" * 2000 + "exit 0\n"
    file = program(printing(text), "gpu.py")
    shell = subprocess.run(
        ["bash", "-c", 'ulimit -f 8; "$@" | cat; exit ${PIPESTATUS[0]}', "-",
         sys.executable, "-B", ARCHIVE, "run", "--into", into, file],
        capture_output=True, timeout=60)
    assert shell.stdout.decode() == text
    assert shell.returncode == 2 and b"not all that was printed" in shell.stderr
    name, = names(into)
    assert name == "gpu-h200-triton3.7.1-2026-11-30-cut-short.txt"
    assert text.encode().startswith((into / name).read_bytes())


def test_what_cannot_be_started_leaves_nothing(into, tmp_path):
    for words in (["nowhere.py"], ["no-such-program-anywhere"]):
        result = command("run", "--into", into, *words)
        assert result.returncode == 2 and b"not started" in result.stderr
        assert not into.exists() or names(into) == []
    file = tmp_path / "file"
    file.touch()
    result = command("run", "--into", file, "transcripts/archive.py", "--help")
    assert result.returncode == 2 and result.stdout == b""


@pytest.mark.slow
def test_the_lesson_is_what_runs_by_default(into):
    result = command("run", "--into", into,
                     env=clean_env(TRITON_INTERPRET=1))
    name, = names(into)
    assert re.fullmatch(r"interpret-triton[\d.]+-20\d\d-\d\d-\d\d\.txt", name)
    assert (into / name).read_bytes() == result.stdout
    assert result.stdout.endswith(f"\nexit {result.returncode}\n".encode())


# ------------------------------------------------------------------- parsing

def test_new_checks_rows_and_verdicts_are_read():
    transcript = archive.parse(NEW)
    checks = [(each["result"], each["name"]) for each in transcript["checks"]]
    assert checks == [
        ("pass", "a mask on K ieee 97x61x83 row-major, 64,64,32"),
        ("FAIL", "a row of NaN softmax 3x17 steps"),
        ("skip", "memory that ends"), ("pass", "no columns"),
        ("pass", "a row in steps"), ("FAIL", "a column in steps")]
    assert transcript["checks"][0]["error"] == 1.1e-07
    assert transcript["checks"][1]["error"] == "nan"
    assert transcript["checks"][1]["rest"].endswith("; 2 wrong")
    assert transcript["checks"][5]["rest"].startswith("was not refused")
    rows = [(row["section"], row["name"], row["milliseconds"], row["low"],
             row["high"], row["rate"], row["unit"], row["speed"])
            for row in transcript["rows"]]
    section = "2048 cubed, tf32, row-major B"
    assert rows == [
        (section, "torch.mm", 0.0516, 0.0512, 0.0524, 332.63, "TFLOP/s", 1),
        (section, "64,64,32", 0.3705, 0.3702, 0.3708, 46.37, "TFLOP/s", 0.14),
        (section, "128,128,32", None, None, None, None, None, None)]
    assert "131072 required" in transcript["rows"][2]["reason"]
    verdicts = [(each["prediction"], each["where"], each["gated"],
                 each["verdict"]) for each in transcript["verdicts"]]
    assert verdicts == [
        (1, "", False, "HELD"), (2, "", True, "FALSIFIED"),
        (2, "K-major B", False, "HELD"),
        (2, "64,64,32, row-major B", False, "A TIE"),
        (3, "", False, "OPEN"), (4, "tf32, K-major B, 128,128,32", False,
                                 "HELD"), (5, "", False, "OPEN")]
    assert transcript["exit"] == 6


@pytest.mark.parametrize("name", REAL)
def test_every_line_of_the_real_ones_is_counted(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    transcript = archive.read(FOLDER / name)
    header = transcript["header"]
    assert header["date"] == text.splitlines()[0]
    assert f"script {header['script']}" in text
    for field in "Python", "numpy", "torch", "Triton":
        assert f"{field} {header[field.lower()]}" in text
    assert transcript["passed"] == len(re.findall(
        r"^(?:pass +|PASSED )\S", text, re.M))
    assert transcript["failed"] == len(re.findall(
        r"^(?:FAIL +|FAILED )\S", text, re.M))
    # A verdict says what a row "took", which is no row.
    timed = [line for line in text.splitlines()
             if re.search(r"\d ms\b", line) and " took " not in line]
    table = re.findall(r"^\S+ +(?:row|K)-major +\S+ +[\d.]+ +", text, re.M)
    if name.startswith(("run", "exercise", "search")):
        assert len(transcript["rows"]) == len(timed)
    if name.startswith("precision"):
        assert len(transcript["rows"]) == len(table) > 0
        assert all(row["table"]["error"] for row in transcript["rows"])
    if "-h200" in name and "compute capability" in text:
        assert header["card"] == "NVIDIA H200"
    assert transcript["exit"] == int(text.split()[-1])


def test_the_real_verdicts_are_read():
    verdicts = [(each["prediction"], each["where"], each["verdict"])
                for each in archive.read(FOLDER / RUN_370)["verdicts"]]
    assert verdicts == [
        (1, "", "HELD"), (1, "larger", "HELD"), (2, "", "HELD"),
        (2, "row-major B", "FALSIFIED"), (2, "K-major B", "HELD"),
        (3, "", "HELD"), (4, "ieee, row-major B", "A TIE"),
        (4, "tf32, K-major B", "HELD")]
    interpreted = archive.read(FOLDER / "interpret-2026-11-30.txt")["verdicts"]
    assert [(each["prediction"], each["verdict"]) for each in interpreted] == [
        (1, "OPEN"), (2, "OPEN"), (3, "HELD"), (4, "OPEN")]


def test_the_lessons_own_sentences_are_read(capsys):
    import triton_softmax_matmul as t
    milliseconds = {"ieee": 0.4, "tf32": 0.22}
    times = {}
    for precision in t.PRECISIONS:
        for layout in t.B_LAYOUTS:
            row = [milliseconds[precision]] * len(t.CONFIGS)
            times[precision, layout] = row
    t.prediction_1({"ieee": 4e-7, "tf32": 1.4e-4})
    t.prediction_2(times)
    t.prediction_4(times)
    verdicts = [(each["prediction"], each["where"], each["gated"],
                 each["verdict"])
                for each in archive.parse(capsys.readouterr().out)["verdicts"]]
    assert verdicts == [
        (1, "", False, "HELD"), (1, "larger", True, "HELD"),
        (2, "row-major B", True, "FALSIFIED"),
        (2, "K-major B", False, "FALSIFIED"),
        *[(4, f"{precision}, {layout} B", False, "A TIE")
          for precision, layout in times]]


def test_a_row_that_is_its_own_title_is_read():
    rows = archive.parse("\nieee, K-major B: torch.mm 0.3452 ms\n"
                         "best 64,64,32  G4  0.6643 ms  0.520\n")["rows"]
    found = [(row["section"], row["name"], row["speed"]) for row in rows]
    assert found == [("ieee, K-major B", "torch.mm", None),
                     ("ieee, K-major B", "best 64,64,32 G4", 0.52)]


def test_a_table_with_a_column_of_times_is_read():
    rows = archive.parse("""
softmax, 65536 x 1024
                           median ms     20 %     80 %     TB/s  of the first
device copy                   0.1300   0.1296   0.1318     4.13          1.00
Triton, softmax_kernel        0.1310   0.1306   0.1323     4.10          0.99

2048 cubed
precision      B         config                  ms  TFLOP/s     error  code
tf32x3         K-major   128,128,32,w8,s3    0.2266    75.81  7.94e-08  12x a.b
bf16x9         K-major   -                        -        -         -  none
""")["rows"]
    found = [(row["section"], row["name"], row["milliseconds"], row["low"],
              row["high"], row["rate"], row["unit"]) for row in rows]
    assert found == [
        ("softmax, 65536 x 1024", "device copy", 0.13, 0.1296, 0.1318, 4.13,
         "TB/s"),
        ("softmax, 65536 x 1024", "Triton, softmax_kernel", 0.131, 0.1306,
         0.1323, 4.1, "TB/s"),
        ("2048 cubed", "tf32x3 K-major", 0.2266, None, None, 75.81, "TFLOP/s")]
    assert rows[2]["table"]["config"] == "128,128,32,w8,s3"
    assert rows[2]["table"]["code"] == "12x a.b"


def test_a_table_whose_title_lists_its_columns_is_read():
    rows = archive.parse("""
tf32, 2048 cubed, row-major B: ms, TFLOP/s, ratio to torch.mm, error
torch.mm                     0.0516   332.6  1.000  5.27e-05
  a producer warp            0.0500   343.6  1.032  1.41e-04  64,256,32
descriptors round          cannot: Triton 3.6.0 has none

columns  copy ms    torch   pieces
  65536   0.1305    0.637    0.841
""")["rows"]
    found = [(row["section"], row["name"], row["milliseconds"], row["reason"])
             for row in rows]
    section = "tf32, 2048 cubed, row-major B"
    assert found == [
        (section, "torch.mm", 0.0516, None),
        (section, "a producer warp", 0.05, None),
        (section, "descriptors round", None, "cannot: Triton 3.6.0 has none"),
        ("columns copy ms torch pieces", "65536", 0.1305, None)]
    assert rows[0]["rate"] == 332.6 and rows[3]["table"]["pieces"] == "0.841"
    assert rows[1]["table"]["ratio to torch.mm"] == "1.032"


@pytest.mark.parametrize("piece", [" ", "1 ", "1.5  ", "a  1", "pass  ", ": "])
def test_a_line_without_end_is_read_in_time(piece):
    began = time.monotonic()
    archive.parse(f"a {piece * 500_000}\nexit 0\n")
    assert time.monotonic() - began < 10


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text):
    json.dumps(archive.parse(text), allow_nan=False)


@given(st.lists(st.sampled_from(NEW.split("\n")), max_size=30))
def test_lines_in_any_order_are_read(lines):
    text = "\n".join(lines)
    transcript = archive.parse(text)
    json.dumps(transcript, allow_nan=False)
    assert transcript["failed"] == len(re.findall(r"^FAIL", text, re.M))
    assert archive.stem_of(text, "some")


# --------------------------------------------------------------------- index

def test_the_index_is_what_the_files_say(tmp_path):
    # A copy, so that a stale README.md is told and not mended by its test.
    for name in [*REAL, "README.md"]:
        shutil.copy(FOLDER / name, tmp_path)
    before = (tmp_path / "README.md").read_bytes()
    result = command("index", "--into", tmp_path)
    assert result.returncode == 0
    assert (tmp_path / "README.md").read_bytes() == before
    assert names(tmp_path) == sorted([*REAL, "README.md"])
    assert command("index", "--check").returncode == 0


def test_the_index_lists_every_transcript_once():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\S+)\]\((\S+)\)", text, re.M)
    assert sorted(name for name, _ in listed) == REAL
    assert all(name == link for name, link in listed)
    assert "python3 transcripts/archive.py index" in text.splitlines()[0]


def test_the_index_has_a_dash_for_what_a_file_lacks(tmp_path):
    made = {"speed-h200-2026-11-30.txt": "no header\nexit 0\n",
            "run-h200-triton3.7.1-2026-11-30.txt": NEW,
            "run-h200-triton3.7.1-2026-12-01.txt":
                NEW.replace("2026-11-30 23", "2026-12-01 00"),
            "exercise-4-h200-2026-11-30.txt": H200.replace("NVIDIA", "2 x N")}
    for count, (name, text) in enumerate(made.items()):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, (count, count))  # which must not decide the order
    assert command("index", "--check", "--into", tmp_path).returncode == 1
    assert not (tmp_path / "README.md").exists()
    assert command("index", "--into", tmp_path).returncode == 0
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^(?:## (\S+?):? .*|## (\S+)|\| \[(\S+)\].*)$", text,
                       re.M)
    assert [a or b or c for a, b, c in found] == [
        "run", "run-h200-triton3.7.1-2026-12-01.txt",
        "run-h200-triton3.7.1-2026-11-30.txt", "exercise-4",
        "exercise-4-h200-2026-11-30.txt", "speed", "speed-h200-2026-11-30.txt"]
    rows = {}
    for name, cells in re.findall(r"^\| \[(\S+)\]\S+ \| (.*) \|$", text, re.M):
        rows[name] = cells.split(" | ")
    assert rows["speed-h200-2026-11-30.txt"] == ["-"] * 8 + ["0"]
    assert rows["run-h200-triton3.7.1-2026-11-30.txt"] == [
        "2026-11-30 23:59:59", "NVIDIA H200", "580.159.04", "2.13.0+cu130",
        "3.7.1", "0123456789ab", "3 / 2, 1 skipped",
        "1: held; 2, gated: falsified; 2, K-major B: held; "
        "2, 64,64,32, row-major B: a tie; 3: open; "
        "4, tf32, K-major B, 128,128,32: held; 5: open", "6"]
    assert rows["exercise-4-h200-2026-11-30.txt"][-1] == "-"


# ------------------------------------------------------------- compare, show

def compared(tmp_path, first, second):
    """What compare prints for two made-up transcripts."""
    paths = tmp_path / "a.txt", tmp_path / "b.txt"
    for path, text in zip(paths, (first, second)):
        path.write_text(text, encoding="utf-8")
    result = command("compare", *paths)
    assert result.returncode == 0 and result.stderr == b""
    return result.stdout.decode()


def test_compare_tells_every_kind_of_change(tmp_path):
    later = NEW
    for old, new in (
            ("Triton 3.7.1", "Triton 3.9.0"),
            ("0.0516 ms (0.0512 .. 0.0524)", "0.0520 ms (0.0524 .. 0.0530)"),
            ("0.3705 ms (0.3702 .. 0.3708)", "0.3601 ms (0.3600 .. 0.3602)"),
            ("128,128,32     does not fit", "128,256,32     does not fit"),
            ("gated: FALSIFIED", "gated: HELD"),
            ("pass  no columns", "FAIL  no columns"), ("exit 6", "exit 3")):
        assert later.count(old) == 1
        later = later.replace(old, new)
    text = compared(tmp_path, NEW, later)
    assert re.search(r"^  triton +3\.7\.1 -> 3\.9\.0$", text, re.M)
    assert re.search(r"^  torch\.mm +0\.0516 +0\.0520 +1\.008  overlap$", text,
                     re.M)
    assert re.search(r"^  64,64,32 +0\.3705 +0\.3601 +0\.972  apart, B faster$",
                     text, re.M)
    assert "only in A, row: 2048 cubed, tf32, row-major B: 128,128,32" in text
    assert "only in B, row: 2048 cubed, tf32, row-major B: 128,256,32" in text
    assert "  prediction 2: FALSIFIED -> HELD\n    A  Prediction 2, " in text
    assert "(6 are the same)" in text
    assert "  no columns: pass -> FAIL\n" in text
    assert "(5 are the same, 2 of them failed)" in text
    assert text.endswith("Ended with: exit 6 -> 3\n")


def test_compare_of_a_transcript_with_itself_finds_nothing(tmp_path):
    text = compared(tmp_path, NEW, NEW)
    assert "->" not in re.sub(r"A -> B|exit 6 -> 6", "", text)
    assert "only in" not in text and "apart" not in text
    assert len(re.findall(r"overlap$", text, re.M)) == 3  # and the heading


def test_quantiles_that_touch_overlap():
    def row(low, high):
        return {"milliseconds": low, "low": low, "high": high, "rounds": None}
    assert archive.quantiles(row(1, 2), row(2, 3)) == "overlap"
    assert archive.quantiles(row(2, 3), row(1, 2)) == "overlap"
    assert archive.quantiles(row(1, 4), row(2, 3)) == "overlap"
    assert archive.quantiles(row(1, 2), row(2.1, 3)) == "apart, B slower"
    assert archive.quantiles(row(2.1, 3), row(1, 2)) == "apart, B faster"
    assert archive.quantiles(row(None, None), row(1, 2)) == "no quantiles"


def test_compare_of_two_real_runs():
    text = command("compare", RUN_360, RUN_370).stdout.decode()
    assert "prediction 4, ieee, row-major B: HELD -> A TIE\n" in text
    assert "(57 are the same, 0 of them failed)" in text
    a, b = (archive.read(FOLDER / name)["rows"] for name in (RUN_360, RUN_370))
    assert len(re.findall(r"  (?:overlap|apart, B \w+)$", text, re.M)) == len(a)
    ratio = b[1]["milliseconds"] / a[1]["milliseconds"]
    assert f"{a[1]['milliseconds']:.4f}   {b[1]['milliseconds']:.4f}   " \
        f"{ratio:.3f}  apart, B slower\n" in text


def test_counts_of_instructions_that_changed_are_told():
    newer = "run-h200-triton3.9.0-2026-11-30.txt"
    text = command("compare", RUN_370, newer).stdout.decode()
    assert "  softmax 1024, 4 warps: 5 14 0 0 16 -> 3 14 0 0 16\n" in text


@pytest.mark.parametrize("name", REAL)
def test_show_writes_json(name):
    result = command("show", name, "--json")
    shown = json.loads(result.stdout)
    assert result.returncode == 0 and shown == archive.read(FOLDER / name)
    assert shown["file"] == name
    assert set(shown) == {"file", "kind", "header", "passed", "failed",
                          "skipped", "checks", "rows", "figures", "verdicts",
                          "exit"}


def test_show_names_the_checks_that_failed(tmp_path):
    path = tmp_path / "new.txt"
    path.write_text(NEW, encoding="utf-8")
    text = command("show", path).stdout.decode()
    assert "  FAIL  a row of NaN softmax 3x17 steps\n" in text
    assert "prediction 2, gated: FALSIFIED\n" in text
    assert text.endswith("exit 6\n")


def test_cells_that_do_not_follow_from_the_time_are_compared(tmp_path):
    table = HEADER + """
ieee, 2048 cubed: ms, ratio to torch.mm, error
torch.mm                    0.3431  1.000  3.97e-07
A copied                    0.3600  0.953  3.97e-07
exit 0
"""
    later = table.replace("0.3600  0.953  3.97e-07", "0.3700  0.953  1.41e-04")
    text = compared(tmp_path, table, later)
    assert re.search(r"^  A copied +0\.3600 +0\.3700 +1\.028  no quantiles\n"
                     r"      error 3\.97e-07 -> 1\.41e-04\n", text, re.M)
    assert text.count("->") == len(re.findall("A -> B|exit 0 -> 0", text)) + 1


def test_what_is_no_transcript_is_told(tmp_path):
    binary = tmp_path / "binary.txt"
    binary.write_bytes(bytes(range(256)))
    for path in (binary, ARCHIVE, tmp_path, tmp_path / "nowhere.txt",
                 ROOT / "requirements.txt"):
        for words in (["show", path], ["show", path, "--json"],
                      ["compare", RUN_370, path], ["compare", path, RUN_370]):
            result = command(*words)
            assert result.returncode == 2 and result.stdout == b""
            message = result.stderr.decode()
            assert str(path) in message and "Traceback" not in message


def test_it_needs_no_package_and_not_the_lesson():
    # -I and -S: neither site-packages nor the folder of the script.
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-OO", "-W", "error", ARCHIVE, "show",
         FOLDER / RUN_370], capture_output=True, timeout=60, cwd="/")
    assert result.returncode == 0 and result.stderr == b""
    assert result.stdout.endswith(b"exit 0\n")


def test_an_ascii_stdout_is_enough(tmp_path):
    path = tmp_path / "new.txt"
    path.write_text(NEW.replace("a row of NaN", "a row of \N{EM DASH}"),
                    encoding="utf-8")
    result = command("show", path, env=clean_env(
        PYTHONIOENCODING="ascii", PYTHONUTF8=0, LC_ALL="C"))
    assert result.returncode == 0 and b"a row of \\u2014" in result.stdout


def test_no_folder_of_compiled_code_is_left_among_the_transcripts():
    assert not pathlib.Path(FOLDER, "__pycache__").exists()
