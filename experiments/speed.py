"""How fast is softmax at other widths, and what do 64-bit offsets cost?

    python3 experiments/speed.py        on an NVIDIA GPU of 8.0 or newer,
                                        about a minute and a half

Two claims of the lesson are measured here. Its softmax launcher takes a warp
for every 512 lanes of a block, and says that this is the best number of warps
or close to it: so each width is timed with that number, and with a quarter,
half, twice and four times as many, beside a device copy and torch.softmax. And
its matmul kernel counts in 32 bits, since 64 would cost time: so the kernel is
timed once more with a program number, and with it all offsets, of 64 bits.

The last line is the exit status: 0 measured, 1 refused, 2 a wrong argument or
no place for compiled kernels, 3 a kernel raised an error.
"""
import functools
import importlib.util
import inspect
import pathlib
import statistics
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import torch
import triton

import triton_softmax_matmul as t

WIDTHS = (256, 384, 512, 1000, 1024, 2048, 3000, 4096, 8192, 16384, 32768,
          65536)
ELEMENTS = 2**28  # of each tensor: 1 GiB, so that no cache holds a part of it
MOST_WARPS = 32  # of one program
ROUNDS = 3  # of the two kernels that take turns


# ------------------------------------------------------------ softmax by width
class Asked:
    """In a kernel's place: starts nothing, and notes what was asked of it."""

    def __getitem__(self, grid):
        return self.note

    def note(self, *arguments, **settings):
        """Take what a launch would take."""
        self.settings = settings


def launchers_choice(cols):
    """BLOCK_COLS and num_warps with which the lesson launches a softmax."""
    asked = Asked()
    t.softmax(torch.ones(1, cols, device=t.DEVICE, dtype=torch.float32),
              kernel=asked)
    return asked.settings["BLOCK_COLS"], asked.settings["num_warps"]


def warps_around(choice):
    """A quarter, half, twice and four times as many, as far as there are."""
    around = []
    for warps in (choice // 4, choice // 2, choice, 2 * choice, 4 * choice):
        if 1 <= warps <= MOST_WARPS:
            around.append(warps)
    return around


def warps_name(warps):
    """A number of warps in words."""
    return "1 warp" if warps == 1 else f"{warps} warps"


def softmax_with(x, out, block, warps):
    """The lesson's kernel on contiguous rows, with warps of one's own."""
    t.softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1],
                                    BLOCK_COLS=block, num_warps=warps)
    return out


def time_width(cols):
    """Print a row for each way at this width.

    Returns the launcher's number of warps, and {name: milliseconds}.
    """
    rows = ELEMENTS // cols
    x = torch.randn(rows, cols, device=t.DEVICE, dtype=torch.float32)
    out = torch.empty_like(x)
    block, choice = launchers_choice(cols)
    runs = {"device copy": functools.partial(out.copy_, x),
            "torch.softmax": functools.partial(torch.softmax, x, 1, out=out)}
    for warps in warps_around(choice):
        runs[warps_name(warps)] = functools.partial(softmax_with, x, out,
                                                    block, warps)
    times = t.time_rows(f"softmax, {rows} x {cols}", runs, 2 * x.nbytes,
                        "TB/s", direct=["device copy"])
    return choice, times


def summary(cols, choice, times):
    """A line about one width: what the launcher's choice reaches.

    Its speed over a device copy's, over torch.softmax's, and over that of the
    best number of warps, which is 1 where the choice is the best.
    """
    tried = {}
    for warps in warps_around(choice):
        name = warps_name(warps)
        if name in times:
            tried[name] = times[name]
    name = warps_name(choice)
    if name not in tried:
        return f"{cols:>6} columns, {name} do not fit this card"
    best = min(tried, key=tried.get)
    ours = times[name]
    return (f"{cols:>6} columns, {name:<9}  {times['device copy'] / ours:.3f}  "
            f"{times['torch.softmax'] / ours:.3f}  {tried[best] / ours:.3f}  "
            f"best with {best}")


def softmax_by_width():
    """Time every width, then print a line about each."""
    lines = []
    for cols in WIDTHS:
        choice, times = time_width(cols)
        lines.append(summary(cols, choice, times))
    print("\nsoftmax by width: the launcher's number of warps, and its speed "
          "over a device\ncopy's, over torch.softmax's, over the best number's")
    for line in lines:
        print(line)


# --------------------------------------------------------------- 64-bit offsets
NARROW = "    pid = tl.program_id(0)\n"
WIDE = "    pid = tl.program_id(0).to(tl.int64)\n"


def int64_source():
    """The lesson's matmul kernel, its program number one of 64 bits."""
    source = inspect.getsource(t.plain_function(t.matmul_kernel))
    if source.count(NARROW) != 1:
        raise ValueError("the lesson's kernel has not one line that reads "
                         f"{NARROW.strip()}")
    return ("import triton\nimport triton.language as tl\n\n\n"
            + source.replace(NARROW, WIDE))


def int64_kernel(folder):
    """That kernel, loaded from a file in folder, as Triton wants it."""
    path = pathlib.Path(folder) / "wide.py"
    path.write_text(int64_source(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("wide", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matmul_kernel


def medians_in_turns(runs):
    """{name: ms}: the median of rounds in which the runs take turns.

    In turns, so that a card that slows down as it warms up slows them alike.
    """
    seen = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            seen[name].append(t.milliseconds(run)[0])
    medians = {}
    for name, times in seen.items():
        medians[name] = statistics.median(times)
    return medians


def time_offsets(wide):
    """Print a row for each precision, layout of B and config."""
    kernels = {"int32": t.matmul_kernel, "int64": wide}
    a, b = t.sweep_operands()
    out = torch.empty_like(a)
    print(f"\nmatmul, {t.SIZE} cubed, offsets of 64 bits beside 32: ms, "
          "ms with 32, ratio")
    for precision in t.PRECISIONS:
        for layout in t.B_LAYOUTS:
            b = t.as_layout(b, layout)
            for config in t.CONFIGS:
                label = f"{precision} {layout:<9} {t.config_name(config):<10}"
                runs = {}
                for name, kernel in kernels.items():
                    runs[name] = functools.partial(
                        t.matmul, a, b, precision == "ieee", config, out,
                        kernel)
                try:
                    ms = medians_in_turns(runs)
                except triton.OutOfResources as error:
                    print(f"{label}  does not fit: {error.name}")
                    continue
                print(f"{label}  {ms['int64']:.4f}  {ms['int32']:.4f}  "
                      f"{ms['int64'] / ms['int32']:.3f}")


# ------------------------------------------------------------------------- main
def main():
    """Measure, or say why not; return the exit status."""
    arguments = sys.argv[1:]
    if arguments == ["--help"]:
        print(__doc__.strip())
        return 0
    if arguments:
        print(f"usage: --help is the only argument, not {arguments}")
        return 2
    t.header()
    if t.INTERPRET:
        print("\nrefused: TRITON_INTERPRET is set, and the interpreter's time "
              "is Python's")
        return 1
    reason = t.refusal()
    if reason:
        print(f"\nrefused: {reason}")
        return 1
    t.check_cache()
    softmax_by_width()
    with tempfile.TemporaryDirectory() as folder:
        time_offsets(int64_kernel(folder))
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # rows as they are measured
    t.leave(t.reported(main))
