"""The CUDA beside the lesson's Triton: written, counted, checked and timed.

    python3 experiments/in_cuda.py           on an NVIDIA GPU of 8.0 or newer
    python3 experiments/in_cuda.py --count   on any machine

Four kernels in CUDA C, below: the textbook softmax and one that holds its row
in registers; a register-tiled matmul and the same with float4 loads. They are
compiled while the program runs, by NVRTC, the compiler that torch brings.

The program counts lines and barriers, puts the kernels through the lesson's
own checks, and times them beside the lesson's kernels, torch and a copy.
--count does only the counting, which needs no GPU. The last line is exit N:
    0  every check passed
    1  refused: no GPU here that the kernels run on
    2  could not start: a wrong argument, or a torch that cannot compile CUDA
    3  wrong: a check failed, or a kernel or launcher raised
    130  interrupted
"""
import ctypes
import dataclasses
import functools
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import torch  # noqa: E402
import triton  # noqa: E402

import triton_softmax_matmul as t  # noqa: E402

# ----------------------------------------------------------- the softmax rows
# What a thread knows is in its own registers, where no other thread can look.
# So what 256 threads found out apart has to go through shared memory, a small
# memory that each block of threads has to itself. __syncthreads(), a barrier,
# is where a thread waits until all threads of its block have come that far.
# Without one nobody waits: the 256 threads are 8 warps of 32, and a warp runs
# ahead of another as far as it likes.

SOFTMAX_ROWS = """
extern "C" __global__ void
softmaxRows(const float *__restrict__ in, float *__restrict__ out,
            int row_stride, int n_cols) {
    __shared__ float partial[256];
    int tid = threadIdx.x;
    // One block, one row. 64 bits, because in 32 block * row_stride wraps in
    // a tensor that is large. __restrict__ promises that `out` is not `in`.
    in += (long long)blockIdx.x * row_stride;
    out += (long long)blockIdx.x * row_stride;
    // First walk, for the maximum: thread 0 takes columns 0, 256, 512, ...
    // A thread beyond the row's end keeps -inf, which never wins.
    float biggest = -INFINITY;
    for (int col = tid; col < n_cols; col += 256) {
        biggest = fmaxf(biggest, in[col]);
    }
    partial[tid] = biggest;
    // Barrier 1: all 256 maxima are there before anybody reads another's.
    // Without it a warp that is ahead reads what happened to be there before,
    // and columns are missed. That goes unnoticed for long, because anything
    // near the maximum will do; a row whose largest value is missed, and is
    // larger by 89 or more, ends in inf / inf, which is NaN.
    __syncthreads();
    // The first tree: 256 maxima become 128, then 64, and 1 in the end.
    for (int half = 128; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] = fmaxf(partial[tid], partial[tid + half]);
        }
        // Barrier 2: a halving reads what the one before it wrote. Without it
        // a thread takes a neighbour's maximum before that is brought up to
        // date, and columns are missed, as above. It stands outside the `if`:
        // all threads of the block have to come to a barrier.
        __syncthreads();
    }
    biggest = partial[0];
    // Barrier 3: everybody has read the maximum before its place is used
    // again. Without it thread 0 is soon back with a sum, and a warp that is
    // late takes that for the maximum.
    __syncthreads();
    // Second walk, for the sum. With the maximum left in, exp overflows.
    float sum = 0.0f;
    for (int col = tid; col < n_cols; col += 256) {
        sum += expf(in[col] - biggest);
    }
    partial[tid] = sum;
    // Barrier 4: what barrier 1 is for the maxima, this is for the sums.
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] += partial[tid + half];
        }
        // Barrier 5: as barrier 2. Without it a part of the sum is missing.
        __syncthreads();
    }
    sum = partial[0];
    // Third walk, to divide. The exponentials of the second are gone, so that
    // they are computed a second time, from a row that is read a third time.
    for (int col = tid; col < n_cols; col += 256) {
        out[col] = expf(in[col] - biggest) / sum;
    }
}
"""

# The same two trees and five barriers, but one walk: a thread keeps its values
# in registers, as the Triton program does. An array can only be in registers
# if each index is known when the kernel is compiled, for registers have no
# address. So the loops are unrolled, and how many threads there are and how
# many values each holds are compile-time numbers: the two that Triton is
# given, BLOCK_COLS / (32 * num_warps) being PER_THREAD.

SOFTMAX_IN_REGISTERS = """
extern "C" __global__ void __launch_bounds__(THREADS)
softmaxRowsInRegisters(const float *__restrict__ in, float *__restrict__ out,
                       int row_stride, int n_cols) {
    __shared__ float partial[THREADS];
    float values[PER_THREAD];
    int tid = threadIdx.x;
    in += (long long)blockIdx.x * row_stride;
    out += (long long)blockIdx.x * row_stride;
    // The only walk. What hangs over the row's end is -inf, as in the Triton
    // kernel: it never wins the maximum, and exp(-inf) adds 0 to the sum.
    float biggest = -INFINITY;
    #pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        int col = tid + i * THREADS;
        values[i] = col < n_cols ? in[col] : -INFINITY;
        biggest = fmaxf(biggest, values[i]);
    }
    partial[tid] = biggest;
    // Barriers 1 to 5 are those of softmaxRows, for the same reasons.
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] = fmaxf(partial[tid], partial[tid + half]);
        }
        __syncthreads();
    }
    biggest = partial[0];
    __syncthreads();
    // No second walk: the values are still here, and so will be their
    // exponentials, each computed once.
    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        values[i] = expf(values[i] - biggest);
        sum += values[i];
    }
    partial[tid] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            partial[tid] += partial[tid + half];
        }
        __syncthreads();
    }
    sum = partial[0];
    #pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        int col = tid + i * THREADS;
        if (col < n_cols) {
            out[col] = values[i] / sum;
        }
    }
}
"""

# ---------------------------------------------------------------- the matmuls
# A block of 256 threads makes a tile of C, 128 x 128, and a thread makes 8 x 8
# of it, its micro-tile, in 64 registers. The block goes along K in steps of
# 16: it brings the tile's part of A and of B into shared memory, and then each
# thread multiplies from there. A thread reads 8 + 8 values for 64 products, so
# that it multiplies more than it loads; that is what the micro-tile is for.

# The tile, in the lesson's names. There is this one only: the kernels are
# written for 256 threads and these three numbers.
TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 16}
# As one of the lesson's configs, for its checks.
CONFIG = TILE | {"GROUP_M": 1, "num_warps": 8, "num_stages": 1}

MATMUL_REG_TILE = """
extern "C" __global__ void __launch_bounds__(256, 2)
matmulRegTile2d(const float *__restrict__ a, const float *__restrict__ b,
                float *__restrict__ c, int m, int n, int k,
                int stride_am, int stride_ak, int stride_bk, int stride_bn,
                int stride_cm, int stride_cn) {
    // A's tile lies with K down, so that the 8 values a thread needs at once
    // are neighbours. The 4 columns that nobody uses are there for the writes
    // below: without them all 16 values of a row of A would go to one of the
    // 32 banks of shared memory, one after the other.
    __shared__ float tile_a[BLOCK_K][BLOCK_M + 4];
    __shared__ float tile_b[BLOCK_K][BLOCK_N];
    int tid = threadIdx.x;
    // Where the tile begins in C, and where the micro-tile begins in the tile.
    int top = blockIdx.y * BLOCK_M;
    int left = blockIdx.x * BLOCK_N;
    int my_row = tid / 16 * 8;
    int my_col = tid % 16 * 8;
    float acc[8][8] = {};
    for (int step = 0; step < k; step += BLOCK_K) {
        // All threads load, 8 values each of A and of B, which need not be
        // those that they multiply. Past an edge they load 0, which adds
        // nothing to a sum.
        for (int i = tid; i < tid + BLOCK_M * BLOCK_K; i += 256) {
            int row = i / BLOCK_K;
            int at = i % BLOCK_K;
            bool inside = top + row < m && step + at < k;
            tile_a[at][row] = inside ? a[(top + row) * stride_am
                                         + (step + at) * stride_ak] : 0.0f;
        }
        for (int i = tid; i < tid + BLOCK_K * BLOCK_N; i += 256) {
            int at = i / BLOCK_N;
            int col = i % BLOCK_N;
            bool inside = step + at < k && left + col < n;
            tile_b[at][col] = inside ? b[(step + at) * stride_bk
                                         + (left + col) * stride_bn] : 0.0f;
        }
        // Barrier 1: both tiles are complete. Without it a warp multiplies
        // what the step before left there.
        __syncthreads();
        #pragma unroll
        for (int at = 0; at < BLOCK_K; at++) {
            float down[8];
            float across[8];
            for (int i = 0; i < 8; i++) {
                down[i] = tile_a[at][my_row + i];
                across[i] = tile_b[at][my_col + i];
            }
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 8; j++) {
                    acc[i][j] += down[i] * across[j];
                }
            }
        }
        // Barrier 2: everybody is done with the tiles. Without it a warp that
        // is ahead loads the next step over what a late one still multiplies.
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            int row = top + my_row + i;
            int col = left + my_col + j;
            if (row < m && col < n) {
                c[row * stride_cm + col * stride_cn] = acc[i][j];
            }
        }
    }
}
"""

# A float4 is four floats that one instruction moves, from an address that 16
# divides. That is a quarter of the load instructions, and a list of demands:
# the four have to be neighbours in memory, so A, B and C have to be row-major,
# and k and n, the rows' distances and the addresses have to be multiples of 4
# floats. In return an edge never cuts through a float4: either all four values
# are inside, or none is.

MATMUL_VEC4 = """
extern "C" __global__ void __launch_bounds__(256, 2)
matmulRegTile2dVec4(const float *__restrict__ a, const float *__restrict__ b,
                    float *__restrict__ c, int m, int n, int k,
                    int stride_am, int stride_bk, int stride_cm) {
    __shared__ float tile_a[BLOCK_K][BLOCK_M + 4];
    // A float4 is stored to shared memory, too, which has to begin at a
    // multiple of 16 bytes for that.
    __shared__ __align__(16) float tile_b[BLOCK_K][BLOCK_N];
    int tid = threadIdx.x;
    int top = blockIdx.y * BLOCK_M;
    int left = blockIdx.x * BLOCK_N;
    // The micro-tile is four quarters of 4 x 4, each in a quarter of the tile.
    // So the 16 threads of a row read 16 float4 that are neighbours, and no
    // two of them want the same bank at once.
    int my_row = tid / 16 * 4;
    int my_col = tid % 16 * 4;
    float acc[8][8] = {};
    for (int step = 0; step < k; step += BLOCK_K) {
        for (int i = tid; i < tid + BLOCK_M * BLOCK_K / 4; i += 256) {
            int row = i * 4 / BLOCK_K;
            int at = i * 4 % BLOCK_K;
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (top + row < m && step + at < k) {
                four = *(const float4 *)&a[(top + row) * stride_am
                                           + step + at];
            }
            // Four neighbours along K lie in four rows of the tile.
            tile_a[at][row] = four.x;
            tile_a[at + 1][row] = four.y;
            tile_a[at + 2][row] = four.z;
            tile_a[at + 3][row] = four.w;
        }
        for (int i = tid; i < tid + BLOCK_K * BLOCK_N / 4; i += 256) {
            int at = i * 4 / BLOCK_N;
            int col = i * 4 % BLOCK_N;
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (step + at < k && left + col < n) {
                four = *(const float4 *)&b[(step + at) * stride_bk
                                           + left + col];
            }
            *(float4 *)&tile_b[at][col] = four;
        }
        // Barriers 1 and 2 are those of matmulRegTile2d.
        __syncthreads();
        #pragma unroll
        for (int at = 0; at < BLOCK_K; at++) {
            float down[8];
            float across[8];
            for (int i = 0; i < 8; i++) {
                down[i] = tile_a[at][my_row + i / 4 * 64 + i % 4];
                across[i] = tile_b[at][my_col + i / 4 * 64 + i % 4];
            }
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 8; j++) {
                    acc[i][j] += down[i] * across[j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j += 4) {
            int row = top + my_row + i / 4 * 64 + i % 4;
            int col = left + my_col + j / 4 * 64;
            if (row < m && col < n) {
                *(float4 *)&c[row * stride_cm + col] = make_float4(
                    acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
            }
        }
    }
}
"""

KERNELS = {"softmaxRows": SOFTMAX_ROWS,
           "softmaxRowsInRegisters": SOFTMAX_IN_REGISTERS,
           "matmulRegTile2d": MATMUL_REG_TILE,
           "matmulRegTile2dVec4": MATMUL_VEC4}


# ------------------------------------------------------------------ compiling
def source(name, **numbers):
    """What the compiler gets: the kernel's numbers, then its text."""
    # INFINITY is from math.h, and NVRTC brings no headers.
    lines = ["#define INFINITY __int_as_float(0x7f800000)"]
    for number, value in numbers.items():
        lines.append(f"#define {number} {value}")
    lines.append(KERNELS[name])
    return "\n".join(lines)


@functools.cache
def compiled_for_device(device, name, numbers):
    """A kernel that can be launched on this device, compiled once."""
    return torch.cuda._compile_kernel(source(name, **dict(numbers)), name)


def compiled(name, **numbers):
    """The kernel for the current device: kernel(grid=, block=, args=)."""
    device = torch.cuda.current_device()
    return compiled_for_device(device, name, tuple(numbers.items()))


def cannot_compile():
    """Why the torch that is here cannot compile CUDA, or None."""
    if not hasattr(torch.cuda, "_compile_kernel"):
        return (f"torch {torch.__version__} has no torch.cuda._compile_kernel;"
                " torch 2.11 and 2.13 have it")
    try:
        compiled("softmaxRows")
    except OSError as error:
        return (f"torch could not start the CUDA compiler: {error} If it is "
                "CUDA_HOME that is missing, any folder will do, since these "
                "kernels include no header")
    return None


# ------------------------------------------------------------------ launchers
# They take the places of the lesson's launchers in its checks. compile_kernel
# is for whoever can run the text without a GPU, as the tests do.

def launch_rows(x, out, name, threads, compile_kernel, **numbers):
    """Launch a softmax kernel, one block a row; like the lesson's launcher,
    copy first whatever is not laid out in rows of the same distance."""
    t.check_operand("x", x)
    t.check_result(out, x.shape, [x])
    rows, cols = x.shape
    # The last step of a walk goes up to 256 past the row, and has to be an int.
    if not 1 <= cols <= 2**31 - 257 or rows >= 2**31:
        raise ValueError(f"x is {tuple(x.shape)}: a row needs a column, and "
                         "rows and columns are counted in 32 bits")
    source_rows, target_rows = x, out
    if x.stride() != out.stride() or x.stride(1) != 1:
        source_rows = x.contiguous()
        if not out.is_contiguous():
            target_rows = torch.empty_like(source_rows)
    row_stride = source_rows.stride(0)
    if row_stride >= 2**31:
        raise ValueError(f"x has rows that are {row_stride} values apart")
    if rows:
        with torch.cuda.device_of(x):
            kernel = (compile_kernel or compiled)(name, **numbers)
            kernel(grid=(rows, 1, 1), block=(threads, 1, 1),
                   args=[source_rows, target_rows, row_stride, cols])
    if target_rows is not out:
        out.copy_(target_rows)
    return out


def softmax_rows(x, out, compile_kernel=None):
    """The softmax of each row of x, in out, by softmaxRows."""
    return launch_rows(x, out, "softmaxRows", 256, compile_kernel)


# 1024 threads have 64 registers each, of the 65536 there are. Half may hold
# the row; the other half is for everything else.
WIDEST_IN_REGISTERS = 32768


def row_block(cols):
    """How many threads take a row of so many columns, and how many values
    each of them holds."""
    threads = 256 if cols <= 8192 else 1024
    return threads, triton.next_power_of_2(triton.cdiv(cols, threads))


def softmax_in_registers(x, out, compile_kernel=None):
    """The same by softmaxRowsInRegisters, up to 32768 columns."""
    t.check_operand("x", x)
    cols = x.shape[1]
    if not 1 <= cols <= WIDEST_IN_REGISTERS:
        raise ValueError(f"{cols} columns: the registers of a block hold a row"
                         f" of 1 to {WIDEST_IN_REGISTERS}")
    threads, per_thread = row_block(cols)
    return launch_rows(x, out, "softmaxRowsInRegisters", threads,
                       compile_kernel, THREADS=threads, PER_THREAD=per_thread)


def check_operands(a, b, ieee, out):
    """Raise unless both matmul kernels could take these operands."""
    if not ieee:
        raise ValueError("tf32 is for tensor cores; these kernels use none")
    t.check_operand("a", a)
    t.check_operand("b", b, a)
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        raise ValueError(f"k differs: a {tuple(a.shape)}, b {tuple(b.shape)}")
    t.check_result(out, (m, n), [a, b])
    for name, x in [("a", a), ("b", b), ("out", out)]:
        last = (x.shape[0] - 1) * x.stride(0) + (x.shape[1] - 1) * x.stride(1)
        if last >= 2**31 - 128:  # a tile hangs over by less than 128
            raise ValueError(f"{name} {tuple(x.shape)} spans 2^31 values")
    if m > 65535 * TILE["BLOCK_M"]:
        raise ValueError(f"a has {m} rows: a grid has 65535 rows of tiles")


def launch_tiles(a, b, out, name, strides, compile_kernel):
    """Launch a matmul kernel, one block a tile of out."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(n, TILE["BLOCK_N"]), triton.cdiv(m, TILE["BLOCK_M"]), 1)
    if out.numel():
        with torch.cuda.device_of(a):
            kernel = (compile_kernel or compiled)(name, **TILE)
            kernel(grid=grid, block=(256, 1, 1),
                   args=[a, b, out, m, n, k, *strides])
    return out


def matmul_reg_tile(a, b, ieee, config, out, compile_kernel=None):
    """a times b, in out, by matmulRegTile2d; any strides, config ignored."""
    check_operands(a, b, ieee, out)
    strides = [*a.stride(), *b.stride(), *out.stride()]
    return launch_tiles(a, b, out, "matmulRegTile2d", strides, compile_kernel)


def matmul_vec4(a, b, ieee, config, out, compile_kernel=None):
    """The same by matmulRegTile2dVec4, if float4 can take the operands."""
    check_operands(a, b, ieee, out)
    for name, x in [("a", a), ("b", b), ("out", out)]:
        if x.stride(1) != 1:
            raise ValueError(f"{name} is not row-major: strides {x.stride()}")
        if x.shape[1] % 4:
            raise ValueError(f"{name} has {x.shape[1]} columns: float4 takes "
                             "four at a time")
        if x.numel() and (x.stride(0) % 4 or x.data_ptr() % 16):
            raise ValueError(f"{name} has rows that do not all begin at a "
                             "multiple of 16 bytes")
    strides = [a.stride(0), b.stride(0), out.stride(0)]
    return launch_tiles(a, b, out, "matmulRegTile2dVec4", strides,
                        compile_kernel)


LAUNCHERS = {"softmaxRows": softmax_rows,
             "softmaxRowsInRegisters": softmax_in_registers,
             "matmulRegTile2d": matmul_reg_tile,
             "matmulRegTile2dVec4": matmul_vec4}


# --------------------------------------------------------------------- checks
def in_registers_cases():
    """The lesson's softmax cases; rows too wide have to be refused."""
    cases = []
    for case in t.softmax_cases():
        too_wide = case.sizes[1] > WIDEST_IN_REGISTERS
        cases.append(dataclasses.replace(case, refused=too_wide))
    return cases


def vec4_cases():
    """The lesson's matmul cases: what float4 cannot take has to be refused,
    and is tried again row-major, with n and k rounded up to multiples of 4."""
    cases = []
    for case in t.matmul_cases([CONFIG]):
        m, n, k = case.sizes
        row_major = ("row-major", "row-major", "row-major")
        fits = case.layouts == row_major and n % 4 == 0 and k % 4 == 0
        cases.append(dataclasses.replace(case, refused=not fits))
        if not fits:
            sizes = (m, n + -n % 4, k + -k % 4)
            cases.append(dataclasses.replace(case, sizes=sizes,
                                             layouts=row_major))
    return cases


def cases_for(name):
    """The lesson's cases as a kernel can take them or has to refuse them."""
    if name == "softmaxRows":
        return t.softmax_cases()
    if name == "softmaxRowsInRegisters":
        return in_registers_cases()
    if name == "matmulRegTile2d":
        return t.matmul_cases([CONFIG])
    return vec4_cases()


def passes(name, device, compile_kernel=None, largest=None):
    """Whether a kernel passes the lesson's checks, which are printed.

    largest: leave out cases that are longer on one side, for who is in a hurry
    or, as compute-sanitizer, slow.
    """
    launch = functools.partial(LAUNCHERS[name], compile_kernel=compile_kernel)
    cases = cases_for(name)
    if largest is not None:
        cases = [case for case in cases if max(case.sizes) <= largest]
    print(f"\n{name}, through the lesson's checks")
    if name.startswith("softmax"):
        return t.softmax_checks(device, launch, cases)
    return t.matmul_checks(device, launch, cases, [CONFIG],
                           precisions=("ieee",))


def all_pass(device, compile_kernel=None, largest=None):
    """Whether all four kernels pass; none is left out after a failure."""
    passed = True
    for name in KERNELS:
        passed &= passes(name, device, compile_kernel, largest)
    return passed


# ------------------------------------------------------- counted, not guessed
def count_lines(text):
    """How many lines each kernel has that are neither blank nor a comment.

    A kernel goes from @triton.jit, or from extern "C", to a blank line or to
    the quotes that end the text. `#pragma` is no comment.
    """
    counts = {}
    lines = None  # of the kernel that this line is in, if it is in one
    for line in text.splitlines():
        if line.startswith(("@triton.jit", 'extern "C"')):
            lines = 0
            name = None
        if lines is None:
            continue
        if line == "" or line.startswith('"""'):
            counts[name] = lines
            lines = None
            continue
        signature = re.match(r"(?:def )?(\w+)\(", line)
        if signature and name is None:
            name = signature[1]
        if not re.match(r"\s*(#( |$)|//)", line):
            lines += 1
    return counts


def count_barriers_written(name):
    """How often a CUDA kernel's text says __syncthreads()."""
    without_comments = re.sub("//.*", "", KERNELS[name])
    return without_comments.count("__syncthreads()")


def nvrtc_library():
    """NVRTC, loaded from its package, which needs no GPU; or None."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.*")):
            # NVRTC asks for this one by name, and only finds it if it is here.
            for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
    return None


def nvrtc_text(nvrtc, program, size_of, get):
    """A text that NVRTC holds: the PTX, or the log of errors."""
    size = ctypes.c_size_t()
    getattr(nvrtc, size_of)(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, get)(program, text)
    return text.value.decode()


def ptx(nvrtc, name, capability, **numbers):
    """The kernel compiled for, say, 90, as PTX; needs no GPU."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source(name, **numbers).encode(),
        f"{name}.cu".encode(), 0, None, None)
    option = f"--gpu-architecture=compute_{capability}".encode()
    options = (ctypes.c_char_p * 1)(option)
    if nvrtc.nvrtcCompileProgram(program, 1, options):
        raise RuntimeError(nvrtc_text(nvrtc, program, "nvrtcGetProgramLogSize",
                                      "nvrtcGetProgramLog"))
    return nvrtc_text(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX")


def shared_bytes(text):
    """How much shared memory PTX sets aside."""
    sizes = re.findall(r"\.shared .*\[(\d+)\];", text)
    return sum(int(size) for size in sizes)


def count_row(name, language, lines, written, text=None, shared="-"):
    """Print a line of the table; text is the PTX, if it could be had."""
    barriers = "-"
    if text is not None:
        barriers = len(re.findall(t.COUNTED["barriers"], text))
    print(f"{name:<24}{language:<8}{lines:>6}{written:>9}{barriers:>9}"
          f"{shared:>8}")


def numbers_at_1024(name):
    """The compile-time numbers of a kernel; of a row, for 1024 columns."""
    if name.startswith("matmul"):
        return TILE
    if name == "softmaxRowsInRegisters":
        threads, per_thread = row_block(1024)
        return {"THREADS": threads, "PER_THREAD": per_thread}
    return {}


def print_triton_counts(capability):
    """Count the lesson's kernels as its launchers compile them: for 1024
    columns, and in ieee with the last of the configs."""
    lesson = pathlib.Path(t.__file__).read_text(encoding="utf-8")
    lines = count_lines(lesson)
    settings = {
        t.softmax_kernel: {"BLOCK_COLS": 1024, "num_warps": 2},
        t.matmul_kernel: t.CONFIGS[-1] | {
            "IEEE": True, "stride_ak": 1, "stride_bn": 1, "stride_cn": 1}}
    for kernel, constants in settings.items():
        name = kernel.__name__
        if t.INTERPRET:
            count_row(name, "Triton", lines[name], 0)
        else:
            made = t.compile_for(capability, kernel, **constants)
            count_row(name, "Triton", lines[name], 0, made.asm["ptx"],
                      made.metadata.shared)
    if t.INTERPRET:
        print("Triton's are not compiled: TRITON_INTERPRET is set")


def print_cuda_counts(capability):
    """Count the kernels of this file, in a row of 1024 columns."""
    lines = count_lines(pathlib.Path(__file__).read_text(encoding="utf-8"))
    nvrtc = nvrtc_library()
    for name in KERNELS:
        written = count_barriers_written(name)
        if nvrtc is None:
            count_row(name, "CUDA", lines[name], written)
        else:
            text = ptx(nvrtc, name, capability, **numbers_at_1024(name))
            count_row(name, "CUDA", lines[name], written, text,
                      shared_bytes(text))
    if nvrtc is None:
        print("CUDA's are not compiled: no NVRTC is installed; the package "
              "nvidia-cuda-nvrtc-cu12 is one")


def print_counts(capability):
    """Print lines and barriers of the lesson's kernels and of these."""
    print(f"\nlines of each kernel, barriers as written and as compiled for "
          f"sm_{capability},\nand bytes of shared memory")
    print(f"{'':<24}{'':<8}{'lines':>6}{'written':>9}{'compiled':>9}"
          f"{'shared':>8}")
    print_triton_counts(capability)
    print_cuda_counts(capability)


# --------------------------------------------------------------------- timing
def time_softmaxes(cols, generator):
    """Time every softmax on 2^26 values in rows of so many columns."""
    rows = 2**26 // cols
    x = torch.randn(rows, cols, device="cuda", generator=generator)
    out = torch.empty_like(x)

    def torch_softmax():
        torch.softmax(x, 1, out=out)

    times = t.time_rows(f"softmax, {rows} x {cols}", {
        "device copy": functools.partial(out.copy_, x),
        "Triton": functools.partial(t.softmax, x, out),
        "softmaxRows": functools.partial(softmax_rows, x, out),
        "softmaxRowsInRegisters": functools.partial(
            softmax_in_registers, x, out),
        "torch.softmax": torch_softmax},
        2 * x.nbytes, "TB/s", direct=("device copy",))
    share = times["device copy"] / times["softmaxRows"]
    print(f"softmaxRows asks for its row three times and writes it once, which"
          f" is twice\nwhat a copy moves, at {2 * share:.2f} of the copy's "
          "rate.")


def time_matmuls(layout, generator):
    """Time every ieee matmul at the lesson's size, B in one layout."""
    size = t.SIZE
    a = torch.randn(size, size, device="cuda", generator=generator)
    b = torch.randn(size, size, device="cuda", generator=generator)
    if layout == "K-major":
        b = b.t().contiguous().t()
    out = torch.empty_like(a)
    runs = {"torch.mm": functools.partial(t.pinned_mm, a, b, "ieee", out)}
    for config in t.CONFIGS:
        runs[f"Triton {t.config_name(config)}"] = functools.partial(
            t.matmul, a, b, True, config, out)
    runs["matmulRegTile2d"] = functools.partial(
        matmul_reg_tile, a, b, True, CONFIG, out)
    if layout == "row-major":
        runs["matmulRegTile2dVec4"] = functools.partial(
            matmul_vec4, a, b, True, CONFIG, out)
    t.time_rows(f"matmul, {size} cubed, ieee, {layout} B", runs, 2 * size**3,
                "TFLOP/s")
    if layout != "row-major":
        print("matmulRegTile2dVec4 refuses this layout, in which four values "
              "of a row of B are\nnot neighbours.")


# ----------------------------------------------------------------------- main
def measure():
    """Count, check and time on the GPU; return the exit status."""
    major, minor = torch.cuda.get_device_capability()
    print_counts(10 * major + minor)
    if not all_pass("cuda"):
        print("\na check failed, so nothing is timed")
        return 3
    generator = torch.Generator("cuda").manual_seed(86)
    for cols in (1024, 4096, 32768):
        time_softmaxes(cols, generator)
    for layout in t.B_LAYOUTS:
        time_matmuls(layout, generator)
    return 0


def main():
    """Do what the arguments ask for; return the exit status."""
    arguments = sys.argv[1:]
    if arguments == ["--help"]:
        print(__doc__.strip())
        return 0
    if arguments not in ([], ["--count"]):
        print(f"usage: --help and --count are the arguments, not {arguments}")
        return 2
    t.header()
    if arguments == ["--count"]:
        print_counts(90)
        return 0
    if t.INTERPRET:
        print("\nrefused: TRITON_INTERPRET is set, and this is about compiled "
              "kernels and their times")
        return 1
    reason = t.refusal()
    if reason:
        print(f"\nrefused: {reason}\nLines and barriers need no GPU: "
              "python3 experiments/in_cuda.py --count")
        return 1
    reason = cannot_compile()
    if reason:
        print(f"\ncannot start: {reason}")
        return 2
    return measure()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # rows as they are measured
    t.leave(t.reported(main))
