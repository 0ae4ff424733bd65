"""Draws the plots from archived transcripts; needs matplotlib.

    python3 figures/plots.py                     from the newest transcripts,
                                                 RUN's of the Triton we pin
    python3 figures/plots.py RUN.txt PRECISION.txt             or from these
    python3 figures/plots.py RUN.txt                           or one of them

RUN is what triton_softmax_matmul.py printed on a GPU, PRECISION what
experiments/precision.py printed, in a file whose name starts with "precision".
Every number drawn is read from a transcript, except the two below.
"""
import io
import pathlib
import re
import sys
from xml.sax.saxutils import escape

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TRANSCRIPTS = HERE.parent / "transcripts"
PINS = HERE.parent / "requirements.txt"

# Data sheet, dense, SXM, TFLOP/s: FACT-SHEET.md, rows 5.4 and 5.5.  The plots
# are of this card alone, so a transcript of another is refused.
CARD, PEAKS = "NVIDIA H200", {"ieee": ("FP32", 67), "tf32": ("TF32", 494.5)}

LAYOUTS = ("row-major", "K-major")  # of B
FILL = {"row-major": "#1f6fbf", "K-major": "#f3b562"}  # dark, light: as grey
plt.rcParams.update({
    # Text stays text, and ids and dates do not change from run to run.
    "svg.fonttype": "none", "svg.hashsalt": "figures",
    "figure.constrained_layout.w_pad": 0.08,
    # Laid out with the widest first, the font that matplotlib brings along.
    "font.family": "sans-serif", "font.sans-serif": [
        "DejaVu Sans", "Segoe UI", "Helvetica Neue", "Arial", "sans-serif"],
    "font.size": 8.5, "axes.titlesize": 9, "axes.spines.top": False,
    "axes.spines.right": False, "hatch.linewidth": 0.6})
PIXEL = 1 / 96  # of an inch, in CSS


def one(pattern, text, what):
    """The first match's groups, or a ValueError that says what is lacking."""
    match = re.search(pattern, text, re.M)
    if not match:
        raise ValueError(f"the transcript lacks {what}")
    return match.groups()


def stamp(text):
    """What was run: ((date, card, torch, Triton), its first line's time)."""
    date, = one(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)$", text, "its date")
    torch, = one(r"\btorch (\d\S*?)(?:,|$)", text, "torch's version")
    version, = one(r"^Triton (\d\S*?)(?:,|$)", text, "Triton's version")
    card, = one(r"^(.+), compute capability \d", text, "a card: no GPU run")
    if card != CARD:
        raise ValueError(f"the transcript is of a {card}, not an {CARD}")
    return date, f"{CARD}, Triton {version}, torch {torch}, {date[:10]}"


def parse_run(text):
    """{(precision, layout): {name: TFLOP/s, None where it does not fit}}"""
    sweep = {}
    for p in PEAKS:
        for l in LAYOUTS:
            rows, = one(rf"^\d+ cubed, {p}, {l} B: .*\n((?:.+\n)*)", text,
                        f"the sweep's rows: {p}, {l} B")
            found = re.findall(r"^(\S+) .*?(?: ([\d.]+) TFLOP/s .*|does not "
                               r"fit: .*)$", rows, re.M)
            sweep[p, l] = {n: float(rate) if rate else None
                           for n, rate in found}
            if len(found) != rows.count("\n") or "torch.mm" not in sweep[p, l]:
                raise ValueError(f"a row is not the sweep's: {p}, {l} B:\n"
                                 + rows)
    if len({tuple(rows) for rows in sweep.values()}) != 1 or len(found) != 4:
        raise ValueError("the transcript lacks rows: the sweep has torch.mm "
                         "and three shapes for each precision and layout")
    return sweep


def draw_sweep(text, source):
    """The sweep as SVG text: a panel a precision, since one is 6 times up."""
    sweep, (_, stamped) = parse_run(text), stamp(text)
    size, = one(r"^(\d+) cubed, ieee", text, "the size")
    figure, panels = plt.subplots(1, 2, figsize=(700 * PIXEL, 340 * PIXEL),
                                  layout="constrained")
    for panel, (p, (name, peak)) in zip(panels, PEAKS.items()):
        for side, l in zip((-0.2, 0.2), LAYOUTS):
            for at, rate in enumerate(sweep[p, l].values()):
                panel.bar(at + side, rate or 0, 0.4, color=FILL[l],
                          hatch="///" if l == "K-major" else None,
                          edgecolor="black", linewidth=0.6,
                          label=f"{l} B" if at == 0 else None)
                panel.text(at + side, (rate or 0) + 0.01 * peak,
                           f"{rate:.3g}" if rate else "does not\nfit",
                           ha="center", va="bottom")
        panel.axhline(peak, color="black", linestyle="--", linewidth=1)
        panel.text(3.5, 1.01 * peak, f"{name} data sheet: {peak:g}",
                   ha="right", va="bottom")
        panel.set(title=f"{p}, TFLOP/s", ylim=(0, 1.12 * peak),
                  xlim=(-0.5, 3.5))
        panel.set_xticks(range(4), sweep[p, "K-major"])
        panel.tick_params(axis="x", length=0)
    figure.suptitle(f"Matmul, {size} cubed, FP32. {stamped}", fontsize=9)
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=2,
                  loc="outside lower center", frameon=False)
    said = [f"{p}, {l} B: " + ", ".join(
        f"{n} {rate:.3g}" if rate else f"{n} does not fit"
        for n, rate in rows.items()) for (p, l), rows in sweep.items()]
    return svg(figure, f"Matmul speed, {size} cubed, {stamped}",
               "TFLOP/s. " + ". ".join(said) + ". Data sheet peaks: "
               + ", ".join(f"{name} {peak:g}" for name, peak in PEAKS.values())
               + f". Drawn from {source}.")


def parse_precision(text):
    """{layout: {name: (milliseconds, error)}}"""
    table = {l: {} for l in LAYOUTS}
    for name, l, ms, error in re.findall(
            r"^(\S+) +(row-major|K-major) +\S+ +([\d.]+) +[\d.]+ +"
            r"(\d\S*e-\d+) ", text, re.M):
        table[l][name] = float(ms), float(error)
    names = {"ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"}.union(
        *table.values())
    for l, rows in table.items():
        if lacks := names - {*rows}:
            raise ValueError("the transcript lacks rows: "
                             f"{', '.join(sorted(lacks))}, with {l} B")
    return table


def draw_precision(text, source):
    """Error against time as SVG text: a panel a layout, above each other."""
    table, (_, stamped) = parse_precision(text), stamp(text)
    figure, panels = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(
        700 * PIXEL, 600 * PIXEL), layout="constrained")
    times, errors = zip(*(at for rows in table.values()
                          for at in rows.values()))
    for panel, (l, rows) in zip(panels, table.items()):
        for name, at in rows.items():
            torch = "torch" in name
            panel.plot(*at, "s" if torch else "o", markersize=6,
                       color="white" if torch else FILL[LAYOUTS[0]],
                       markeredgecolor="black", markeredgewidth=0.8)
            # To the right of its point, but where a neighbour's point is.
            x, y, ha, va = {
                "torch.mm-tf32": (0, -7, "center", "top"),
                "torch.mm-ieee": (0, 7, "center", "bottom"),
                "tf32x3": (0, 7, "center", "bottom"),
            }.get(name, (6, 0, "left", "center"))
            panel.annotate(name, at, (x, y), textcoords="offset points",
                           ha=ha, va=va)
        panel.set(title=f"{l} B", ylabel="error (log)", xscale="log",
                  yscale="log", xlim=(min(times) / 1.4, 1.6 * max(times)),
                  ylim=(min(errors) / 4, 30 * max(errors)))
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        panel.xaxis.set_minor_locator(ticker.NullLocator())
        panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%.0e"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
    panels[1].set_xlabel("milliseconds (log); lower left is better")
    figure.suptitle("Matmul, error, max |c - c64| / (|a| |b|), against time\n"
                    + stamped, fontsize=9)
    said = [f"{l} B: " + ", ".join(
        f"{name} {ms:.3g} ms {error:.1e}"
        for name, (ms, error) in rows.items()) for l, rows in table.items()]
    return svg(figure, f"Matmul error against time, {stamped}",
               f"{'. '.join(said)}. Drawn from {source}.")


def svg(figure, title, description):
    """The figure as SVG that a screen reader can tell."""
    file = io.StringIO()
    # The creator stays: it names the version that draws the same bytes.
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    head, tag, rest = file.getvalue().partition("<svg ")
    attributes, end, rest = rest.partition(">")
    text = (f'{head}{tag}role="img" aria-labelledby="title desc" {attributes}'
            f'{end}\n <title id="title">{escape(title)}</title>\n'
            f' <desc id="desc">{escape(description)}</desc>{rest}')
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


PLOTS = {"sweep-h200.svg": draw_sweep, "precision-h200.svg": draw_precision}


def pinned():
    """The Triton that requirements.txt takes, so that most readers have."""
    return "".join(re.findall(r"^triton==(\S+)$", PINS.read_text("utf-8"),
                              re.M))


def newest(pattern):
    """The transcript with the latest first line; none is an error."""
    paths = [*TRANSCRIPTS.glob(pattern)]
    if not paths:
        raise ValueError(f"no {pattern} in {TRANSCRIPTS.name}/")
    return max(paths, key=lambda path: stamp(path.read_text("utf-8")))


def main(paths):
    """Draw what the transcripts hold; return the exit status."""
    try:
        for path in [pathlib.Path(path) for path in paths] or [
                newest(f"run-h200-triton{pinned()}-*.txt"),
                newest("precision-h200-*.txt")]:
            text = path.read_text(encoding="utf-8")
            name = [*PLOTS][path.name.startswith("precision")]
            (HERE / name).write_text(
                PLOTS[name](text, f"{TRANSCRIPTS.name}/{path.name}"),
                encoding="utf-8")
            print(f"{path.name}: drew {name}")
    except (OSError, ValueError) as error:
        print(f"nothing drawn: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
