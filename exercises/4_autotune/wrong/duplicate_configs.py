"""Eight configs, the same four twice."""
from _parts import configs, tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, space=configs()[:4] * 2)
