"""What each input_precision costs in time, and what it gains in error.

    python3 experiments/precision.py        on an NVIDIA GPU of 8.0 or newer,
                                            about a minute

The lesson's matmul with the string as a parameter, at 2048 cubed, beside
torch.mm. tf32x3, bf16x3 and bf16x6 split each float32 into two or three
numbers that a tensor core takes, and add up the products of the parts.
"tf32-rounded" is no string of Triton's: it is tf32 on operands that were
rounded to tf32's 10 bits beforehand, where the card would cut them off.

A row for each precision and layout of B, with the fastest of three configs; no
column but the last holds a space. The last line is the exit status: 0
measured, 1 refused, 2 a wrong argument or no place for compiled kernels, 3 a
kernel raised an error.
"""
import collections
import functools
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np
import torch
import triton
import triton.language as tl

import triton_softmax_matmul as t

CONFIGS = [
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 8, "num_stages": 3},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 4, "num_stages": 3},
    {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 8, "num_stages": 4},
]
NAMES = ("ieee", "tf32", "tf32-rounded", "tf32x3", "bf16x3", "bf16x6")


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr, PRECISION: tl.constexpr):
    # As in the lesson, but for the string. The launcher sets IEEE; it is not
    # used.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


def product(a, b, precision, config, out):
    """a @ b into out, with any of Triton's strings."""
    settings = {**config, "PRECISION": precision}
    return t.matmul(a, b, precision == "ieee", settings, out, matmul_kernel)


def instructions(capability, precision, layout, config):
    """What the multiplications compile to, as COUNTxNAME joined by commas."""
    settings = {**config, "IEEE": precision == "ieee", "PRECISION": precision,
                **t.UNIT_STRIDES[layout]}
    made, = t.compiled(matmul_kernel, capability, [settings])
    names = re.findall(t.COUNTED["tensor"], made["ptx"])
    if not names:
        names = re.findall(t.COUNTED["FMA"], made["ptx"])
    counts = collections.Counter(names)
    if not counts:
        return "none"
    return ",".join(f"{count}x{name}" for name, count in counts.items())


# ------------------------------------------------------------------- the rows
def print_cells(name, layout, config, cells, told):
    """Print a line of the table; cells: five columns of figures, as text."""
    figures = " ".join(f"{cell:>8}" for cell in cells)
    print(f"{name:<14} {layout:<9} {config:<17} {figures}  {told}")


def print_columns():
    """Print the title and the head of the table."""
    print(f"\n{t.SIZE} cubed, the fastest of {len(CONFIGS)} configs; error: "
          "max |c - c64| / (|a| |b|)")
    # Two spaces or more between the columns, since "20 %" has one of its own.
    print_cells("precision", " B", "  config",
                ["ms", "20 %", "80 %", " TFLOP/s", "error"], "instructions")


def print_row(name, layout, config, times, error, told):
    """Print a row; times: median, 20 % and 80 % quantile in milliseconds."""
    cells = [f"{ms:.4f}" for ms in times]
    cells.append(f"{2 * t.SIZE**3 / times[0] * 1e-9:.2f}")
    cells.append(f"{error:.2e}")
    print_cells(name, layout, config, cells, told)


def config_in_words(config):
    """A config without a space, so that it is one column."""
    return (f"{t.config_name(config)},w{config['num_warps']},"
            f"s{config['num_stages']}")


def fastest(a, b, precision, out):
    """The times and the config of the fastest config that fits the card."""
    found = []
    for index, config in enumerate(CONFIGS):
        run = functools.partial(product, a, b, precision, config, out)
        try:
            found.append((t.milliseconds(run), index))
        except triton.OutOfResources:
            continue
    if not found:
        raise ValueError("no config fits this card")
    times, index = min(found)
    return times, CONFIGS[index]


def triton_row(name, a, b, layout, judge):
    """Print the row of one of NAMES, or why it has none.

    judge(out) returns the error of a product of the operands.
    """
    precision = name.removesuffix("-rounded")
    if name != precision:
        # Half of the last bit that stays is added, and what is below cut off.
        a, b = t.drop_bits(a, 0x1000), t.drop_bits(b, 0x1000)
    out = torch.empty_like(a)
    try:
        times, config = fastest(a, b, precision, out)
    except Exception as error:  # a string that this Triton does not take
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"{name:<14} {layout:<9} cannot: {told:.80}")
        return
    error = judge(product(a, b, precision, config, out))
    major, minor = torch.cuda.get_device_capability()
    told = instructions(10 * major + minor, precision, layout, config)
    print_row(name, layout, config_in_words(config), times, error, told)


def library_row(precision, a, b, layout, judge):
    """Print the row of torch.mm at a precision."""
    out = torch.empty_like(a)
    run = functools.partial(t.pinned_mm, a, b, precision, out)
    times = t.milliseconds(run)
    print_row(f"torch.mm-{precision}", layout, "-", times, judge(run()), "-")


def largest_error(want, scale, out):
    """max |out - want| / scale of a result on the GPU."""
    return (np.abs(out.cpu().numpy() - want) / scale).max()


def measure():
    """Print every row; return the exit status."""
    t.check_cache()
    a, b = t.sweep_operands()
    want, scale = t.matmul64(a.cpu().numpy(), b.cpu().numpy())
    judge = functools.partial(largest_error, want, scale)
    print_columns()
    for layout in t.B_LAYOUTS:
        b = t.as_layout(b, layout)
        for name in NAMES:
            triton_row(name, a, b, layout, judge)
        for precision in t.PRECISIONS:
            library_row(precision, a, b, layout, judge)
    return 0


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
        print("\nrefused: TRITON_INTERPRET is set; the interpreter ignores the "
              "string where it is\nieee, tf32 or tf32x3, refuses the others, "
              "and its time is Python's")
        return 1
    reason = t.refusal()
    if reason:
        print(f"\nrefused: {reason}")
        return 1
    return measure()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # rows as they are measured
    t.leave(t.reported(main))
