"""A function that calls torch in the kernel's place."""
import torch


def matmul_kernel(a, b, ieee):
    """a @ b, by somebody else's kernel."""
    return torch.mm(a, b)
