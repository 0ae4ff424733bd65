"""Faults in the matmul: its kernel, then its launcher."""
from planted import Edit, Fault, one


def kernel(seen, old, new, times=1):
    """A fault of one edit in the matmul kernel."""
    return one(seen, "matmul_kernel", old, new, times)


def launcher(seen, old, new, times=1):
    """A fault of one edit in the matmul launcher."""
    return one(seen, "matmul", old, new, times)


PAD_A = ", mask=offs_k[None, :] < left, other=0.0"
PAD_B = ", mask=offs_k[:, None] < left, other=0.0"
LOAD_A = f"a = tl.load(a_ptrs{PAD_A})"
LOAD_B = f"b = tl.load(b_ptrs{PAD_B})"
ZEROS = "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
C_MASK = "(offs_m < m) & (offs_n < n)"
A_PTRS = "offs_m % m * stride_am + offs_k[None, :] * stride_ak"
B_PTRS = "offs_k[:, None] * stride_bk + offs_n % n * stride_bn"
NEXT_A = "a_ptrs += BLOCK_K * stride_ak"
NEXT_B = "b_ptrs += BLOCK_K * stride_bk"
STEPS = "tl.cdiv(k, BLOCK_K)"

OLD = {
    "K tail open in A": kernel("K with a rest", PAD_A, ""),
    "K tail open in B": kernel("K with a rest", PAD_B, ""),
    "K tail open in both": Fault("K with a rest", [
        Edit("matmul_kernel", PAD_A, ""), Edit("matmul_kernel", PAD_B, "")]),
    "K mask stands still": kernel(
        "K with a rest", "left = k - step * BLOCK_K", "left = k"),
    "K tail of 1": kernel("K with a rest", "other=0.0", "other=1.0", 2),
    "K tail dropped": kernel("K with a rest", STEPS, "k // BLOCK_K"),
    "acc reset": kernel("K with a rest", "left =", f"{ZEROS}\n        left ="),
    "acc not passed, ieee": kernel(
        "ieee 65", "b, acc, input_precision='ieee'", "b, input_precision='ieee'"),
    "acc not passed, tf32": kernel(
        "tf32 65", "b, acc, input_precision='tf32'", "b, input_precision='tf32'"),
    "acc from 1": kernel("nothing to add up", ZEROS, ZEROS + " + 1"),
    "a not advanced": kernel("K with a rest", NEXT_A, "pass"),
    "b not advanced": kernel("K with a rest", NEXT_B, "pass"),
    "a advanced by rows": kernel(
        "K with a rest", NEXT_A, "a_ptrs += BLOCK_K * stride_am"),
    "b advanced by columns": kernel(
        "K with a rest", NEXT_B, "b_ptrs += BLOCK_K * stride_bn"),
    "b taken as K-major": kernel("K with a rest", NEXT_B, "b_ptrs += BLOCK_K"),
    "b taken as row-major": kernel(
        "all in steps", "offs_n % n * stride_bn", "offs_n % n"),
    "strides of A swapped": kernel(
        "K with a rest", A_PTRS,
        "offs_m % m * stride_ak + offs_k[None, :] * stride_am"),
    "strides of B swapped": kernel(
        "K with a rest", B_PTRS,
        "offs_k[:, None] * stride_bn + offs_n % n * stride_bk"),
    "strides of C swapped": kernel(
        "K with a rest", "offs_m * stride_cm + offs_n * stride_cn",
        "offs_m * stride_cn + offs_n * stride_cm"),
    "strides of A for B": launcher(
        "K with a rest", "*a.stride(), *b.stride()", "*b.stride(), *a.stride()"),
    "store mask without m": kernel(
        "wrote outside the result", C_MASK, "offs_n < n"),
    "store mask without n": kernel(
        "wrote outside the result", C_MASK, "offs_m < m"),
    "store without mask": kernel(
        "wrote outside the result", "acc, mask=c_mask", "acc"),
    "m wrapped at n": kernel("K with a rest", "offs_m % m", "offs_m % n"),
    "m and n swapped": launcher("K with a rest", "out, m, n, k", "out, n, m, k"),
    "rows_here ignored": kernel(
        "an unfilled group", "min(tiles_m - first_m, GROUP_M)", "GROUP_M"),
    "last group dropped": kernel(
        "an unfilled group", C_MASK, C_MASK + " & (first_m == 0)"),
    "a tile repeated": kernel(
        "an unfilled group", "per_group // rows_here", "per_group // GROUP_M"),
    "groups overlap": kernel(
        "an unfilled group", "pid // per_group * GROUP_M", "pid // per_group"),
    "a tile unwritten": kernel(
        "an unfilled group", C_MASK, C_MASK + " & (pid_m + pid_n < 5)"),
    "a tile row too few": launcher(
        "K with a rest", "triton.cdiv(m, meta['BLOCK_M'])",
        "(m // meta['BLOCK_M'])"),
    "A in bfloat16": kernel(
        "ieee 65", "if IEEE:",
        "a = a.to(tl.bfloat16).to(tl.float32)\n        if IEEE:"),
    "C of zeros": kernel("K with a rest", "c_ptrs, acc", "c_ptrs, acc * 0"),
    "C of NaN": kernel(
        "nothing to add up", "c_ptrs, acc", "c_ptrs, acc * float('nan')"),
    "matmul ignores out": launcher(
        "K with a rest", "if out is None:", "if True:"),
    "matmul writes on a": launcher(
        "wrote on an input", "return out", "a.neg_()\n    return out"),
    "a taken as row-major": kernel(
        "all in steps", "offs_k[None, :] * stride_ak", "offs_k[None, :]"),
    "a advanced by 1": kernel("all in steps", NEXT_A, "a_ptrs += BLOCK_K"),
    "C taken as row-major": kernel(
        "K with a rest", "offs_n * stride_cn", "offs_n"),
    "tile column by rows": kernel(
        "all in steps", "pid_n * BLOCK_N", "pid_n * BLOCK_M"),
    "tile row by columns": kernel(
        "an unfilled group", "pid_m * BLOCK_M", "pid_m * BLOCK_N"),
    "grid by rows alone": launcher(
        "all in steps", "* triton.cdiv(n, meta['BLOCK_N'])",
        "* triton.cdiv(n, meta['BLOCK_M'])"),
    "matmul returns a": launcher(
        "did not return its out", "return out", "return a"),
    "m not wrapped": kernel("SIGSEGV", "offs_m % m", "offs_m"),
    "n not wrapped": kernel("SIGSEGV", "offs_n % n", "offs_n"),
}


def loaded(seen, code):
    """A fault in what was loaded: code that follows both loads."""
    lines = code.replace("\n", "\n        ")
    return kernel(seen, LOAD_B, f"{LOAD_B}\n        {lines}")


def summed(seen, code):
    """A fault in the sums: code that stands before the store."""
    lines = code.replace("\n", "\n    ")
    return kernel(seen, STORE, f"{lines}\n    {STORE}")


def first(seen, code):
    """A fault in the arguments: code that the kernel begins with."""
    lines = code.replace("\n", "\n    ")
    return kernel(seen, HEAD, f"{lines}\n    {HEAD}")


def left_alone(seen, when):
    """A fault that does not store a tile if `when` says that it is right."""
    return kernel(
        seen, STORE,
        "old = tl.load(c_ptrs, mask=c_mask, other=0.0)"
        f"\n    same = tl.min(tl.where({when}, tl.where(old == acc, 1, 0), 1))"
        "\n    tl.store(c_ptrs, acc, mask=c_mask & (same == 0))")


STORE = "tl.store(c_ptrs, acc, mask=c_mask)"
HEAD = "pid = tl.program_id(0)"
LEFT = "left = k - step * BLOCK_K"
OPEN_A = "a = tl.load(a_ptrs)"
OPEN_B = "b = tl.load(b_ptrs)"
NO_NAN = "a = tl.where(a == a, a, 0.0)\nb = tl.where(b == b, b, 0.0)"

NEW_MASKS = {
    "K tail open in ieee alone": loaded(
        "ieee 65", f"if IEEE:\n    {OPEN_A}\n    {OPEN_B}"),
    "K tail open in tf32 alone": loaded(
        "tf32 65", f"if not IEEE:\n    {OPEN_A}\n    {OPEN_B}"),
    "K tail one too long": kernel("K with a rest", "< left", "<= left", 2),
    "K tail one too short": kernel(
        "K with a rest", LEFT,
        f"{LEFT}\n        left = left - 1 if left < BLOCK_K else left"),
    "K tail in eights": kernel(
        "K with a rest", "< left", "< (left + 7) // 8 * 8", 2),
    "K tail open, NaN made 0": loaded(
        "all in steps", f"{OPEN_A}\n{OPEN_B}\n{NO_NAN}"),
    "K tail open, NaN made 0 there alone": loaded(
        "all in steps", f"if left < BLOCK_K:\n    {OPEN_A}\n    {OPEN_B}\n    "
        + NO_NAN.replace("\n", "\n    ")),
    "K tail open in B, NaN made 0 there alone": loaded(
        "SIGSEGV", f"if left < BLOCK_K:\n    {OPEN_B}"
        "\n    b = tl.where(b == b, b, 0.0)"),
    "NaN made 0 in the K tail": loaded(
        "NaN, inf and -0.0",
        "if left < BLOCK_K:\n    " + NO_NAN.replace("\n", "\n    ")),
    "K tail of A clamped": loaded(
        "NaN, inf and -0.0",
        "a = tl.load(a_ptrs - tl.maximum(offs_k[None, :] - left + 1, 0) "
        "* stride_ak)"),
    "K tail open in the last group": loaded(
        "an unfilled group", f"if first_m > 0:\n    {OPEN_A}\n    {OPEN_B}"),
    "K tail open from the third tile column on": loaded(
        "wider than tall", f"if pid_n > 1:\n    {OPEN_B}"),
    "K tail open from the third tile row on": loaded(
        "an unfilled group", f"if pid_m > 1:\n    {OPEN_A}"),
    "K tail open if K is shorter than a block": loaded(
        "a single number", f"if k < BLOCK_K:\n    {OPEN_A}\n    {OPEN_B}"),
    "K tail open if K is long": loaded(
        "k over 2048", f"if k > 2048:\n    {OPEN_A}"),
    "K tail of 1 left out": kernel(
        "one column", STEPS, "tl.cdiv(k - (k % BLOCK_K == 1), BLOCK_K)"),
    "a last step of one dropped": kernel(
        "one column", LEFT,
        f"{LEFT}\n        left = 0 if left < 2 and step > 0 else left"),
    "a full last step counted as none": kernel(
        "whole numbers", LEFT,
        "left = BLOCK_K if step < tl.cdiv(k, BLOCK_K) - 1 else k % BLOCK_K"),
    "the next step read with this mask": loaded(
        "SIGSEGV", "ahead = tl.load(a_ptrs + BLOCK_K * stride_ak, "
        "mask=offs_k[None, :] < left)"),
    "read before the beginning": loaded(
        "SIGSEGV", "before = tl.load(a_ptrs - 1)"),
    "m not wrapped in tf32": kernel(
        "SIGSEGV", "offs_m % m", "(offs_m % m if IEEE else offs_m)"),
    "n not wrapped in ieee": kernel(
        "SIGSEGV", "offs_n % n", "(offs_n if IEEE else offs_n % n)"),
    "m not wrapped from the second tile on": kernel(
        "SIGSEGV", "offs_m % m", "(offs_m if pid_m > 0 else offs_m % m)"),
    "n not wrapped from the second tile on": kernel(
        "SIGSEGV", "offs_n % n", "(offs_n if pid_n > 0 else offs_n % n)"),
    "m wrapped one too late": kernel(
        "SIGSEGV", "offs_m % m", "offs_m % (m + 1)"),
    "n wrapped by sixteens": kernel(
        "SIGSEGV", "offs_n % n", "offs_n % (tl.cdiv(n, 16) * 16)"),
    "a row too many stored": kernel(
        "wrote outside the result", "offs_m < m", "offs_m <= m"),
    "a column too many stored in tf32": kernel(
        "wrote outside the result", "offs_n < n",
        "offs_n < n + (0 if IEEE else 1)"),
    "a row too few stored": kernel(
        "were not written", "offs_m < m", "offs_m < m - 1"),
    "a column too many stored in the last group": kernel(
        "m over 2048", "offs_n < n",
        "offs_n < n + (1 if first_m > 0 else 0)"),
    "NaN stored in the overhang": kernel(
        "wrote outside the result", STORE,
        "tl.store(c_ptrs, tl.where(c_mask, acc, float('nan')))"),
    "own value stored in the overhang": kernel(
        "SIGSEGV", STORE,
        "old = tl.load(c_ptrs)"
        "\n    tl.store(c_ptrs, tl.where(c_mask, acc, old))"),
    "own value stored behind the last tile": summed(
        "SIGSEGV", "if pid_m > 0:\n    old = tl.load(c_ptrs)"
        "\n    tl.store(c_ptrs, old)"),
    "C read past its end": summed("SIGSEGV", "old = tl.load(c_ptrs)"),
    "NaN not stored": kernel(
        "NaN, inf and -0.0", "mask=c_mask", "mask=c_mask & (acc == acc)"),
    "0 not stored": kernel(
        "nothing to add up", "mask=c_mask", "mask=c_mask & (acc != 0)"),
}
TO_BITS = "a.to(tl.int32, bitcast=True)"
NEW_VALUES = {
    "NaN of A made 0": loaded(
        "NaN, inf and -0.0", "a = tl.where(a == a, a, 0.0)"),
    "NaN of B made 1e30": loaded(
        "NaN, inf and -0.0", "b = tl.where(b == b, b, 1e30)"),
    "NaN of B made 0 in tf32": loaded(
        "tf32 9x8x41", "if not IEEE:\n    b = tl.where(b == b, b, 0.0)"),
    "inf of A made 0": loaded(
        "NaN, inf and -0.0", "a = tl.where(tl.abs(a) == float('inf'), 0.0, a)"),
    "inf of B made the largest number": loaded(
        "NaN, inf and -0.0",
        "b = tl.where(tl.abs(b) == float('inf'), 3.4e38, b)"),
    "-inf of A made inf": loaded(
        "NaN, inf and -0.0", "a = tl.where(a == -float('inf'), -a, a)"),
    "-inf of B made 0": loaded(
        "NaN, inf and -0.0", "b = tl.where(b == -float('inf'), 0.0, b)"),
    "0 times inf is 0": kernel(
        "NaN, inf and -0.0", "b, acc, input_precision='ieee')",
        "b, acc, input_precision='ieee')"
        "\n            zero = tl.sum(tl.where(a == 0, 1, 0), axis=1)[:, None]"
        "\n            acc = tl.where((acc != acc) & (zero > 0), 0.0, acc)"),
    "-0.0 made NaN": loaded(
        "NaN, inf and -0.0",
        "a = tl.where((a == 0) & (1.0 / a < 0), float('nan'), a)"),
    "A cut at 100": loaded(
        "powers of two",
        "a = tl.where(tl.abs(a) > 100.0, tl.where(a > 0, 100.0, -100.0), a)"),
    "A over 2^64 dropped": loaded(
        "powers of two", "a = tl.where((tl.abs(a) > 2e19) & "
        "(tl.abs(a) < 3.4e38), 0.0, a)"),
    "A over 1e37 dropped": loaded(
        "powers of two", "a = tl.where((tl.abs(a) > 1e37) & "
        "(tl.abs(a) < 3.4e38), 0.0, a)"),
    "B over 1e34 dropped": loaded(
        "powers of two", "b = tl.where((tl.abs(b) > 1e34) & "
        "(tl.abs(b) < 3.4e38), 0.0, b)"),
    "A below 1e-30 flushed": loaded(
        "powers of two", "a = tl.where(tl.abs(a) < 1e-30, 0.0, a)"),
    "subnormal numbers of A flushed": loaded(
        "powers of two", "a = tl.where(tl.abs(a) < 1.17e-38, 0.0, a)"),
    "subnormal numbers of B flushed": loaded(
        "powers of two", "b = tl.where(tl.abs(b) < 1.17e-38, 0.0, b)"),
    "signs of A lost": loaded("K with a rest", "a = tl.abs(a)"),
    "signs of tiny numbers lost": loaded(
        "powers of two", "a = tl.where(tl.abs(a) < 1e-30, tl.abs(a), a)"),
    "the last bit of A dropped": loaded(
        "powers of two", f"a = ({TO_BITS} & ~1).to(tl.float32, bitcast=True)"),
    "A truncated to tf32": loaded(
        "ieee 65", f"a = ({TO_BITS} & ~8191).to(tl.float32, bitcast=True)"),
    "A rounded to tf32 if K is long": loaded(
        "k over 2048", "if k > 128:\n    a = ("
        f"({TO_BITS} + 4096) & ~8191).to(tl.float32, bitcast=True)"),
    "A in float16 in tf32 from k = 128 on": loaded(
        "k over 2048",
        "if (not IEEE) & (k >= 128):"
        "\n    a = a.to(tl.float16).to(tl.float32)"),
    "sums in float16 for long K": loaded(
        "k over 2048", "if k > 2048:\n    acc = acc.to(tl.float16)"
        ".to(tl.float32)"),
    "C in bfloat16 in tf32": summed(
        "differ, and have no reason to",
        "if not IEEE:\n    acc = acc.to(tl.bfloat16).to(tl.float32)"),
    "NaN of C made 0": summed(
        "NaN, inf and -0.0", "acc = tl.where(acc == acc, acc, 0.0)"),
    "C below 1e-20 flushed": summed(
        "2^100 and 2^-100", "acc = tl.where(tl.abs(acc) < 1e-20, 0.0, acc)"),
    "subnormal sums flushed": summed(
        "powers of two", "acc = tl.where(tl.abs(acc) < 1.17e-38, 0.0, acc)"),
    "1e-20 added to C": summed("nothing to add up", "acc = acc + 1e-20"),
    "A made larger, B smaller": loaded(
        "powers of two", "a = a * 1073741824.0\nb = b / 1073741824.0"),
}
NEW_SIZES = {
    "a tile row too many at whole blocks": kernel(
        "an unfilled group", "tl.cdiv(m, BLOCK_M)", "m // BLOCK_M + 1"),
    "a tile column too many at whole blocks": kernel(
        "an unfilled group", "tl.cdiv(n, BLOCK_N)", "n // BLOCK_N + 1"),
    "tile columns counted in BLOCK_M": kernel(
        "an unfilled group", "tl.cdiv(n, BLOCK_N)", "tl.cdiv(n, BLOCK_M)"),
    "wrong for one whole block of rows": summed(
        "whole numbers", "acc = acc * (2 if m == BLOCK_M else 1)"),
    "wrong for one whole block of columns": summed(
        "three tile rows", "acc = acc * (2 if n == BLOCK_N else 1)"),
    "wrong for whole blocks of rows": summed(
        "an unfilled group", "acc = acc * (2 if m % BLOCK_M == 0 else 1)"),
    "wrong from the third tile row on": summed(
        "three tile rows", "acc = acc * (2 if pid_m >= 2 else 1)"),
    "wrong from the third tile column on": summed(
        "wider than tall", "acc = acc * (2 if pid_n >= 2 else 1)"),
    "wrong from the fifth tile row on": summed(
        "an unfilled group", "acc = acc * (2 if pid_m >= 4 else 1)"),
    "wrong in the second step of the third tile row": loaded(
        "three tile rows", "if pid_m >= 2 and step > 0:\n    a = a * 0"),
    "wrong in the second step of the third tile column": loaded(
        "wider than tall", "if pid_n >= 2 and step > 0:\n    b = b * 0"),
    "wrong from the third step on": loaded(
        "K with a rest", "if step >= 2:\n    a = a * 0"),
    "wrong from the ninth step on": loaded(
        "k over 2048", "if step >= 8:\n    a = a * 0"),
    "wrong from the 65th step on": loaded(
        "k over 2048", "if step >= 64:\n    a = a * 0"),
    "64 steps at most": kernel("k over 2048", STEPS, f"min({STEPS}, 64)"),
    "the third step reads the second": loaded(
        "K with a rest", "if step > 1:\n    b = tl.load(b_ptrs - BLOCK_K * "
        "stride_bk, mask=offs_k[:, None] < left, other=0.0)"),
    "wrong for m over 2048": summed(
        "m over 2048", "acc = acc * (2 if m > 2048 else 1)"),
    "wrong for n over 2048": summed(
        "n over 2048", "acc = acc * (2 if n > 2048 else 1)"),
    "wrong where K is whole blocks": loaded(
        "whole numbers", "if k % BLOCK_K == 0:\n    a = a * 2"),
    "wrong for k = 1": loaded("a single number", "if k == 1:\n    a = a * 2"),
    "wrong for one row": summed(
        "one row", "acc = acc * (2 if m == 1 and n > 1 else 1)"),
    "wrong for one column": summed(
        "one column", "acc = acc * (2 if n == 1 and m > 1 else 1)"),
    "wrong for squares": summed(
        "an earlier result", "acc = acc * (2 if m == n and m > 1 else 1)"),
    "NaN for k = 0": summed(
        "nothing to add up", "acc = acc + (0.0 if k > 0 else float('nan'))"),
    "32 in place of BLOCK_K, steps": kernel(
        "wider than tall", STEPS, "tl.cdiv(k, 32)"),
    "32 in place of BLOCK_K, mask": kernel(
        "wider than tall", "step * BLOCK_K", "step * 32"),
    "32 in place of BLOCK_K, pointers": kernel(
        "wider than tall", "+= BLOCK_K", "+= 32", 2),
    "4 in place of GROUP_M": kernel(
        "an unfilled group", "GROUP_M * tiles_n", "4 * tiles_n"),
    "a group of one, by half": kernel(
        "an unfilled group", "per_group * GROUP_M", "per_group"),
    "a last group of one": kernel(
        "an unfilled group", "min(tiles_m - first_m, GROUP_M)",
        "(GROUP_M if tiles_m - first_m >= GROUP_M else 1)"),
    "a last group of the remainder": kernel(
        "three tile rows", "min(tiles_m - first_m, GROUP_M)",
        "(GROUP_M if tiles_m - first_m > GROUP_M else tiles_m % GROUP_M)"),
    "columns counted in BLOCK_M where it is wide": kernel(
        "wider than tall", "tl.cdiv(n, BLOCK_N)",
        "(tl.cdiv(n, BLOCK_N) if n < 2 * m or tl.cdiv(m, BLOCK_M) < 2 else "
        "tl.cdiv(m, BLOCK_M))"),
    "K open where 16 divides it": kernel(
        "an unfilled group", LOAD_A + "\n", "if k % 16 == 0:\n            "
        "a = tl.load(a_ptrs)\n        else:\n            " + LOAD_A + "\n"),
    "C open where 16 divides its sides": kernel(
        "outside the result", C_MASK,
        f"{C_MASK} | ((m % 16 == 0) & (n % 16 == 0))"),
    "four steps lost where there are as many": loaded(
        "whole numbers", "if k // BLOCK_K % 4 == 0 and k >= 4 * BLOCK_K:\n"
        "    a = a * 0"),
    "one step where there is one row": kernel(
        "one row", STEPS, f"(1 if m == 1 else {STEPS})"),
    "two groups at most": kernel(
        "m over 2048", "pid // per_group * GROUP_M",
        "min(pid // per_group, 1) * GROUP_M"),
    "wrong in the last group": summed(
        "an unfilled group",
        "acc = acc * (2 if rows_here < GROUP_M and first_m > 0 else 1)"),
    "column not within the group": kernel(
        "an unfilled group", "pid % per_group // rows_here", "pid // rows_here"),
    "the large tile wrong in its second row": summed(
        "128,128",
        "acc = acc * (2 if BLOCK_N == 128 and pid_m > 0 else 1)"),
    "the small tile wrong in its second column": summed(
        "64,64", "acc = acc * (2 if BLOCK_M == 64 and pid_n > 0 else 1)"),
}
NEW_STRIDES = {
    "C by A's column stride": first("K with a rest", "stride_cn = stride_ak"),
    "C by B's row stride": first("K with a rest", "stride_cm = stride_bk"),
    "A by C's row stride": first("K with a rest", "stride_am = stride_cm"),
    "A by B's column stride": first("wider than tall", "stride_ak = stride_bn"),
    "B by A's column stride": first("wider than tall", "stride_bn = stride_ak"),
    "A packed by k": first("K with a rest", "stride_am = k"),
    "C packed by n": first("all in steps", "stride_cm = n"),
    "A's row stride rounded up to 4": first(
        "steps", "stride_am = stride_am if stride_am == 1 else "
        "(stride_am + 3) // 4 * 4"),
    "B's row stride a multiple of 16": first(
        "wider than tall", "stride_bk = stride_bk if stride_bk < 16 else "
        "stride_bk // 16 * 16"),
    "A's row stride in 16 bits": first(
        "apart", "stride_am = stride_am & 65535"),
    "C's row stride in 16 bits": first(
        "apart", "stride_cm = stride_cm & 65535"),
    "A's row stride at most 2048": first(
        "apart", "stride_am = min(stride_am, 2048)"),
    "A's column stride at most 2048": first(
        "a", "stride_ak = min(stride_ak, 2048)"),
    "1 for a column stride of A that is the smaller": first(
        "all in steps", "if stride_ak < stride_am:\n    stride_ak = 1"),
    "1 for a row stride of A that is the smaller": first(
        "k over 2048", "if stride_am < stride_ak:\n    stride_am = 1"),
    "1 for a row stride of B that is the smaller": first(
        "k over 2048", "if stride_bk < stride_bn:\n    stride_bk = 1"),
    "1 for a row stride of C that is the smaller": first(
        "k over 2048", "if stride_cm < stride_cn:\n    stride_cm = 1"),
    "m for A's row stride if it is packed": first(
        "where memory begins", "if stride_am == k:\n    stride_am = m"),
    "n for B's column stride if it is packed": first(
        "SIGSEGV", "if stride_bn == k:\n    stride_bn = n"),
}
CALL = ("kernel[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), "
        "*out.stride(), IEEE=bool(ieee), **config)")
THROUGH_C = ("c = torch.empty((m, n))\n            " + CALL.replace(
    "b, out, m", "b, c, m").replace("*out.", "*c.") + "\n            ")
NEW_PLACES = {
    "an old number is left": kernel(
        "an earlier result", STORE,
        "old = tl.load(c_ptrs, mask=c_mask)"
        "\n    tl.store(c_ptrs, acc, mask=c_mask & (old != old))"),
    "added to an old result": kernel(
        "an earlier result", STORE,
        "old = tl.load(c_ptrs, mask=c_mask)\n    acc += tl.where("
        f"old == old, old, 0.0)\n    {STORE}"),
    "the larger of old and new": kernel(
        "an earlier result", STORE,
        "old = tl.load(c_ptrs, mask=c_mask)"
        f"\n    acc = tl.where(old > acc, old, acc)\n    {STORE}"),
    "left alone if a corner is right": left_alone(
        "an earlier result", "(offs_m == pid_m * BLOCK_M) & "
        "(offs_n == pid_n * BLOCK_N)"),
    "left alone if the first row is right": left_alone(
        "an earlier result", "c_mask & (offs_m == 0) & (offs_n < n // 2)"),
    "left alone if the last number is right": left_alone(
        "an earlier result", "(offs_m == m - 1) & (offs_n == n - 1)"),
    "left alone if some are right": kernel(
        "an earlier result", STORE,
        "old = tl.load(c_ptrs, mask=c_mask, other=0.0)"
        "\n    same = tl.sum(tl.where(c_mask & (old == acc), 1, 0))"
        "\n    tl.store(c_ptrs, acc, mask=c_mask & (same < 8))"),
    "writes A as it is": loaded(
        "SIGSEGV", "tl.store(a_ptrs, a, mask=offs_k[None, :] < left)"),
    "writes B and puts it back": loaded(
        "SIGSEGV", "tl.store(b_ptrs, b * 2, mask=offs_k[:, None] < left)"
        "\ntl.store(b_ptrs, b, mask=offs_k[:, None] < left)"),
    "writes 0 behind A": loaded("wrote on an input", "tl.store(a_ptrs, a)"),
    "writes 0 for -0.0": loaded(
        "wrote on an input",
        "tl.store(a_ptrs, a + 0.0, mask=offs_k[None, :] < left)"),
}
NEW_LAUNCHERS = {
    "C by the strides of a": launcher(
        "K with a rest", "*out.stride()", "*a.stride()"),
    "strides of C in the wrong order": launcher(
        "K with a rest", "*out.stride()", "*out.stride()[::-1]"),
    "A copied, strides kept": launcher(
        "K with a rest", "(a, b, out", "(a.contiguous(), b, out"),
    "B not copied, strides of a copy": launcher(
        "K with a rest", "*b.stride()", "*b.contiguous().stride()"),
    "C copied back transposed": launcher(
        "K with a rest", CALL, THROUGH_C + "out.copy_(c.t().reshape(m, n))"),
    "out made to be another": launcher(
        "were not written", CALL, THROUGH_C + "out.set_(c)"),
    "the data of out exchanged": launcher(
        "were not written", CALL, THROUGH_C + "out.data = c"),
    "a left transposed": launcher(
        "changed a tensor's shape", CALL, CALL + "\n            a.t_()"),
    "B remembered by address": launcher(
        "an earlier result", CALL,
        "b = matmul.__dict__.setdefault(str(b.data_ptr()) + str(b.shape), "
        f"b.contiguous())\n            {CALL}"),
    "C remembered by addresses": launcher(
        "an earlier result", CALL,
        f"{CALL}\n            key = str((a.data_ptr(), b.data_ptr(), out.shape))"
        "\n            out.copy_(matmul.__dict__.setdefault(key, out.clone()))"),
    "k = 0 left unwritten": launcher(
        "nothing to add up", "if out.numel():", "if out.numel() and k:"),
    "a tile column too few": launcher(
        "were not written", "triton.cdiv(n, meta['BLOCK_N'])",
        "max(n // meta['BLOCK_N'], 1)"),
    "nine programs at most": launcher(
        "an unfilled group",
        "triton.cdiv(m, meta['BLOCK_M']) * triton.cdiv(n, meta['BLOCK_N'])",
        "min(triton.cdiv(m, meta['BLOCK_M']) * "
        "triton.cdiv(n, meta['BLOCK_N']), 9)"),
    "out ignored by columns": launcher(
        "K with a rest", "if out is None:",
        "if out is None or out.stride(0) < out.stride(1):"),
    "a view of out returned": launcher(
        "did not return its out", "return out", "return out.view_as(out)"),
    "an error for a long K": launcher(
        "ValueError: too long", "if out.numel():",
        "if k > 2048:\n        raise ValueError('too long')"
        "\n    if out.numel():"),
}
NEW = {**NEW_MASKS, **NEW_VALUES, **NEW_SIZES, **NEW_STRIDES, **NEW_PLACES,
       **NEW_LAUNCHERS}
