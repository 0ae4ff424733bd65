"""What the tests of the judge share: how it is run, and submissions for it."""
import os
import subprocess
import sys

from conftest import GPU, ROOT, clean_env

EXERCISES = ROOT / "exercises"
CHECK = EXERCISES / "check.py"

# A submission begins with this: eight configs, and a key that is right.
BEGIN = f"""
import sys
sys.path.append({str(ROOT)!r})
import triton
import triton.language as tl
import triton_softmax_matmul as t

KEY = ["m", "n", "k", "IEEE", "stride_ak", "stride_bk"]


def configs(**more):
    made = []
    for block_m in (32, 64):
        for num_warps in (2, 4):
            for num_stages in (2, 3):
                made.append(triton.Config(
                    {{"BLOCK_M": block_m, "BLOCK_N": 32, "BLOCK_K": 32,
                     "GROUP_M": 3, **more}}, num_warps=num_warps,
                    num_stages=num_stages))
    return made
"""

# The parameters of a kernel of one's own, and its body in two halves.
HEAD = """
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak,
                  stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
                  IEEE: tl.constexpr{more}):
"""
BODY = """
    pid = tl.program_id(0)
    across = tl.cdiv(n, BLOCK_N)
    rows = (pid // across * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (pid % across * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_ptr + rows % m * stride_am + (start + ks[None, :])
                    * stride_ak, mask=ks[None, :] < k - start, other=0.0)
        b = tl.load(b_ptr + (start + ks[:, None]) * stride_bk + cols % n
                    * stride_bn, mask=ks[:, None] < k - start, other=0.0)
        {dot}
    tl.store(c_ptr + rows * stride_cm + cols * stride_cn, {stored},
             mask=(rows < m) & (cols < n))
"""
DOT = 'acc = tl.dot(a, b, acc, input_precision="ieee" if IEEE else "tf32")'
TUNED = """
matmul_kernel = triton.autotune(configs(), KEY)(matmul_kernel)
"""
LESSONS = """
matmul_kernel = triton.autotune(configs(), KEY)(t.matmul_kernel)
"""


def own_kernel(dot=DOT, more="", stored="acc", tuned=TUNED, before=""):
    """A submission with a kernel of its own."""
    return (BEGIN + before + HEAD.format(more=more)
            + BODY.format(dot=dot, stored=stored) + tuned)


def judge(*arguments, cwd=None, flags=(), shell=":", check=CHECK, **env):
    """Run the judge in the mode of these tests; the completed process.

    shell is what a shell does before it becomes the judge; flags go to Python.
    """
    mode = {"OMP_NUM_THREADS": "1"}
    if not GPU:
        mode["TRITON_INTERPRET"] = "1"
    return subprocess.run(
        ["/bin/sh", "-c", shell + '; exec "$0" "$@"', sys.executable, *flags,
         os.fspath(check), *map(str, arguments)], text=True, cwd=cwd,
        env=clean_env(**(mode | env)), capture_output=True, timeout=1800)
