"""experiments/in_cuda.py: its CUDA kernels, judged without a GPU.

The text that a GPU's compiler gets is also C++ once a few words are defined,
so that g++ can compile it and a CPU run it: each thread of a block is a fiber,
which runs until its next __syncthreads(). Values, masks and edges are checked
that way, and what happens without a barrier; speed and the GPU's memory are
not. A second group of tests reads what NVRTC makes of the text.
"""
import ctypes
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import torch
from conftest import DEVICE, ROOT, ended, in_turn, run_script

sys.path.insert(0, str(ROOT / "experiments"))
import in_cuda  # noqa: E402
import triton_softmax_matmul as t  # noqa: E402

PROGRAM = ROOT / "experiments" / "in_cuda.py"
FOLDER = tempfile.TemporaryDirectory()
BARRIERS = {"softmaxRows": 5, "softmaxRowsInRegisters": 5,
            "matmulRegTile2d": 2, "matmulRegTile2dVec4": 2}

# ------------------------------------------------------------- on a CPU, in C++
# One fiber after the other runs up to its next barrier, and when all have come
# there, each goes on. Who comes first is for the caller to say: where a barrier
# is missing, one order or the other shows it.
EMULATED = r"""
#include <functional>
#include <math.h>
#include <string.h>
#include <ucontext.h>
#undef INFINITY
#define __global__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// All shared memory in one place, so that it can be found and filled.
#define __shared__ static __attribute__((section("shared_memory")))
extern char __start_shared_memory[] __attribute__((visibility("hidden")));
extern char __stop_shared_memory[] __attribute__((visibility("hidden")));
struct uint3 { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint3 threadIdx, blockIdx;
static ucontext_t scheduler, fibers[1024];
static bool running[1024];
static char stacks[1024][65536];
static void __syncthreads() {
    swapcontext(&fibers[threadIdx.x], &scheduler);
}
static std::function<void()> kernel;
static void thread_body() {
    kernel();
    running[threadIdx.x] = false;
}
static void run_block(int threads, bool last_first) {
    // A block finds anything in shared memory: here NaN, as 0 might help it.
    memset(__start_shared_memory, 0xff,
           __stop_shared_memory - __start_shared_memory);
    for (int i = 0; i < threads; i++) {
        running[i] = true;
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], thread_body, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < threads; i++) {
            threadIdx.x = last_first ? threads - 1 - i : i;
            if (running[threadIdx.x]) {
                swapcontext(&scheduler, &fibers[threadIdx.x]);
                any = true;
            }
        }
    }
}
"""


def in_cpp(name, text):
    """The kernel's text as C++, with a function that runs a grid of it."""
    parameters = re.search(name + r"\((.*?)\) \{", text, re.S)[1]
    arguments = ", ".join(re.findall(r"\w+(?=,|$)", parameters))
    return f"""{EMULATED}{text}
extern "C" void emulate(int columns, int rows, int threads, bool last_first,
                        {parameters}) {{
    kernel = [=] {{ {name}({arguments}); }};
    for (int block = 0; block < columns * rows; block++) {{
        blockIdx.x = block % columns;
        blockIdx.y = block / columns;
        run_block(threads, last_first);
    }}
}}
"""


@functools.cache
def build(text):
    """Compile C++ to a library; the function `emulate` of it."""
    folder = pathlib.Path(FOLDER.name)
    path = folder / f"{len(list(folder.iterdir()))}.cpp"
    path.write_text(text)
    library = path.with_suffix(".so")
    subprocess.run(["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC",
                    "-fno-strict-aliasing", "-o", library, path], check=True)
    return ctypes.CDLL(str(library)).emulate


def replaced(old, new, nth=1):
    """A change to a text: its nth `old`, counted from 1, becomes `new`."""
    def change(text):
        start = -1
        for _ in range(nth):
            start = text.index(old, start + 1)
        return text[:start] + new + text[start + len(old):]
    return change


def emulator(last_first=False, change=None):
    """Takes the place of in_cuda.compiled; change is made to each text."""
    def compile_kernel(name, **numbers):
        text = in_cuda.source(name, **numbers)
        if change is not None:
            text = change(text)
        emulate = build(in_cpp(name, text))

        def kernel(grid, block, args):
            passed = []
            for argument in args:
                if isinstance(argument, torch.Tensor):
                    argument = ctypes.c_void_p(argument.data_ptr())
                passed.append(argument)
            emulate(grid[0], grid[1], block[0], last_first, *passed)
        return kernel
    return compile_kernel


needs_cpp = pytest.mark.skipif(
    not shutil.which("g++"), reason="there is no g++ to emulate the CUDA with")


@needs_cpp
@pytest.mark.interpreter
@pytest.mark.parametrize("last_first", [
    False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_kernels_are_right_on_a_cpu(last_first):
    assert in_cuda.all_pass("cpu", emulator(last_first))


# Changes to a kernel's text that have to be noticed: what becomes what, and
# which of its occurrences.
FAULTS = [
    ("softmaxRows", "col < n_cols", "col <= n_cols", 1),
    ("softmaxRows", "col < n_cols", "col <= n_cols", 2),
    ("softmaxRows", "col < n_cols", "col <= n_cols", 3),
    ("softmaxRows", "(long long)", "", 1),
    ("softmaxRows", "(long long)", "", 2),
    ("softmaxRows", "= -INFINITY", "= 0.0f", 1),
    ("softmaxRowsInRegisters", "col < n_cols", "col <= n_cols", 1),
    ("softmaxRowsInRegisters", "col < n_cols", "col <= n_cols", 2),
    ("softmaxRowsInRegisters", "(long long)", "", 1),
    ("softmaxRowsInRegisters", "(long long)", "", 2),
    ("softmaxRowsInRegisters", ": -INFINITY", ": 0.0f", 1),
    ("matmulRegTile2d", "row < m", "row <= m", 1),
    ("matmulRegTile2d", "row < m", "row <= m", 2),
    ("matmulRegTile2d", "col < n", "col <= n", 1),
    ("matmulRegTile2d", "col < n", "col <= n", 2),
    ("matmulRegTile2d", "step + at < k", "step + at <= k", 1),
    ("matmulRegTile2d", "step + at < k", "step + at <= k", 2),
    ("matmulRegTile2d", "* stride_ak", "", 1),
    ("matmulRegTile2d", "* stride_bn", "", 1),
    ("matmulRegTile2d", "* stride_cn", "", 1),
    ("matmulRegTile2dVec4", "row < m", "row <= m", 1),
    ("matmulRegTile2dVec4", "row < m", "row <= m", 2),
    ("matmulRegTile2dVec4", "col < n", "col <= n", 1),
    ("matmulRegTile2dVec4", "col < n", "col <= n", 2),
    ("matmulRegTile2dVec4", "step + at < k", "step + at <= k", 1),
    ("matmulRegTile2dVec4", "step + at < k", "step + at <= k", 2),
]


# Scale and middle of rows that show a wrong sum; a maximum that is too small by
# more than exp can take; and one that is too large.
ORDINARY, WIDE, FAR_BELOW = (1, 0), (1e4, 0), (1, -3000)


def softmax_is_right(launch, compile_kernel,
                     rows=(ORDINARY, WIDE, FAR_BELOW)):
    """Whether eight rows of each kind come out right."""
    generator = torch.Generator().manual_seed(86)
    right = True
    for scale, middle in rows:
        x = middle + scale * torch.randn(8, 1000, generator=generator)
        out = launch(x, torch.full_like(x, torch.nan), compile_kernel)
        want = t.softmax64(x.numpy())
        error = abs(out.numpy() - want).max(axis=1) / want.max(axis=1)
        limit, _ = t.softmax_tolerance(1000)
        right &= bool((error <= limit).all())
    return right


def matmul_is_right(launch, compile_kernel):
    """Over several steps of K and two tiles."""
    generator = torch.Generator().manual_seed(86)
    a = torch.randn(132, 40, generator=generator)
    b = torch.randn(40, 20, generator=generator)
    out = torch.full((132, 20), torch.nan)
    launch(a, b, True, in_cuda.CONFIG, out, compile_kernel)
    want, scale = t.matmul64(a.numpy(), b.numpy())
    limit, _ = t.matmul_tolerance(40, "ieee")
    return bool((abs(out.numpy() - want) / scale <= limit).all())


def is_right(name, change=None):
    """Whether a kernel is right whichever thread comes first."""
    judge = softmax_is_right if "softmax" in name else matmul_is_right
    both = [judge(in_cuda.LAUNCHERS[name], emulator(last_first, change))
            for last_first in (False, True)]
    return all(both)


@needs_cpp
@pytest.mark.interpreter
@pytest.mark.parametrize("name", in_turn(BARRIERS, 0, 2))
def test_no_barrier_can_go(name):
    assert is_right(name)
    for nth in range(1, BARRIERS[name] + 1):
        assert not is_right(name, replaced("__syncthreads();", "", nth)), nth


@needs_cpp
@pytest.mark.interpreter
def test_a_missing_barrier_can_be_quiet():
    """Without the first one columns are missed, and ordinary rows are right
    all the same: softmax does not mind what is subtracted, within reason."""
    first_gone = emulator(change=replaced("__syncthreads();", "", 1))
    assert softmax_is_right(in_cuda.softmax_rows, first_gone, [ORDINARY])
    assert not softmax_is_right(in_cuda.softmax_rows, first_gone, [WIDE])


def rows_past_32_bits(launch):
    """Whether a fifth row is right that begins 2^32 values from the first."""
    values = torch.zeros(5, 3)
    values[4, 0] = 5  # or it would be the first row's equal
    x = t.far_apart(values, 2**30)
    out = launch(x, t.far_apart(torch.zeros(5, 3), 2**30))
    return bool(abs(out.numpy() - t.softmax64(x.numpy())).max() < 1e-6)


def stays_in_its_memory(name, change=None):
    """Whether a kernel is right on matrices that end where memory ends."""
    launch = functools.partial(in_cuda.LAUNCHERS[name],
                               compile_kernel=emulator(change=change))
    fenced_result = functools.partial(t.fenced, writable=True)
    if "softmax" in name:
        steps = [("rows", functools.partial(
                     t.right_rows, launch, t.fenced, fenced_result, 3, 333)),
                 ("far", functools.partial(rows_past_32_bits, launch))]
    else:
        steps = [("tile", functools.partial(
            t.right_tile, launch, t.fenced, fenced_result, in_cuda.CONFIG,
            "ieee", (in_cuda.CONFIG["BLOCK_M"] + 20, 24, 40), False))]
    return t.side_by_side(functools.partial(t.take_steps, steps))


@needs_cpp
@pytest.mark.interpreter
@pytest.mark.parametrize("name", in_cuda.LAUNCHERS)
def test_memory_that_ends(name):
    assert stays_in_its_memory(name)


@needs_cpp
@pytest.mark.interpreter
@pytest.mark.parametrize("name, old, new, nth", in_turn(FAULTS, 0, 9))
def test_a_fault_is_seen(name, old, new, nth):
    """A mask one off, a stride left out, 32 bits for 64, a padding of 0."""
    change = replaced(old, new, nth)

    def passes():
        return in_cuda.passes(name, "cpu", emulator(change=change), 400) and (
            is_right(name, change))

    # In a child, which a store that went astray may end.
    assert not (t.side_by_side(passes) and stays_in_its_memory(name, change))


# ----------------------------------------------------------- what they refuse
def matrix(rows, cols):
    return torch.zeros(rows, cols, device=DEVICE)


def shifted(rows, cols):
    """A matrix whose first element is at no multiple of 16 bytes."""
    return torch.zeros(rows * cols + 1, device=DEVICE)[1:].view(rows, cols)


def rows_apart(rows, cols, stride):
    """A matrix whose rows begin `stride` elements apart."""
    return torch.zeros(rows, stride, device=DEVICE)[:, :cols]


VEC4_REFUSES = {
    "columns of a": (matrix(8, 6), matrix(6, 8), matrix(8, 8)),
    "columns of b": (matrix(8, 8), matrix(8, 6), matrix(8, 6)),
    "a is not row-major": (matrix(8, 8).t(), matrix(8, 8), matrix(8, 8)),
    "b is not row-major": (matrix(8, 8), matrix(8, 8).t(), matrix(8, 8)),
    "out is not row-major": (matrix(8, 8), matrix(8, 8), matrix(8, 8).t()),
    "a begins between": (shifted(8, 8), matrix(8, 8), matrix(8, 8)),
    "b begins between": (matrix(8, 8), shifted(8, 8), matrix(8, 8)),
    "out begins between": (matrix(8, 8), matrix(8, 8), shifted(8, 8)),
    "rows of a": (rows_apart(8, 8, 10), matrix(8, 8), matrix(8, 8)),
    "rows of b": (matrix(8, 8), rows_apart(8, 8, 10), matrix(8, 8)),
    "rows of out": (matrix(8, 8), matrix(8, 8), rows_apart(8, 8, 10)),
}


def never(name, **numbers):
    raise AssertionError(f"{name} was launched")


@pytest.mark.parametrize("operands", VEC4_REFUSES.values(), ids=VEC4_REFUSES)
def test_what_float4_cannot_take_is_refused(operands):
    a, b, out = operands
    with pytest.raises(ValueError, match="row-major|float4|multiple of 16"):
        in_cuda.matmul_vec4(a, b, True, in_cuda.CONFIG, out, never)


@pytest.mark.parametrize("launch", [in_cuda.matmul_reg_tile,
                                    in_cuda.matmul_vec4])
def test_what_neither_matmul_can_take_is_refused(launch):
    a, out = matrix(8, 8), matrix(8, 8)
    with pytest.raises(ValueError, match="tf32"):
        launch(a, a, False, in_cuda.CONFIG, out, never)
    with pytest.raises(ValueError, match="k differs"):
        launch(a, matrix(12, 8), True, in_cuda.CONFIG, out, never)
    with pytest.raises(ValueError, match="overlaps an input"):
        launch(a, matrix(8, 8), True, in_cuda.CONFIG, a, never)
    tall = matrix(1, 8).expand(65535 * 128 + 1, 8)
    out = torch.empty(65535 * 128 + 1, 8, device=DEVICE)
    with pytest.raises(ValueError, match="rows of tiles"):
        launch(tall, a, True, in_cuda.CONFIG, out, never)


@pytest.mark.interpreter
@pytest.mark.parametrize("launch", [in_cuda.matmul_reg_tile,
                                    in_cuda.matmul_vec4])
def test_a_matrix_past_int32_is_refused(launch):
    a = t.far_apart(torch.zeros(4, 8), 2**30)
    with pytest.raises(ValueError, match="spans 2.31 values"):
        launch(a, matrix(8, 8), True, in_cuda.CONFIG, matrix(4, 8), never)


def test_what_the_softmaxes_cannot_take_is_refused():
    x, out = matrix(2, 32769), matrix(2, 32769)
    with pytest.raises(ValueError, match="registers"):
        in_cuda.softmax_in_registers(x, out, never)
    with pytest.raises(ValueError, match="a row needs a column"):
        in_cuda.softmax_rows(matrix(2, 0), matrix(2, 0), never)
    with pytest.raises(ValueError, match="overlaps an input"):
        in_cuda.softmax_rows(x, x, never)


# -------------------------------------------------- what NVRTC makes of them
NVRTC = in_cuda.nvrtc_library()
needs_nvrtc = pytest.mark.skipif(
    NVRTC is None, reason="there is no NVRTC: the package "
    "nvidia-cuda-nvrtc-cu12 is missing")
CAPABILITIES = [80, 86, 89, 90]


def counted(name, capability, **numbers):
    """Count instructions in the PTX of a kernel."""
    text = in_cuda.ptx(NVRTC, name, capability,
                       **(numbers or in_cuda.numbers_at_1024(name)))
    patterns = {"barriers": t.COUNTED["barriers"],
                "FMA": t.COUNTED["FMA"],
                "tensor": t.COUNTED["tensor"],
                "local": r"\.local\b",
                "float4 loads": r"\bld\.global\S*\.v4\.f32",
                "loads": r"\bld\.global\S*\.f32",
                "float4 stores": r"\bst\.global\S*\.v4\.f32",
                "stores": r"\bst\.global\S*\.f32"}
    counts = {what: len(re.findall(pattern, text))
              for what, pattern in patterns.items()}
    return counts | {"shared": in_cuda.shared_bytes(text)}


@needs_nvrtc
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_compiled_softmaxes(capability):
    """Each tree is unrolled: barriers 2 and 5 are there once a halving."""
    counts = counted("softmaxRows", capability)
    assert counts["barriers"] == 1 + 8 + 1 + 1 + 8
    assert counts["shared"] == 4 * 256 and counts["local"] == 0
    for cols in (1, 257, 1024, 4096, 8192, 8193, 32768):
        threads, per_thread = in_cuda.row_block(cols)
        assert threads * per_thread >= cols
        counts = counted("softmaxRowsInRegisters", capability,
                         THREADS=threads, PER_THREAD=per_thread)
        halvings = threads.bit_length() - 1
        assert counts["barriers"] == 3 + 2 * halvings
        assert counts["shared"] == 4 * threads
        # The row is loaded once, stored once, and never leaves the registers.
        assert counts["loads"] == counts["stores"] == per_thread
        assert counts["local"] == 0


@needs_nvrtc
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_compiled_matmuls(capability):
    plain = counted("matmulRegTile2d", capability)
    vec4 = counted("matmulRegTile2dVec4", capability)
    tile_a, tile_b = 16 * (128 + 4), 16 * 128
    for counts in (plain, vec4):
        assert counts["barriers"] == 2 and counts["tensor"] == 0
        # The micro-tile is in registers, and a step multiplies all of it.
        assert counts["local"] == 0 and counts["FMA"] == 8 * 8 * 16
        assert counts["shared"] == 4 * (tile_a + tile_b)
    # 256 threads share the loads of a step, and a quarter does for float4.
    assert plain["loads"] == (128 * 16 + 16 * 128) // 256
    assert plain["stores"] == 8 * 8
    assert plain["float4 loads"] == plain["float4 stores"] == 0
    assert vec4["loads"] == vec4["float4 loads"] == plain["loads"] // 4
    assert vec4["stores"] == vec4["float4 stores"] == plain["stores"] // 4


@needs_nvrtc
def test_what_does_not_compile_says_why(monkeypatch):
    monkeypatch.setitem(in_cuda.KERNELS, "broken", "void broken() { x = 1; }")
    with pytest.raises(RuntimeError, match='identifier "x" is undefined'):
        in_cuda.ptx(NVRTC, "broken", 90)


# ------------------------------------------------------------------- counting
def test_the_texts_say_their_barriers():
    for name, barriers in BARRIERS.items():
        assert in_cuda.count_barriers_written(name) == barriers


TWO_KERNELS = '''
@triton.jit
def one(a,
        b):
    # a comment
    a = b

extern "C" __global__ void __launch_bounds__(256)
two(int a,
    int b) {
    // a comment
    #pragma unroll
    a = b;  // no comment
}
"""
three = 3
'''


def test_lines_are_counted_by_the_rule():
    assert in_cuda.count_lines(TWO_KERNELS) == {"one": 4, "two": 6}


def test_the_page_and_the_program_count_alike():
    """README's command, run, gives what the program counts, and its table
    says so."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command, = re.findall(r"^```sh\n(awk .*?)^```$", readme, re.M | re.S)
    printed = subprocess.run(["bash", "-c", command], cwd=ROOT, text=True,
                             capture_output=True, check=True).stdout
    counts = {}
    for line in printed.splitlines():
        number, name = line.split()
        counts[name] = int(number)
    lesson = (ROOT / "triton_softmax_matmul.py").read_text(encoding="utf-8")
    ours = PROGRAM.read_text(encoding="utf-8")
    assert counts == in_cuda.count_lines(lesson) | in_cuda.count_lines(ours)
    assert counts["softmax_kernel"] == 11 and counts["matmul_kernel"] == 33
    assert set(in_cuda.KERNELS) <= set(counts)
    for name in in_cuda.KERNELS:
        assert re.search(rf"^\| .*\b{counts[name]}, `{name}`", readme, re.M)
    for name in ("softmax_kernel", "matmul_kernel"):
        assert f"{counts[name]}, `{name}` |" in readme


def code_lines(text, comment):
    """What is left of a text without comments, blank lines and indents."""
    lines = []
    for line in text.splitlines():
        code = line.split(comment)[0].strip()
        if code:
            lines.append(code)
    return lines


def shows(page, listing, comment):
    """Whether a page has the lines of a listing, one after the other; what
    it says in comments is its own affair."""
    lines = code_lines(page, comment)
    wanted = code_lines(listing, comment)
    starts = range(len(lines) - len(wanted) + 1)
    return any(lines[start:start + len(wanted)] == wanted for start in starts)


def test_readme_shows_both_softmax_kernels():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert shows(readme, in_cuda.SOFTMAX_ROWS, "//")
    lesson = (ROOT / "triton_softmax_matmul.py").read_text(encoding="utf-8")
    start = lesson.index("@triton.jit\ndef softmax_kernel")
    assert shows(readme, lesson[start:lesson.index("\n\n", start)], "#")


def test_the_notebook_shows_the_cuda_kernel():
    """It is made from the lesson, where prose stands in comments."""
    lesson = (ROOT / "triton_softmax_matmul.py").read_text(encoding="utf-8")
    prose = re.sub("^# ?", "", lesson, flags=re.M)
    assert shows(prose, in_cuda.SOFTMAX_ROWS, "//")


def test_the_pages_numbers_are_a_runs():
    """What README says of the CUDA kernels, the newest run has printed."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section, = re.findall(r"^## The CUDA beside it$(.*?)(?:^## |\Z)", readme,
                          re.M | re.S)
    runs = sorted((ROOT / "transcripts").glob("in-cuda-*.txt"))
    printed = runs[-1].read_text(encoding="utf-8")
    assert printed.endswith("\nexit 0\n")
    told = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", section)
    assert len(told) > 10
    assert not [number for number in told if number not in printed]


# ---------------------------------------------------------------- the program
def run_program(*arguments, **env):
    return run_script(*arguments, script=PROGRAM, env=env)


@pytest.mark.slow
def test_help():
    output = ended(run_program("--help"), 0)
    assert in_cuda.__doc__.strip() in output


@pytest.mark.slow
def test_another_argument():
    assert "not ['--fast']" in ended(run_program("--fast"), 2)


@pytest.mark.interpreter
def test_without_a_gpu():
    output = ended(run_program(), 1)
    assert "refused: " in output and "--count" in output


@pytest.mark.slow
def test_while_interpreting():
    output = ended(run_program(TRITON_INTERPRET="1"), 1)
    assert "TRITON_INTERPRET is set" in output


@pytest.mark.slow
def test_count():
    output = ended(run_program("--count", TRITON_INTERPRET="1"), 0)
    for name, barriers in BARRIERS.items():
        assert re.search(rf"^{name} +CUDA +\d+ +{barriers} ", output, re.M)
    assert re.search("^softmax_kernel +Triton +11 +0 +- ", output, re.M)
    assert re.search("^matmul_kernel +Triton +33 +0 +- ", output, re.M)


def test_a_torch_that_cannot_compile(monkeypatch):
    def no_cuda_home(name):
        raise OSError("CUDA_HOME environment variable is not set.")

    monkeypatch.setattr(in_cuda, "compiled", no_cuda_home)
    assert "CUDA_HOME" in in_cuda.cannot_compile()
    monkeypatch.delattr(torch.cuda, "_compile_kernel")
    assert "has no torch.cuda._compile_kernel" in in_cuda.cannot_compile()


# --------------------------------------------------------------------- on a GPU
@pytest.mark.gpu
def test_on_a_gpu():
    assert in_cuda.cannot_compile() is None
    assert in_cuda.all_pass("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("launch", [in_cuda.matmul_reg_tile,
                                    in_cuda.matmul_vec4])
def test_every_launch_gives_the_same_bits(launch):
    a, b = torch.randn(2, 1024, 1024, device="cuda")
    first = launch(a, b, True, in_cuda.CONFIG, torch.empty_like(a))
    for _ in range(200):
        out = torch.full_like(a, torch.nan)
        launch(a, b, True, in_cuda.CONFIG, out)
        assert out.equal(first)
