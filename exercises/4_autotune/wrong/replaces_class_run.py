"""Replaces `run` of Triton's own class of kernels."""
from _parts import tuned

import triton_softmax_matmul as t

kind = type(t.matmul_kernel)
before = kind.run


def run(kernel, *arguments, **settings):
    """Triton's, and whatever else the file likes."""
    return before(kernel, *arguments, **settings)


kind.run = run
matmul_kernel = tuned(t.matmul_kernel)
