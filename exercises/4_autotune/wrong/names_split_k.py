"""A config names SPLIT_K, which the kernel has not."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs(SPLIT_K=2))
