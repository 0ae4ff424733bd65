# ---
# jupyter:
#   accelerator: GPU
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
"""
# GPU kernels in Triton: a softmax and a matmul, a block at a time

A CUDA kernel says what one thread does. A Triton kernel says what happens to
one block of data, and leaves threads, shared memory and barriers to a
compiler. This lesson writes two kernels that way: a softmax, which is limited
by memory, and a matrix product, which is limited by arithmetic. It checks
both, looks at what the compiler made of them, times them, and then says which
of four predictions were true.

## 1. What you will learn

- how a program finds its block, and what masks are for;
- what the block's shape, `num_warps`, `num_stages` and `GROUP_M` decide;
- why two kernels that both say float32 can differ in error by a factor of
  hundreds, and how to say which one you want;
- how to know that a kernel is right, and not only right on easy numbers;
- why two strides can matter more than anything else that you tune.

Three ways to run it, and how long each takes:

    TRITON_INTERPRET=1 python3 triton_softmax_matmul.py    any Linux machine,
        a few seconds: checks both kernels on the CPU and times nothing
    python3 triton_softmax_matmul.py    an NVIDIA GPU of compute capability
        8.0 or newer, about a minute: the same checks, then times and verdicts
    triton_softmax_matmul.ipynb    in a notebook: Run all, on any runtime

The last line that a run prints is its exit status:

    0    every check passed, and no prediction that decides the status (section
         8 calls it gated) was falsified
    1    refused: there is no GPU here that the kernels run on
    2    could not start: a package is missing or unusable, an argument is
         wrong, or there is no place for compiled kernels
    3    wrong: a check failed, or a kernel or its launcher raised an error
    6    every check passed, and a gated prediction was falsified
    130  interrupted

(4 and 5 are the exercises' own.)
"""

# %% [markdown]
# ## 2. Set-up
#
# Triton can run a kernel in two ways. It can compile it for an NVIDIA GPU, or
# it can *interpret* it: on the CPU, one program after another, with numpy in
# the place of the GPU's instructions. The interpreter is slow and knows
# nothing of time, and of the two multipliers that this lesson is about it has
# only one. But it runs the kernel's own text, it needs no GPU, and up to
# rounding its values are the same. The environment variable `TRITON_INTERPRET`
# chooses, and Triton reads it when a kernel is defined, so it has to be set
# before this file is loaded.
#
# The code of this section imports what is needed, and says what is wrong
# where that fails. There is nothing about kernels in it, and you can go on
# with section 3.

# %% tags=["active-ipynb"]
# # In a notebook this cell chooses, before Triton is imported.
# import importlib.util
# import os
# import subprocess
# import sys
#
# if importlib.util.find_spec("triton") is None:
#     print("Triton is not installed here, as on Colab's CPU runtime; "
#           "installing it.")
#     install = [sys.executable, "-m", "pip", "install", "-q", "triton==3.7.1"]
#     if subprocess.run(install).returncode:
#         raise RuntimeError("pip could not install triton==3.7.1: see above")
#
# import torch
#
# reason = None
# if torch.version.hip or not torch.cuda.is_available():
#     reason = "there is no NVIDIA GPU that torch can use"
# elif torch.cuda.get_device_capability() < (8, 0):
#     major, minor = torch.cuda.get_device_capability()
#     reason = (f"the {torch.cuda.get_device_name()} has compute capability "
#               f"{major}.{minor}, and Triton needs 8.0")
# if "triton" in sys.modules:
#     print("Triton was imported before this cell; if what follows complains, "
#           "restart the session and run this cell first.")
# elif reason:
#     os.environ["TRITON_INTERPRET"] = "1"
#     print(f"Interpreting on the CPU: {reason}. Both kernels will be checked; "
#           "nothing will be timed.")
# else:
#     print(f"Compiling for the {torch.cuda.get_device_name()}.")

# %%
import builtins
import math
import os
import signal
import sys
import traceback

IN_NOTEBOOK = hasattr(builtins, "get_ipython")


def leave(status, *lines):
    """Print the lines and "exit N", and end; a notebook goes on."""
    if IN_NOTEBOOK:
        print(*lines, f"exit {status}", sep="\n")
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one Ctrl-C is enough
    try:
        print(*lines, f"exit {status}", sep="\n", flush=True)
    except OSError:  # a full disk, of which stderr has been told
        os._exit(status)
    sys.exit(status)


def does_not_load(kind, error, trace):
    """The last word on an error that stops this file while it is loaded."""
    for frame in traceback.extract_tb(trace):
        print(f"line {frame.lineno}, in {frame.name}: {frame.line}")
    leave(2, f"this file does not load: {kind.__name__}: {error}")


def help_text():
    """The text at the top of this file, also where python -OO dropped it."""
    with open(__file__, encoding="utf-8") as file:
        return file.read().split('"""')[1].strip()


if __name__ == "__main__" and not IN_NOTEBOOK:
    sys.excepthook = does_not_load
    if sys.argv[1:] == ["--help"]:
        leave(0, help_text())
    if sys.argv[1:]:
        leave(2, f"usage: --help is the only argument, not {sys.argv[1:]}")
    if "TRITON_INTERPRET" in os.environ:
        # The interpreter multiplies small tiles with numpy. Threads that share
        # out so little work cost more time than they save.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

INSTALL = ("python3 -m pip install torch==2.13.0 triton==3.7.1 numpy  (Triton "
           "ships for Linux only; on Windows use WSL2)")
try:
    import numpy as np
    import torch
    import triton
    import triton.language as tl

    INTERPRET = triton.knobs.runtime.interpret  # as Triton itself reads it
    # tl.max is a kernel as well. It was made when Triton was imported, and is a
    # JITFunction if the variable was off at that time.
    if INTERPRET == isinstance(tl.max, triton.JITFunction):
        raise ImportError("TRITON_INTERPRET was changed after Triton's import")
    # Up to 3.6, Triton's interpreter needs a conversion that numpy 2.4 dropped.
    if (INTERPRET and np.lib.NumpyVersion(np.__version__) >= "2.4.0"
            and tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7)):
        raise ImportError(
            f"Triton {triton.__version__} cannot interpret with numpy "
            f"{np.__version__}: take numpy<2.4, or Triton 3.7 or newer")
except KeyboardInterrupt:
    if __name__ != "__main__" or IN_NOTEBOOK:
        raise
    leave(130, "interrupted")
except Exception as error:  # a broken package raises more than ImportError
    if __name__ != "__main__" or IN_NOTEBOOK:
        raise
    leave(2, f"cannot start: {error!r:.300}", f"To install: {INSTALL}")

DEVICE = "cpu" if INTERPRET else "cuda"  # where the tensors of a run live

# %% [markdown]
# ## 3. A program owns a row: softmax
#
# Softmax turns each row of a matrix into shares that add up to 1: every value
# is replaced by its exponential over the sum of the row's exponentials. As a
# first kernel it has two virtues. Its values depend on the whole row, so the
# threads that share a row have to talk to each other, which is where CUDA
# code gets long. And it does next to no arithmetic: each number is read once
# and written once, so no softmax can be faster than a copy of the matrix, and
# we will know when to stop.
#
# First, what is right? This is the definition in float64, on the CPU, where
# neither Triton nor the GPU can share a mistake with it. The row's maximum is
# subtracted before exp, which changes nothing on paper and everything in
# float32, whose exp overflows from 89 on.


# %%
def softmax64(x):
    """Softmax of each row of a float32 array (rows, cols), in float64."""
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):  # inf - inf is NaN, and rightly so
        numerator = np.exp(x - x.max(axis=1, keepdims=True))
        return numerator / numerator.sum(axis=1, keepdims=True)


# %% [markdown]
# Now the kernel. Where CUDA gives a row to 256 threads and asks each of them
# which elements are its own, Triton starts one *program* for the row, and the
# program holds the row as a single value, a *block*. Mind the two words. A
# program is what CUDA calls a thread block. A block is no group of threads,
# but a piece of data: an array of values that the program's threads hold
# together. Its places are called *lanes* here; they are not the 32 threads of
# a warp, and a thread may hold many of them.
#
#     row  = tl.program_id(0)              which program am I?      say, 7
#     cols = tl.arange(0, BLOCK_COLS)      0  1  2  3  4  5  6  7
#     mask = cols < n_cols                 T  T  T  T  T  F  F  F   n_cols = 5
#     x    = tl.load(..., other=-inf)      3  1  4  1  5  -inf -inf -inf
#
# A block's length is a power of two and a row's is not, so the last lanes of
# the block may hang over the end of the row. The mask keeps them away from
# memory that is not ours, and `other` says what they hold instead: minus
# infinity, which never wins the maximum and, since exp(-inf) is 0, adds
# nothing to the sum. A 0 in its place would win in a row of negative numbers,
# and every value of that row would be wrong.
#
# `tl.max(x, axis=0)` is a whole reduction in one call. It costs what a good
# reduction costs in CUDA: shuffles within a warp, a few bytes of shared memory
# to carry the result from warp to warp, and barriers around them. The compiler
# writes all of that, from two numbers: `BLOCK_COLS`, and `num_warps`, which is
# how many warps of 32 threads share the program. `@triton.jit` marks a
# function that is compiled when it is first launched. Arguments marked
# `tl.constexpr` are fixed then; for another value of one, another kernel is
# compiled.


# %%
@triton.jit
def softmax_kernel(in_ptr, out_ptr, row_stride, n_cols,
                   BLOCK_COLS: tl.constexpr):
    # int64, because row * row_stride passes 2^31 in a matrix that is large.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_COLS)
    mask = cols < n_cols
    # A pointer plus a block of numbers is a block of pointers, one for a lane.
    x = tl.load(in_ptr + row * row_stride + cols, mask=mask,
                other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + cols, num / tl.sum(num, axis=0),
             mask=mask)


# %% tags=["active-ipynb"]
# # The kernel as it is now. Section 6 compares your edited version with it,
# # and running this cell again does not overwrite it.
# if "softmax_as_it_came" not in globals():
#     softmax_as_it_came = softmax_kernel

# %% [markdown]
# A *launcher* is the Python function that takes tensors and starts the kernel.
# It looks at its arguments before a kernel does, since a kernel believes
# whatever it is told; it chooses the block; and it starts a *grid* of
# programs, here one for each row.
#
# `kernel[(rows,)](...)` is Triton's launch: in the square brackets stands the
# grid, in the round ones the arguments. A tensor arrives in the kernel as a
# pointer to its first element. `num_warps` is no parameter of the kernel but
# an option for the compiler, and stands where CUDA has the number of threads.
#
# How many warps? With few, each thread holds many lanes; with many, they wait
# for each other at the barriers. On an H200 a warp for every 512 lanes, up to
# the 32 that a program can have, was within 1 % of the best number at every
# width up to 32768 columns (experiments/speed.py).


# %%
def softmax(x, out=None, kernel=None):
    """Softmax of each row of x (rows, cols): float32, any strides.

    Returns out, or new memory if there is none; carries no gradient. kernel
    may be another one with softmax_kernel's parameters. Raises TypeError or
    ValueError, naming the argument, for what the kernel cannot take: other
    types, more than 65536 columns, an out that overlaps itself or x.
    """
    check_operand("x", x)
    rows, cols = x.shape
    # A program holds its row in registers. Past 2^15 columns they run out, and
    # the rest spills to memory, which is slower and still right; and the wider
    # a row, the longer its kernel compiles. A line has to be drawn somewhere.
    if not 1 <= cols <= 65536 or rows >= 2**31:
        raise ValueError(f"x is {tuple(x.shape)}: a program holds one row, of "
                         "1 to 65536 columns, and there can be at most "
                         "2^31 - 1 rows")
    if out is None:
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    check_result(out, x.shape, [x])
    # The kernel has one row stride, for both sides, and steps by 1 along the
    # row. Any other layout is copied into one that it can walk.
    source, target = x, out
    if x.stride() != out.stride() or x.stride(1) != 1:
        source = x.contiguous()
        if not out.is_contiguous():
            target = torch.empty_like(source)
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 512, 1), 32)
    if kernel is None:
        kernel = softmax_kernel
    if rows:
        with torch.cuda.device_of(x):
            kernel[(rows,)](source, target, source.stride(0), cols,
                            BLOCK_COLS=block, num_warps=warps)
    if target is not out:
        out.copy_(target)
    return out


# %% [markdown]
# What a launcher refuses has little to do with Triton, but a launcher needs it.
# A kernel is handed addresses and strides. If a tensor holds another type, or
# lies on another device, or if the result lies on top of its own input, the
# kernel will not notice; it will compute something. So the launcher says what
# is wrong, by the argument's name. You can skip this cell and lose nothing.


# %%
class Addresses:
    """The addresses of a tensor's elements, as numpy understands them."""

    def __init__(self, x):
        self.__array_interface__ = {
            "version": 3, "typestr": "<f4", "shape": tuple(x.shape),
            "data": (x.data_ptr(), False),
            "strides": tuple(4 * stride for stride in x.stride())}


def share_memory(x, y):
    """Whether two tensors have an element in common; nothing is read."""
    if not (x.numel() and y.numel()):
        return False
    return np.shares_memory(np.asarray(Addresses(x)), np.asarray(Addresses(y)))


def meets_itself(x):
    """Whether two elements of x (rows, cols) have the same address."""
    (rows, cols), (down, right) = x.shape, x.stride()
    # i * down == j * right has its first solution at these two numbers.
    common = math.gcd(down, right)
    if common == 0:
        return rows * cols > 1
    return right // common < rows and down // common < cols


def describe(x):
    """A tensor in a few words, for a message."""
    return f"got {tuple(x.shape)}, {x.dtype}, {x.layout}, on {x.device}"


def check_operand(name, x, beside=None):
    """Raise unless x is a float32 matrix, with `beside`, where kernels run."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x)}")
    plain = x.layout == torch.strided and not x.is_neg()
    if x.dtype != torch.float32 or not plain:
        raise TypeError(f"{name} must be a plain float32 tensor: {describe(x)}")
    if x.dim() != 2:
        raise ValueError(f"{name} must be 2-D: {describe(x)}")
    if x.device.type != DEVICE:
        mode = "on" if INTERPRET else "off"
        raise ValueError(f"{name} must be on a {DEVICE} device while "
                         f"TRITON_INTERPRET is {mode}: {describe(x)}")
    if beside is not None and x.device != beside.device:
        raise ValueError(f"{name} must be with the others, on {beside.device}: "
                         f"{describe(x)}")


def check_result(out, shape, operands):
    """Raise unless out is a matrix of that shape that meets no operand."""
    check_operand("out", out, operands[0])
    if out.shape != shape:
        raise ValueError(f"out must be 2-D {tuple(shape)}: {describe(out)}")
    if meets_itself(out):
        raise ValueError("out overlaps itself: two of its elements have the "
                         f"same address: {describe(out)}")
    for operand in operands:
        if share_memory(out, operand):
            raise ValueError("out overlaps an input, which would change while "
                             f"it is read: {describe(out)}")


# %% [markdown]
# Now it runs. First it gets a row of three numbers. Then it gets a row of five,
# in memory that goes on behind it, so that its block has eight lanes and three
# of them are masked. Change the kernel above, run its cell and then this one,
# and see whether you still get the right answer. (Take the mask out of the
# store, for one.)


# %%
def try_softmax():
    """Print what the kernel makes of two small rows, and what is right."""
    x = torch.tensor([[1, 2, 3]], dtype=torch.float32, device=DEVICE)
    print("softmax of       ", show_row(x))
    print("  the kernel says", show_row(softmax(x)))
    print("  float64 says   ", show_row(softmax64(x.cpu().numpy())))
    memory = torch.tensor([[3, 1, 4, 1, 5, 99, 99, 99]], dtype=torch.float32,
                          device=DEVICE)
    result = torch.full_like(memory, 7)
    softmax(memory[:, :5], result[:, :5])
    print("A row of 5 in    ", show_row(memory))
    print("  leaves the rest", show_row(result))


def show_row(values):
    """The first row of a matrix, as text."""
    return " ".join(f"{value:6.3f}" for value in values[0].tolist())


# %% tags=["active-ipynb"]
# try_softmax()

# %% [markdown]
# Here is what you did not have to write: a softmax in CUDA, with 256 threads to
# a row. It is the plainest version. It reduces through shared memory alone,
# without shuffles, and it reads the row three times, where our kernel reads it
# once and keeps it in registers; a faster one is longer still.
# (experiments/in_cuda.py explains each barrier, has the faster one, too,
# checks them as ours is checked, and times them side by side.)
#
# ```c
# extern "C" __global__ void
# softmaxRows(const float *__restrict__ in, float *__restrict__ out,
#             int row_stride, int n_cols) {
#     __shared__ float partial[256];
#     int tid = threadIdx.x;
#     in += (long long)blockIdx.x * row_stride;
#     out += (long long)blockIdx.x * row_stride;
#     // The first walk: each thread finds the maximum of every 256th column.
#     float biggest = -INFINITY;
#     for (int col = tid; col < n_cols; col += 256) {
#         biggest = fmaxf(biggest, in[col]);
#     }
#     partial[tid] = biggest;
#     __syncthreads();  // barrier 1: all 256 maxima are there
#     for (int half = 128; half > 0; half /= 2) {
#         if (tid < half) {
#             partial[tid] = fmaxf(partial[tid], partial[tid + half]);
#         }
#         __syncthreads();  // barrier 2: this halving is done
#     }
#     biggest = partial[0];
#     __syncthreads();  // barrier 3: all have read it, it may be overwritten
#     // The second walk, for the sum.
#     float sum = 0.0f;
#     for (int col = tid; col < n_cols; col += 256) {
#         sum += expf(in[col] - biggest);
#     }
#     partial[tid] = sum;
#     __syncthreads();  // barrier 4: all 256 sums are there
#     for (int half = 128; half > 0; half /= 2) {
#         if (tid < half) {
#             partial[tid] += partial[tid + half];
#         }
#         __syncthreads();  // barrier 5: this halving is done
#     }
#     sum = partial[0];
#     // The third walk, to divide.
#     for (int col = tid; col < n_cols; col += 256) {
#         out[col] = expf(in[col] - biggest) / sum;
#     }
# }
# ```

# %% [markdown]
# ## 4. A program owns a tile: matmul
#
# In a product C = A B every element of A meets every column of B. Element by
# element, each would be read from memory again and again: 2048 times in a
# product of two matrices of 2048 x 2048. (This lesson calls that size *2048
# cubed*: A is m x k, B is k x n, and here m = n = k = 2048.) So all fast
# matrix products are *blocked*. C is cut into tiles, and a
# tile of C is a sum of products of tiles: of the tiles in one row of A, and
# those in one column of B. Each tile is loaded once for a whole tile of
# results. Here is that idea with nothing else around it.


# %%
def blocked_product(a, b, block):
    """a (m, k) times b (k, n), a tile of block x block at a time."""
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), a.dtype)
    for row in range(0, m, block):
        for col in range(0, n, block):
            for step in range(0, k, block):
                a_tile = a[row:row + block, step:step + block]
                b_tile = b[step:step + block, col:col + block]
                c[row:row + block, col:col + block] += a_tile @ b_tile
    return c


def try_blocked_product():
    """Print whether the blocked product of whole numbers is the product."""
    a = np.arange(35.0).reshape(5, 7)
    b = np.arange(42.0).reshape(7, 6)
    same = np.array_equal(blocked_product(a, b, 2), a @ b)
    print(f"5 x 7 times 7 x 6 in tiles of 2 x 2: equal to a @ b: {same}")


# %% tags=["active-ipynb"]
# try_blocked_product()

# %% [markdown]
# The two outer loops are independent of each other, so on a GPU they become
# the grid: one program for each tile of C. The inner loop stays a loop.
#
# A grid numbers its programs 0, 1, 2, ..., and the GPU starts them in about
# that order, a few hundred at a time. Which program takes which tile is ours
# to choose, and it matters, because programs that run at the same time share
# the GPU's L2 cache. Four programs along a row of tiles read one row of A's
# tiles and four columns of B's, five in all. Four programs in a square read
# two rows and two columns, four in all. So the kernel does not count along
# rows. It goes down `GROUP_M` rows of tiles before it steps to the right, in
# these lines, which are the kernel's own:


# %%
def tile_of(pid, tiles_m, tiles_n, GROUP_M):
    """The tile (row, column) that program pid computes."""
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)  # the last group may be short
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    return pid_m, pid_n


def draw_tile_order(tiles_m=5, tiles_n=4, GROUP_M=2):
    """Print which program computes which tile of C."""
    programs = np.zeros((tiles_m, tiles_n), int)
    for pid in range(tiles_m * tiles_n):
        programs[tile_of(pid, tiles_m, tiles_n, GROUP_M)] = pid
    print(f"\nWhich program computes which of {tiles_m} x {tiles_n} tiles, "
          f"GROUP_M = {GROUP_M}:")
    for row in programs:
        print("   " + "".join(f"{pid:4}" for pid in row))


# %% tags=["active-ipynb"]
# draw_tile_order()

# %% [markdown]
# Programs 0 to 3 share two rows of A and two columns of B. The last row of
# tiles is a group of its own, since 5 is not a multiple of 2. What does it
# buy? Nothing, as long as A and B fit into the cache whole: on an H200 at 2048
# cubed, `GROUP_M` of 4, 8 or 16 was at most 1.01 times as fast as 1, and so
# the configs below leave it at 4. At 8192 cubed, with 16 times the memory,
# tiles of 64 x 64 were 1.24 times as fast with 8 as with 1, and tiles of
# 128 x 256, which need less from memory, 1.12 times with 16 (in tf32 with a
# K-major B, which section 7 explains; experiments/search.py, Triton 3.7.1).
#
# What is left is arithmetic with pointers, and three things in it are worth
# knowing before you read it.
#
# *Pointer blocks.* `offs_m[:, None]` is a column of row numbers, and
# `offs_k[None, :]` a row of column numbers. Their sum is broadcast, as in
# numpy, to a whole matrix of offsets: `BLOCK_M` x `BLOCK_K` pointers at once.
# A stride is how far it is from one row, or one column, to the next, so the
# same kernel reads any layout.
#
# *`% m` in place of a mask.* A tile at the lower edge of C may hang over it.
# Its extra rows would load what lies behind A. Wrapped round with `% m` they
# load rows that exist, compute something useless, and are left out of the
# store. That is done once, before the loop, and keeps two masks out of it.
# Along K this will not do: what lies past the end of K would be added to every
# result, so there the mask stays, and 0 is what adds nothing.
#
# *The accumulator* is a block of float32 in registers, like a variable.
# `tl.dot(a, b, acc)` returns acc + a b. No buffer is declared in shared
# memory: the compiler loads the tiles of A and B through it, up to
# `num_stages` - 1 steps of the loop ahead of the one that is computed, and
# puts the barriers where they belong.
#
# And there is one string. `input_precision` says which multiplier a product
# of two float32 numbers uses. "ieee" is float32 arithmetic, on the FMA units.
# "tf32" uses the tensor cores, which are many times faster and read only the
# first 10 of the 23 bits behind the binary point. The default is "tf32":
# leave the string out, and your float32 product is not one. `IEEE` is a
# constexpr: the `if` is decided when the kernel is compiled, and only the
# branch that is taken becomes code.


# %%
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr):
    # Which tile is mine? Down GROUP_M rows of tiles, then to the right.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + ((pid % per_group) % rows_here)
    pid_n = (pid % per_group) // rows_here
    # My rows of A and columns of B, wrapped round where they hang over.
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % m) * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % n) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # Along K, a step at a time; both blocks of pointers move on with it.
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        # Never without the string: the default is "tf32".
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    # What hangs over the edge of C is not stored.
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    c_mask = (offs_m < m) & (offs_n < n)
    tl.store(c_ptrs, acc, mask=c_mask)


# %% tags=["active-ipynb"]
# # The kernel as it is now, as above.
# if "matmul_as_it_came" not in globals():
#     matmul_as_it_came = matmul_kernel

# %% [markdown]
# This one source is a whole family of kernels: each choice of the numbers below
# is compiled to a kernel of its own. To pick the member that suits your card
# and your sizes is a search. Three hand-written members are a small search;
# `triton.autotune` runs a larger one by itself, and the fourth exercise is
# about that.


# %%
CONFIGS = [
    # The smallest tile: many programs, little reuse. Each number loaded is
    # used 64 times.
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 4, "num_stages": 3},
    # Twice as tall, with twice the warps to share the work.
    {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 8, "num_stages": 4},
    # Each number loaded is used 128 times, at the price of registers: four
    # warps hold 128 x 128 sums, 128 of them a thread.
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 4,
     "num_warps": 4, "num_stages": 3},
]


def block_shape(config):
    """BLOCK_M, BLOCK_N and BLOCK_K of a config."""
    return config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]


def config_name(config):
    """The block shape of a config, as text: "128,64,32"."""
    return ",".join(map(str, block_shape(config)))


def matmul(a, b, ieee, config=None, out=None, kernel=None):
    """a (m, k) times b (k, n): float32, any strides, in tf32 unless ieee.

    Returns out (m, n), or new memory if there is none; carries no gradient.
    config is one of CONFIGS, the last if there is none; {} is for a kernel
    that is autotuned. kernel may be another one with matmul_kernel's
    parameters. Raises TypeError or ValueError, naming the argument, for what
    the kernel cannot take: other types, sizes that do not match, a tensor
    that reaches over 2^31 elements, an out that overlaps itself or an input.
    """
    check_operand("a", a)
    check_operand("b", b, a)
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        raise ValueError(f"k differs: a {tuple(a.shape)}, b {tuple(b.shape)}")
    if out is None:
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    check_result(out, (m, n), [a, b])
    # The kernel counts in int32, which a matrix this large would overflow.
    for name, x in (("a", a), ("b", b), ("out", out)):
        last = (x.shape[0] - 1) * x.stride(0) + (x.shape[1] - 1) * x.stride(1)
        if last >= 2**31:
            raise ValueError(f"{name} {tuple(x.shape)} spans over 2^31 values")
    if config is None:
        config = CONFIGS[-1]
    if kernel is None:
        kernel = matmul_kernel

    def grid(meta):
        """One program a tile. A function, since a tuned kernel chooses its
        block sizes at the launch; meta holds them."""
        return (triton.cdiv(m, meta["BLOCK_M"])
                * triton.cdiv(n, meta["BLOCK_N"]),)

    if out.numel():
        with torch.cuda.device_of(a):
            kernel[grid](a, b, out, m, n, k, *a.stride(), *b.stride(),
                         *out.stride(), IEEE=bool(ieee), **config)
    return out


# %% [markdown]
# Now it runs, on whole numbers, in a product that is smaller than a tile and
# longer than a step of the loop, so that every mask has work to do.


# %%
def try_matmul():
    """Print whether a product that hangs over its tile is the right one."""
    a = torch.arange(120, dtype=torch.float32, device=DEVICE).view(3, 40) % 7
    b = a.t() + 1
    memory = torch.zeros(99, 99, dtype=torch.float32, device=DEVICE)
    c = matmul(a, b, ieee=True, config=CONFIGS[0], out=memory[:3, :3])
    same = np.array_equal(c.cpu().numpy(), a.cpu().numpy() @ b.cpu().numpy())
    print(f"3 x 40 times 40 x 3 in a tile of 64 x 64: equal to a @ b: {same}")
    memory[:3, :3] = 0  # C was compared; what is left lies outside of it
    print(f"  and outside of C nothing written: {not memory.any()}")


# %% tags=["active-ipynb"]
# try_matmul()

# %% [markdown]
# ## 5. Is it right?
#
# Two results agree on easy numbers more often than they should. A check is
# worth what it would catch, so this section is longer than the kernels. It
# needs a reference, a tolerance with a reason, memory that gives a wrong access
# away, and cases that make mistakes show. The paragraphs between the cells
# tell the whole story; the cells are a test harness, and at a first reading
# you can skip them all, down to `all_checks()`.
#
# **The reference** is float64 in numpy. For softmax you have met it. For a
# product it comes with |A| |B|, the matrix product of the absolute values,
# which says how large the terms of each sum were before they cancelled.
#
# **The tolerance.** float32 rounds to 24 bits, so one operation is off by a
# share of at most 2^-24. In a sum of k products the worst case is k times
# that, relative to |A| |B| (Higham, Accuracy and Stability of Numerical
# Algorithms, 3.5). Errors that are independent and fall to either side mostly
# cancel, and then lambda sqrt(k) is enough with high probability, with a small
# number for lambda (Higham and Mary 2019); we take 4. tf32 drops bits of both
# factors before it multiplies, which is up to 2^-10 for each and 2^-20 for the
# two together. A tolerance that is much wider could let the wrong multiplier
# pass.


# %%
def matmul64(a, b):
    """The product of two float32 arrays, and |a| |b|, both in float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        return a @ b, np.abs(a) @ np.abs(b)


def matmul_tolerance(k, precision):
    """The limit of max |c - c64| / (|a| |b|), and its arithmetic as text."""
    limit = 4 * np.sqrt(k) * 2**-24
    arithmetic = f"4 sqrt({k}) 2^-24"
    if precision == "tf32":
        limit += 2 * 2**-10 + 2**-20
        arithmetic = "2^-9 + 2^-20 + " + arithmetic
    return limit, arithmetic


def softmax_tolerance(n):
    """The limit of a row's max |y - y64| / max y64, and its arithmetic.

    sqrt(n) for the sum, with 1 for lambda, since its terms have one sign and
    the largest is 1; 8 allows for exp and the division.
    """
    return (np.sqrt(n) + 8) * 2**-24, f"(sqrt({n}) + 8) 2^-24"


# %% [markdown]
# **Memory.** Most mistakes with masks and strides read or write a number that
# is not theirs, and on ordinary memory that goes unnoticed. So every operand
# is a view into a larger piece of memory. What surrounds it is NaN in one
# case, which poisons any sum that it enters, and a large number in the next,
# for a kernel that turns NaN into 0. The result lies in memory that is full of
# a NaN of its own kind, a bit pattern that is in no operand and that no
# arithmetic makes of other numbers: whatever changes outside the result was
# written by a store that should have been masked, and whatever still holds
# that pattern inside was never written.
#
# **Layouts.** A stride that is mistaken for another one is right as long as
# the two happen to be equal. So A, B and C each come in layouts of their own,
# with distances of their own from row to row, and sometimes with steps over
# two rows, or two columns, of memory in between.


# %%
import contextlib
import ctypes
import dataclasses
import faulthandler
import functools
import mmap
import warnings

LAYOUTS = ("row-major", "column-major", "steps", "steps by columns")
NAN = float("nan")
LARGE = 1e30
UNWRITTEN = 0x7FC5A5A5  # the bits of a NaN that is in no operand


@dataclasses.dataclass
class Placed:
    """A matrix, and the larger piece of memory that it is a view into."""

    view: torch.Tensor
    memory: torch.Tensor


def bits(x):
    """x as whole numbers, bit by bit, so that a NaN can equal a NaN."""
    return x.view(torch.int32)


def place(values, layout, around, device, reach, extra=0):
    """values as a view of that layout into memory that holds `around`.

    The memory goes on behind the view for reach = (rows, columns), as far as
    a block can hang over. Another `extra` gives it rows of another length, and
    so the view another stride.
    """
    turned = {"column-major": "row-major", "steps by columns": "steps"}
    if layout in turned:
        placed = place(values.t(), turned[layout], around, device, reach[::-1],
                       extra)
        return Placed(placed.view.t(), placed.memory)
    rows, cols = values.shape
    if layout == "steps":
        # Nothing begins at a multiple of 16 bytes here, and elsewhere all does.
        down, right, first = 2, 3, 17
        width = 17 + (cols + reach[1]) * right + extra
    else:
        down, right, first = 1, 1, 16
        width = 16 + cols + reach[1] + extra
        width += -width % 4
    memory = torch.full((8 + (rows + reach[0]) * down, width), around,
                        dtype=torch.float32, device=device)
    view = memory[8:8 + rows * down:down, first:first + cols * right:right]
    view.copy_(values)
    return Placed(view, memory)


def place_result(shape, layout, device, reach, extra=0):
    """A result to be written, in memory that is full of UNWRITTEN."""
    values = torch.zeros(shape, dtype=torch.float32, device=device)
    result = place(values, layout, 0.0, device, reach, extra)
    bits(result.memory).fill_(UNWRITTEN)
    return result


def look_at_memory(result, operands, before):
    """What is wrong with the memory after a launch, in words.

    before: the bits of the operands' memory as they were.
    """
    problems = []
    missing = int((bits(result.view) == UNWRITTEN).sum())
    if missing:
        problems.append(f"{missing} elements of the result were not written")
    around = result.memory.clone()
    inside = around.as_strided(result.view.shape, result.view.stride(),
                               result.view.storage_offset())
    bits(inside).fill_(UNWRITTEN)
    if not bits(around).eq(UNWRITTEN).all():
        problems.append("wrote outside the result")
    for operand, was in zip(operands, before, strict=True):
        if not bits(operand.memory).equal(was):
            problems.append("wrote on an input")
    return problems


# %% [markdown]
# **Comparing.** An error counts relative to the scale that the tolerance was
# derived for. NaN has to meet NaN and an infinity the same infinity, and the
# comparison is written so that NaN can never pass it: `error <= limit` is
# False for a NaN, where `error > limit` would be False as well and wave it
# through.


# %%
def judge_values(got, want, scale, limit):
    """The largest |got - want| / scale, and what is wrong, in words, or None.

    Arrays in float64. Errors are divided by scale, element by element.
    """
    with np.errstate(all="ignore"):
        errors = np.abs(got - want) / scale
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    errors[same] = 0
    wrong = np.argwhere(~(errors <= limit))
    worst = errors.max(initial=0)
    if not len(wrong):
        return worst, None
    row, col = wrong[0]
    return worst, (f"{len(wrong)} of {want.size} wrong, the first at "
                   f"[{row}, {col}]: {got[row, col]:.6g}, not "
                   f"{want[row, col]:.6g}")


def report(label, error, limit, arithmetic, problems):
    """Print the line of one check, and its problems; whether it passed."""
    verdict = "FAIL" if problems else "pass"
    print(f"{verdict}  {label:<44} {error:.1e} <= {limit:.1e} = {arithmetic}")
    for problem in problems:
        print(f"      {problem}")
    return not problems


def place_of(x):
    """Where a tensor's elements lie."""
    return x.data_ptr(), x.shape, x.stride()


def launched(launch, operands, result):
    """Launch on the views; what was wrong with it and its memory, in words."""
    before = [bits(operand.memory).clone() for operand in operands]
    # Other views of the same memory: what is judged is the memory, and not
    # what a launcher may have made of the tensors that it was given.
    views = [operand.view[:] for operand in operands]
    out = result.view[:]
    with np.errstate(all="ignore"):  # of the interpreter's numpy
        returned = launch(*views, out)
    problems = look_at_memory(result, operands, before)
    for view, placed in zip([*views, out], [*operands, result], strict=True):
        if place_of(view) != place_of(placed.view):
            problems.append("changed a tensor's shape, strides or memory")
    if returned is not out:
        problems.append("did not return its out")
    return problems


def refuses(label, launch, operands, result):
    """Print whether launch raises a ValueError and writes nothing."""
    views = [operand.view for operand in operands]
    try:
        launch(*views, result.view)
    except ValueError as error:
        if bits(result.memory).eq(UNWRITTEN).all():
            print(f"pass  {label:<44} refused: {error}")
            return True
        print(f"FAIL  {label}\n      was refused, but written before that")
        return False
    print(f"FAIL  {label}\n      was not refused with a ValueError")
    return False


# %% [markdown]
# **Cases.** A case names what it is there to catch. Rows that are all far
# below 0 catch a padding of 0; one huge value in a row catches a maximum that
# is not subtracted; many rows catch a kernel that is right for the first few.
# Sizes are one, a block, and one more or less than a block.


# %%
@dataclasses.dataclass
class Case:
    """One case of a check: what to launch, and why.

    sizes: (rows, cols) of a softmax, (m, n, k) of a matmul. layouts: names
    from LAYOUTS, of (x, out) or of (a, b, c). values: which numbers, a name
    that softmax_values or matmul_values knows. around: what the memory around
    the operands holds. config: of a matmul. refused: the launcher has to raise
    a ValueError. relaunched: for each operand another launch follows, into
    the memory that holds the last result, after one of its elements changed.
    """

    catches: str
    sizes: tuple
    layouts: tuple
    values: str = "normal"
    around: float = NAN
    config: dict = None
    refused: bool = False
    relaunched: bool = False


def softmax_values(values, rows, cols, generator):
    """A (rows, cols) float32 matrix of the kind that `values` names."""
    x = torch.randn(rows, cols, generator=generator, dtype=torch.float32,
                    device="cpu")
    last = cols - 1
    if values == "all near -50":
        x -= 50
    elif values == "all near -3000":
        x = x * 5 - 3000
    elif values == "all near 3000":
        x += 3000
    elif values == "huge":
        x = x.clamp(-3, 3) * 1e38
        x[-1] = -x[-1].abs() - 1e38
    elif values == "tiny":
        x[:, ::2] *= 1e-38
    elif values == "one spike":
        x = torch.zeros_like(x)
        x[:, last] = 100
        x[-1, 0] = 112
    elif values == "constant":
        x = torch.full_like(x, 7.25)
    elif values == "zeros of both signs":
        x[:, ::2] = x[:, ::2].sign() * 0
    elif values == "some -inf":
        x[x < 0] = -torch.inf
    elif values == "a row of -inf":
        x[0] = -torch.inf
    elif values == "an inf in a row":
        x[0, last] = torch.inf
    elif values == "a NaN in a row":
        x[0, 0] = torch.nan
    elif values != "normal":
        raise ValueError(f"no values are called {values!r}")
    return x


# Cases in which x and out have rows of different length in memory.
OTHER_STRIDES = ("one column", "all near 3000", "some -inf", "a row of -inf")


def softmax_cases():
    """What softmax_checks tries: a list of Case."""
    row, col, steps, _ = LAYOUTS
    cases = [
        Case("a full block", (2, 1024), (row, row)),
        Case("one column", (3, 1), (row, row)),
        Case("one lane masked", (1, 127), (row, row), around=LARGE),
        Case("one more than a block", (2, 129), (row, row)),
        Case("many rows", (40 if INTERPRET else 70000, 5), (row, row)),
        Case("wide rows", (2, 65533), (row, row)),
        Case("columns first, out in steps", (3, 17), (col, steps)),
        Case("steps, out columns first", (3, 40), (steps, col), around=LARGE),
    ]
    pairs = [(row, row), (steps, steps), (row, row), (col, col), (row, steps)]
    for turn, values in enumerate((
            "all near -50", "all near -3000", "all near 3000", "huge", "tiny",
            "one spike", "constant", "zeros of both signs", "some -inf",
            "a row of -inf", "an inf in a row", "a NaN in a row")):
        cases.append(Case(values, (2, 333), pairs[turn % 5], values))
    cases.append(Case("an earlier result in out", (2, 80), (row, row),
                      around=LARGE, relaunched=True))
    return cases


def softmax_checks(device, launch=None, cases=None, rows_at_once=1):
    """Print a line a case; return whether all of them passed.

    launch(x, out) writes the softmax of x's rows into out and returns out;
    the lesson's softmax if there is none. What it raises is not caught.
    rows_at_once: of a program, which says how far it can hang over.
    """
    launch = softmax if launch is None else launch
    cases = softmax_cases() if cases is None else cases
    generator = torch.Generator("cpu").manual_seed(86)
    passed = True
    for case in cases:
        rows, cols = case.sizes
        label = f"softmax {rows}x{cols}, {case.catches}"
        reach = (1 + rows_at_once, triton.next_power_of_2(cols))
        x = softmax_values(case.values, rows, cols, generator)
        operand = place(x, case.layouts[0], case.around, device, reach)
        # Where both have the same stride from row to row, nothing is copied.
        extra = 8 if case.catches in OTHER_STRIDES else 0
        result = place_result((rows, cols), case.layouts[1], device, reach,
                              extra)
        if case.refused:
            passed &= refuses(label, launch, [operand], result)
            continue
        passed &= check_softmax(label, launch, operand, result)
        if case.relaunched:
            operand.view[-1, cols // 2] += 3
            passed &= check_softmax(label + ", again", launch, operand, result)
    return passed


def check_softmax(label, launch, operand, result):
    """Launch once, print the line; whether values and row sums are right."""
    problems = launched(launch, [operand], result)
    want = softmax64(operand.view.cpu().numpy())
    got = result.view.cpu().numpy().astype(np.float64)
    limit, arithmetic = softmax_tolerance(want.shape[1])
    largest = want.max(axis=1, keepdims=True)
    error, problem = judge_values(got, want, largest, limit)
    if problem:
        problems.append(problem)
    sums, right_sums = (y.sum(axis=1, keepdims=True) for y in (got, want))
    _, problem = judge_values(sums, right_sums, 1, limit)
    if problem:
        problems.append(f"row sums: {problem}")
    # Small shares count for nothing in either. They only have to be about
    # right; and where nothing is right, there has to be nothing.
    small = np.where(want < 2.0**-100, np.nan, want)
    with np.errstate(all="ignore"):
        off = np.abs(got - want) > 2.0**-10 * small
    wrong = int((off | ((want == 0) & (got != 0))).sum())
    if wrong and not problems:
        problems.append(f"{wrong} small shares are off by more than 2^-10 of "
                        "themselves")
    return report(label, error, limit, arithmetic, problems)

# %% [markdown]
# The sizes of a product are given in blocks, because the configs take turns:
# `(3, 5)` is three blocks and 5 more, whatever the block size. Some cases have
# three steps of the loop and a remainder, or three tiles along an axis, since
# a kernel can be right for two and wrong from three on. Others have one side
# over 2048, a last group of tiles that is not full, or sizes that 16 divides
# and a block does not, which a kernel may take for whole blocks.
#
# The values have their own mistakes to catch. Rows and columns that are scaled
# by 2^100 and 2^-100 show a kernel that cuts off large numbers or flushes
# small ones to 0. Where B holds one power of two in each column, float32 loses
# nothing, and ieee has to be right to the bit. Where all numbers are whole and
# small, tf32 loses nothing either, and both have to be.


# %%
SIZE = 2048  # of the sweep, and of the largest check on a GPU
PRECISIONS = ("ieee", "tf32")
EXACT = ("powers of two", "one power of two", "whole numbers")
B_LAYOUTS = ("row-major", "K-major")  # of B in the sweep
UNIT_STRIDES = {  # the strides that are 1 there
    "row-major": {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1},
    "K-major": {"stride_ak": 1, "stride_bk": 1, "stride_cn": 1}}


def as_layout(b, layout):
    """b's numbers in memory of that layout."""
    if layout == "K-major":
        return b.t().contiguous().t()
    return b.contiguous()


def sweep_operands():
    """Two matrices of SIZE x SIZE on the GPU, the same in every run."""
    generator = torch.Generator("cuda").manual_seed(86)
    return torch.randn(2, SIZE, SIZE, device="cuda", dtype=torch.float32,
                       generator=generator)


def matmul_values(values, m, n, k, generator):
    """Two float32 matrices, (m, k) and (k, n), of the kind named."""
    a = torch.randn(m, k, generator=generator, dtype=torch.float32,
                    device="cpu")
    b = torch.randn(k, n, generator=generator, dtype=torch.float32,
                    device="cpu")
    if values == "whole numbers":
        a, b = a.mul(4).round(), b.mul(4).round()
    elif values == "powers of two":
        a, b = powers_of_two(a, b, generator)
    elif values == "one power of two":
        a, b = all_sizes(a, generator), one_power((n, k), 33).t()
    elif values == "scaled":
        # Along K the two scales cancel; by rows and by columns they stay.
        along = 60.0 * signs((k,), generator)
        down = 40.0 * signs((m, 1), generator)
        across = 40.0 * signs((1, n), generator)
        a = a * torch.exp2(along) * torch.exp2(down)
        b = b * torch.exp2(-along)[:, None] * torch.exp2(across)
    elif values == "NaN, inf and -0.0":
        a[0, 1] = torch.nan
        a[1, 0] = torch.inf
        a[2, 2] = -torch.inf
        a[3, :] = -0.0
        a[4, 4], b[4, 1] = 0, torch.inf  # 0 times inf is NaN
        b[5, 2] = torch.nan
        b[:, 3] = -0.0
        # And in the last step of the loop, which is not a full one.
        a[5, -1], a[6, -1] = torch.inf, torch.nan
        b[-1, 4], b[-1, 5] = -torch.inf, torch.nan
    elif values != "normal":
        raise ValueError(f"no values are called {values!r}")
    return a.float(), b.float()


def signs(shape, generator):
    """-1, 0 and 1 at random."""
    return torch.randint(-1, 2, shape, generator=generator, device="cpu")


def all_sizes(x, generator):
    """x's signs and bits, at sizes from float32's smallest to its largest."""
    exponents = torch.randint(-148, 125, x.shape, generator=generator,
                              device="cpu")
    return x.sign() * (1 + x.abs() % 1) * torch.exp2(exponents.double())


def one_power(shape, step):
    """Zeros, and in each row one 1 or -2, `step` further on than the last."""
    rows, cols = shape
    x = torch.zeros(shape, dtype=torch.float32, device="cpu")
    for row in range(rows):
        x[row, (step * row + 3) % cols] = (-2.0) ** (row % 2)
    return x


def powers_of_two(a, b, generator):
    """a and b whose product has one term that is not 0 in each element.

    The term is a number of any size times a power of two. In the left half of
    the columns the number comes from a, in the first half of K; in the right
    half it comes from b, in the second half of K. The rest of b is 0.
    """
    half, left = a.shape[1] // 2, b.shape[1] // 2
    a[:, :half] = all_sizes(a[:, :half], generator)
    a[:, half:] = one_power(a[:, half:].shape, 7)
    b[half:, left:] = all_sizes(b[half:, left:], generator)
    b[half:, :left] = 0
    b[:half, left:] = 0
    b[:half, :left] = one_power((left, half), 7).t()
    return a, b


def largest_cases(configs):
    """For a GPU: every tile of SIZE cubed, with each config and layout of B."""
    cases = []
    for config in configs:
        for layout, name in zip(LAYOUTS[:2], B_LAYOUTS, strict=True):
            cases.append(Case(f"every tile, {name} B", ((0, SIZE),) * 3,
                              ("row-major", layout, "row-major"),
                              config=config))
    return cases


def matmul_cases(configs=None):
    """What matmul_checks tries: a list of Case; the configs take turns."""
    configs = CONFIGS if configs is None else configs
    row, col, steps, turned = LAYOUTS
    # What it catches, then m, n and k as (blocks, and so many more).
    table = [
        Case("K with a rest", ((1, 1), (1, -1), (3, 5)), (row, row, col)),
        Case("all in steps", ((1, -1), (1, 1), (2, 7)), (steps, steps, steps),
             around=LARGE),
        Case("wider than tall", ((1, 3), (2, 3), (2, 7)), (col, steps, row)),
        Case("three tile rows", ((2, 3), (1, 0), (3, -1)), (steps, row, col),
             around=LARGE),
        Case("an unfilled group", ("groups", (2, 0), (1, 16)), (row, col, row)),
        Case("k over 2048", ((0, 3), (0, 66), (0, 2085)),
             (turned, turned, turned), "one power of two"),
        Case("m over 2048", ((0, 2085), (0, 3), (0, 5)), (row, steps, col),
             around=LARGE),
        Case("n over 2048", ((0, 5), (0, 2085), (0, 3)), (steps, col, row)),
        Case("powers of two", ((0, 33), (0, 20), (2, 6)), (col, row, steps),
             "powers of two", LARGE),
        Case("whole numbers", ((1, 0), (1, 0), (4, 0)), (row, col, steps),
             "whole numbers"),
        Case("2^100 and 2^-100", ((0, 48), (0, 32), (2, 1)), (col, row, col),
             "scaled"),
        Case("NaN, inf and -0.0", ((0, 9), (0, 8), (1, 9)), (row, row, row),
             "NaN, inf and -0.0", LARGE),
        Case("a single number", ((0, 1), (0, 1), (0, 1)), (row, row, row)),
        Case("one row", ((0, 1), (0, 40), (2, 7)), (row, col, col)),
        Case("one column", ((0, 40), (0, 1), (1, 1)), (col, row, row),
             around=LARGE),
        Case("an earlier result", ((0, 35), (0, 35), (1, 3)), (row, row, row),
             relaunched=True),
        Case("nothing to add up", ((0, 5), (0, 6), (0, 0)), (row, row, row)),
    ]
    if not INTERPRET:
        table += largest_cases(configs)
    turns = whose_turn(configs, len(table))
    return [sized(case, config)
            for case, config in zip(table, turns, strict=True)]


def whose_turn(configs, count):
    """The configs of so many cases: all of them in turn.

    On a GPU every layout is compiled anew, and in ieee the largest tile takes
    longer to compile than all others together. So there it gets the second
    case alone, in which no size is a multiple of a block, and SIZE cubed.
    """
    quick = configs
    if not INTERPRET and len(configs) > 1:
        by_size = sorted(configs, key=tile_size)
        quick = by_size[:-1]
        configs = [quick[0], by_size[-1]]
    return [configs[turn] if turn < len(configs) else quick[turn % len(quick)]
            for turn in range(count)]


# All of CONFIGS have BLOCK_K = 32 and GROUP_M = 4. A kernel in which one of
# these numbers stands in place of the name would pass with all of them, so
# some cases have other values. The interpreter's time depends on how many
# programs there are and not on their size, so tall tiles are cheap there.
OTHER_BLOCKS = {
    "an unfilled group": {"GROUP_M": 3},
    "three tile rows": {"GROUP_M": 3},
    "wider than tall": {"BLOCK_M": 64, "BLOCK_K": 16},
    "k over 2048": {"BLOCK_M": 16},
    "m over 2048": {"BLOCK_M": 1024, "GROUP_M": 1},
    "n over 2048": {"BLOCK_N": 1024},
}


def tile_size(config):
    """How many sums a program of this config holds."""
    return config["BLOCK_M"] * config["BLOCK_N"]


def sized(case, config):
    """The case with a config, and with sizes in place of blocks."""
    config = dict(case.config or config)
    if INTERPRET:
        config.update(OTHER_BLOCKS.get(case.catches, {}))
    sides = []
    for blocks, name in zip(case.sizes, ("BLOCK_M", "BLOCK_N", "BLOCK_K"),
                            strict=True):
        if blocks == "groups":
            # A full group, and a last one of two rows that is not.
            blocks = (min(config["GROUP_M"], 16) + 2, 0)
        count, more = blocks
        sides.append(count * config[name] + more)
    return dataclasses.replace(case, sizes=tuple(sides), config=config)


def matmul_checks(device, launch=None, cases=None, configs=None,
                  precisions=PRECISIONS):
    """Print a line for each case and precision; return whether all passed.

    launch(a, b, ieee, config, out) writes a times b into out and returns out;
    the lesson's matmul if there is none. What it raises is not caught. cases:
    what matmul_cases makes of configs, if there are none.
    """
    launch = matmul if launch is None else launch
    cases = matmul_cases(configs) if cases is None else cases
    generator = torch.Generator("cpu").manual_seed(86)
    passed = True
    for case in cases:
        m, n, k = case.sizes
        block_m, block_n, block_k = block_shape(case.config)
        a, b = matmul_values(case.values, m, n, k, generator)
        operands = [place(a, case.layouts[0], case.around, device,
                          (block_m, block_k)),
                    place(b, case.layouts[1], case.around, device,
                          (block_k, block_n), 16)]
        results = {}
        for precision in precisions:
            results[precision] = place_result((m, n), case.layouts[2], device,
                                              (block_m, block_n), 32)
        passed &= check_matmul(case, launch, operands, results)
        if case.relaunched:
            for name, operand, where in (("A", operands[0], (m // 2, 0)),
                                         ("B", operands[1], (0, n // 2))):
                operand.view[where] += 3
                again = dataclasses.replace(
                    case, catches=f"{case.catches}, {name} changed")
                passed &= check_matmul(again, launch, operands, results)
    return passed


def check_matmul(case, launch, operands, results):
    """Launch once a precision, print the lines; whether all of it is right."""
    a, b = (operand.view.cpu().numpy() for operand in operands)
    want, scale = matmul64(a, b)
    # tf32's share, 2^-10, of anything below 2^-116 is less than float32's
    # smallest normal number, and may be flushed to 0.
    scale = np.maximum(scale, 2.0**-116)
    passed = True
    for precision, result in results.items():
        label = (f"{precision} {'x'.join(map(str, case.sizes))} "
                 f"{config_name(case.config)}, {case.catches}")
        run = with_precision(launch, precision, case.config)
        if case.refused:
            passed &= refuses(label, run, operands, result)
            continue
        limit, arithmetic = matmul_tolerance(case.sizes[2], precision)
        if case.values == "whole numbers" or (
                case.values in EXACT and (precision == "ieee" or INTERPRET)):
            limit, arithmetic = 0, "exact"
        problems = launched(run, operands, result)
        got = result.view.cpu().numpy().astype(np.float64)
        error, problem = judge_values(got, want, scale, limit)
        if problem:
            problems.append(f"{problem}; layouts {', '.join(case.layouts)}")
        passed &= report(label, error, limit, arithmetic, problems)
    return passed and right_multipliers(case, results)


def with_precision(launch, precision, config):
    """launch as a function of a, b and out alone."""
    def run(a, b, out):
        return launch(a, b, precision == "ieee", config, out)
    return run


def right_multipliers(case, results):
    """Whether ieee and tf32 gave the same bits, or not, as they have to.

    The interpreter multiplies with numpy whatever the string says, so there
    they have to be equal, and a pass says nothing about tf32. On a GPU they
    have to differ, or one of the two did not use its multiplier.
    """
    if case.refused or len(results) < 2:
        return True
    same = bits(results["ieee"].view).equal(bits(results["tf32"].view))
    has_to_be = (INTERPRET or case.sizes[2] == 0
                 or case.values == "whole numbers")
    if same == has_to_be:
        return True
    fault = "gave the same bits" if same else "differ, and have no reason to"
    print(f"FAIL  {case.catches}: ieee and tf32 {fault}")
    return False


# %% [markdown]
# **Errors.** Whoever edits a kernel makes mistakes, and most of them raise an
# error long before they give a wrong result. All that is printed of it are
# the lines of this file that it came through, or of a notebook's cells, and
# none of Triton's own. The interpreter wraps an error in one of its own, and
# the compiler's carries the place in the kernel's source.


# %%
import errno
import inspect
import re

OWN_FILE = leave.__code__.co_filename


def is_own(filename):
    """Whether code from there is the reader's: this file or a cell."""
    return filename == OWN_FILE or bool(
        re.search(r"ipykernel_\d|ipython-input", filename))


def plain_function(kernel):
    """The Python function that a kernel, tuned or not, was made from."""
    while not inspect.isfunction(kernel):
        kernel = kernel.fn
    return kernel


def compiled_line(error):
    """Where in a kernel the compiler stopped, as text, or None."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if node is None or source is None:
        return None
    for kernel in list(globals().values()):
        if getattr(kernel, "src", None) != source:
            continue
        function = plain_function(kernel)
        lines, first = inspect.getsourcelines(function)
        for index, line in enumerate(lines):
            if line.startswith("def "):
                index += node.lineno - 1
                return (f"line {first + index}, in {function.__name__}: "
                        f"{lines[index].strip()}")
    return None


def print_error(error):
    """Print the reader's lines that an error came through, and the error."""
    while True:
        for frame in traceback.extract_tb(error.__traceback__):
            if is_own(frame.filename):
                print(f"line {frame.lineno}, in {frame.name}: {frame.line}")
        line = compiled_line(error)
        if line:
            print(line)
        if error.__cause__ is None:
            break
        error = error.__cause__
    print(f"{type(error).__name__}: {error}")


class Unusable(RuntimeError):
    """Something that this machine lacks, and no fault of a kernel."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def reported(task):
    """What task returns; an error is printed, and its status returned."""
    try:
        return task()
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    except Unusable as error:
        print(f"cannot go on: {error}")
        return 2
    except torch.OutOfMemoryError as error:
        print(f"refused: the GPU's memory is taken: {error}")
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            print(f"cannot go on: {error}", file=sys.stderr)
            return 2
        if "C compiler" in str(error):
            print(f"cannot go on: Triton needs a C compiler: {error}")
            return 2
        print_error(error)
        return 3


# %% [markdown]
# **Memory that ends.** A load that wanders off and throws away what it found
# changes no result, until one day there is nothing to load and the program
# dies. Under the interpreter that day can be arranged: each matrix ends where
# a page of memory begins that nobody may touch, and the operands lie in pages
# that may be read and not written. A process that does it all the same is
# ended by the operating system, so this is tried in a *child*, a copy of this
# process that is forked off for it. On a GPU it is the work of
# compute-sanitizer's memcheck (tests/gpu.sh).


# %%
def small_numbers(rows, cols):
    """A matrix of whole numbers from -3 to 3, few of them alike in a row."""
    numbers = torch.arange(rows * cols, dtype=torch.float32, device="cpu")
    return (numbers * 5 % 7 - 3).view(rows, cols)


def fenced(values, writable=False, at_start=False):
    """values in memory that ends where they end, to be read and not written.

    Before and behind it lie pages that nobody may touch. at_start: the memory
    begins where values begin instead.
    """
    page = mmap.PAGESIZE
    count = values.numel()
    size = -(-4 * count // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    numbers = torch.frombuffer(memory, dtype=torch.float32)
    first = page // 4 if at_start else (page + size) // 4 - count
    view = numbers[first:first + count].view(values.shape)
    view.copy_(values)
    no_access, reading = 0, 1
    protect(start, page, no_access)
    protect(start + page + size, page, no_access)
    if not writable:
        protect(start + page, size, reading)
    return view


def protect(start, size, access):
    """Tell the operating system what may be done with some memory."""
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start),
                                  ctypes.c_size_t(size), access):
        raise OSError("mprotect could not change what may be done with memory")


class NotHere(Exception):
    """What this machine cannot try."""


def far_apart(values, stride):
    """values in memory, their rows `stride` elements apart.

    It takes up addresses for all of that, and memory only where it is used.
    """
    rows, cols = values.shape
    map_noreserve = 0x4000
    try:
        memory = mmap.mmap(-1, 4 * rows * stride, flags=mmap.MAP_PRIVATE
                           | mmap.MAP_ANONYMOUS | map_noreserve)
    except OSError as error:
        raise NotHere(f"not enough addresses: {error}") from error
    numbers = torch.frombuffer(memory, dtype=torch.float32)
    view = numbers.as_strided((rows, cols), (stride, 1))
    return view.copy_(values)


class WrongResult(Exception):
    """What a launch computed is wrong; the text says where."""


def right_rows(launch, put, put_result, rows, cols):
    """True if softmax is right on rows that are put somewhere; WrongResult."""
    values = small_numbers(rows, cols)
    out = launch(put(values), put_result(torch.zeros_like(values)))
    _, problem = judge_values(out.double().numpy(), softmax64(values.numpy()),
                              1, softmax_tolerance(cols)[0])
    if problem:
        raise WrongResult(problem)
    return True


def right_tile(launch, put, put_result, config, precision, shape, by_columns):
    """True if a product is right, to the bit, of matrices that are put
    somewhere; WrongResult."""
    m, n, k = shape
    a, b, out = (small_numbers(m, k), small_numbers(k, n),
                 torch.zeros(m, n, dtype=torch.float32, device="cpu"))
    want = a.numpy() @ b.numpy()
    if by_columns:
        a, b, out = put(a.t()).t(), put(b.t()).t(), put_result(out.t()).t()
    else:
        a, b, out = put(a), put(b), put_result(out)
    got = launch(a, b, precision == "ieee", config, out)
    _, problem = judge_values(got.numpy(), want, 1, 0)
    if problem:
        raise WrongResult(problem)
    return True


def memory_end_steps(softmax_launch, matmul_launch, configs):
    """A list of (label, function), to be called in order, in a child."""
    fenced_result = functools.partial(fenced, writable=True)
    begins = functools.partial(fenced, at_start=True)
    begins_result = functools.partial(begins, writable=True)
    far = functools.partial(far_apart, stride=2**30)
    less_far = functools.partial(far_apart, stride=2**24 + 1)
    steps = [
        ("softmax, rows that end where memory ends", functools.partial(
            right_rows, softmax_launch, fenced, fenced_result, 3, 333)),
        ("softmax, rows 2^30 elements apart", functools.partial(
            right_rows, softmax_launch, far, far, 6, 5))]
    steps += [
        ("softmax, rows that begin where memory begins", functools.partial(
            right_rows, softmax_launch, begins, begins_result, 3, 333)),
        ("tf32, matrices that begin where memory begins", functools.partial(
            right_tile, matmul_launch, begins, begins_result, configs[0],
            "tf32", (20, 24, 40), False))]
    for turn in range(max(6, len(configs))):
        config, precision = configs[turn % len(configs)], PRECISIONS[turn % 2]
        by_columns = turn % 6 >= 3
        # A second tile, below the first one or to the right of it.
        shape = [(config["BLOCK_M"] + 20, 24, 40),
                 (20, config["BLOCK_N"] + 24, 40)][turn % 2]
        steps.append((
            f"{precision} {config_name(config)}, {LAYOUTS[by_columns]} where "
            "memory ends", functools.partial(
                right_tile, matmul_launch, fenced, fenced_result, config,
                precision, shape, by_columns)))
    for by_columns in (False, True):
        steps.append((
            f"ieee {config_name(configs[0])}, {LAYOUTS[by_columns]}, 2^24 "
            "elements apart", functools.partial(
                right_tile, matmul_launch, less_far, less_far, configs[0],
                "ieee", (3, 5, 40), by_columns)))
    return steps


def take_steps(steps):
    """Call the functions; print a line for each, and whether all were right."""
    passed = True
    for label, step in steps:
        try:
            right = step()
        except NotHere as reason:
            print(f"skip  {label}: {reason}")
            continue
        except WrongResult as problem:
            print(f"FAIL  {label}\n      {problem}")
            passed = False
            continue
        except Exception as error:
            print(f"FAIL  {label}: {type(error).__name__}: {error}")
            passed = False
            continue
        print("pass " if right else "FAIL ", label)
        passed &= right
    return passed


def start_child(task):
    """Fork a copy of this process that calls task; what to give finish_child.

    task returns whether all was well. What it prints goes into a pipe.
    """
    reader, writer = os.pipe()
    if sys.stdout:
        sys.stdout.flush()  # or the child has the same lines to write again
    with warnings.catch_warnings():
        # Python 3.12 warns of a fork beside running threads, whose locks the
        # child may find taken. Ours keeps to one thread and leaves.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    right = False
    try:
        faulthandler.disable()  # a signal is a verdict here, not a crash
        torch.set_num_threads(1)
        sys.stdout = os.fdopen(writer, "w", buffering=1)
        right = reported(task) is True
        sys.stdout.flush()
    finally:
        os._exit(0 if right else 3)


def finish_child(child, reader):
    """Print what a child prints, until it ends; whether all was well."""
    with os.fdopen(reader, errors="backslashreplace") as pipe:
        for line in pipe:
            print(line, end="")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        name = signal.Signals(-status).name
        print(f"FAIL  ended by {name}: what was tried after the last line above"
              "\n      read or wrote memory that is not its own")
    return status == 0


def side_by_side(*tasks):
    """Whether all is well after tasks that run at once, each in a child."""
    children = [start_child(task) for task in tasks]
    try:
        verdicts = [finish_child(*child) for child in children]
    except KeyboardInterrupt:
        for child, _ in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise
    return all(verdicts)


# %% [markdown]
# **Again and again.** On a GPU a race shows now and then, so there each config
# is launched fifty times more, and every launch has to give the same bits.


# %%
def repeat_checks(launch=None, configs=None):
    """Launch each config 50 times at SIZE cubed; whether no bit changed."""
    launch = matmul if launch is None else launch
    a, b = sweep_operands()
    passed = True
    for config in CONFIGS if configs is None else configs:
        for layout in B_LAYOUTS:
            b = as_layout(b, layout)
            for precision in PRECISIONS:
                label = f"{precision} {config_name(config)}, {layout} B"
                passed &= same_bits(label, with_precision(
                    launch, precision, config), a, b)
    return passed


def same_bits(label, run, a, b, count=50):
    """Print whether `count` launches after the first gave the same bits."""
    first = run(a, b, torch.empty_like(a))
    out = torch.empty_like(a)
    different = 0
    for _ in range(count):
        bits(out).fill_(UNWRITTEN)
        run(a, b, out)
        different += not bits(out).equal(bits(first))
    print("FAIL " if different else "pass ", f"{label}: {count} launches more, "
          f"{different} with other bits")
    if different:
        print("      If a value is changed between its load and the dot, this "
              "can be a known fault\n      of Triton on capability 9.0: a "
              "tensor-core instruction that still reads\n      registers "
              "while the next step's loads write them.")
    return not different


def all_checks():
    """Run every check that this machine can; whether all passed."""
    if INTERPRET:
        return interpreted_checks()
    print()
    passed = softmax_checks(DEVICE)
    passed &= matmul_checks(DEVICE)
    return passed and repeat_checks()


def interpreted_checks(*before):
    """The checks under the interpreter, and tasks before them, in children.

    A store that should have been masked can end a process; and two children
    take about half the time.
    """
    cases = matmul_cases()
    steps = memory_end_steps(softmax, matmul, CONFIGS)

    def first():
        print("\nTriton's interpreter has no tf32: there it multiplies as in "
              "ieee, and the\nresults of both have to be equal to the bit.\n")
        passed = softmax_checks(DEVICE)
        return matmul_checks(DEVICE, cases=cases[1::2]) and passed

    def second():
        passed = matmul_checks(DEVICE, cases=cases[::2])
        return take_steps(steps) and passed

    return side_by_side(*before, first, second)


# %% [markdown]
# This is the cell that judges an edit. Change a kernel or a launcher above,
# run its cell, and run this one.

# %% tags=["active-ipynb"]
# passed = all_checks()

# %% [markdown]
# ## 6. What did the compiler make of it?
#
# You wrote neither a barrier nor a shuffle. They are in the compiled code, and
# it can be read without a GPU, for any card. Triton turns a kernel into its
# own intermediate representation (`ttir`), gives every block a layout over
# the threads (`ttgir`), and ends with PTX, NVIDIA's assembly language, from
# which NVIDIA's ptxas makes the card's machine code (`sass`).
#
# The table counts what this lesson is about:
#
# - *4 B, 16 B, bulk*: instructions that copy from memory into shared memory
#   without waiting for it, so many bytes a thread, or a whole tile at once;
# - *ld.shared*: loads from shared memory into registers;
# - *barriers*, at which all warps of a program wait for each other, and
#   *shuffles*, by which the threads of one warp exchange registers;
# - *FMA*: a float32 multiplication and addition, which is what ieee is made
#   of. Some cards do two in one instruction; that counts as two;
# - *tensor*: tensor-core instructions, each of which multiplies two tiles;
# - *shared*, bytes of shared memory, and *regs*, registers a thread.
#
# It counts the text of a program, so what stands in a loop counts once.


# %%
import difflib
import json
import subprocess
import tempfile
import textwrap

CAPABILITIES = (80, 86, 87, 89, 90, 100, 103, 120, 121)
COUNTED = {
    "4 B": r"\bcp\.async\.c[ag]\.shared\S* [^;]*, 0x4,",
    "16 B": r"\bcp\.async\.c[ag]\.shared\S* [^;]*, 0x10,",
    "bulk": r"\bcp\.async\.bulk\.\S*shared\S*\.global",
    "ld.shared": r"\b(?:ld\.shared|ldmatrix)\b",
    "barriers": r"\bbar(?:rier)?(?:\.cta)?\.sync",
    "shuffles": r"\bshfl\.sync",
    "FMA": r"\bfma\.rn(?:\.ftz)?\.f32(?:x2)?\b",
    "tensor": r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)\.\S+",
}


def check_capability(capability):
    """Raise a ValueError unless this Triton compiles for the capability."""
    known = []
    for number in CAPABILITIES:
        if re.search(rf"\bsm_{number}\b", ptxas_help(number)):
            known.append(number)
    if capability not in known:
        floor = ""
        if isinstance(capability, int) and capability < 80:
            floor = "; Triton supports 8.0 and newer, and 80 is its floor"
        raise ValueError(f"capability {capability!r} is none that Triton "
                         f"{triton.__version__} compiles for here{floor}: "
                         f"take one of {', '.join(map(str, known))}")


def ptxas_help(capability):
    """What the ptxas that Triton runs for a capability says it can do."""
    try:
        path = triton.backends.nvidia.compiler.get_ptxas(capability).path
    except RuntimeError:  # it is not installed
        return ""
    return subprocess.run([path, "--help"], capture_output=True, text=True,
                          check=True).stdout


# Not a decorator, since the second Python below gets the function without it.
ptxas_help = functools.cache(ptxas_help)


def compile_arguments(kernel, settings):
    """Triton's signature and constants of a kernel at these settings.

    A pointer is one to float32, anything else an int32 that 16 divides, which
    is what aligned matrices give. A setting is a constant: a constexpr, or a
    stride of 1. A constexpr that is not set has its default.
    """
    signature, constants, divisible = {}, {}, {}
    parameters = inspect.signature(kernel.fn).parameters
    for position, (name, parameter) in enumerate(parameters.items()):
        is_constexpr = "constexpr" in str(parameter.annotation)
        if name in settings:
            constants[name] = settings[name]
        elif is_constexpr and parameter.default is not parameter.empty:
            constants[name] = parameter.default
        elif is_constexpr:
            raise ValueError(f"{kernel.fn.__name__} needs a value for {name}: "
                             f"pass {name}=...")
        else:
            signature[name] = "*fp32" if name.endswith("_ptr") else "i32"
            divisible[position,] = [["tt.divisibility", 16]]
            continue
        signature[name] = "constexpr"
    return signature, constants, divisible


def compile_for(capability, kernel, **settings):
    """kernel compiled for, say, 86, at these settings; needs no GPU.

    settings: what is constant, and the options num_warps and num_stages.
    Raises ValueError for a capability that this Triton does not know.
    """
    check_capability(capability)
    signature, constants, divisible = compile_arguments(kernel, settings)
    options = {name: value for name, value in settings.items()
               if name not in constants}
    source = triton.compiler.ASTSource(kernel, signature, constants, divisible)
    target = triton.backends.compiler.GPUTarget("cuda", capability, 32)
    knobs = triton.knobs.compilation
    with knobs.scope():
        knobs.store_binary_only = False  # it is the text that we want
        if not str(inspect.getsourcefile(kernel.fn)).isascii():
            knobs.disable_line_info = True  # ptxas cannot read such a path
        compiled = triton.compile(source, target=target, options=options)
        if "ptx" not in compiled.asm:  # from a cache of binaries alone
            knobs.always_compile = True
            compiled = triton.compile(source, target=target, options=options)
    return compiled


# %% [markdown]
# Under the interpreter nothing is compiled, so there it is a second Python
# that compiles. It gets the source of the kernel, of the jitted functions that
# the kernel calls, and of the two functions above, in a temporary file.


# %%
def written(value):
    """A value as Python text; one of Triton's types by its name in tl."""
    if isinstance(value, tl.dtype):
        for name, known in vars(tl).items():
            if known is value:
                return f"tl.{name}"
    return repr(value)


def sources_of(kernel, found):
    """Add to found, {name: Python}, the kernel and all that it refers to."""
    function = plain_function(kernel)
    found[function.__name__] = ""  # so that this ends where two call each other
    names = inspect.getclosurevars(function)
    for name, value in {**names.globals, **names.nonlocals}.items():
        if name in found:
            continue
        is_kernel = isinstance(value, triton.runtime.jit.KernelInterface)
        plain = plain_function(value) if is_kernel else value
        home = getattr(plain, "__module__", None) or ""
        if inspect.ismodule(value):
            found[name] = f"import {value.__name__} as {name}"
        elif home.startswith("triton.") and hasattr(plain, "__name__"):
            found[name] = f"from {home} import {plain.__name__} as {name}"
        elif is_kernel:
            sources_of(value, found)
            if name != plain.__name__:
                found[name] = f"{name} = {plain.__name__}"
        elif isinstance(value, tl.constexpr):
            found[name] = f"{name} = tl.constexpr({written(value.value)})"
        else:
            found[name] = f"{name} = {written(value)}"
    source = textwrap.dedent(inspect.getsource(function))
    start = re.search(r"^def ", source, re.MULTILINE).start()
    del found[function.__name__]  # to stand behind all that it refers to
    found[function.__name__] = "@triton.jit\n" + source[start:]


def registers(cubin):
    """The registers of a thread in machine code, or None if nobody can say."""
    try:
        tool = triton.knobs.nvidia.cuobjdump.path
    except RuntimeError:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        told = subprocess.run([tool, "-res-usage", file.name], text=True,
                              capture_output=True, check=False).stdout
    found = re.search(r"REG:(\d+)", told)
    return int(found[1]) if found else None


def what_was_made(compiled, what):
    """The texts of a compiled kernel, its shared bytes and its registers."""
    made = {name: compiled.asm[name] for name in ("ttir", "ttgir", "ptx")}
    if what == "sass":
        made[what] = compiled.asm[what]
    made["shared"] = compiled.metadata.shared
    made["registers"] = registers(compiled.asm["cubin"])
    return made


# What the second Python does behind those sources.
COMPILER = """
for line in sys.stdin:
    capability, what, settings = json.loads(line)
    try:
        compiled = compile_for(capability, KERNEL, **settings)
        reply = what_was_made(compiled, what)
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print("reply", json.dumps(reply), flush=True)
"""


def compiler_text(kernel):
    """The file that the second Python runs."""
    found = {}
    sources_of(kernel, found)
    parts = ["import functools, inspect, json, re, subprocess, sys, tempfile",
             "import triton", "import triton.language as tl",
             f"CAPABILITIES = {CAPABILITIES}"]
    parts += found.values()
    for function in (plain_function, ptxas_help.__wrapped__, check_capability,
                     compile_arguments, compile_for, registers, what_was_made):
        parts.append(inspect.getsource(function))
    parts.append(f"KERNEL = {plain_function(kernel).__name__}")
    return "\n\n".join(parts) + COMPILER


def check_cache():
    """Raise unless there is a place for compiled kernels."""
    folder = triton.knobs.cache.dir
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"a compiled kernel")
    except OSError as error:
        raise Unusable("Triton has no place for compiled kernels "
                       f"({error.strerror}): set TRITON_CACHE_DIR to a folder "
                       "that can be written to") from error


def compiled(kernel, capability, rows, what=None):
    """Yield what was made of a kernel at each of the settings in rows.

    what: the text that somebody will read. It is made without the numbers of
    the lines that each instruction comes from, which would be most of it.
    """
    check_cache()
    if not INTERPRET:
        with triton.knobs.compilation.scope():
            if what:
                triton.knobs.compilation.disable_line_info = True
            for settings in rows:
                yield what_was_made(
                    compile_for(capability, kernel, **settings), what)
        return
    environment = dict(os.environ)
    environment.pop("TRITON_INTERPRET", None)
    if what:
        environment["TRITON_DISABLE_LINE_INFO"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(compiler_text(kernel))
        with subprocess.Popen([sys.executable, path], text=True,
                              env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as python:
            for settings in rows:
                request = json.dumps([capability, what, settings])
                yield ask(python, request)


def ask(python, request):
    """The second Python's reply to one request."""
    print(request, file=python.stdin, flush=True)
    for line in python.stdout:
        word, _, reply = line.partition(" ")
        if word == "reply":
            made = json.loads(reply)
            if "error" in made:
                raise RuntimeError(made["error"])
            return made
    raise RuntimeError("the Python that compiles ended without a reply")


# %% [markdown]
# With that, the table, and the code itself for any kernel, an edited one
# included: `show(matmul_kernel, 90, "ttgir")`, and `compare`, which sets two
# kernels, or one kernel at two settings, side by side.


# %%
def counts(made):
    """{column: count} of what the compiler made."""
    found = {}
    for column, pattern in COUNTED.items():
        hits = re.findall(pattern, made["ptx"])
        found[column] = sum(2 if hit.endswith("x2") else 1 for hit in hits)
    found["shared"] = made["shared"]
    found["regs"] = "-" if made["registers"] is None else made["registers"]
    return found


def print_row(label, made):
    """Print a row of the table, the kind of tensor instruction at its end."""
    cells = [f"{count:>{max(len(column), 5)}}"
             for column, count in counts(made).items()]
    kinds = re.findall(COUNTED["tensor"], made["ptx"])
    print(f"{label:<25}", *cells, *kinds[:1])


def print_columns(title):
    """Print the head of the table."""
    columns = [*COUNTED, "shared", "regs"]
    print(f"\n{title:<25}", *[f"{column:>5}" for column in columns])


def wrong_multiplier(made, precision):
    """What multiplies otherwise than the precision says, in words, or None."""
    dots = re.findall(r"= tt\.dot (.*)", made["ttir"])
    if not dots:
        return "has no dot"
    for dot in dots:
        types = re.search(r"tensor<[\dx]+x(\w+)> \* tensor<[\dx]+x(\w+)>", dot)
        asked = re.search(r"inputPrecision = (\w+)", dot)
        asked = asked[1] if asked else "ieee"
        if types.groups() != ("f32", "f32") or asked != precision:
            return f"has a dot of {types[1]} and {types[2]} in {asked}"
    tensor = re.findall(COUNTED["tensor"], made["ptx"])
    if precision == "ieee" and tensor:
        return f"is compiled to {tensor[0]}"
    if precision == "tf32" and not (tensor and all("tf32" in name
                                                   for name in tensor)):
        return f"is compiled to {tensor[:1] or 'no tensor-core instruction'}"
    return None


def emitted(capability):
    """Print the table for, say, 86; whether each multiplier is in its place.

    Raises ValueError for a capability that this Triton does not compile for.
    """
    check_capability(capability)
    print_columns(f"compiled for sm_{capability}")
    rows = [{"BLOCK_COLS": 1024, "num_warps": warps} for warps in (1, 2, 4, 8)]
    for row, made in zip(rows, compiled(softmax_kernel, capability, rows),
                         strict=True):
        print_row(f"softmax 1024, {row['num_warps']} warps", made)
    labels, rows = [], []
    for config in CONFIGS:
        for precision in PRECISIONS:
            for layout in B_LAYOUTS:
                labels.append((config_name(config), precision, layout))
                rows.append({**config, "IEEE": precision == "ieee",
                             **UNIT_STRIDES[layout]})
    passed = True
    for label, made in zip(labels, compiled(matmul_kernel, capability, rows),
                           strict=True):
        print_row(" ".join(label), made)
        problem = wrong_multiplier(made, label[1])
        if problem:
            print(f"FAIL  {' '.join(label)} {problem}")
            passed = False
    if passed:
        print("pass  every dot is float32 times float32 at the precision that "
              "is asked for")
    return passed


def usual(kernel, settings):
    """Settings for a kernel: the lesson's where none is given."""
    names = list(inspect.signature(plain_function(kernel)).parameters)
    filled = {"num_warps": CONFIGS[-1]["num_warps"]}
    for name, value in {**CONFIGS[-1], "IEEE": False, "BLOCK_COLS": 1024,
                        **UNIT_STRIDES["row-major"]}.items():
        if name in names:
            filled[name] = value
    if "BLOCK_K" in names:
        filled["num_stages"] = CONFIGS[-1]["num_stages"]
    return {**filled, **settings}


def text_of(made, what):
    """A text without what says where in the source each line comes from."""
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", made[what])
    return re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)


def made_for_reading(kernel, capability, what, settings):
    """What the compiler made, at the lesson's settings where none is given."""
    texts = ("ttir", "ttgir", "ptx", "sass", None)
    if what not in texts:
        raise ValueError(f"what={what!r}: take one of {texts}")
    check_capability(capability)
    made, = compiled(kernel, capability, [usual(kernel, settings)], what)
    return made


def show(kernel, capability, what="ptx", **settings):
    """Print what a kernel is compiled to: "ttir", "ttgir", "ptx" or "sass".

    settings: constexprs, num_warps, num_stages; the lesson's where none is
    given. Raises ValueError for a capability or a text that does not exist,
    and for a constexpr that has no value.
    """
    made = made_for_reading(kernel, capability, what, settings)
    print(text_of(made, what))


def compare(mine, other, capability, what="ptx", other_settings=None,
            **settings):
    """Print both kernels' rows of the table, and what differs in their code.

    other_settings: those of the other kernel, where it has others. With
    what=None, the rows alone.
    """
    if other_settings is None:
        other_settings = settings
    made_mine = made_for_reading(mine, capability, what, settings)
    made_other = made_for_reading(other, capability, what, other_settings)
    print_columns(f"compiled for sm_{capability}")
    print_row("mine", made_mine)
    print_row("other", made_other)
    if what:
        for line in difflib.unified_diff(
                text_of(made_other, what).splitlines(),
                text_of(made_mine, what).splitlines(), "other", "mine",
                lineterm=""):
            print(line)


# %% [markdown]
# Here is one setting, changed, and what it does to the softmax on capability
# 9.0. With one warp, a reduction is all shuffles: its 32 threads exchange
# registers, and nobody has to wait. With four, each warp reduces its own
# quarter of the row and leaves one number in shared memory, and all of them
# wait at barriers: until the numbers are there, and until they have been read,
# for the maximum and for the sum. Triton 3.7.1 makes
#
#     compiled for sm_90          4 B  16 B  bulk ld.shared barriers shuffles
#     mine                          0     0     0         0        0       10
#     other                         0     0     0         4        5       14
#
# of one warp and of four.


# %%
def try_compare(capability=90):
    """Set the softmax with one warp beside the softmax with four."""
    print("mine: num_warps=1; other: num_warps=4")
    compare(softmax_kernel, softmax_kernel, capability, what=None,
            num_warps=1, other_settings={"num_warps": 4})


# %% tags=["active-ipynb"]
# # The columns that the text leaves out are here; and then every config.
# try_compare()
# emitted(90);

# %% [markdown] tags=["active-ipynb"]
# Now with an edit of yours. Change the kernel's cell in section 3 or 4, run
# it, and run the next cell, with `matmul_kernel` and `matmul_as_it_came` if it
# was the matmul. As long as nothing was changed, no line differs.

# %% tags=["active-ipynb"]
# compare(softmax_kernel, softmax_as_it_came, 90, "ttgir")

# %% [markdown]
# ## 7. How fast is it?
#
# A GPU is asked to do things and does them later, so a stopwatch around a
# launch measures how long it takes to ask. `triton.testing.do_bench` asks for
# many launches, takes the time of each between two *events* that the GPU
# records, and empties the L2 cache before each, so that none finds its data
# there. What it calls here is not our launcher: the launch is recorded
# once into a *CUDA graph*, and what is timed is its replay, so that Python's
# part has no share in it. A copy is the exception: inside a graph it becomes
# another, slower kind of copy, so the copy beside the softmax is called as
# it is.


# %%
def milliseconds(run, graph=True):
    """Median, 20 % and 80 % quantile of the milliseconds that run takes.

    graph: time the replay of a CUDA graph of run, and not run itself.
    """
    if graph:
        run()  # compiles what has to be compiled
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            run()
        run = recorded.replay
    return triton.testing.do_bench(run, warmup=100, rep=300,
                                   quantiles=[0.5, 0.2, 0.8])


def time_rows(title, runs, work, unit, direct=()):
    """Print a row for each of runs, {name: function}, as it is measured.

    work: what each of them does, in FLOP or bytes. direct: names of those
    that are timed as they are. Returns {name: median milliseconds}; what does
    not fit the card has a row that says so, and no time.
    """
    print(f"\n{title}: median (20 % .. 80 %), rate, speed over the first's")
    width = max(14, *map(len, runs))
    times = {}
    for name, run in runs.items():
        try:
            median, low, high = milliseconds(run, name not in direct)
        except triton.OutOfResources as error:
            print(f"{name:<{width}} does not fit: {error.name}, "
                  f"{error.required} required, {error.limit} available")
            continue
        times[name] = median
        first = next(iter(times.values()))
        print(f"{name:<{width}} {median:.4f} ms ({low:.4f} .. {high:.4f}) "
              f"{work / median * 1e-9:6.2f} {unit} {first / median:.2f}")
    return times


def pinned_mm(a, b, precision, out=None):
    """torch.mm at "ieee" or "tf32", whatever torch is set to."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = precision
    try:
        return torch.mm(a, b, out=out)
    finally:
        settings.fp32_precision = before


def row_names(configs):
    """A name for each config that no other one has."""
    names = []
    for config in configs:
        name = config_name(config)
        if [config_name(other) for other in configs].count(name) > 1:
            name += f" #{len(names) + 1}"
        names.append(name)
    return names


def sweep(a, b):
    """Time a @ b at SIZE cubed, for each precision, layout of B and config.

    Returns {(precision, layout): a list with each config's milliseconds, or
    None where it does not fit the card}.
    """
    out = torch.empty_like(a)
    names = row_names(CONFIGS)
    times = {}
    for precision in PRECISIONS:
        for layout in B_LAYOUTS:
            b = as_layout(b, layout)
            runs = {"torch.mm": functools.partial(pinned_mm, a, b, precision,
                                                  out)}
            for name, config in zip(names, CONFIGS, strict=True):
                runs[name] = functools.partial(
                    matmul, a, b, precision == "ieee", config, out)
            row = time_rows(f"{SIZE} cubed, {precision}, {layout} B", runs,
                            2 * SIZE**3, "TFLOP/s")
            times[precision, layout] = [row.get(name) for name in names]
    return times


def softmax_row():
    """Time the softmax of 65536 x 1024 beside a copy and torch's own."""
    generator = torch.Generator("cuda").manual_seed(86)
    x = torch.randn(65536, 1024, device="cuda", dtype=torch.float32,
                    generator=generator)
    y = torch.empty_like(x)
    time_rows("softmax, 65536 x 1024", {
        "device copy": functools.partial(y.copy_, x),
        "softmax": functools.partial(softmax, x, y),
        "torch.softmax": functools.partial(torch.softmax, x, 1, out=y),
    }, 2 * x.nbytes, "TB/s", direct=["device copy"])


# %% [markdown]
# On an H200 the softmax reaches 0.99 of the copy's speed, so there is nothing
# left to gain; torch.softmax reaches 0.95.
#
# Before anything is timed, a table of errors shows what tf32 costs, and where
# that comes from. An H200 drops the low 13 bits of what it multiplies: a
# product of matrices whose bits were dropped beforehand is the same to the
# last bit. Rounding them first, which torch.mm
# seems to do, halves the largest error of an input, and errors that go either
# way cancel in a sum, where dropping always errs towards 0.


# %%
def drop_bits(x, add):
    """x with its low 13 bits cleared, after adding to them.

    add=0 truncates to tf32's 10 bits; add=0x1000, half of the last bit that
    stays, rounds to the nearest.
    """
    return ((bits(x) + add) & ~0x1FFF).view(torch.float32)


def precision_table(a, b):
    """Print errors at SIZE cubed, and return them, {name: error}."""
    want, scale = matmul64(a.cpu().numpy(), b.cpu().numpy())
    truncated = [drop_bits(x, 0) for x in (a, b)]
    rounded = [drop_bits(x, 0x1000) for x in (a, b)]
    products = {
        "ieee": matmul(a, b, True),
        "tf32": matmul(a, b, False),
        "tf32, inputs truncated first": matmul(*truncated, False),
        "tf32, inputs rounded first": matmul(*rounded, False),
        "torch.mm ieee": pinned_mm(a, b, "ieee"),
        "torch.mm tf32": pinned_mm(a, b, "tf32"),
    }
    print(f"\nerror at {SIZE} cubed, max |c - c64| / (|a| |b|)")
    errors = {}
    for name, c in products.items():
        errors[name] = (np.abs(c.cpu().numpy() - want) / scale).max()
        print(f"{name:<30} {errors[name]:.2e}")
    same = products["tf32"].equal(products["tf32, inputs truncated first"])
    print(f"tf32 gives truncated inputs the same bits: {same}")
    return errors


# %% tags=["active-ipynb"]
# # Nothing is timed under the interpreter, whose time is Python's.
# if not INTERPRET and passed:
#     a, b = sweep_operands()
#     errors = precision_table(a, b)
#     times = sweep(a, b)
#     softmax_row()

# %% [markdown]
# **What the two strides decide.** `B_LAYOUTS` has two layouts of B. A matrix
# from `torch.randn(k, n)` is *row-major*: neighbours in a row are neighbours
# in memory, and `stride_bn` is 1. The weight of an `nn.Linear` has the shape
# (n, k), and what multiplies is its transpose, which is not copied: neighbours
# along K are neighbours in memory, `stride_bk` is 1, and B is called
# *K-major*. Same numbers, same kernel, two strides exchanged.
#
# The best of the three configs took these milliseconds at 2048 cubed, on an
# H200 with Triton 3.7.1 (in brackets, torch.mm with the same operands):
#
# | | row-major B | K-major B |
# | --- | --- | --- |
# | ieee | 0.4047 (0.3432) | 0.6702 (0.3458) |
# | tf32 | 0.2226 (0.0516) | 0.0625 (0.0509) |
#
# In tf32 the K-major B is 3.6 times as fast. In ieee it is the other way
# round: there it is 0.60 times as fast as the row-major one.
#
# The table of section 6 shows why, without a GPU; `emitted(90)` prints it in
# the notebook, and on a GPU the script does. Two rows of it:
#
#     compiled for sm_90          4 B  16 B  bulk ld.shared
#     128,128,32 tf32 row-major    96    24     0        32
#     128,128,32 tf32 K-major       0    48     0        32
#
# On capability 9.0 the tensor cores read a tf32 B from shared memory, and only
# if neighbours along K are neighbours there, too. From a K-major B the tiles
# can be copied as they are, 16 bytes at a time. A row-major B has to be turned
# on the way, and so it is copied 4 bytes at a time, a number alone: four times
# as many copies for the same tile. ieee has no such rule, and prefers the
# other layout. Why, the table does not say, since its counts differ little
# there; how many threads want the same bank of shared memory at a time would
# be the next thing to measure. torch.mm is as fast with either layout. How a
# kernel of ours gets there is the subject of experiments/library_speed.py.
#
# So in tf32, give the kernel a weight as `weight.t()`, and do not make it
# contiguous first. If you only have a row-major B, a copy into the other
# layout pays at that size even for one product (experiments/search.py).

# %% [markdown]
# ## 8. Four predictions
#
# They were written down before the kernels had run on a GPU. Some are
# *gated*: if one of those turns out false, the run says so and ends with
# status 6, although nothing is wrong with the kernels.


# %%
def say_verdict(prediction, verdict, *because):
    """Print a verdict as a sentence, and its numbers below it."""
    print(f"Prediction {prediction}: {verdict}.")
    for sentence in because:
        print(f"    {sentence}")


def held(truth):
    """The word for a prediction that came true, or did not."""
    return "HELD" if truth else "FALSIFIED"


# %% [markdown]
# *1. tf32's error is at least a hundred times ieee's.* tf32 keeps 10 bits
# behind the binary point where float32 keeps 23. Only the direction is gated:
# if tf32 is not the less accurate of the two, one of them did not use its
# multiplier.


# %%
def prediction_1(errors):
    """Judge it from {"ieee": error, "tf32": error}; whether its gate held."""
    ieee, tf32 = errors["ieee"], errors["tf32"]
    say_verdict(
        "1, tf32's error is at least 100 times ieee's",
        held(tf32 >= 100 * ieee),
        f"ieee's error is {ieee:.2e} and tf32's {tf32:.2e}, which is "
        f"{tf32 / ieee:.0f} times as large.")
    say_verdict("1, tf32's error is the larger one, gated", held(tf32 > ieee))
    return bool(tf32 > ieee)


# %% [markdown]
# *2. tf32 is at least twice as fast as ieee at 2048 cubed.* Both are the same
# kernel on the same operands, and each may take the config that suits it
# best. Gated with row-major B, the layout that the lesson began with; K-major
# B is reported beside it, and so is each config against itself, where nothing
# but the string has changed.


# %%
def fastest(row):
    """(milliseconds, config name) of the fastest in a row, or None."""
    fitting = [(ms, config_name(config))
               for ms, config in zip(row, CONFIGS, strict=True) if ms]
    return min(fitting, default=None)


def prediction_2(times):
    """Judge it from what sweep returns; whether its gate held."""
    gate = True
    for layout in B_LAYOUTS:
        gated = ", gated" if layout == "row-major" else ""
        name = f"2 with {layout} B, tf32 is at least twice as fast{gated}"
        ieee = fastest(times["ieee", layout])
        tf32 = fastest(times["tf32", layout])
        if not (ieee and tf32):
            say_verdict(name, "OPEN", "No config fits this card.")
            continue
        ratio = ieee[0] / tf32[0]
        say_verdict(
            name, held(ratio >= 2),
            f"The best ieee row took {ieee[0]:.4f} ms ({ieee[1]}) and the best "
            f"tf32 row {tf32[0]:.4f} ms ({tf32[1]}):",
            f"{ratio:.2f} times as fast.")
        if gated:
            gate = ratio >= 2
        alone = []
        for config, slow, fast in zip(CONFIGS, times["ieee", layout],
                                      times["tf32", layout], strict=True):
            if slow and fast:
                alone.append(f"{config_name(config)} {slow / fast:.2f}")
        print(f"    Each config against itself: {'; '.join(alone)}.")
    return gate


# %% [markdown]
# *3. softmax agrees with float64 wherever it runs, and under the interpreter
# the two errors of the matmul are equal.* Both halves are checks of section 5.
# A run in which one of them fails ends there, with status 3, so here the
# prediction can only be reported as held.


# %%
def prediction_3():
    """Print the verdict of the half that this machine can judge.

    Called where every check has passed, which is what it predicts.
    """
    if INTERPRET:
        say_verdict("3, in the interpreter softmax agrees with float64, and "
                    "ieee equals tf32", "HELD")
        print("Predictions 1, 2 and 4 stay open: the interpreter has no tf32, "
              "and no time.")
    else:
        say_verdict("3, softmax agrees with float64 on this GPU", "HELD")


# %% [markdown]
# *4. The best of the three shapes is not the smallest, and 128,128,32 wins.* A
# larger tile moves fewer bytes for each result. It also needs more registers,
# so fewer warps run at the same time; the prediction is that the bytes decide.
# The verdict is on the first half, for each precision and layout, and less
# than 2 % is a tie. Which of the three won is told beside it.


# %%
def prediction_4(times):
    """Judge it from what sweep returns."""
    sizes = [tile_size(config) for config in CONFIGS]
    smallest = sizes.index(min(sizes))
    for (precision, layout), row in times.items():
        name = (f"4 in {precision} with {layout} B, the smallest shape is not "
                "the best")
        larger = fastest([ms if index != smallest else None
                          for index, ms in enumerate(row)])
        small = row[smallest]
        if not (small and larger):
            say_verdict(name, "OPEN", "Too few of the configs fit this card.")
            continue
        gain = small / larger[0]
        verdict = held(gain > 1)
        if abs(gain - 1) <= 0.02:
            verdict = "A TIE"
        say_verdict(
            name, verdict,
            f"{config_name(CONFIGS[smallest])} took {small:.4f} ms, and the "
            f"best larger one, {larger[1]}, {larger[0]:.4f} ms:",
            f"a ratio of {gain:.2f}. The fastest of all was "
            f"{fastest(row)[1]}; 128,128,32 was expected.")


def predictions(errors, times):
    """Print every verdict of a GPU run; whether all gates held."""
    print()
    first = prediction_1(errors)
    second = prediction_2(times)
    prediction_3()
    prediction_4(times)
    return first and second


# %% [markdown]
# On an H200 under Triton 3.7.1, this is how it went. The first prediction held:
# tf32's error was 355 times that of ieee. The second was falsified: with
# row-major B, tf32 was 1.82 times as fast as ieee and not twice, so that run
# ended with status 6. With K-major B it was 10.73 times as fast. The third
# held. The fourth held in three of its four tables, and not in ieee with
# row-major B, where the smallest shape was the best
# (transcripts/README.md lists the runs).


# %% tags=["active-ipynb"]
# if INTERPRET and passed:
#     prediction_3()
# elif passed:
#     predictions(errors, times)

# %% [markdown]
# ## 9. Plumbing
#
# What is left is no part of the lesson: what a transcript says about the
# machine that it comes from, why a GPU is refused, and the three paths that a
# run can take.


# %%
import gc
import hashlib
import importlib.metadata
import pathlib
import time


def driver_version():
    """The NVIDIA driver's version, or "unknown"."""
    try:
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version",
             "--format=csv,noheader"], capture_output=True, text=True,
            check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.partition("\n")[0]


def card_line():
    """The card, its capability, memory and driver, in a line."""
    if INTERPRET:
        return "no GPU is used: Triton interprets the kernels on the CPU"
    try:
        card = torch.cuda.get_device_properties()
    except (RuntimeError, AssertionError):
        return "no GPU that torch can use"
    return (f"{card.name}, compute capability {card.major}.{card.minor}, "
            f"{card.total_memory >> 20} MiB, driver {driver_version()}")


def pin_line():
    """Whether this Triton is the one that torch asks for."""
    try:
        wanted = importlib.metadata.requires("torch") or ()
    except importlib.metadata.PackageNotFoundError:
        return "pin unknown: torch has no package metadata"
    pin = re.search(r"^triton ?(==[\d.]+|~=\d+\.\d+)", "\n".join(wanted), re.M)
    if not pin:
        return "beside a torch that pins none"
    if triton.__version__.startswith(pin[1][2:]):
        return "torch's own pin"
    return f"installed over torch's pin {pin[1]}"


def short_hash(text):
    """Twelve digits that change when a text does."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def source_line():
    """What tells one version of this file from another, in a line."""
    try:
        sources = [inspect.getsource(plain_function(kernel))
                   for kernel in (softmax_kernel, matmul_kernel)]
    except OSError:
        return "script unknown: it has no source"
    kernels = short_hash("".join(sources) + repr(CONFIGS))
    if "__file__" not in globals():
        return f"script in a notebook, kernels and CONFIGS {kernels}"
    text = pathlib.Path(__file__).read_text(encoding="utf-8")
    return f"script {short_hash(text)}, kernels and CONFIGS {kernels}"


def header():
    """Print what makes a transcript worth keeping."""
    print(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))
    print(source_line())
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}, "
          f"torch {torch.__version__}, CUDA {torch.version.cuda}")
    print(f"Triton {triton.__version__}, {pin_line()}")
    print(card_line())
    matters = re.compile("TRITON_(?!.*(DIR|PATH|HOME))|.*TF32|CUBLAS|"
                         "CUDA_VISIBLE|DISABLE_PTXAS")
    for name, value in os.environ.items():
        if matters.match(name):
            print(f"{name} is set to {value!r}")


def refusal():
    """Why there is no GPU here that the kernels can run on, or None."""
    if torch.version.hip:
        return f"AMD, ROCm {torch.version.hip}: its capability is a gfx number"
    if not torch.version.cuda:
        return f"no CUDA build: torch {torch.__version__} is for the CPU"
    try:
        torch.cuda.init()
        major, minor = torch.cuda.get_device_capability()
        name = torch.cuda.get_device_name()
    except RuntimeError as error:
        return f"no usable GPU: {str(error).splitlines()[0]}"
    if (major, minor) < (8, 0):
        return f"{name} has capability {major}.{minor}"
    return None


def print_refusal(reason):
    """Say why nothing is run on this machine, and what can be done."""
    print(f"""
refused: {reason}.
Triton supports NVIDIA GPUs of compute capability 8.0 and newer (its README,
github.com/triton-lang/triton#compatibility): an L4, an A100, an RTX 3090, ...
The checks run without one, on any Linux machine:
    TRITON_INTERPRET=1 python3 triton_softmax_matmul.py""")


def demonstrations():
    """What each section ends with, in their order; True when they are done."""
    print()
    try_softmax()
    print()
    try_blocked_product()
    draw_tile_order()
    print()
    try_matmul()
    return True


def run_on_gpu():
    """The checks, the table, the times and the verdicts; the exit status."""
    card = torch.cuda.get_device_properties()
    passed = all_checks()
    passed &= emitted(10 * card.major + card.minor)
    if not passed:
        print("\nA check failed, so nothing is timed.")
        return 3
    a, b = sweep_operands()
    errors = precision_table(a, b)
    times = sweep(a, b)
    softmax_row()
    if predictions(errors, times):
        print("\nEvery check passed, and every gated prediction held.")
        return 0
    print("\nEvery check passed. A gated prediction was falsified, which is a "
          "finding and not a fault.")
    return 6


def main():
    """Take one of the three paths; return the exit status."""
    header()
    if INTERPRET:
        if not interpreted_checks(demonstrations):
            print("\nA check failed.")
            return 3
        print()
        prediction_3()
        return 0
    reason = refusal()
    if reason:
        print_refusal(reason)
        return 1
    check_cache()
    if not OWN_FILE.isascii():
        # Triton writes the path into the code, and ptxas cannot read it.
        triton.knobs.compilation.disable_line_info = True
    demonstrations()
    return run_on_gpu()


def run_script():
    """Run main as a script does; a notebook's session is left as it is."""
    if not IN_NOTEBOOK:
        # What torch has loaded stays until the end, so Python need not look
        # through it for garbage, here or in the children.
        gc.freeze()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us
        if hasattr(sys.stdout, "reconfigure"):
            # Rows as they are measured; and a card's name, or a line of
            # source, may hold what an ASCII terminal cannot show.
            sys.stdout.reconfigure(line_buffering=True,
                                   errors="backslashreplace")
    leave(reported(main))


# %% [markdown]
# ## Where to go next
#
# The exercises (exercises/README.md) begin with kernels that hold a mistake
# somebody really made, and end with a search over many configs; three of the
# four need no GPU. The experiments go further: what else the precision string
# can say, and how far this kernel is from the library.

# %% tags=["active-py"]
if __name__ == "__main__":
    run_script()

# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "triton==3.7.1", "numpy>=2,<3"]
# ///
