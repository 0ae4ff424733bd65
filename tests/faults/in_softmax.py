"""Faults in the softmax: its kernel, then its launcher.

Each was told to whom it belongs by its run: `seen` are words of the complaint
that it has to cause.
"""
from planted import Edit, Fault, one


def kernel(seen, old, new, times=1):
    """A fault of one edit in the softmax kernel."""
    return one(seen, "softmax_kernel", old, new, times)


def launcher(seen, old, new, times=1):
    """A fault of one edit in the softmax launcher."""
    return one(seen, "softmax", old, new, times)


X = "x = tl.load(in_ptr + row * row_stride + cols, mask=mask, other=-float('inf'))"
NUM = "num = tl.exp(x - tl.max(x, axis=0))"
SHARE = "num / tl.sum(num, axis=0)"
STORE = f"tl.store(out_ptr + row * row_stride + cols, {SHARE}, mask=mask)"

OLD = {
    "pad of 0": kernel("all near -50", "-float('inf')", "0.0"),
    "no maximum": kernel("all near 3000", "x - tl.max(x, axis=0)", "x"),
    "minimum": kernel("one spike", "tl.max(x", "tl.min(x"),
    "load not masked": kernel(
        "one lane masked", ", mask=mask, other=-float('inf')", ""),
    "store not masked": kernel(
        "wrote outside the result", f"{SHARE}, mask=mask", SHARE),
    "sum before exp": kernel("a full block", "tl.sum(num", "tl.sum(x"),
    "sum of the maximum": kernel("constant", "tl.sum(num", "tl.max(num"),
    "no division": kernel("constant", SHARE, "num"),
    "exp2": kernel("a full block", "tl.exp(x", "tl.exp2(x"),
    "rows packed, load": kernel(
        "a full block", "in_ptr + row * row_stride", "in_ptr + row * n_cols"),
    "rows packed, store": kernel(
        "wrote outside the result",
        "out_ptr + row * row_stride", "out_ptr + row * n_cols"),
    "rows packed, both": kernel(
        "a full block", "row * row_stride", "row * n_cols", 2),
    "every row the first": kernel(
        "first at [1, 0]", "row * row_stride", "row * 0", 2),
    "a column too many": kernel(
        "one lane masked", "cols < n_cols", "cols <= n_cols"),
    "a column too few": kernel(
        "one column", "cols < n_cols", "cols < n_cols - 1"),
    "half a block": launcher(
        "a full block", "block = triton.next_power_of_2(cols)",
        "block = max(triton.next_power_of_2(cols) // 2, 1)"),
    "float16 weights": kernel(
        "a full block", NUM, NUM + ".to(tl.float16).to(tl.float32)"),
    "zeros": kernel("one column", SHARE, "num * 0"),
    "uniform": kernel("one spike", SHARE, "num * 0 + 1.0 / n_cols"),
    "NaN": kernel("one column", SHARE, "num * float('nan')"),
    "NaN made 0": kernel(
        "a NaN in a row", SHARE, f"tl.where(num == num, {SHARE}, 0)"),
    "wrong at 1024 alone": kernel(
        "a full block", SHARE, f"{SHARE} * (1 + (n_cols == 1024))"),
    "kernel writes its input": kernel(
        "wrote on an input", NUM,
        f"tl.store(in_ptr + row * row_stride + cols, x + 1, mask=mask)"
        f"\n    {NUM}"),
    "softmax ignores out": launcher(
        "a full block", "if out is None:", "if True:"),
    "softmax in place": launcher(
        "wrote on an input", "source, target, source", "source, source, source"),
    "copy not copied": launcher(
        "columns first, out in steps", "out.copy_(target)", "pass"),
    "softmax's copy returned": launcher(
        "columns first, out in steps", "out.copy_(target)", "return target"),
    "softmax returns x": launcher(
        "did not return its out", "return out", "return x"),
    "rows counted in int32": kernel(
        "SIGSEGV", ".to(tl.int64)", ""),
}

NEW_MASKS = {
    "load not masked in wide rows": kernel(
        "wide rows", NUM,
        "if BLOCK_COLS > 512:\n        x = tl.load(in_ptr + row * row_stride"
        f" + cols)\n    {NUM}"),
    "load not masked from row 4 on": kernel(
        "many rows", NUM,
        "if row > 3:\n        x = tl.load(in_ptr + row * row_stride + cols)"
        f"\n    {NUM}"),
    "store not masked from row 4 on": kernel(
        "many rows", f"{SHARE}, mask=mask", f"{SHARE}, mask=mask | (row > 3)"),
    "not masked, NaN made -inf": kernel(
        "one lane masked", X, "x = tl.load(in_ptr + row * row_stride + cols)"
        "\n    x = tl.where(x == x, x, -float('inf'))"),
    "not masked, NaN and large made -inf": kernel(
        "huge", X, "x = tl.load(in_ptr + row * row_stride + cols)"
        "\n    x = tl.where(x < 1e29, x, -float('inf'))"),
    "not masked, replaced afterwards": kernel(
        "SIGSEGV", X, "x = tl.load(in_ptr + row * row_stride + cols)"
        "\n    x = tl.where(mask, x, -float('inf'))"),
    "wrapped in place of a mask": kernel(
        "one lane masked", X,
        "x = tl.load(in_ptr + row * row_stride + cols % n_cols)"),
    "NaN stored in the overhang": kernel(
        "wrote outside the result", f"{SHARE}, mask=mask",
        f"tl.where(mask, {SHARE}, float('nan'))"),
    "own value stored in the overhang": kernel(
        "SIGSEGV", STORE,
        "old = tl.load(out_ptr + row * row_stride + cols)\n    tl.store("
        f"out_ptr + row * row_stride + cols, tl.where(mask, {SHARE}, old))"),
    "load masked by fours": kernel(
        "one lane masked", "mask=mask, other",
        "mask=cols < (n_cols + 3) // 4 * 4, other"),
    "store masked by fours": kernel(
        "wrote outside the result", f"{SHARE}, mask=mask",
        f"{SHARE}, mask=cols < (n_cols + 3) // 4 * 4"),
    "last column not loaded": kernel(
        "one lane masked", "mask=mask, other",
        "mask=(cols < n_cols - 1) | (n_cols == 1), other"),
    "last column not stored": kernel(
        "were not written", f"{SHARE}, mask=mask",
        f"{SHARE}, mask=cols < n_cols - 1"),
    "pad of -1000": kernel("all near -3000", "-float('inf')", "-1000.0"),
    "pad of -1e30": kernel("huge", "-float('inf')", "-1e30"),
}
NEW_VALUES = {
    "maximum not below 0": kernel(
        "all near -3000", "x - tl.max(x, axis=0)",
        "x - tl.maximum(tl.max(x, axis=0), 0.0)"),
    "maximum not over 50": kernel(
        "all near 3000", "x - tl.max(x, axis=0)",
        "x - tl.minimum(tl.max(x, axis=0), 50.0)"),
    "maximum not below -1e38": kernel(
        "huge", "x - tl.max(x, axis=0)",
        "x - tl.maximum(tl.max(x, axis=0), -1e38)"),
    "maximum of the sizes": kernel(
        "all near -50", "tl.max(x, axis=0)",
        "tl.max(tl.where(mask, tl.abs(x), 0.0), axis=0)"),
    "maximum of the first half": kernel(
        "one spike", "tl.max(x, axis=0)",
        "tl.max(tl.where((cols < BLOCK_COLS // 2) | (n_cols == 1), x, "
        "-float('inf')), axis=0)"),
    "mean for maximum": kernel(
        "one spike", "tl.max(x, axis=0)",
        "tl.sum(tl.where(mask, x, 0.0), axis=0) / n_cols"),
    "no maximum where it is small": kernel(
        "all near -3000", NUM,
        "biggest = tl.max(x, axis=0)\n    num = tl.exp(x - ("
        "biggest if biggest > 10 else 0.0))"),
    "maximum in float16": kernel(
        "huge", "tl.max(x, axis=0)",
        "tl.max(x, axis=0).to(tl.float16).to(tl.float32)"),
    "sum of 1024 columns": kernel(
        "wide rows", "tl.sum(num,", "tl.sum(tl.where(cols < 1024, num, 0.0),"),
    "sum in float16": kernel(
        "a full block", "tl.sum(num, axis=0)",
        "tl.sum(num, axis=0).to(tl.float16).to(tl.float32)"),
    "sum and 1e-5": kernel(
        "row sums", "tl.sum(num, axis=0)", "(tl.sum(num, axis=0) + 1e-5)"),
    "NaN taken for -inf": kernel(
        "a NaN in a row", NUM,
        f"x = tl.where(x == x, x, -float('inf'))\n    {NUM}"),
    "NaN alone is NaN": Fault("a NaN in a row", [
        Edit("softmax_kernel", NUM,
             "y = tl.where(x == x, x, -float('inf'))"
             "\n    num = tl.exp(y - tl.max(y, axis=0))"),
        Edit("softmax_kernel", SHARE, f"tl.where(x == x, {SHARE}, x)")]),
    "inf taken for a number": kernel(
        "an inf in a row", NUM,
        f"x = tl.where(x == float('inf'), 3e38, x)\n    {NUM}"),
    "inf takes all": kernel(
        "an inf in a row", NUM,
        "biggest = tl.max(x, axis=0)\n    num = tl.where(x == float('inf'), 1.0,"
        " tl.where(biggest == float('inf'), 0.0, tl.exp(x - biggest)))"),
    "-inf taken for -100": kernel(
        "a row of -inf", NUM,
        f"x = tl.where(mask & (x == -float('inf')), -100.0, x)\n    {NUM}"),
    "a row of -inf made uniform": kernel(
        "a row of -inf", NUM,
        "none = tl.where(mask, 0.0, -float('inf'))"
        f"\n    x = tl.where(tl.max(x, axis=0) == -float('inf'), none, x)"
        f"\n    {NUM}"),
    "cut at 2^64": kernel(
        "huge", NUM,
        f"x = tl.where((x > 2e19) & (x < 3.4e38), 2e19, x)\n    {NUM}"),
    "cut at -1e4": kernel(
        "huge", NUM,
        "x = tl.where((x < -1e4) & (x > -float('inf')), -1e4, x)"
        f"\n    {NUM}"),
    "tiny taken for 1": kernel(
        "tiny", NUM,
        f"x = tl.where((tl.abs(x) < 1e-20) & (x != 0), 1.0, x)\n    {NUM}"),
    "0 taken for 1": kernel(
        "zeros of both signs", NUM,
        f"x = tl.where(x == 0, 1.0, x)\n    {NUM}"),
    "-0.0 taken for 1": kernel(
        "zeros of both signs", NUM,
        f"x = tl.where((x == 0) & (1.0 / x < 0), 1.0, x)\n    {NUM}"),
    "weights under 1e-4 dropped": kernel(
        "all near -3000", NUM, f"{NUM}\n    num = tl.where(num < 1e-4, 0.0, num)"),
    "shares over 0.99 made 1": kernel(
        "one spike", SHARE, f"tl.where({SHARE} > 0.99, 1.0, {SHARE})"),
    "shares at most a half": kernel(
        "one spike", SHARE, f"tl.minimum({SHARE}, 0.5)"),
    "log of e cut short": kernel(
        "a full block", "tl.exp(x - tl.max(x, axis=0))",
        "tl.exp2((x - tl.max(x, axis=0)) * 1.4427)"),
    "x in bfloat16 in wide rows": kernel(
        "wide rows", NUM, "if n_cols > 4096:\n        x = x.to(tl.bfloat16)"
        f".to(tl.float32)\n    {NUM}"),
}
NEW_PLACES = {
    "wrong from the fourth row on": kernel(
        "many rows", SHARE, f"{SHARE} * (2 if row >= 3 else 1)"),
    "wrong from the 33rd row on": kernel(
        "many rows", SHARE, f"{SHARE} * (2 if row >= 32 else 1)"),
    "rows counted modulo 32": kernel(
        "many rows", "tl.program_id(0)", "(tl.program_id(0) % 32)"),
    "row stride in 16 bits": kernel(
        "wide rows", "row * row_stride", "row * (row_stride & 65535)", 2),
    "wrong for odd columns": kernel(
        "one lane masked", SHARE,
        f"{SHARE} * (2 if n_cols % 2 == 1 and n_cols > 1 else 1)"),
    "wrong over 4096 columns": kernel(
        "wide rows", SHARE, f"{SHARE} * (2 if n_cols > 4096 else 1)"),
    "wrong in a full block": kernel(
        "a full block", SHARE, f"{SHARE} * (2 if n_cols == BLOCK_COLS else 1)"),
    "row numbers of 32 bits without a sign": kernel(
        "2^30 elements apart", "tl.int64", "tl.uint32"),
    "open where 16 divides the row": kernel(
        "an earlier result", "mask = cols < n_cols",
        "mask = (cols < n_cols) | (n_cols % 16 == 0)"),
    "shares of 2e-9 at least": kernel(
        "small shares are off", NUM,
        "num = tl.where(mask, tl.exp(tl.maximum(x - tl.max(x, axis=0), "
        "-20.0)), 0.0)"),
    "row stride rounded up to 4": kernel(
        "SIGSEGV", "row * row_stride",
        "row * ((row_stride + 3) // 4 * 4)", 2),
    "row stride a multiple of 16": kernel(
        "one column", "row * row_stride", "row * (row_stride // 16 * 16)", 2),
    "stored from the last to the first": kernel(
        "a full block", "out_ptr + row * row_stride + cols",
        "out_ptr + row * row_stride + n_cols - 1 - cols"),
    "an old number is left": kernel(
        "an earlier result", STORE,
        "old = tl.load(out_ptr + row * row_stride + cols, mask=mask)"
        f"\n    {STORE[:-1]} & (old != old))"),
    "an old row is left": kernel(
        "an earlier result", STORE,
        "old = tl.load(out_ptr + row * row_stride + cols, mask=mask, other=0.0)"
        "\n    good = tl.abs(tl.sum(old, axis=0) - 1) < 1e-3"
        f"\n    {STORE.replace(SHARE, f'tl.where(good, old, {SHARE})')}"),
    "added to an old result": kernel(
        "an earlier result", STORE,
        "old = tl.load(out_ptr + row * row_stride + cols, mask=mask)"
        f"\n    {STORE.replace(SHARE, f'{SHARE} + tl.where(old == old, old, 0.0)')}"),
    "writes its input behind the row": kernel(
        "wrote on an input", NUM,
        f"tl.store(in_ptr + row * row_stride + cols, x)\n    {NUM}"),
    "writes its input as it is": kernel(
        "SIGSEGV", NUM,
        f"tl.store(in_ptr + row * row_stride + cols, x, mask=mask)\n    {NUM}"),
    "writes its input and puts it back": kernel(
        "SIGSEGV", NUM,
        "tl.store(in_ptr + row * row_stride + cols, x * 2, mask=mask)"
        "\n    tl.store(in_ptr + row * row_stride + cols, x, mask=mask)"
        f"\n    {NUM}"),
    "reads before the row": kernel(
        "SIGSEGV", NUM,
        "before = tl.load(in_ptr + row * row_stride + cols - 1, mask=mask)"
        f"\n    {NUM}"),
    "reads the next row": kernel(
        "SIGSEGV", NUM,
        "after = tl.load(in_ptr + (row + 1) * row_stride + cols, mask=mask)"
        f"\n    {NUM}"),
}
COND = "x.stride() != out.stride() or x.stride(1) != 1"
NEW_LAUNCHERS = {
    "x alone decides on a copy": launcher("softmax", COND, "x.stride(1) != 1"),
    "equal strides are enough": launcher(
        "softmax", COND, "x.stride() != out.stride()"),
    "steps along rows are enough": launcher(
        "softmax", COND, "x.stride(1) != 1 or out.stride(1) != 1"),
    "never copied": launcher("softmax", COND, "False"),
    "out written as if packed": launcher(
        "softmax", "if not out.is_contiguous():", "if out.stride(1) != 1:"),
    "stride of x for its copy": launcher(
        "softmax", "source.stride(0)", "x.stride(0)"),
    "copied back transposed": launcher(
        "columns first, out in steps", "out.copy_(target)",
        "out.copy_(target.reshape(cols, rows).t())"),
    "out made to be the copy": launcher(
        "columns first, out in steps", "out.copy_(target)",
        "out.set_(target)"),
    "x made to be its copy": launcher(
        "softmax", "source = x.contiguous()",
        "source = x.contiguous()\n        x.set_(source)"),
    "a row too few": launcher(
        "a full block", "kernel[rows,]", "kernel[max(rows - 1, 1),]"),
    "a row too many": launcher(
        "wrote outside the result", "kernel[rows,]", "kernel[rows + 1,]"),
    "a program for each column": launcher(
        "ended by", "kernel[rows,]", "kernel[cols,]"),
    "at most 1024 columns": launcher(
        "wide rows", "block = triton.next_power_of_2(cols)",
        "block = min(triton.next_power_of_2(cols), 1024)"),
    "a view of out returned": launcher(
        "did not return its out", "return out", "return out.view_as(out)"),
    "remembered by address": launcher(
        "an earlier result", "if target is not out:",
        "old = softmax.__dict__.setdefault((x.data_ptr(), rows), target.clone())"
        "\n    target.copy_(old)\n    if target is not out:"),
    "refuses wide rows": launcher("columns", "<= 65536", "<= 4096"),
}
NEW = {**NEW_MASKS, **NEW_VALUES, **NEW_PLACES, **NEW_LAUNCHERS}
