"""A block of 8, which tl.dot does not take."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs() + configs((8, 32, 4)))
