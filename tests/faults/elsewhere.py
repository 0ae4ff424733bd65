"""Faults that no run under the interpreter can show.

PROBED are in what a launcher asks for where nobody gave an out, or in the one
argument that the interpreter does not heed. EMITTED and LOADED are in what the
compiled code does: with which multiplier, and what a masked lane holds.
"""
from planted import Edit


def edit(where, old, new, times=1):
    """The edits of a fault: one."""
    return [Edit(where, old, new, times)]


PROBED = {
    "always ieee": edit("matmul", "IEEE=bool(ieee)", "IEEE=True"),
    "ieee inverted": edit("matmul", "IEEE=bool(ieee)", "IEEE=not ieee"),
    "ieee as a word": edit("matmul", "IEEE=bool(ieee)", "IEEE=ieee == 'ieee'"),
    "the lesson's kernel in every case, softmax": edit(
        "softmax", "if kernel is None:", "if True:"),
    "the lesson's kernel in every case, matmul": edit(
        "matmul", "if kernel is None:", "if True:"),
    "the lesson's config in every case": edit(
        "matmul", "if config is None:", "if True:"),
    "the config is changed": edit(
        "matmul", "if kernel is None:",
        "config['num_warps'] = 1\n    if kernel is None:"),
    "softmax in place without out": edit(
        "softmax", "out = torch.empty(x.shape, dtype=x.dtype, device=x.device)",
        "out = x"),
    "new memory of the wrong shape": edit(
        "matmul", "out = torch.empty((m, n), ", "out = torch.empty((n, m), "),
}
EMITTED = {
    "tf32 in ieee": edit(
        "matmul_kernel", "acc, input_precision='ieee'",
        "acc, input_precision='tf32'"),
    "ieee in tf32": edit(
        "matmul_kernel", "acc, input_precision='tf32'",
        "acc, input_precision='ieee'"),
    "tf32x3 in ieee": edit(
        "matmul_kernel", "acc, input_precision='ieee'",
        "acc, input_precision='tf32x3'"),
    "the default in both": [
        Edit("matmul_kernel", "acc, input_precision='ieee'", "acc"),
        Edit("matmul_kernel", "acc, input_precision='tf32'", "acc")],
    "branches swapped": edit("matmul_kernel", "if IEEE:", "if not IEEE:"),
    "bfloat16 in tf32": edit(
        "matmul_kernel", "tl.dot(a, b, acc, input_precision='tf32'",
        "tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), acc"),
    "float16 in ieee": edit(
        "matmul_kernel", "tl.dot(a, b, acc, input_precision='ieee'",
        "tl.dot(a.to(tl.float16), b.to(tl.float16), acc"),
}
LOADED = {
    "masked lanes of A hold anything": edit(
        "matmul_kernel", "offs_k[None, :] < left, other=0.0",
        "offs_k[None, :] < left"),
    "masked lanes of B hold anything": edit(
        "matmul_kernel", "offs_k[:, None] < left, other=0.0",
        "offs_k[:, None] < left"),
    "masked lanes of a row hold anything": edit(
        "softmax_kernel", "mask=mask, other=-float('inf')", "mask=mask"),
}
