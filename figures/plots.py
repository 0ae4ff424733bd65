"""Draws the plots from archived transcripts.

    python3 figures/plots.py            for each card, from its newest complete
                                        transcripts of the Triton that is pinned
    python3 figures/plots.py FILE...    from these transcripts

A transcript whose name begins with "precision" is what
experiments/precision.py printed and becomes precision-CARD.svg; one that begins
with "library-speed" is what experiments/library_speed.py printed, and its first
ladder becomes ladder-CARD.svg; any other is a run of the lesson on a GPU and
becomes sweep-CARD.svg. It is complete if its last line is "exit 0", or "exit 6"
of a run. Every number in a plot is read from its transcript, but for the peaks
below.
"""
import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
import drawing

TRANSCRIPTS = HERE.parent / "transcripts"
SIZE = 2048  # that the lesson times
PINS = HERE.parent / "requirements.txt"
PRECISIONS = ("ieee", "tf32")
LAYOUTS = ("row-major", "K-major")  # of B

# Data sheets' dense peaks in TFLOP/s, by the name that torch gives the card:
# FACT-SHEET's row, and what is FP32 and TF32 there. Nothing is drawn for a
# card that is not here.
PEAKS = {
    "NVIDIA A100-SXM4-40GB": ("5.3", {"FP32": 19.5, "TF32": 156}),
    "NVIDIA A100-SXM4-80GB": ("5.3", {"FP32": 19.5, "TF32": 156}),
    "NVIDIA H100 80GB HBM3": ("5.4", {"FP32": 67, "TF32": 494.5}),
    "NVIDIA H200": ("5.4", {"FP32": 67, "TF32": 494.5}),  # by row 5.5
    "NVIDIA L4": ("5.6", {"FP32": 30.3, "TF32": 60}),
    "NVIDIA L40S": ("5.7", {"FP32": 91.6, "TF32": 183}),
    "NVIDIA A10": ("5.7", {"FP32": 31.2, "TF32": 62.5}),
    "NVIDIA GeForce RTX 4090": ("5.8", {"FP32": 82.6, "TF32": 82.6}),
    "NVIDIA GeForce RTX 3090": ("5.9", {"FP32": 35.6, "TF32": 35.6}),
    "NVIDIA B200": ("5.11", {"FP32": 75, "TF32": 1100}),
}


# ---------------------------------------------------------- reading transcripts
def one(pattern, text, what):
    """The first match's groups, or a ValueError that says what is lacking."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise ValueError(f"the transcript lacks {what}")
    return match.groups()


def read_header(text):
    """What was run: {"date", "torch", "triton", "card"}."""
    date, = one(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)$", text, "its date")
    torch, = one(r"\btorch (\d\S*?)(?:,|$)", text, "torch's version")
    version, = one(r"^Triton (\d\S*?)(?:,|$)", text, "Triton's version")
    card, = one(r"^(.+), compute capability \d", text, "a card: no GPU run")
    return {"date": date, "torch": torch, "triton": version, "card": card}


def in_words(header):
    """What was run, as a line under a plot's title."""
    return (f"{header['card']}, Triton {header['triton']}, torch "
            f"{header['torch']}, {header['date'][:10]}")


def is_precision(name):
    """Whether a transcript is one of experiments/precision.py, by its name."""
    return name.startswith("precision")


def is_ladder(name):
    """Whether a transcript is one of experiments/library_speed.py."""
    return name.startswith("library-speed")


def check_complete(name, text):
    """Raise a ValueError unless the program came to its end."""
    good = ["exit 0", "exit 6"]
    if is_precision(name) or is_ladder(name):
        good = ["exit 0"]
    last = text.rstrip().rpartition("\n")[2]
    if last not in good:
        raise ValueError(f"{name} is not complete: its last line is {last!r}, "
                         f"not {' or '.join(good)}")


def read_sweep(text):
    """{(precision, layout): {name: row}}, what read_row makes of a row."""
    sweep = {}
    for precision in PRECISIONS:
        for layout in LAYOUTS:
            where = f"{precision}, {layout} B"
            lines, = one(rf"^\d+ cubed, {where}: .*\n((?:.+\n)*)", text,
                         f"the sweep's rows: {where}")
            rows = {}
            for line in lines.splitlines():
                name, row = read_row(line, where)
                rows[name] = row
            sweep[precision, layout] = rows
    names = list(rows)
    for rows in sweep.values():
        if list(rows) != names or len(names) < 3 or names[0] != "torch.mm":
            raise ValueError("the transcript lacks rows: the sweep has "
                             "torch.mm and the same shapes for each precision "
                             "and layout")
    return sweep


def read_row(line, where):
    """A row's name, and (ms, 20 %, 80 %, TFLOP/s), or None: does not fit."""
    row = re.match(r"(\S.*?) +([\d.]+) ms \(([\d.]+) \.\. ([\d.]+)\) +"
                   r"([\d.]+) TFLOP/s ", line)
    if row:
        return row[1], tuple(float(value) for value in row.groups()[1:])
    row = re.match(r"(\S.*?) +does not fit: ", line)
    if row:
        return row[1], None
    raise ValueError(f"a row is not the sweep's: {where}: {line}")


def read_precisions(text):
    """{layout: {name: (ms, 20 %, 80 %, error)}}; older ones have no quantiles.
    """
    table = {layout: {} for layout in LAYOUTS}
    for line in text.splitlines():
        row = re.match(r"(\S+) +(row-major|K-major) +\S+ +([\d.]+) +"
                       r"(?:([\d.]+) +([\d.]+) +)?[\d.]+ +(\d\S*e-\d+) ", line)
        if row:
            name, layout, ms, low, high, error = row.groups()
            table[layout][name] = (float(ms), float(low or ms),
                                   float(high or ms), float(error))
    names = {"ieee", "tf32", "tf32x3", "torch.mm-ieee", "torch.mm-tf32"}
    for rows in table.values():
        names.update(rows)
    for layout, rows in table.items():
        lacking = sorted(names - set(rows))
        if lacking:
            raise ValueError(f"the transcript lacks rows: {', '.join(lacking)},"
                             f" with {layout} B")
    return table


def read_ladder(text):
    """(size, {layout: {rung: row}}) of the first size that has a ladder.

    A row is what read_rung makes of it. The variants of the last rung, which
    stand further right in the transcript, are no rungs.
    """
    size, = one(r"^tf32, (\d+) cubed, row-major B: ", text, "a ladder")
    ladder = {}
    for layout in LAYOUTS:
        lines, = one(rf"^tf32, {size} cubed, {layout} B: .*\n((?:.+\n)*)", text,
                     f"the ladder's rows: {layout} B")
        rungs = {}
        for line in lines.splitlines():
            rung, row = read_rung(line)
            if rung:
                rungs[rung] = row
        if list(rungs)[:1] != ["torch.mm"] or "Gluon" not in rungs:
            raise ValueError(f"the transcript lacks rows: {layout} B has no "
                             "torch.mm or no Gluon")
        ladder[layout] = rungs
    return int(size), ladder


def read_rung(line):
    """A rung's name, and (ratio, error over torch.mm's, config, whether it was
    wrong), as printed; (None, None) of a line that is no rung."""
    row = re.match(r"(\S.*?) +\d+\.\d+ +\d+\.\d+ +(\d+\.\d+) +\d\S*e-\d+ +"
                   r"(\S+) *(.*)", line)
    if not row:
        return None, None
    rung, ratio, error, rest = row.groups()
    config = rest.removesuffix("WRONG").strip()
    return rung, (ratio, error, config, config != rest.strip())


# ---------------------------------------------------------------------- scales
class LogScale:
    """A logarithmic axis: equal factors are equally far apart."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value):
        """The coordinate of a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, digits=(1, 2, 5)):
        """The round values on the axis: those digits times a power of ten."""
        found = []
        for power in range(math.floor(math.log10(self.low)),
                           math.ceil(math.log10(self.high)) + 1):
            for digit in digits:
                value = float(f"{digit}e{power}")
                if self.low <= value <= self.high:
                    found.append(value)
        return found


# ------------------------------------------------------------------- the sweep
LEFT, RIGHT = 128, 600  # where the plot begins and ends
STEP = 30  # from one row to the next


def rates(row, size):
    """TFLOP/s of a row: as printed, and at the slow and the fast quantile."""
    _, fast, slow, rate = row
    work = 2 * size**3 * 1e-9
    return rate, work / slow, work / fast


def best(sweep, precision, layout):
    """(name, row) of the fastest config, torch.mm aside; None if none fits."""
    fitting = []
    for name, row in sweep[precision, layout].items():
        if row and name != "torch.mm":
            fitting.append((row, name))
    if not fitting:
        return None
    row, name = min(fitting)
    return name, row


def compared(sweep, layout):
    """What prediction 2 is about, as a sentence."""
    ieee, tf32 = (best(sweep, precision, layout) for precision in PRECISIONS)
    if not (ieee and tf32):
        return f"{layout} B: a multiplier has no config that fits this card."
    return (f"{layout} B: the best tf32 config ({tf32[0]}) is "
            f"{ieee[1][0] / tf32[1][0]:.1f} times as fast as the best ieee one "
            f"({ieee[0]}).")


def draw_dot(page, precision, x, y, **attributes):
    """A circle for ieee, a square on its corner for tf32."""
    if precision == "ieee":
        page.circle("ieee", x, y, 4.5, **attributes)
    else:
        page.path("tf32", ["M", x - 6, y, "L", x, y - 6, x + 6, y, x, y + 6,
                           "Z"], **attributes)


def draw_whisker(page, low, high, y, half=9):
    """From one quantile to the other, with an end at each, 2 half high."""
    page.path("whisker", ["M", low, y - half, "V", y + half, "M", high,
                          y - half, "V", y + half, "M", low, y, "H", high])


def draw_row(page, scale, size, name, found, y):
    """A name, two dots and their ratio; found: {precision: row or None}."""
    page.text("code end" if name != "torch.mm" else "code end bold",
              LEFT - 12, y + 4, name)
    spots, lacking = {}, []
    for precision, row in found.items():
        if row:
            spots[precision] = [scale(rate) for rate in rates(row, size)]
        else:
            lacking.append(precision)
    if lacking:
        page.text("small muted end", 686, y + 4,
                  f"{' and '.join(lacking)}: does not fit")
    if len(spots) == 2:
        page.path("join", ["M", spots["ieee"][0], y, "H", spots["tf32"][0]])
        page.text("small mid", 650, y + 4,
                  f"{found['ieee'][0] / found['tf32'][0]:.1f}")
    slower = min(spots, key=lambda precision: spots[precision][0], default=None)
    for precision, (x, low, high) in spots.items():
        draw_whisker(page, low, high, y)
        draw_dot(page, precision, x, y)
        rate = f"{found[precision][3]:.1f}"
        if precision == slower:
            page.text("small end", low - 9, y + 4, rate)
        else:
            page.text("small", high + 8, y + 4, rate)


def draw_legend(page, y):
    """What the signs of the sweep's plot mean."""
    draw_dot(page, "ieee", 24, y - 4)
    page.text("small", 34, y, "ieee")
    draw_dot(page, "tf32", 82, y - 4)
    page.text("small", 93, y, "tf32")
    draw_whisker(page, 144, 154, y - 4)
    page.text("small", 162, y, "from the 20 % to the 80 % quantile")
    page.rect("band", 384, y - 12, 26, 16)
    page.text("small", 417, y, "from the best ieee config to twice its speed")


def draw_peaks(page, scale, card, top, bottom):
    """The data sheet's peaks, if the card is known; two equal ones as one."""
    peaks = {}
    for kind, peak in PEAKS.get(card, ("", {}))[1].items():
        peaks.setdefault(peak, []).append(kind)
    for peak, kinds in peaks.items():
        page.path("dashed", ["M", scale(peak), top, "V", bottom])
        page.text("small mid", scale(peak), top - 5,
                  f"{' and '.join(kinds)} peak {peak:g}")


def draw_axis(page, scale, top, bottom):
    """Lines at round values, and the values below them."""
    for value in scale.ticks():
        page.path("grid", ["M", scale(value), top, "V", bottom])
        page.text("small mid", scale(value), bottom + 16, f"{value:g}")
    page.text("small mid", (LEFT + RIGHT) / 2, bottom + 33,
              "TFLOP/s, logarithmic: equal factors are equally far apart")


def extent(sweep, size, card):
    """The lowest and the highest value that the scale has to show."""
    values = []
    for rows in sweep.values():
        for row in rows.values():
            if row:
                values.extend(rates(row, size))
    if not values:
        raise ValueError("the transcript lacks a config that fits its card")
    values.extend(PEAKS.get(card, ("", {}))[1].values())
    return min(values) / 1.35, max(values) * 1.15


def draw_sweep(text, source):
    """The sweep as SVG text: both precisions and both layouts on one scale."""
    header, sweep = read_header(text), read_sweep(text)
    size, = one(r"^(\d+) cubed, ieee", text, "the size")
    size = int(size)
    names = list(sweep["ieee", "K-major"])
    panel = STEP * len(names) + 36  # a layout's height, with its heading
    top = 118
    bottom = top + len(LAYOUTS) * panel
    sentences = [compared(sweep, layout) for layout in LAYOUTS]
    page = drawing.Drawing(
        bottom + 94, f"Matmul speed, {size} cubed, {in_words(header)}",
        describe_sweep(sweep, header, sentences, source))
    scale = LogScale(*extent(sweep, size, header["card"]), LEFT, RIGHT)
    page.text("head", 16, 26, f"{size} cubed, float32: one kernel, two "
              "multipliers, two layouts of B")
    page.text("small muted", 16, 45, in_words(header))
    draw_legend(page, 72)
    for at, layout in enumerate(LAYOUTS):
        page.rect("panel", 8, top + at * panel + 3, 684, panel - 6, rx=6)
        draw_band(page, scale, best(sweep, "ieee", layout),
                  top + at * panel + 28 + STEP, top + (at + 1) * panel - 6)
    draw_axis(page, scale, top + 3, bottom)
    draw_peaks(page, scale, header["card"], top, bottom)
    for at, layout in enumerate(LAYOUTS):
        page.text("name", 16, top + at * panel + 22, f"{layout} B")
        page.text("small mid", 650, top + at * panel + 22, "tf32 / ieee")
        for turn, name in enumerate(names):
            found = {}
            for precision in PRECISIONS:
                found[precision] = sweep[precision, layout][name]
            draw_row(page, scale, size, name, found,
                     top + at * panel + 42 + turn * STEP)
    for at, sentence in enumerate(sentences):
        page.text("small", 16, bottom + 58 + 18 * at, sentence)
    return page.svg()


def draw_band(page, scale, slow, top, bottom):
    """From a config's speed to twice as much, behind the rows of the configs.

    slow: what best() returns.
    """
    if slow:
        rate = slow[1][3]
        end = min(scale(2 * rate), RIGHT)
        page.rect("band", scale(rate), top, end - scale(rate), bottom - top)


def describe_sweep(sweep, header, sentences, source):
    """The plot in words and numbers."""
    told = []
    for (precision, layout), rows in sweep.items():
        parts = []
        for name, row in rows.items():
            if row:
                parts.append(f"{name} {row[3]:.2f}")
            else:
                parts.append(f"{name} does not fit")
        told.append(f"{precision}, {layout} B: {', '.join(parts)}.")
    fact, peaks = PEAKS.get(header["card"], ("", {}))
    if peaks:
        parts = ", ".join(f"{kind} {peak:g}" for kind, peak in peaks.items())
        told.append(f"Data sheet peaks (FACT-SHEET {fact}): {parts}.")
    return (f"TFLOP/s on one logarithmic scale. {' '.join(told)} "
            f"{' '.join(sentences)} Drawn from {source}.")


# --------------------------------------------------------- error against time
def boxes_meet(one_box, other):
    """Whether two boxes (left, top, right, bottom) overlap."""
    return (one_box[0] < other[2] and other[0] < one_box[2]
            and one_box[1] < other[3] and other[1] < one_box[3])


def place_label(words, x, y, taken):
    """Where a point's label does not meet what is taken: (class, x, y).

    The box that it takes is added to taken. A letter is 6.6 pixels wide in the
    widest of the fonts; 11 pixels high.
    """
    wide = 6.6 * len(words)
    candidates = [("small", x + 9, y + 4, x + 9), ("small end", x - 9, y + 4,
                                                   x - 9 - wide)]
    for away in (-10, 18, -23, 31):
        candidates.append(("small mid", x, y + away, x - wide / 2))
    for classes, at, line, left in candidates:
        box = (left, line - 10, left + wide, line + 3)
        meets = [other for other in taken if boxes_meet(box, other)]
        if not meets and 70 <= left and left + wide <= 690:
            break
    taken.append(box)
    return classes, at, line


def draw_points(page, across, down, rows):
    """Every row of a layout, and its name beside it."""
    taken = []
    for ms, low, high, error in rows.values():
        taken.append((across(low) - 7, down(error) - 7, across(high) + 7,
                      down(error) + 7))
    for name, (ms, low, high, error) in rows.items():
        x, y = across(ms), down(error)
        if low < high:
            draw_whisker(page, across(low), across(high), y, half=7)
        if name.startswith("torch.mm"):
            page.rect("open", x - 4.5, y - 4.5, 9, 9)
        else:
            page.circle("full", x, y, 5)
        page.text(*place_label(name, x, y, taken), name)


def describe_precisions(table, source):
    """The plot in words and numbers."""
    told = []
    for layout, rows in table.items():
        parts = [f"{name} {ms:.4f} ms {error:.2e}"
                 for name, (ms, _, _, error) in rows.items()]
        told.append(f"{layout} B: {', '.join(parts)}.")
    return f"{' '.join(told)} Drawn from {source}."


def draw_precision(text, source):
    """Error against time as SVG text: a panel a layout, above each other."""
    header, table = read_header(text), read_precisions(text)
    size, = one(r"^(\d+) cubed", text, "the size")
    page = drawing.Drawing(
        700, f"Matmul error against time, {size} cubed, {in_words(header)}",
        describe_precisions(table, source))
    page.text("head", 16, 26, f"{size} cubed: what each precision costs, and "
              "what it is worth")
    page.text("small muted", 16, 45, in_words(header))
    page.circle("full", 24, 66, 5)
    page.text("small", 36, 70, "the lesson's kernel, with this string")
    page.rect("open", 290, 61, 9, 9)
    page.text("small", 306, 70, "torch.mm")
    page.text("small", 400, 70, "below and to the left is better")
    every = []
    for rows in table.values():
        every.extend(rows.values())
    times = [row[0] for row in every]
    errors = [row[3] for row in every]
    across = LogScale(min(times) / 1.4, max(times) * 1.7, 76, 688)
    for at, (layout, rows) in enumerate(table.items()):
        top = 86 + at * 286
        down = LogScale(min(errors) / 3, max(errors) * 4, top + 260, top + 34)
        page.rect("panel", 8, top, 684, 280, rx=6)
        page.text("name", 76, top + 22, f"{layout} B")
        page.text("small muted", 16, top + 22, "error")
        for value in down.ticks(digits=(1,)):
            page.path("grid", ["M", 76, down(value), "H", 688])
            page.text("small end", 70, down(value) + 4, f"{value:.0e}")
        for value in across.ticks():
            page.path("grid", ["M", across(value), top + 34, "V", top + 260])
            page.text("small mid", across(value), top + 274, f"{value:g}")
        draw_points(page, across, down, rows)
    bars = ""
    if any(row[1] < row[2] for row in every):
        bars = " (bars: 20 % to 80 % quantile)"
    page.text("small mid", 382, 676, f"milliseconds{bars}; both axes are "
              "logarithmic; error: max |c - c64| / (|a| |b|)")
    return page.svg()


# ------------------------------------------------------------------ the ladder
FOOT, HEAD = 196, 570  # where the bars begin, and where the longest ends
RUNG = 26  # from one rung to the next


def sort_of(rung):
    """Which kind of bar a rung gets."""
    if rung == "torch.mm":
        return "masked"
    if rung.startswith("UNSAFE"):
        return "ghost"
    return "tf32" if rung.startswith("Gluon") else "loaded"


def draw_rung(page, rung, row, top_ratio, y):
    """A name, a bar as long as its ratio, the ratio, and the error."""
    ratio, error, config, wrong = row
    length = float(ratio) / top_ratio * (HEAD - FOOT)
    page.text("small end", FOOT - 10, y + 4, rung)
    page.rect(sort_of(rung), FOOT, y - 8, length, 16)
    page.text("small bold end", 618, y + 4, ratio)
    page.text("small end", 684, y + 4, error)
    words = f"{config}, WRONG" if wrong else config
    if length > 7 * len(words) + 8:
        page.text("code", FOOT + 8, y + 4, words)


def describe_ladder(ladder, source):
    """The plot in words and numbers."""
    told = []
    for layout, rungs in ladder.items():
        parts = []
        for rung, (ratio, error, _, wrong) in rungs.items():
            parts.append(f"{rung}{', wrong' * wrong} {ratio} with {error}")
        told.append(f"{layout} B: {', '.join(parts)}.")
    return ("torch.mm's time over each rung's, with its error over torch.mm's. "
            f"{' '.join(told)} Drawn from {source}.")


def draw_ladder_legend(page, y):
    """What the bars are."""
    for sort, x, words in (
            ("loaded", 16, "plain Triton"), ("tf32", 140, "Gluon"),
            ("ghost", 220, "plain Triton, unsafe: undefined by PTX")):
        page.rect(sort, x, y - 11, 26, 14)
        page.text("small", x + 34, y, words)
    page.text("small muted end", 618, y, "speed")
    page.text("small muted end", 684, y, "error")


def draw_ladder(text, source):
    """The rungs from the lesson's kernel to the library as SVG text."""
    header, (size, ladder) = read_header(text), read_ladder(text)
    ratios = []
    for rungs in ladder.values():
        ratios.extend(float(row[0]) for row in rungs.values())
    rows, top_ratio = len(ratios), max(ratios)
    bottom = 92 + rows * RUNG + len(ladder) * 42
    page = drawing.Drawing(
        bottom + 40, f"tf32 at {size} cubed, rung by rung, {in_words(header)}",
        describe_ladder(ladder, source))
    page.text("head", 16, 26, f"tf32, {size} cubed: from the lesson's kernel "
              "to the library, one idea a rung")
    page.text("small muted", 16, 45, in_words(header))
    draw_ladder_legend(page, 72)
    y = 92
    one_to_one = FOOT + (HEAD - FOOT) / top_ratio
    for layout, rungs in ladder.items():
        height = len(rungs) * RUNG + 36
        page.rect("panel", 8, y, 684, height, rx=6)
        page.text("name", 16, y + 22, f"{layout} B")
        for turn, (rung, row) in enumerate(rungs.items()):
            draw_rung(page, rung, row, top_ratio, y + 44 + turn * RUNG)
        page.path("dashed", ["M", one_to_one, y + 28, "V", y + height - 4])
        y += height + 6
    page.text("small", 16, bottom + 22, "speed: torch.mm's time over the "
              "rung's on the same operands; error: the rung's over torch.mm's")
    return page.svg()


# --------------------------------------------------------------- what to draw
def figure_of(name, text):
    """The name of the figure that a transcript becomes, and what draws it."""
    words = [word for word in read_header(text)["card"].lower().split()
             if word not in ("nvidia", "geforce")]
    card = re.sub(r"[^a-z0-9]+", "-", "-".join(words))
    if is_precision(name):
        return f"precision-{card}.svg", draw_precision
    if is_ladder(name):
        return f"ladder-{card}.svg", draw_ladder
    return f"sweep-{card}.svg", draw_sweep


def pinned():
    """The Triton that requirements.txt takes, so that most readers have."""
    return one(r"^triton==(\S+)$", PINS.read_text("utf-8"),
               "a pinned Triton")[0]


def newest():
    """{figure: transcript}: each card's newest complete ones, if pinned."""
    found = {}
    for path in [*TRANSCRIPTS.glob("run-*.txt"),
                 *TRANSCRIPTS.glob("precision-*.txt"),
                 *TRANSCRIPTS.glob("library-speed-*.txt")]:
        text = path.read_text("utf-8")
        try:
            check_complete(path.name, text)
            header = read_header(text)
            # Not every part of that program has a ladder, or one of this size.
            if is_ladder(path.name) and read_ladder(text)[0] != SIZE:
                continue
        except ValueError:
            continue
        if header["triton"] == pinned():
            figure, _ = figure_of(path.name, text)
            found.setdefault(figure, []).append((header["date"], path))
    return {figure: max(dated)[1] for figure, dated in found.items()}


def draw(path):
    """Draw what a transcript holds; the figure's name and text."""
    text = path.read_text("utf-8")
    check_complete(path.name, text)
    figure, function = figure_of(path.name, text)
    return figure, function(text, f"{TRANSCRIPTS.name}/{path.name}")


def main(arguments):
    """Draw the figures; return the exit status."""
    try:
        paths = [pathlib.Path(argument) for argument in arguments]
        paths = paths or list(newest().values())
        if not paths:
            raise ValueError(f"no complete transcript of Triton {pinned()} in "
                             f"{TRANSCRIPTS.name}/")
        for path in paths:
            figure, text = draw(path)
            (HERE / figure).write_text(text, encoding="utf-8")
            print(f"{path.name}: drew {figure}")
    except (OSError, ValueError) as error:
        print(f"not drawn: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
