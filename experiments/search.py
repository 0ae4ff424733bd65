"""A wider search than the exercise asks for, and what each idea buys.

    python3 experiments/search.py        on an NVIDIA GPU of 8.0 or newer,
                                         two to three minutes

At 2048 cubed, for each precision and layout of B, the three best of many
configs, beside torch.mm on the same operands at the same precision. Where the
layout is the one that the precision likes less, two ways round it are searched
as well:

    swapped     C^T = B^T A^T is the same product, and what was the right
                operand is the left one then. No kernel has to change: the
                launcher is given transposed views.
    B copied    B is copied into the other layout first, and the copy is timed
                with the product.

Then GROUP_M, which says how many rows of tiles are gone down before a step to
the right: at 2048 cubed, where A and B fit a large L2 cache together, and at
8192 cubed, where they do not.

The last line is the exit status: 0 measured, 1 refused, 2 a wrong argument or
no place for compiled kernels, 3 a kernel raised an error.
"""
import functools
import itertools
import multiprocessing
import os
import pathlib
import sys
from concurrent.futures import ProcessPoolExecutor

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import torch
import triton

import triton_softmax_matmul as t

SHAPES = [(64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256),
          (256, 128)]
DEPTHS = (16, 32)  # BLOCK_K
WARPS = (4, 8)
STAGES = (3, 4)
MOST_SHARED = 227 * 1024  # bytes of one program on an H100 or H200

# The layout of B that each precision likes less, and what it likes instead.
DISLIKED = {"ieee": "K-major", "tf32": "row-major"}
OTHER = {"K-major": "row-major", "row-major": "K-major"}

GROUPS = (1, 4, 8, 16)
GROUP_SIZES = (t.SIZE, 8192)
GROUP_CONFIGS = [
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 4, "num_stages": 3},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 4, "num_stages": 3},
    {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 8, "num_stages": 3},
]
# What a config raises that this card or its assembler does not take.
DOES_NOT_RUN = (triton.OutOfResources, triton.CompilationError,
                triton.runtime.errors.PTXASError)


# ------------------------------------------------------------- what is searched
def ways():
    """A list of (precision, layout of B, way) to search."""
    found = []
    for precision in t.PRECISIONS:
        for layout in t.B_LAYOUTS:
            found.append((precision, layout, "as it is"))
            if layout == DISLIKED[precision]:
                found.append((precision, layout, "swapped"))
                found.append((precision, layout, "B copied"))
    return found


def worth_trying(precision, config):
    """Whether a config has a chance.

    Tiles that do not fit shared memory have none. In ieee what is multiplied
    is held in registers as well, and four warps have too few for a big tile.
    """
    m, n, k = t.block_shape(config)
    if (m + n) * k * 4 * config["num_stages"] > MOST_SHARED:
        return False
    return not (precision == "ieee" and config["num_warps"] == 4
                and m * n > 16384)


def configs(precision):
    """The configs to search at a precision."""
    found = []
    for (m, n), depth, warps, stages in itertools.product(SHAPES, DEPTHS,
                                                          WARPS, STAGES):
        config = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": depth, "GROUP_M": 4,
                  "num_warps": warps, "num_stages": stages}
        if worth_trying(precision, config):
            found.append(config)
    return found


def full_name(config):
    """What tells a config from the others here, all of one length."""
    return (f"{t.config_name(config)} w{config['num_warps']} "
            f"s{config['num_stages']}").ljust(17)


# ------------------------------------------------------------- ways to multiply
class Operands:
    """A, B in both layouts, the result, and memory for a copy of B."""

    def __init__(self, size):
        generator = torch.Generator(t.DEVICE).manual_seed(86)
        self.a, b = torch.randn(2, size, size, device=t.DEVICE,
                                dtype=torch.float32, generator=generator)
        self.b = {layout: t.as_layout(b, layout) for layout in t.B_LAYOUTS}
        self.out = torch.empty_like(self.a)
        # A copy of B in the other layout goes in here.
        self.scratch = {"row-major": torch.empty_like(self.b["row-major"]),
                        "K-major": torch.empty_like(self.b["K-major"])}


def product(operands, precision, layout, way, config):
    """a @ b into out, in one of the ways."""
    a, b, out = operands.a, operands.b[layout], operands.out
    ieee = precision == "ieee"
    if way == "swapped":
        return t.matmul(b.t(), a.t(), ieee, config, out.t())
    if way == "B copied":
        # Rows become columns on the way, so this copy is a kernel, which in a
        # CUDA graph is as fast as it is outside.
        b = operands.scratch[OTHER[layout]].copy_(b)
    return t.matmul(a, b, ieee, config, out)


def library(operands, precision, layout):
    """The same through torch.mm."""
    return t.pinned_mm(operands.a, operands.b[layout], precision,
                       operands.out)


# ------------------------------------------------------------------ compile all
def cases_to_compile():
    """A list of (precision, layout, way, config), the slowest to compile first.

    A product whose B is copied is the other layout's product, so it is there
    already.
    """
    cases = []
    for precision, layout, way in ways():
        if way != "B copied":
            for config in configs(precision):
                cases.append((precision, layout, way, config))
    for config, group in itertools.product(GROUP_CONFIGS, GROUPS):
        cases.append(("tf32", "K-major", "as it is",
                      {**config, "GROUP_M": group}))
    return sorted(cases, key=size_of_code, reverse=True)


def size_of_code(case):
    """About how much code a thread of a case has: ieee's is long."""
    precision, _, _, config = case
    m, n, k = t.block_shape(config)
    return m * n * k // config["num_warps"] * (precision == "ieee")


def prepare_worker():
    """Make the operands of a process that compiles."""
    global OPERANDS
    OPERANDS = Operands(t.SIZE)


def compiles(case):
    """Run one case, so that it is in the cache; why it does not run, or None.
    """
    try:
        product(OPERANDS, *case)
        torch.cuda.synchronize()
    except DOES_NOT_RUN as error:
        return type(error).__name__
    return None


def compile_all():
    """Compile every case, in processes beside each other; say how it went."""
    cases = cases_to_compile()
    workers = max(1, min(14, (os.cpu_count() or 1) - 1))
    # A process that was forked could not use the GPU.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=fresh,
                             initializer=prepare_worker) as pool:
        reasons = [reason for reason in pool.map(compiles, cases) if reason]
    print(f"\n{len(cases)} kernels compiled, of which {len(reasons)} do not "
          "run on this card")
    for reason in sorted(set(reasons)):
        print(f"    {reasons.count(reason)} times {reason}")


# ------------------------------------------------------------------------- time
def glance(run):
    """The milliseconds of a run, measured for a moment: enough to choose."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return triton.testing.do_bench(graph.replay, warmup=5, rep=30,
                                   quantiles=[0.5])


def best_configs(operands, precision, layout, way, count=3):
    """The configs that are fastest at a glance, the fastest first."""
    times = []
    for index, config in enumerate(configs(precision)):
        run = functools.partial(product, operands, precision, layout, way,
                                config)
        try:
            times.append((glance(run), index))
        except DOES_NOT_RUN:
            continue
    times.sort()
    return [configs(precision)[index] for _, index in times[:count]]


def search(operands, precision, layout, way):
    """Print torch.mm and the best configs of one way, timed with care."""
    runs = {"torch.mm".ljust(17): functools.partial(library, operands,
                                                    precision, layout)}
    for config in best_configs(operands, precision, layout, way):
        runs[full_name(config)] = functools.partial(
            product, operands, precision, layout, way, config)
    t.time_rows(f"{t.SIZE} cubed, {precision}, {layout} B, {way}", runs,
                2 * t.SIZE**3, "TFLOP/s")


def time_groups(size):
    """Print what GROUP_M buys at this size, in tf32 with K-major B.

    The first row comes again as the last: by as much as the two differ has
    the card itself become slower or faster in between.
    """
    operands = Operands(size)
    for config in GROUP_CONFIGS:
        runs = {}
        for group in (*GROUPS, "1, again"):
            number = GROUPS[0] if group == "1, again" else group
            runs[f"GROUP_M {group}".ljust(17)] = functools.partial(
                product, operands, "tf32", "K-major", "as it is",
                {**config, "GROUP_M": number})
        t.time_rows(f"{size} cubed, tf32, K-major B, "
                    f"{full_name(config).strip()}", runs, 2 * size**3,
                    "TFLOP/s")


# ------------------------------------------------------------------------- main
def measure():
    """Compile, search and time; return the exit status."""
    t.check_cache()
    compile_all()
    operands = Operands(t.SIZE)
    for precision in t.PRECISIONS:
        print(f"in {precision}, {len(configs(precision))} configs are tried")
    for precision, layout, way in ways():
        search(operands, precision, layout, way)
    for size in GROUP_SIZES:
        time_groups(size)
    return 0


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
    return measure()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # rows as they are measured
    t.leave(t.reported(main))
