"""A `run` of its own on the jitted kernel, which calls torch.mm."""
import torch
from _parts import tuned

import triton_softmax_matmul as t


def by_torch(a, b, c, *arguments, **settings):
    """What somebody else's kernel computes."""
    torch.mm(a, b, out=c)


matmul_kernel = tuned(t.matmul_kernel)
matmul_kernel.fn.run = by_torch
