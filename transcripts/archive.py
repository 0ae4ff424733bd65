"""Make, name, list and compare the transcripts of this folder.

    python3 transcripts/archive.py run                       the lesson
    python3 transcripts/archive.py run experiments/speed.py  another program
    python3 transcripts/archive.py run exercises/check.py 4 FILE
    python3 transcripts/archive.py index                     write README.md
    python3 transcripts/archive.py compare A B               what changed
    python3 transcripts/archive.py show FILE --json          for a program

`run` shows what the program prints as it comes and keeps the same bytes in a
file whose name it reads from them: path, card, Triton, day.  What it has to
say itself goes to stderr.  An old file is never written on.  A transcript that
should not be quoted as it is says so at the end of its name:

    -stopped       interrupted, or ended by a signal: what was printed until
                   then is kept, since time on a GPU is dear and the last line
                   often shows where a program hung
    -no-exit       the last line is not `exit N`
    -exit-differs  the last line is not the status that the process ended with
    -home-path     a path of somebody's home directory is in it
    -cut-short     the disk, say, was full: it is not all that was printed

The status of `run` is the program's; 128 and the signal's number where one
ended it; 2 where it could not be started or kept.  The others end with 0, or
with 2 and a sentence; `index --check` with 1 where README.md is out of date.
Options of `run` stand before the program: --into FOLDER instead of this one,
--name WORDS for what the file's name begins with, --with-stderr to archive
stderr, too.  The program has no stdin.
"""
import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
LESSON = "triton_softmax_matmul.py"

# What a transcript's name begins with, where it is not the program's own.
NAMES = {"check.py": "exercise", "gpu.sh": "gpu-tests"}

# What README.md says about each kind, in the order in which they stand there.
KINDS = {
    "run": "the lesson on a GPU",
    "interpret": "the lesson under Triton's interpreter",
    "refused": "the lesson where no GPU can run it",
    "not-started": "the lesson where something that it needs is missing",
    "exercise": "exercises/check.py",
    "exercises-report": "what the exercises' solutions measure by themselves",
    "precision": "experiments/precision.py",
    "search": "experiments/search.py",
    "speed": "experiments/speed.py",
    "library-speed": "experiments/library_speed.py",
    "in-cuda": "experiments/in_cuda.py",
    "gpu-tests": "the tests that need a GPU, and compute-sanitizer",
}


class NotATranscript(ValueError):
    """A file that cannot be compared or shown; says why."""


# ---------------------------------------------------------------------------
# Reading a transcript.  One parser for all commands, and for old and new files
# alike: it looks for patterns and passes over every line that it does not know.

LONGEST = 1000  # as much of a line is looked at
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"

HEADER = {
    "date": r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)$",
    "script": r"^script ([0-9a-f]{12})\b",
    "kernels": r"^script .*, kernels and CONFIGS ([0-9a-f]{12})\b",
    "python": r"^Python (\d[^\s,]*)",
    "numpy": r"^Python .*\bnumpy ([^\s,]+)",
    "torch": r"^Python .*\btorch ([^\s,]+)",
    "cuda": r"^Python .*\bCUDA ([^\s,]+)",
    "triton": r"^Triton (\d[^\s,]*)(?:,|$)",
    "route": r"^Triton \d[^\s,]*, (.+)$",
    "capability": r"^\S.*, compute capability (\d+\.\d+)\b",
    "memory_mib": r"^\S.*, compute capability .*, (\d+) MiB\b",
    "driver": r"^\S.*, compute capability .*, driver (\S.*)$",
}
CARD = re.compile(r"^(?:(\d+) x )?(\S.*), compute capability \d", re.M)
CARDS = re.compile(r"^(\d+) x (NVIDIA .+|AMD .+)$", re.M)
VARIABLE = re.compile(r"^(\w+) is set to '(.*)'$", re.M)
EXIT = re.compile(r"exit (\d+)")

# "pass  softmax 3 columns   9.3e-08 <= 5.8e-07 = (sqrt(3) + 8) 2^-24"; a line
# of pytest's summary, "PASSED tests/test_paths.py::...", is a check, too.
CHECK = re.compile(r"\s*(?:(pass|FAIL|skip)\s\s+(\S.*)"
                   r"|(PASSED|FAILED|ERROR|SKIPPED) (\S*\.py\b.*))")
CHECK_ERROR = re.compile(
    rf"(.*?)\s+({NUMBER}|nan|inf) <= ({NUMBER}|nan|inf)\b(.*)")
CHECK_WORDS = re.compile(r"(.*?)(?:\s\s+|\s(?=refused: )|: |; | - )(.*)")
RESULTS = {"pass": "pass", "PASSED": "pass", "FAIL": "FAIL", "FAILED": "FAIL",
           "ERROR": "FAIL", "skip": "skip", "SKIPPED": "skip"}

# "torch.mm  0.3432 ms (0.3428 .. 0.3439)  33.25 TFLOP/s 1.00", of which all
# after "ms" may be missing; "(0.3929 .. 0.3933, 5 rounds)" is all of 5 rounds,
# and "(once, beforehand)" a time without a spread.
TIMES = re.compile(
    rf"\s*(?P<name>\S.*?)\s+(?P<milliseconds>{NUMBER}) ms"
    rf"(?: \((?P<low>{NUMBER}) \.\. (?P<high>{NUMBER})"
    r"(?:, (?P<rounds>\d+) rounds)?\)| \(once, beforehand\))?"
    rf"(?:\s+(?P<rate>{NUMBER}) (?P<unit>[TG](?:FLOP|B)/s))?"
    rf"(?:\s+(?P<speed>{NUMBER}))?\s*")
DOES_NOT_FIT = re.compile(r"\s*(\S.*?)\s+((?:does not fit|cannot): .*)")
MEDIAN = ": median (20 %"  # what the title of timing rows goes on with
LISTED = ": ms, "  # what one goes on with that lists a table's columns
ROW = ("section", "name", "milliseconds", "low", "high", "rounds", "rate",
       "unit", "speed", "reason", "table")

# "ieee   3.97e-07", "softmax 1024, 1 warps  0  10  0  0  0": a name, then
# figures that are no times.
FIGURES = re.compile(
    rf"\s*(?P<name>\S.*?)\s{{2,}}(?P<figures>{NUMBER}(?:\s+{NUMBER})*)"
    r"(?:\s+(?P<words>[A-Za-z].*?))?\s*")

VERDICT = re.compile(
    r"^ *Prediction (?P<number>\d+)\b(?P<claim>[^\n]*?(?:\n[^\n]+?)?):\s+"
    r"(?P<word>HELD|FALSIFIED|A TIE|OPEN)\b", re.M)
STAY_OPEN = re.compile(  # "Predictions 1, 2 and 4 stay open: no tf32."
    r"^ *Predictions (\d[\d, and]*) (?:stay|are) open\b.*", re.M | re.I)
OLD_VERDICT = re.compile(r"(\d) (held|falsified|a tie|open)\b.*")
OLD_ALONE = re.compile(
    r"\s+((?:row|K)-major B) alone: [\d.]+, (held|falsified)")
WHERE = re.compile(r"\bin (ieee|tf32)\b|\b((?:row|K)-major B)\b"
                   r"|(?<![\d,])(\d+,\d+,\d+)(?![\d,])|\bthe (larger) one\b")


def tidy(words):
    """The words with one space between each, so that alignment is no name."""
    return " ".join(words.split())


def number(text):
    """The number that a text is; None where there is none; NaN as it stands."""
    if text is None:
        return None
    value = float(text)
    if not math.isfinite(value):
        return text  # JSON has neither NaN nor infinity
    return int(text) if re.fullmatch(r"-?\d+", text) else value


def read_header(text):
    """What the first lines say of the machine and the versions."""
    header = {}
    for field, pattern in HEADER.items():
        found = re.search(pattern, text, re.M)
        header[field] = found[1] if found else None
    found = CARD.search(text) or CARDS.search(text)
    header["card"] = found[2] if found else None
    header["cards"] = int(found[1] or 1) if found else 0
    header["memory_mib"] = number(header["memory_mib"])
    header["variables"] = dict(VARIABLE.findall(text))
    return header


def read_check(line):
    """A check's result, name, error and limit, if any, and the rest; or None.

    The name is what a pass and a failure of one check have in common.
    """
    found = CHECK.fullmatch(line)
    if not found:
        return None
    result, name = found[1] or found[3], found[2] or found[4]
    error, limit, rest = None, None, ""
    compared = CHECK_ERROR.fullmatch(name)
    worded = CHECK_WORDS.fullmatch(name)
    if compared:
        name, error, limit, rest = compared.groups()
    elif worded:
        name, rest = worded.groups()
    return {"result": RESULTS[result], "name": tidy(name),
            "error": number(error), "limit": number(limit), "rest": tidy(rest)}


def read_checks(lines):
    """Every check, with its section; what is indented below one is its rest."""
    checks, before = [], None
    for title, line in sections(lines):
        check = read_check(line)
        if check:
            checks.append({"section": title} | check)
        elif before and line.startswith("      "):
            checks[-1]["rest"] = f"{checks[-1]['rest']} {tidy(line)}".strip()
            continue
        before = check
    return checks


def sections(lines):
    """Each line with the title that it stands under.

    A title is what stands first after an empty line, unless that is a row or a
    check itself, and a line that announces timing rows wherever it stands.
    """
    title, after_empty = "", False
    for line in lines:
        if not line.strip():
            after_empty = True
            continue
        timed = TIMES.fullmatch(line)
        if MEDIAN in line:
            title = tidy(line.partition(MEDIAN)[0])
        elif after_empty and LISTED in line:
            title = tidy(line.rpartition(LISTED)[0])
        elif after_empty and timed and ": " in timed["name"]:
            # "tf32, K-major B: torch.mm 0.0493 ms" is a title and a row.
            title = tidy(timed["name"].rpartition(": ")[0])
        elif after_empty and not (timed or CHECK.fullmatch(line)
                                  or read_figures(line)):
            title = tidy(line)
        after_empty = False
        yield title, line


def columns_of(line):
    """The columns of a table of times, if the line names them; else None.

    They stand above the columns, or in a title, "...: ms, TFLOP/s, error".
    """
    if LISTED in line:
        listed = line.rpartition(LISTED)[2]
        return ["ms", *(column.strip() for column in listed.split(","))]
    columns = re.split(r"\s\s+", line.strip())
    for column in columns:
        if re.fullmatch(r"(?:[a-z]+ )?ms", column):
            columns[columns.index(column)] = "ms"
            return columns
    return None


def read_columns(line, columns):
    """A row of a table that has a column "ms", or None if the line is none.

    The first number with decimals is the time; all before it is the name, in
    which a column's value may hold a space if it is the only one.
    """
    found = re.fullmatch(r"\s*(\S.*?)\s+(\d+\.\d+(?:\s.*)?)", line)
    if not found:
        return None
    at = columns.index("ms")
    names = found[1].split()
    values = found[2].split(maxsplit=len(columns) - at - 1)
    table = dict(zip(columns[at:], values))
    if len(names) == at:
        table = dict(zip(columns, names)) | table
        # Which config was the fastest may change, and is no part of the name.
        names = [table[column] for column in columns[:at]
                 if column != "config"]
    row = {"name": " ".join(names), "table": table,
           "milliseconds": number(table["ms"])}
    for column, field in ("20 %", "low"), ("80 %", "high"):
        if re.fullmatch(NUMBER, table.get(column, "")):
            row[field] = number(table[column])
    for unit in "TFLOP/s", "TB/s":
        if re.fullmatch(NUMBER, table.get(unit, "")):
            row |= {"rate": number(table[unit]), "unit": unit}
    return row


def read_times(line):
    """A row with a time, or with the reason why it has none; None if neither.
    """
    found = DOES_NOT_FIT.fullmatch(line)
    if found:
        return {"name": tidy(found[1]), "reason": tidy(found[2])}
    found = TIMES.fullmatch(line)
    if not found:
        return None
    row = {"name": tidy(found["name"]), "unit": found["unit"]}
    for field in "milliseconds", "low", "high", "rounds", "rate", "speed":
        row[field] = number(found[field])
    return row


def read_figures(line):
    """A row whose figures are no times, or None."""
    found = FIGURES.fullmatch(line)
    # A name has a letter, or is a config's; else it is a part of a drawing.
    if not found or not re.search(r"[A-Za-z]|\d,\d", found["name"]):
        return None
    figures = [number(figure) for figure in found["figures"].split()]
    return {"name": tidy(found["name"]), "figures": figures,
            "words": found["words"]}


def read_rows(lines):
    """(rows with times, rows with other figures), each with its section."""
    rows, figures = [], []
    columns, table = None, None
    for title, line in sections(lines):
        if CHECK.fullmatch(line) or OLD_ALONE.fullmatch(line):
            continue
        if title != table:
            columns = None  # a table ends where its section does
        if columns_of(line):
            columns, table = columns_of(line), title
            continue
        row = read_times(line)
        if columns and not row:
            row = read_columns(line, columns)
        if row:
            row["name"] = row["name"].removeprefix(f"{title}: ")
            rows.append(dict.fromkeys(ROW) | {"section": title} | row)
            continue
        row = read_figures(line)
        if row:
            figures.append({"section": title} | row)
    return rows, figures


def where_of(words):
    """What part of its prediction a verdict is about: "tf32, K-major B"."""
    parts = []
    for groups in WHERE.findall(words):
        parts.append("".join(groups))  # all but one are empty
    return ", ".join(parts)


def verdict(prediction, word, sentence, where, gated):
    """One verdict on one prediction, or on a part of it."""
    return {"prediction": int(prediction), "where": where, "gated": gated,
            "verdict": word.upper(), "sentence": tidy(sentence)}


def read_old_verdicts(lines):
    """The verdicts of transcripts that were made before they were sentences."""
    verdicts = []
    for line in lines:
        found = OLD_ALONE.fullmatch(line)
        if found:
            verdicts.append(verdict(2, found[2], line, found[1], False))
        found = OLD_VERDICT.fullmatch(line)
        if not found:
            continue
        verdicts.append(verdict(found[1], found[2], line, where_of(line),
                                ", gated: " in line))
        larger = re.search(r"; gated: larger, (held|falsified)", line)
        if larger:
            verdicts.append(verdict(1, larger[1], line, "larger", True))
        for numbers in re.findall(r"; ([\d, ]+) open\b", line):
            for prediction in re.findall(r"\d+", numbers):
                verdicts.append(verdict(prediction, "open", line, "", False))
    return verdicts


def read_verdicts(text):
    """Every verdict on a prediction, in the order of the predictions.

    One prediction may have several, for each precision and layout of B.
    """
    verdicts = read_old_verdicts(text.split("\n"))
    for found in VERDICT.finditer(text):
        gated = re.search(r"(?<!not )\bgated\b", found["claim"])
        verdicts.append(verdict(found["number"], found["word"], found[0],
                                where_of(found["claim"]), bool(gated)))
    for found in STAY_OPEN.finditer(text):
        for prediction in re.findall(r"\d+", found[1]):
            verdicts.append(verdict(prediction, "OPEN", found[0], "", False))
    return sorted(verdicts, key=lambda each: each["prediction"])


def parse(text):
    """Everything that a transcript says, ready to be written as JSON."""
    text = text.replace("\r\n", "\n")
    # No row is as long as that, and the patterns would take their time.
    lines = [line[:LONGEST] for line in text.split("\n")]
    last = text.rstrip().rpartition("\n")[2]
    ended = EXIT.fullmatch(last.strip())
    checks = read_checks(lines)
    results = [check["result"] for check in checks]
    rows, figures = read_rows(lines)
    return {
        "header": read_header(text),
        "passed": results.count("pass"),
        "failed": results.count("FAIL"),
        "skipped": results.count("skip"),
        "checks": checks,
        "rows": rows,
        "figures": figures,
        "verdicts": read_verdicts(text),
        "exit": int(ended[1]) if ended else None,
    }


def read(path):
    """The file, parsed, with its name and kind before the rest."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    transcript = parse(text)
    kind = kind_of(path.stem, transcript["header"]["card"])
    return {"file": path.name, "kind": kind} | transcript


def find(name):
    """A transcript by its path, or by its name in this folder; parsed."""
    path = pathlib.Path(name)
    if not path.exists() and path.name == name:
        path = HERE / name
    try:
        transcript = read(path)
    except OSError as error:
        raise NotATranscript(f"{name}: {error.strerror}") from None
    if transcript["header"]["date"] is None and transcript["exit"] is None:
        raise NotATranscript(
            f"{name} is no transcript: it has neither the header's line with "
            "the date in UTC nor a last line `exit N`")
    return transcript


# ---------------------------------------------------------------------------
# Names

def slug(words):
    """The words as a part of a file name: lower case, nothing but a dash."""
    return re.sub(r"[^a-z0-9.+_]+", "-", words.lower()).strip("-.")[:40]


def card_slug(card):
    """What a card is called in file names: h200, t4, rtx3090, cpu for none."""
    if card is None:
        return "cpu"
    words = [word for word in card.split()
             if word not in ("NVIDIA", "Tesla", "GeForce")]
    name = slug(" ".join(words))
    # "rtx-3090" becomes one word, so that it can be told from a kind's words.
    return re.sub(r"^([a-z]+)-(?=\d)", r"\1", name) or "unknown-card"


def kind_of(stem, card):
    """The words that a transcript's name begins with, before the card's."""
    words = []
    for word in stem.split("-"):
        is_card = (re.match(r"[a-z]+\d", word) or word == "cpu"
                   or word == card_slug(card).partition("-")[0])
        is_path = words and word in ("interpret", "refused")
        if is_card or is_path or re.fullmatch(r"\d{4}", word):
            break
        words.append(word)
    return "-".join(words) or stem


def is_interpreted(header):
    """Whether the header says that Triton interpreted; as Triton decides."""
    value = header["variables"].get("TRITON_INTERPRET", "")
    return value.lower() in ("1", "true", "yes", "y", "on")


def is_refused(text, transcript):
    """Whether the program said that no GPU here can run it."""
    refused = re.search(r"^\s*refused\b", text, re.M | re.I)
    return bool(refused) and transcript["exit"] in (1, None)


def stem_of(text, beginning=None):
    """A transcript's name, without what it shares with others and ".txt".

    beginning: what it begins with; None for the lesson, whose names begin
    with the path that it took.
    """
    transcript = parse(text)
    header = transcript["header"]
    refused = is_refused(text, transcript)
    interpreted = is_interpreted(header) and not refused
    words = [beginning] if beginning else []
    if refused:
        words.append("refused")
    elif interpreted:
        words.append("interpret")
    elif not beginning and not header["date"] and transcript["exit"]:
        words.append("not-started")
    elif not beginning:
        words.append("run")
    # A program without a header does not say what it ran on; the lesson is
    # named cpu all the same.
    if not interpreted and (header["date"] or header["card"] or not beginning):
        words.append(card_slug(header["card"]))
    if header["triton"]:
        words.append("triton" + slug(header["triton"]))
    now = datetime.datetime.now(datetime.UTC)
    words.append((header["date"] or f"{now:%Y-%m-%d}")[:10])
    return "-".join(words)


def beginning_of(command):
    """What the name of this command's transcript begins with.

    None for the lesson.  The judge's transcripts have the exercise's number.
    """
    word = program_of(command)
    program = pathlib.Path(word)
    if program.name == LESSON:
        return None
    name = NAMES.get(program.name) or slug(program.stem.replace("_", "-"))
    after = command[command.index(word) + 1:]
    if program.name == "check.py" and after and after[0].isdigit():
        name += "-" + after[0]
    return name or "program"


def program_of(command):
    """The word of a command that names the program: bash tests/gpu.sh."""
    for word in command:
        if word.endswith((".py", ".sh")):
            return word
    return command[0]


# ---------------------------------------------------------------------------
# run

def tell(*words):
    """Say something beside the transcript, if there is anywhere to say it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print("archive:", *words, file=sys.stderr, flush=True)


class Interrupts:
    """Passes Ctrl-C and its like on to the program, instead of ending here.

    The program runs in a process group of its own, so that it gets the signal
    once, whether it came from a terminal, a notebook or `kill`.  What it does
    then is its own affair; a second one ends it, and all that it started.
    """

    def __init__(self):
        """Take the signals over; there is no child yet."""
        self.child = None
        self.received = []
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            # What nohup or a shell's & has us ignore stays ignored.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.handle)

    def handle(self, number, _):
        """A signal came: the child's, if there is one by now."""
        self.received.append(number)
        if self.child is not None:
            tell("the program was told to stop, and has time to; once more "
                 "ends it at once")
            self.send()

    def watch(self, child):
        """From now on there is a child, which may have missed a signal."""
        self.child = child
        if self.received:
            self.send()

    def send(self):
        """Pass on the first signal; make an end at the second."""
        number = self.received[0]
        if len(self.received) > 1:
            number = signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, number)


def write_all(descriptor, data):
    """Write every byte; a single call may write fewer."""
    while data:
        data = data[os.write(descriptor, data):]


def pass_on(pipe, outputs):
    """Copy all that comes out of the pipe, as it comes, to every output.

    outputs: {name: descriptor}.  One that cannot be written, a full disk or
    the stdout of `| head`, is left out from then on; {name: error} of those.
    """
    open_ones, failed = dict(outputs), {}
    while True:
        data = os.read(pipe.fileno(), 65536)
        if not data:
            return failed
        for name, descriptor in outputs.items():
            if name not in open_ones:
                continue
            try:
                write_all(descriptor, data)
            except OSError as error:
                failed[name] = error
                del open_ones[name]


def command_line(words):
    """The command to start: a .py file gets this Python, a .sh file bash.

    A program is looked for from here, then from the top of the repository.
    """
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        words = [os.path.relpath(ROOT / LESSON)]
    program = words[0]
    if not program.endswith((".py", ".sh")):
        return words
    if not pathlib.Path(program).is_file():
        program = os.path.relpath(ROOT / program)
    if not pathlib.Path(program).is_file():
        raise FileNotFoundError(f"there is no program {words[0]}")
    starter = sys.executable if program.endswith(".py") else "bash"
    return [starter, program, *words[1:]]


def claim(folder, stem, ending):
    """A new, empty file in the folder, with -2, -3 where there is one."""
    count = 1
    while True:
        again = f"-{count}" if count > 1 else ""
        path = folder / f"{stem}{again}{ending}"
        try:
            path.open("xb").close()
        except FileExistsError:
            count += 1
        else:
            return path


def execute(command, part, with_stderr, interrupts):
    """Run the command into the file `part` and onto stdout.

    Returns the return code of subprocess, and the outputs that failed.
    """
    with part.open("wb", buffering=0) as file:
        outputs = {"the transcript": file.fileno()}
        if sys.stdout is not None:
            outputs["stdout"] = sys.stdout.fileno()
        # Without the variable a Python whose stdout is a pipe keeps its lines
        # back until there are enough of them.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if with_stderr else None,
            env={"PYTHONUNBUFFERED": "1"} | os.environ, process_group=0)
        interrupts.watch(child)
        with child.stdout:
            failed = pass_on(child.stdout, outputs)
        returncode = child.wait()
        interrupts.child = None  # its number may be another process's now
        return returncode, failed


def home_lines(data):
    """The numbers of the lines that hold a path of a home directory."""
    homes = [rb"(?<![\w.])/home/[^\s/]", rb"/Users/[^\s/]",
             rb"(?<![\w.])/root(?![\w.-])"]
    home = os.path.expanduser("~")
    if home.count("/") > 1:
        homes.append(re.escape(os.fsencode(home)) + rb"(?![\w.-])")
    pattern = re.compile(b"|".join(homes))
    lines = data.split(b"\n")
    return [at for at, line in enumerate(lines, 1) if pattern.search(line)]


def reservations(data, returncode, received, failed):
    """What stands against quoting the transcript: {end of its name: why}."""
    found = {}
    status = 128 - returncode if returncode < 0 else returncode
    printed = parse(data.decode("utf-8", errors="replace"))["exit"]
    if returncode < 0:
        name = signal.strsignal(-returncode)
        found["stopped"] = f"signal {-returncode} ended the program: {name}"
    elif status == 130 or (received and status):
        found["stopped"] = "the program was interrupted"
    elif "the transcript" in failed:  # which says nothing of how it ended
        found["cut-short"] = ("it is not all that was printed: "
                              f"{failed['the transcript']}")
    elif printed is None:
        found["no-exit"] = "its last line is not `exit N`"
    elif printed != status:
        found["exit-differs"] = (f"its last line is `exit {printed}`, but the "
                                 f"program ended with status {status}")
    homes = home_lines(data)
    if homes:
        found["home-path"] = ("it holds a path of a home directory, first in "
                              f"line {homes[0]}: read it before you publish it")
    return found


def keep(part, folder, beginning, doubts):
    """Give the finished part its name; the path, or None for an empty one."""
    data = part.read_bytes()
    if not data:
        part.unlink()
        tell("the program printed nothing, so nothing is archived")
        return None
    stem = stem_of(data.decode("utf-8", errors="replace"), beginning)
    path = claim(folder, "-".join([stem, *doubts]), ".txt")
    try:
        part.replace(path)
    except OSError:
        path.unlink()
        raise
    tell(f"archived as {os.path.relpath(path)}")
    for why in doubts.values():
        tell(f"take care: {why}")
    return path


def run(options):
    """Run a program and keep what it prints; its status."""
    folder, part, interrupts = options.into, None, Interrupts()
    try:
        command = command_line(options.command)
        folder.mkdir(parents=True, exist_ok=True)
        part = claim(folder, f"running-{os.getpid()}", ".part")
        returncode, failed = execute(command, part, options.with_stderr,
                                     interrupts)
    except OSError as error:
        tell(f"not started: {error}")
        if part is not None and part.stat().st_size == 0:
            part.unlink()
        return 2
    status = 128 - returncode if returncode < 0 else returncode
    if "stdout" in failed:
        tell(f"stdout was closed on the way: {failed['stdout']}")
    beginning = slug(options.name) or beginning_of(command)
    try:
        doubts = reservations(part.read_bytes(), returncode,
                              interrupts.received, failed)
        keep(part, folder, beginning, doubts)
    except OSError as error:
        tell(f"not named: {error}; the transcript is {part}")
        return status or 2
    if "the transcript" in failed:
        return status or 2
    return status


# ---------------------------------------------------------------------------
# index

ON_TOP = """\
Generated by `python3 transcripts/archive.py index` from the files beside it.

# Transcripts

Each file is what one run printed, byte for byte, and is never edited. A name
says what ran, on which card, under which Triton and on which day. `script` is
the beginning of the SHA-256 of the lesson's file, so that two runs of one text
can be told from runs of two. Checks are counted from the lines that begin with
`pass` and `FAIL`, or with pytest's `PASSED` and `FAILED`. A dash is what a
file does not say.

To add one, run `python3 transcripts/archive.py run`, and then the command
above. `compare A B` prints what differs between two files.
"""

COLUMNS = ("transcript", "date, UTC", "card", "driver", "torch", "Triton",
           "script", "checks passed / failed", "verdicts", "exit")


def verdict_name(each):
    """Which verdict it is: "4, tf32, K-major B", "2, gated"."""
    words = [str(each["prediction"])]
    if each["where"]:
        words.append(each["where"])
    if each["gated"]:
        words.append("gated")
    return ", ".join(words)


def index_row(transcript):
    """A transcript's row of the table, as Markdown."""
    header = transcript["header"]
    date, card, checks = header["date"], header["card"], ""
    if card and header["cards"] > 1:
        card = f"{header['cards']} x {card}"
    if transcript["checks"]:
        checks = f"{transcript['passed']} / {transcript['failed']}"
    if transcript["skipped"]:
        checks += f", {transcript['skipped']} skipped"
    verdicts = [f"{verdict_name(each)}: {each['verdict'].lower()}"
                for each in transcript["verdicts"]]
    status = "" if transcript["exit"] is None else str(transcript["exit"])
    file = transcript["file"]
    cells = [f"[{file}]({file})", date and date.removesuffix(" UTC"), card,
             header["driver"], header["torch"], header["triton"],
             header["script"], checks, "; ".join(verdicts), status]
    cells = [(cell or "-").replace("|", r"\|") for cell in cells]
    return "| " + " | ".join(cells) + " |"


def kind_order(kind):
    """Where a kind stands in README.md: the lesson's paths come first."""
    known, family = list(KINDS), family_of(kind)
    return (known.index(family) if family in known else len(known), kind)


def family_of(kind):
    """"exercise" for "exercise-4": what they are called by KINDS."""
    return re.sub(r"-\d+$", "", kind)


def table_of(kind):
    """"exercise-4" for "exercise-4-slow": one table for each exercise."""
    numbered = re.match(r"[a-z-]+-\d+(?=-)", kind)
    return numbered[0] if numbered else kind


def index_text(folder):
    """README.md, made from nothing but the files of the folder."""
    by_kind = {}
    for path in sorted(folder.glob("*.txt")):
        transcript = read(path)
        by_kind.setdefault(table_of(transcript["kind"]), []).append(
            transcript)
    parts = [ON_TOP]
    for kind in sorted(by_kind, key=kind_order):
        about = KINDS.get(family_of(kind))
        title = f"{kind}: {about}" if about else kind
        parts.append(f"## {title}\n")
        parts.append("| " + " | ".join(COLUMNS) + " |")
        parts.append("| " + " | ".join("---" for _ in COLUMNS) + " |")
        # By name, then newest first; the second sort keeps the first's order.
        newest = sorted(by_kind[kind], reverse=True,
                        key=lambda each: each["header"]["date"] or "")
        parts.extend(index_row(transcript) for transcript in newest)
        parts.append("")
    return "\n".join(parts)


def index(options):
    """Write README.md, or only say whether it is what would be written."""
    readme = options.into / "README.md"
    text = index_text(options.into)
    old = readme.read_text(encoding="utf-8") if readme.exists() else None
    name = os.path.relpath(readme)
    if old == text:
        print(f"{name} is up to date")
        return 0
    if options.check:
        print(f"{name} is out of date: python3 transcripts/archive.py index")
        return 1
    part = claim(options.into, f"running-{os.getpid()}", ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(readme)
    print(f"wrote {name}")
    return 0


# ---------------------------------------------------------------------------
# compare

def keyed(items, key):
    """{key of the item: item}; a second item of one key gets " (2)"."""
    found, counts = {}, {}
    for item in items:
        name = key(item)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            name = (*name[:-1], f"{name[-1]} ({counts[name]})")
        found[name] = item
    return found


def row_key(row):
    """What a row is found by in another transcript."""
    return row["section"], row["name"]


def check_key(check):
    """What a check is found by in another transcript."""
    return check["section"], check["name"]


def verdict_key(each):
    """What a verdict is found by: gated or not, it is the same claim's."""
    name = str(each["prediction"])
    if each["where"]:
        name += f", {each['where']}"
    return (name,)


def only(first, second, what):
    """Lines that say what only one of two dictionaries has."""
    lines = []
    for letter, one, other in ("A", first, second), ("B", second, first):
        for key in one:
            if key not in other:
                name = ": ".join(part for part in key if part)
                lines.append(f"  only in {letter}, {what}: {name}")
    return lines


def titled(title, lines, otherwise):
    """A section of the comparison; a sentence where it has no lines."""
    return ["", title, *(lines or [f"  {otherwise}"])]


def compare_headers(a, b):
    """What differs between the machines and the versions."""
    lines = []
    for field, old in a["header"].items():
        new = b["header"][field]
        if old != new:
            lines.append(f"  {field:<11} {told(old)} -> {told(new)}")
    return titled("Machine and versions, A -> B", lines, "the same")


def told(value):
    """A field of the header as words."""
    if isinstance(value, dict):
        value = ", ".join(f"{name}={text}" for name, text in value.items())
    return "-" if value in (None, "") else str(value)


def quantiles(old, new):
    """Whether the 20 to 80 % ranges of two rows overlap, in a word or two."""
    ranges = [old["low"], old["high"], new["low"], new["high"]]
    if None in ranges:
        return "no quantiles"
    said = "apart, B slower"
    if old["low"] <= new["high"] and new["low"] <= old["high"]:
        said = "overlap"
    elif new["milliseconds"] < old["milliseconds"]:
        said = "apart, B faster"
    # The judge prints the shortest and the longest of its rounds instead.
    return f"{said} (all rounds)" if old["rounds"] else said


def compare_row(name, old, new, width):
    """One line: both times, their ratio, and what the quantiles say."""
    times = []
    for row in old, new:
        milliseconds = row["milliseconds"]
        times.append("-" if milliseconds is None else f"{milliseconds:.4f}")
    ratio, said = "-", old["reason"] or new["reason"]
    if said:
        said = f"A {old['reason'] or 'fits'}; B {new['reason'] or 'fits'}"
    elif old["milliseconds"]:
        ratio = f"{new['milliseconds'] / old['milliseconds']:.3f}"
        said = quantiles(old, new)
    return (f"  {name:<{width}} {times[0]:>8} {times[1]:>8} {ratio:>7}  "
            f"{said or ''}").rstrip()


def compare_cells(old, new):
    """A line below a row, for cells that changed and do not follow from its
    time; none where there are no such cells."""
    changes = []
    for column, value in (old or {}).items():
        other = (new or {}).get(column)
        follows = column in ("ms", "20 %", "80 %", "TFLOP/s", "TB/s")
        if not follows and other != value:
            changes.append(f"{column} {value} -> {told(other)}")
    return [f"      {'; '.join(changes)}"] if changes else []


def compare_times(a, b):
    """Row by row: the times, the ratio, and whether the quantiles overlap."""
    first, second = keyed(a["rows"], row_key), keyed(b["rows"], row_key)
    both = [key for key in first if key in second]
    width = max((len(name) for _, name in both), default=0)
    lines, section = [], None
    for key in both:
        if key[0] != section:
            section = key[0]
            lines.append(f" {section}")
        lines.append(compare_row(key[1], first[key], second[key], width))
        lines += compare_cells(first[key]["table"], second[key]["table"])
    lines += only(first, second, "row")
    return titled("Times: A's and B's milliseconds, B's over A's, and whether "
                  "the 20 .. 80 % overlap", lines, "neither has any")


def compare_figures(a, b):
    """Other figures, such as counts of instructions, that are not the same."""
    first, second = keyed(a["figures"], row_key), keyed(b["figures"], row_key)
    lines, same, section = [], 0, None
    for key, old in first.items():
        if key not in second:
            continue
        new = second[key]
        changes = []
        if old["figures"] != new["figures"]:
            changes.append(f"{spaced(old['figures'])} -> "
                           f"{spaced(new['figures'])}")
        if old["words"] != new["words"]:
            changes.append(f"{told(old['words'])} -> {told(new['words'])}")
        if not changes:
            same += 1
            continue
        if key[0] != section:
            section = key[0]
            lines.append(f" {section}")
        lines.append(f"  {key[1]}: {'; '.join(changes)}")
    lines += only(first, second, "row")
    return titled(f"Other rows that changed, A -> B ({same} are the same)",
                  lines, "none")


def spaced(figures):
    """The figures of a row, as they would be printed."""
    return " ".join(str(figure) for figure in figures)


def compare_verdicts(a, b):
    """The verdicts that changed, each with both sentences."""
    first = keyed(a["verdicts"], verdict_key)
    second = keyed(b["verdicts"], verdict_key)
    lines, same = [], 0
    for key, old in first.items():
        if key not in second:
            continue
        new = second[key]
        if old["verdict"] == new["verdict"]:
            same += 1
            continue
        lines.append(f"  prediction {key[0]}: {old['verdict']} -> "
                     f"{new['verdict']}")
        lines.append(f"    A  {old['sentence']}")
        lines.append(f"    B  {new['sentence']}")
    lines += only(first, second, "prediction")
    return titled(f"Verdicts that changed, A -> B ({same} are the same)",
                  lines, "none")


def compare_checks(a, b):
    """The checks that passed in one and failed in the other."""
    first = keyed(a["checks"], check_key)
    second = keyed(b["checks"], check_key)
    lines, same, failed = [], 0, 0
    for key, old in first.items():
        if key not in second:
            continue
        new = second[key]
        if old["result"] == new["result"]:
            same += 1
            failed += old["result"] == "FAIL"
            continue
        lines.append(f"  {key[1]}: {old['result']} -> {new['result']}")
    lines += only(first, second, "check")
    return titled(f"Checks that changed, A -> B ({same} are the same, {failed} "
                  "of them failed)", lines, "none")


def compare(options):
    """Print what differs between two transcripts."""
    a, b = find(options.a), find(options.b)
    lines = [f"A  {a['file']}", f"B  {b['file']}"]
    if a["kind"] != b["kind"]:
        lines.append(f"They are of two kinds: {a['kind']} and {b['kind']}.")
    lines += compare_headers(a, b)
    lines += compare_times(a, b)
    lines += compare_figures(a, b)
    lines += compare_verdicts(a, b)
    lines += compare_checks(a, b)
    lines += ["", f"Ended with: exit {told(a['exit'])} -> {told(b['exit'])}"]
    print(*lines, sep="\n")
    return 0


# ---------------------------------------------------------------------------
# show

def show(options):
    """Print what a transcript says, in short or as JSON."""
    transcript = find(options.file)
    if options.json:
        print(json.dumps(transcript, indent=2, allow_nan=False))
        return 0
    print(transcript["file"])
    for field, value in transcript["header"].items():
        print(f"  {field:<11} {told(value)}")
    print(f"checks: {transcript['passed']} passed, {transcript['failed']} "
          f"failed, {transcript['skipped']} skipped")
    for check in transcript["checks"]:
        if check["result"] == "FAIL":
            print(f"  FAIL  {check['name']}")
    print(f"rows with a time: {len(transcript['rows'])}")
    for each in transcript["verdicts"]:
        print(f"prediction {verdict_name(each)}: {each['verdict']}")
    print(f"exit {told(transcript['exit'])}")
    return 0


# ---------------------------------------------------------------------------

def arguments(words):
    """The command line, read; a wrong one ends with status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    adder = commands.add_parser("run", help="run a program and archive it")
    adder.add_argument("--name", default="", help="begin the file's name so")
    adder.add_argument("--with-stderr", action="store_true",
                       help="archive stderr, too, in its place among the rest")
    adder.add_argument("command", nargs=argparse.REMAINDER,
                       help="a program of the repository; none: the lesson")
    adder.set_defaults(function=run)
    lister = commands.add_parser("index", help="write README.md")
    lister.add_argument("--check", action="store_true",
                        help="write nothing, and end with 1 if it would differ")
    lister.set_defaults(function=index)
    for command in adder, lister:
        command.add_argument("--into", type=pathlib.Path, default=HERE,
                             metavar="FOLDER", help="instead of this folder")
    comparer = commands.add_parser("compare", help="what changed from A to B")
    comparer.add_argument("a", metavar="A")
    comparer.add_argument("b", metavar="B")
    comparer.set_defaults(function=compare)
    shower = commands.add_parser("show", help="what a transcript says")
    shower.add_argument("file", metavar="FILE")
    shower.add_argument("--json", action="store_true")
    shower.set_defaults(function=show)
    return parser.parse_args(words)


def main(words):
    """Do what the command line asks; the status to end with."""
    for stream in sys.stdout, sys.stderr:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = arguments(words)
    try:
        return options.function(options)
    except (NotATranscript, OSError) as error:
        tell(error)
        return 2


if __name__ == "__main__":
    if sys.argv[1:2] != ["run"]:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    sys.exit(main(sys.argv[1:]))
