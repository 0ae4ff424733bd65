"""Names that are no parameter: left out before Triton 3.9."""
from _parts import tuned

import triton_softmax_matmul as t

matmul_kernel = tuned(t.matmul_kernel, ["M", "N", "K", "IEEE", "stride_bk"])
