"""Seven configs where eight are the least."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs()[:7])
