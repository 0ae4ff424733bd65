"""The kernels of library_speed.py, and what launches them.

First tf32 matmuls for Hopper (capability 9.0) in Gluon, which is part of
Triton: the same compiler with the covers off.  A Gluon kernel says which
thread holds what, where a tile lies in shared memory, when a copy starts and
who waits for it.  Then, in Triton as in the lesson, a matmul with an operand
in registers, which is fast and unsafe, a transposing copy, and softmaxes for
narrow and for wide rows.

Nothing runs on import, and nothing here needs a GPU to be read or compiled.
"""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import triton_softmax_matmul as t

# Gluon is young, and its names move.  What differs between 3.6 and 3.9:
if hasattr(tma, "async_load"):  # Triton 3.8 and newer
    tma_load, tma_store = tma.async_load, tma.async_store
else:
    tma_load = tma.async_copy_global_to_shared
    tma_store = tma.async_copy_shared_to_global
try:
    from triton.experimental.gluon.language.nvidia.hopper import cluster
except ImportError:  # Triton 3.6
    cluster = None
# Descriptors that round: from Triton 3.7 on.
CAN_ROUND = "round_f32_to_tf32" in TensorDescriptor.__dataclass_fields__
# Barriers that two blocks of a cluster share: from 3.8 on.  3.7 compiles the
# same source, but in its PTX no arrival leaves the block.
CAN_CLUSTER = hasattr(cluster, "barrier")


# ------------------------------------------------- a product, tile by tile
#
# Hopper multiplies with one instruction, wgmma, which a *warpgroup* issues
# together: four warps, 128 threads.  It takes 64 rows of a left operand, up
# to 256 columns of a right one, 8 steps of K (in tf32), and adds the product
# to an accumulator that lies spread over the registers of the 128 threads.
# It runs on its own: the warps go on while it multiplies, and wait for it
# when they need what it made, or want to overwrite what it reads.
#
# The right operand comes from shared memory, the left one from shared memory
# or from registers.  In shared memory wgmma takes 32-bit numbers in one order
# only, K contiguous.  From registers it takes what it is given.  So:
#
#     A by rows, B K-major     C   = A B       both from shared memory
#     A by rows, B by rows     C^T = B^T A^T   B^T from registers
#     A by columns, B K-major  C   = A B       A from registers
#
# and A by columns with B by rows would need two operands in registers, which
# there is no instruction for.  All three are the kernel below, called with a
# left and a right operand and a result with two strides of its own.

@gluon.constexpr_function
def accumulator_layout(columns, ctas):
    """How a warpgroup holds 64 rows and these columns, over 1 or 2 blocks."""
    # instr_shape is one warp's share of a wgmma: 16 rows of the 64.
    if ctas == 1:
        return gl.NVMMADistributedLayout(
            version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, columns, 8])
    # In a cluster each of the two blocks has half of the columns.
    return gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1],
        instr_shape=[16, columns // 2, 8], cga_layout=[[0, 1]])


@gluon.constexpr_function
def barrier_layout(cluster_bases):
    """Where mbarriers lie; the argument says which blocks have their own."""
    if not cluster_bases:
        return mbarrier.MBarrierLayout()
    return mbarrier.MBarrierLayout(cga_layout=cluster_bases)


@gluon.jit
def round_to_tf32(x):
    # To nearest, ties away from zero.  The instruction itself would drop the
    # low 13 bits, which is twice the error, and always towards zero.
    return gl.inline_asm_elementwise(
        "cvt.rna.tf32.f32 $0, $1;", "=r,r", [x], dtype=gl.float32,
        is_pure=True, pack=1)


@gluon.jit
def place(tile, rows, cols, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
          GROUP_M: gl.constexpr):
    # The lesson's order of tiles: down GROUP_M tile rows, then one right.
    tiles_m = gl.cdiv(rows, BLOCK_M)
    per_group = GROUP_M * gl.cdiv(cols, BLOCK_N)
    first_m = (tile // per_group) * GROUP_M
    rows_here = min(tiles_m - first_m, GROUP_M)
    within = tile % per_group
    row = (first_m + within % rows_here) * BLOCK_M
    col = (within // rows_here) * BLOCK_N
    return row, col


@gluon.jit
def produce(left_desc, right_desc, left_tiles, right_tiles, full, empty, both,
            rows, cols, k, GROUP_M: gl.constexpr, IN_REGISTERS: gl.constexpr,
            CTAS: gl.constexpr):
    # The *producer*: one warp that only starts copies.  A *descriptor* tells
    # the copy engine (TMA) where a matrix lies, how large it is, and how large
    # a tile; one thread then asks for "the tile at this row and column", and
    # the engine fetches it, lays it into shared memory in the order that wgmma
    # wants, and fills with zeros what lies outside the matrix.  No thread
    # computes an address, and no register holds what is on its way.
    STAGES: gl.constexpr = right_tiles.type.shape[0]
    BLOCK_N: gl.constexpr = right_tiles.type.shape[1]
    BLOCK_K: gl.constexpr = right_tiles.type.shape[2]
    OWN: gl.constexpr = left_tiles.type.shape[2 if IN_REGISTERS else 1]
    # Bytes of one stage: both halves of the left tile, and the right tile, of
    # which each block of a cluster fetches its share.
    NBYTES: gl.constexpr = 4 * BLOCK_K * (2 * OWN + BLOCK_N // CTAS)
    tiles = gl.cdiv(rows, 2 * OWN) * gl.cdiv(cols, BLOCK_N)
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, col = place(tile, rows, cols, 2 * OWN, BLOCK_N, GROUP_M)
        for step in range(gl.cdiv(k, BLOCK_K)):
            # An *mbarrier* is a counter in shared memory.  It is done with a
            # phase when as many threads have arrived as were announced and,
            # if bytes were announced, when these are in.  `full` says that a
            # stage may be read, `empty` that it may be written.  Phases are
            # numbered 0, 1, 0, 1, ...; a fresh barrier counts as being done
            # with phase 1, so that the first round does not wait.
            slot = count % STAGES
            phase = (count // STAGES) & 1
            if CTAS == 2:
                mbarrier.wait(both.index(slot), phase ^ 1)
            mbarrier.wait(empty.index(slot), phase ^ 1)
            ready = full.index(slot)
            mbarrier.expect(ready, NBYTES)
            for half in gl.static_range(2):
                into = left_tiles.index(2 * slot + half)
                if IN_REGISTERS:
                    at = [step * BLOCK_K, row + half * OWN]
                else:
                    at = [row + half * OWN, step * BLOCK_K]
                if CTAS == 2:
                    # One copy out of L2, written to both blocks.
                    tma_load(left_desc, at, ready, into, multicast=True)
                else:
                    tma_load(left_desc, at, ready, into)
            tma_load(right_desc, [col, step * BLOCK_K], ready,
                     right_tiles.index(slot))
            count += 1


@gluon.jit
def free(slot, empty, both, CTAS: gl.constexpr, pred=True):
    # One of two warpgroups has read this stage.  Where the left tile goes to
    # both blocks, the block that asks for it has to know of both.
    mbarrier.arrive(empty.index(slot), count=1, pred=pred)
    if CTAS == 2:
        mbarrier.arrive(both.index(slot), count=1, pred=pred)


@gluon.jit
def consume(out_desc, out_ptr, stride_row, stride_col, left_tiles, right_tiles,
            out_tiles, full, empty, both, rows, cols, k,
            GROUP_M: gl.constexpr, IN_REGISTERS: gl.constexpr,
            TRANSPOSED: gl.constexpr, ROUND: gl.constexpr,
            PIECES: gl.constexpr, CTAS: gl.constexpr, HALF: gl.constexpr):
    # A *consumer*: a warpgroup that multiplies.  There are two, each with its
    # own 64 rows of the left tile, so that one multiplies while the other
    # waits, loads or stores.
    STAGES: gl.constexpr = right_tiles.type.shape[0]
    BLOCK_N: gl.constexpr = right_tiles.type.shape[1]
    BLOCK_K: gl.constexpr = right_tiles.type.shape[2]
    OWN: gl.constexpr = left_tiles.type.shape[2 if IN_REGISTERS else 1]
    layout: gl.constexpr = accumulator_layout(BLOCK_N, CTAS)
    fragment: gl.constexpr = gl.DotOperandLayout(
        operand_index=0, parent=layout, k_width=1)
    tiles = gl.cdiv(rows, 2 * OWN) * gl.cdiv(cols, BLOCK_N)
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, col = place(tile, rows, cols, 2 * OWN, BLOCK_N, GROUP_M)
        row += HALF * OWN
        acc = gl.zeros((OWN, BLOCK_N), gl.float32, layout)
        for step in range(gl.cdiv(k, BLOCK_K)):
            slot = count % STAGES
            mbarrier.wait(full.index(slot), (count // STAGES) & 1)
            left_tile = left_tiles.index(2 * slot + HALF)
            right = right_tiles.index(slot).permute((1, 0))
            if IN_REGISTERS:
                # The wait for 0 is what plain Triton leaves out.  The next
                # round loads the next fragment into these registers: no wgmma
                # that reads them may still be running then.  Meanwhile the
                # other warpgroup keeps the tensor cores busy.
                left = left_tile.permute((1, 0)).load(fragment)
                if ROUND:
                    left = round_to_tf32(left)
                acc = warpgroup_mma(left, right, acc, is_async=True)
                acc = warpgroup_mma_wait(0, deps=(acc,))
                # The stage was read by threads and is written next by the
                # copy engine: two ways to memory, which a fence puts in order.
                fence_async_shared()
                free(slot, empty, both, CTAS)
            else:
                # No register but the accumulator's is at stake, so one wgmma
                # may run on while the next is prepared.  The one before it is
                # done, and with it the stage that it read.
                acc = warpgroup_mma(left_tile, right, acc, is_async=True)
                acc = warpgroup_mma_wait(1, deps=(acc,))
                free((count + STAGES - 1) % STAGES, empty, both, CTAS,
                     pred=step > 0)
            count += 1
        if not IN_REGISTERS:
            acc = warpgroup_mma_wait(0, deps=(acc,))
            free((count + STAGES - 1) % STAGES, empty, both, CTAS)
        if PIECES:
            store_pieces(acc, out_desc, out_tiles.index(HALF), row, col,
                         TRANSPOSED)
        else:
            # Straight from registers, whatever the strides of the result are.
            r = row + gl.arange(0, OWN, gl.SliceLayout(1, layout))[:, None]
            c = col + gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))[None, :]
            gl.store(out_ptr + r * stride_row + c * stride_col, acc,
                     mask=(r < rows) & (c < cols))
    if PIECES:
        tma.store_wait(pendings=0)


@gluon.jit
def halves(x):
    # The left and the right half of x, each in the registers where it is.
    pairs = x.reshape((x.shape[0], 2, x.shape[1] // 2)).permute((0, 2, 1))
    return pairs.split()


@gluon.jit
def store_pieces(acc, out_desc, piece, row, col, TRANSPOSED: gl.constexpr):
    # Through shared memory, a quarter of the columns at a time, since the
    # stages leave room for no more.  The copy engine stores a piece while the
    # warps go on, with the next piece or with the next tile.
    low, high = halves(acc)
    parts = halves(low) + halves(high)
    WIDTH: gl.constexpr = acc.shape[1] // 4
    for i in gl.static_range(4):
        tma.store_wait(pendings=0)  # the piece before has left
        if TRANSPOSED:
            piece.permute((1, 0)).store(parts[i])
            at = [col + i * WIDTH, row]
        else:
            piece.store(parts[i])
            at = [row, col + i * WIDTH]
        fence_async_shared()
        tma_store(out_desc, at, piece)


if CAN_CLUSTER:
    @gluon.jit
    def end_together():
        cluster.barrier()
else:
    @gluon.jit
    def end_together():
        pass


@gluon.jit(do_not_specialize=["k"])
def product_kernel(left_desc, right_desc, out_desc, out_ptr, stride_row,
                   stride_col, rows, cols, k, STAGES: gl.constexpr,
                   GROUP_M: gl.constexpr, IN_REGISTERS: gl.constexpr,
                   TRANSPOSED: gl.constexpr, ROUND: gl.constexpr,
                   PIECES: gl.constexpr, CTAS: gl.constexpr):
    # Shared memory: STAGES tiles of each operand, the left one in two halves.
    left_tiles = gl.allocate_shared_memory(
        gl.float32, [2 * STAGES] + left_desc.block_type.shape,
        left_desc.layout)
    right_tiles = gl.allocate_shared_memory(
        gl.float32, [STAGES] + right_desc.block_type.shape, right_desc.layout)
    if PIECES:
        out_tiles = gl.allocate_shared_memory(
            gl.float32, [2] + out_desc.block_type.shape, out_desc.layout)
    else:
        out_tiles = left_tiles  # not used
    # In a cluster a barrier is a block's own, but for `both`: two blocks
    # arrive at it, it lies with the first, and the first alone waits there.
    each: gl.constexpr = barrier_layout([[1]] if CTAS == 2 else [])
    shared: gl.constexpr = barrier_layout([[0]] if CTAS == 2 else [])
    full = gl.allocate_shared_memory(gl.int64, [STAGES, CTAS], each)
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, CTAS], each)
    if CTAS == 2:
        both = gl.allocate_shared_memory(gl.int64, [STAGES, 1], shared)
    else:
        both = empty  # not used
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)  # the producer
        mbarrier.init(empty.index(i), count=2)  # two consumers
        if CTAS == 2:
            mbarrier.init(both.index(i), count=2)  # of each block
    # From here on the warps go separate ways.  The first function is run by
    # the four warps of the launch, the next by four more, the last by one.
    # Registers are dealt out anew: 40 a thread will do for starting copies,
    # and a consumer has 128 for its accumulator alone.
    gl.warp_specialize([
        (consume, (out_desc, out_ptr, stride_row, stride_col, left_tiles,
                   right_tiles, out_tiles, full, empty, both, rows, cols, k,
                   GROUP_M, IN_REGISTERS, TRANSPOSED, ROUND, PIECES, CTAS,
                   0)),
        (consume, (out_desc, out_ptr, stride_row, stride_col, left_tiles,
                   right_tiles, out_tiles, full, empty, both, rows, cols, k,
                   GROUP_M, IN_REGISTERS, TRANSPOSED, ROUND, PIECES, CTAS,
                   1)),
        (produce, (left_desc, right_desc, left_tiles, right_tiles, full, empty,
                   both, rows, cols, k, GROUP_M, IN_REGISTERS, CTAS)),
    ], [4, 1], [232, 40])
    if CTAS == 2:
        # No block may leave while the other still writes to it.
        end_together()


# ------------------------------------------------------- launching a product

# What the program may vary.  BLOCK_M counts rows of the left operand, which
# is A, or the transpose of B where the result is computed transposed.  PIECES
# says to store in quarters, through shared memory, where the result allows it.
OPTIONS = dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=32, STAGES=4, GROUP_M=8,
               PERSISTENT=False, PIECES=True, CTAS=1, SWIZZLE=128,
               ROUND="no")
ROUNDINGS = ("no", "registers", "descriptors")


def why_not(x):
    """Why no descriptor can be made of x as it lies, or None."""
    if x.stride(1) != 1:
        return f"its last dimension has stride {x.stride(1)}, not 1"
    if x.stride(0) < x.shape[1]:
        return f"its rows overlap: stride {x.stride(0)}, {x.shape[1]} columns"
    if 4 * x.stride(0) % 16:
        return f"its rows are {4 * x.stride(0)} bytes apart, not 16 times some"
    if x.data_ptr() % 16:
        return "it does not begin at a multiple of 16 bytes"
    return None


def whole_pieces(out):
    """Whether the copy engine can write out, and nothing beside it."""
    # It reads by the number, and takes what is outside a matrix for zeros; but
    # it writes 16 bytes or none.  A row of 35 numbers would be written as 36,
    # the last of them on top of whatever lies there: seen on an H200 with rows
    # of 1, 35, 517 and 1030 numbers, and told of in triton-lang/triton 11583.
    return not why_not(out) and out.shape[1] % 4 == 0


def sides(a, b):
    """How a @ b is computed: (left, right, in_registers, transposed).

    left and right are as descriptors take them.  left is (rows, k), or (k,
    rows) if in_registers; right is (cols, k).  If transposed, the product is
    that of b's transpose and a's.  ValueError if there is no way.
    """
    a_rows, a_cols = why_not(a), why_not(a.t())
    b_rows, b_cols = why_not(b), why_not(b.t())
    if not a_rows and not b_cols:
        return a, b.t(), False, False
    if not a_rows and not b_rows:
        return b, a, True, True
    if not a_cols and not b_cols:
        return a.t(), b.t(), True, False
    if a_rows and a_cols:
        raise ValueError(f"a {tuple(a.shape)} by rows: {a_rows}; by columns: "
                         f"{a_cols}")
    if b_rows and b_cols:
        raise ValueError(f"b {tuple(b.shape)} by rows: {b_rows}; by columns: "
                         f"{b_cols}")
    raise ValueError("a by columns and b by rows: wgmma takes one of them from "
                     "registers, and the other with K contiguous; copy one")


def check_arguments(a, b, out):
    """Raise ValueError or TypeError for what product_kernel does not take."""
    t.check_operand("a", a)
    t.check_operand("b", b, a)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"k differs: a {tuple(a.shape)}, b {tuple(b.shape)}")
    t.check_result(out, (a.shape[0], b.shape[1]), [a, b])
    last = ((out.shape[0] - 1) * out.stride(0)
            + (out.shape[1] - 1) * out.stride(1))
    if last >= 2**31:
        raise ValueError(f"out {tuple(out.shape)} spans over 2^31 values")


def check_options(options):
    """Raise ValueError for options that do not go together, or not here."""
    if options["ROUND"] not in ROUNDINGS:
        raise ValueError(f"ROUND must be one of {ROUNDINGS}")
    if options["ROUND"] == "descriptors" and not CAN_ROUND:
        raise ValueError(f"Triton {triton.__version__} has no descriptors that "
                         "round")
    if options["CTAS"] == 2 and not CAN_CLUSTER:
        raise ValueError(f"Triton {triton.__version__} has no barrier that two "
                         "blocks share")
    if options["CTAS"] == 2 and options["PIECES"]:
        raise ValueError("in a cluster the result is stored from registers")


def descriptor(x, block, options, swizzle=128, cluster_bases=None):
    """A descriptor of x in tiles of this shape, rounding if so asked."""
    # Swizzling permutes 16-byte pieces within a row of shared memory, so that
    # a column can be read without all threads meeting in one bank.
    layout = gl.NVMMASharedLayout(
        swizzle_byte_width=swizzle, element_bitwidth=32, rank=2,
        cga_layout=cluster_bases or [])
    extra = {}
    if options["ROUND"] == "descriptors":
        extra["round_f32_to_tf32"] = True
    return TensorDescriptor.from_tensor(x, block, layout, **extra)


def arguments(a, b, out, options):
    """The (positional, named) arguments of product_kernel, all but a grid."""
    left, right, in_registers, transposed = sides(a, b)
    own, ctas = options["BLOCK_M"] // 2, options["CTAS"]
    block_n, block_k = options["BLOCK_N"] * ctas, options["BLOCK_K"]
    result = out.t() if transposed else out
    left_block = [block_k, own] if in_registers else [own, block_k]
    left_desc = descriptor(
        left, left_block, options,
        options["SWIZZLE"] if in_registers else 128,
        [[0, 0]] if ctas == 2 else None)
    right_desc = descriptor(right, [block_n, block_k], options,
                            cluster_bases=[[1, 0]] if ctas == 2 else None)
    pieces = options["PIECES"] and whole_pieces(out)
    if pieces:
        piece = [own, block_n // 4]
        if transposed:
            piece.reverse()
        out_desc = descriptor(out, piece, options | {"ROUND": "no"})
        # No address is computed.  A stride of 1 is compiled in, so that there
        # is one kernel for all results and not one for each kind of stride.
        where = (out_desc, None, 1, 1)
    else:
        where = (None, out, *result.stride())
    named = dict(
        STAGES=options["STAGES"], GROUP_M=options["GROUP_M"],
        IN_REGISTERS=in_registers, TRANSPOSED=transposed,
        ROUND=in_registers and options["ROUND"] == "registers",
        PIECES=pieces, CTAS=ctas, num_warps=4, num_ctas=ctas)
    positional = (left_desc, right_desc, *where, *result.shape, a.shape[1])
    return positional, named


def multiply(a, b, options=None, out=None):
    """a (m, k) times b (k, n) in tf32, in out or in new memory.

    float32; one of a and b with K contiguous, all strides but the contiguous
    one and all bases multiples of 16 bytes; ValueError for what is not so.
    """
    options = OPTIONS | (options or {})
    if out is None:
        out = a.new_empty((a.shape[0], b.shape[1]))
    check_arguments(a, b, out)
    check_options(options)
    if out.numel() == 0:
        return out
    if a.shape[1] == 0:
        return out.zero_()
    positional, named = arguments(a, b, out, options)
    rows, cols = positional[6:8]
    programs = (triton.cdiv(rows, options["BLOCK_M"])
                * triton.cdiv(cols, options["BLOCK_N"] * options["CTAS"]))
    if options["PERSISTENT"]:
        # One program, or cluster, for each that the card holds at a time.
        card = torch.cuda.get_device_properties(a.device)
        programs = min(programs,
                       card.multi_processor_count // options["CTAS"])
    with torch.cuda.device_of(a):
        product_kernel[(programs,)](*positional, **named)
    return out


# ----------------------------------- one operand in registers, in plain Triton

@triton.jit
def rounding_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                    stride_bk, stride_bn, stride_cm, stride_cn,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                    IEEE: tl.constexpr):
    # UNSAFE on Hopper; library_speed.py hazard shows how.  The lesson's kernel
    # but for the two lines on `bits`: a is rounded to tf32 between load and
    # dot.  An operand that comes straight from a load is taken from shared
    # memory; after any arithmetic it is in registers, where it may lie by
    # columns as well.  So with a = B^T no value is copied alone any more.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    per_group = GROUP_M * tl.cdiv(n, BLOCK_N)
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
        if IEEE:
            acc = tl.dot(a, b, acc, input_precision="ieee")
        else:
            # Half a unit of the last place kept, then the rest cut off.
            bits = a.to(tl.int32, bitcast=True) + 0x1000
            a = (bits & -0x2000).to(tl.float32, bitcast=True)
            acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    tl.store(c_ptrs, acc, mask=(offs_m < m) & (offs_n < n))


# ----------------------------------------------------------- a transposing copy

@triton.jit
def transpose_kernel(in_ptr, out_ptr, rows, cols, in_stride, out_stride,
                     BLOCK: tl.constexpr):
    # Reads a square along its rows and writes it along its columns; between
    # the two the compiler sends it through shared memory, so that both ways
    # whole lines of memory are touched.
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r < rows)[:, None] & (c < cols)[None, :]
    x = tl.load(in_ptr + r[:, None] * in_stride + c[None, :], mask=inside)
    tl.store(out_ptr + c[:, None] * out_stride + r[None, :], tl.trans(x),
             mask=tl.trans(inside))


def transposed_copy(x, out, block=64, num_warps=8):
    """x's transpose into out: x (rows, cols) and out (cols, rows) by rows."""
    rows, cols = x.shape
    if out.shape != (cols, rows) or x.stride(1) != 1 or out.stride(1) != 1:
        raise ValueError(f"{tuple(x.shape)} with strides {x.stride()} into "
                         f"{tuple(out.shape)} with strides {out.stride()}")
    grid = (triton.cdiv(rows, block), triton.cdiv(cols, block))
    with torch.cuda.device_of(x):
        transpose_kernel[grid](x, out, rows, cols, x.stride(0), out.stride(0),
                               BLOCK=block, num_warps=num_warps)
    return out


# ------------------------------------------------------------------- softmaxes

@triton.jit
def softmax_rows_kernel(in_ptr, out_ptr, in_stride, out_stride, n_rows, n_cols,
                        ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    # Several rows a program: a block of two dimensions, reduced along the
    # second.  A narrow row alone leaves most of a program idle.
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK_COLS)[None, :]
    mask = (row < n_rows) & (cols < n_cols)
    x = tl.load(in_ptr + row * in_stride + cols, mask=mask,
                other=-float("inf"))
    num = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + row * out_stride + cols,
             num / tl.sum(num, axis=1)[:, None], mask=mask)


@triton.jit
def softmax_pieces_kernel(in_ptr, out_ptr, in_stride, out_stride, n_cols,
                          PIECE: tl.constexpr, BACK: tl.constexpr):
    # A row that no program can hold, in pieces, twice.  The first time each
    # lane keeps the largest value that it has seen, and the sum of its
    # exponentials as if that were the row's maximum; where the maximum grows,
    # what was summed so far shrinks by exp(old - new).
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * in_stride
    out_row = out_ptr + row * out_stride
    lanes = tl.arange(0, PIECE)
    top = tl.full((PIECE,), -float("inf"), tl.float32)
    total = tl.zeros((PIECE,), tl.float32)
    for start in range(0, n_cols, PIECE):
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        new = tl.maximum(top, x)
        # A lane that has seen nothing but -inf: -inf - -inf would be NaN.
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = new
    # Here NaN is right for a row of nothing but -inf, so nothing is made safe.
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    pieces = tl.cdiv(n_cols, PIECE)
    for i in range(0, pieces):
        # Backwards, what was read last is read first: it is still in cache.
        start = (pieces - 1 - i) * PIECE if BACK else i * PIECE
        cols = start + lanes
        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        tl.store(out_row + cols, tl.exp(x - row_top) / row_total,
                 mask=cols < n_cols)


@gluon.constexpr_function
def cluster_layout(ctas, warps):
    """A row over the blocks of a cluster, 16 bytes a thread at a time."""
    bases = []
    for bit in range(ctas.bit_length() - 1):
        bases.append([2**bit])
    return gl.BlockedLayout([4], [32], [warps], [0], cga_layout=bases)


@gluon.jit
def softmax_cluster_kernel(in_ptr, out_ptr, in_stride, out_stride, n_cols,
                           BLOCK_COLS: gl.constexpr, CTAS: gl.constexpr,
                           WARPS: gl.constexpr):
    # The lesson's kernel with its row spread over a *cluster*: blocks that run
    # at the same time on neighbouring SMs and can read each other's shared
    # memory.  The row stays in registers, of up to 16 SMs instead of one, and
    # the two reductions cross from block to block by themselves.
    layout: gl.constexpr = cluster_layout(CTAS, WARPS)
    row = gl.program_id(0).to(gl.int64)
    cols = gl.arange(0, BLOCK_COLS, layout)
    mask = cols < n_cols
    x = gl.load(in_ptr + row * in_stride + cols, mask=mask,
                other=-float("inf"))
    num = gl.exp(x - gl.max(x, axis=0))
    gl.store(out_ptr + row * out_stride + cols, num / gl.sum(num, axis=0),
             mask=mask)


def check_softmax(x, out):
    """Raise ValueError unless both have the same shape and lie by rows."""
    if x.shape != out.shape or x.stride(1) != 1 or out.stride(1) != 1:
        raise ValueError(f"x {tuple(x.shape)} and out {tuple(out.shape)} must "
                         f"be alike and lie by rows: strides {x.stride()} and "
                         f"{out.stride()}")


def softmax_rows(x, out, rows, num_warps):
    """Softmax, this many rows a program."""
    check_softmax(x, out)
    block = triton.next_power_of_2(x.shape[1])
    if rows * block > 2**14:
        raise ValueError(f"{rows} rows of {x.shape[1]} columns are more than a "
                         "program should hold")
    grid = (triton.cdiv(x.shape[0], rows),)
    with torch.cuda.device_of(x):
        softmax_rows_kernel[grid](
            x, out, x.stride(0), out.stride(0), *x.shape, ROWS=rows,
            BLOCK_COLS=block, num_warps=num_warps)
    return out


def softmax_pieces(x, out, piece, num_warps, back):
    """Softmax, a row a program, in pieces of this many columns."""
    check_softmax(x, out)
    with torch.cuda.device_of(x):
        softmax_pieces_kernel[(x.shape[0],)](
            x, out, x.stride(0), out.stride(0), x.shape[1], PIECE=piece,
            BACK=back, num_warps=num_warps)
    return out


def softmax_cluster(x, out, ctas, num_warps):
    """Softmax, a row over a cluster of this many blocks."""
    check_softmax(x, out)
    if not CAN_CLUSTER:
        raise ValueError(f"Triton {triton.__version__} reduces within a block")
    block = triton.next_power_of_2(x.shape[1])
    if block < ctas * 128 * num_warps:
        raise ValueError(f"{x.shape[1]} columns leave threads of {ctas} blocks "
                         f"of {num_warps} warps without a value")
    with torch.cuda.device_of(x):
        softmax_cluster_kernel[(x.shape[0],)](
            x, out, x.stride(0), out.stride(0), x.shape[1], CTAS=ctas,
            WARPS=num_warps, BLOCK_COLS=block, num_warps=num_warps,
            num_ctas=ctas)
    return out


# ----------------------------------------------------- compiling without a GPU

def argument_type(value):
    """An argument's type as Triton names it, or None for a constant."""
    if isinstance(value, TensorDescriptor):
        # Triton 3.8 and newer name their own.
        comma = "," if hasattr(value, "__mangle__") else ", "
        block = comma.join(map(str, value.block_shape))
        return f"tensordesc<fp32[{block}],{value.layout!r}>"
    if isinstance(value, torch.Tensor):
        return "*fp32"
    if isinstance(value, bool) or value is None or value == 1:
        return None
    return "i32"


def compile_gluon(kernel, positional, named):
    """A Gluon kernel for sm_90 as these arguments would have it compiled."""
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource
    named = dict(named)
    settings = {}
    for name in ("num_warps", "num_ctas"):
        settings[name] = named.pop(name)
    signature, constants, hints = {}, {}, {}
    for i, name in enumerate(kernel.arg_names):
        value = named[name] if name in named else positional[i]
        kind = None if name in named else argument_type(value)
        if kind is None:
            signature[name], constants[name] = "constexpr", value
            continue
        signature[name] = kind
        if kind == "*fp32" or kind == "i32" and value % 16 == 0:
            hints[i,] = [["tt.divisibility", 16]]
    return triton.compile(GluonASTSource(kernel, signature, constants, hints),
                          target=GPUTarget("cuda", 90, 32), options=settings)


def compile_product(a, b, out, options=None):
    """product_kernel for sm_90 as multiply() would launch it."""
    options = OPTIONS | (options or {})
    check_options(options)
    return compile_gluon(product_kernel, *arguments(a, b, out, options))


def compile_softmax_cluster(cols, ctas, num_warps):
    """softmax_cluster_kernel for sm_90, for a row of this many columns."""
    x = torch.empty(1, cols, device="meta")
    named = dict(CTAS=ctas, WARPS=num_warps, num_warps=num_warps,
                 num_ctas=ctas, BLOCK_COLS=triton.next_power_of_2(cols))
    return compile_gluon(softmax_cluster_kernel, (x, x, cols, cols, cols),
                         named)
