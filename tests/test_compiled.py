"""The compiled kernels, for cards that need not be here.

Each test compiles in a process of its own, since in this one Triton may be
interpreting; so the tests run side by side, and any Triton that PYTHONPATH
puts first is the one tested.
"""
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, clean_env

# Shared memory a block may have, in KB of 1024 bytes: CUDA programming guide,
# "Compute Capabilities", technical specifications.
LIMITS = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}
TUNED = ROOT / "exercises" / "4_autotune" / "solution" / "autotuned.py"
WORKER = """
import json, os, sys, triton, triton_softmax_matmul as t
from triton.backends.nvidia.compiler import CUDABackend
capability, limit, which, cache = *map(int, sys.argv[1:3]), *sys.argv[3:]
rows = []
def row(what, kernel, settings):
    compiled = t.compile_for(capability, kernel, **settings)
    rows.append((what, triton.__version__, settings, compiled.metadata.shared,
                 compiled.asm["ptx"]))
if which == "tuned":
    import autotuned
    configs = [c.all_kwargs() for c in autotuned.matmul_kernel.configs]
    configs = [{name: value for name, value in c.items() if value is not None
                and name != "ir_override"} for c in configs]
    # Without the lesson's, and without those that cannot fit: of the stages'
    # tiles of A and B, shared memory holds all but one at least.
    configs = [c for c in configs if not any(
        c.items() >= lesson.items() for lesson in t.CONFIGS) and limit >= 4 * (
            c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] * (c["num_stages"] - 1)]
else:
    configs = t.CONFIGS
    for warps in (1, 2, 4, 8, 16):
        row("softmax", t.softmax_kernel, dict(BLOCK_COLS=1024, num_warps=warps))
    for cols in (384, 512, 2048, 4096, 8192, 16384, 32768, 65536):
        block = triton.next_power_of_2(cols)  # as the launcher has it
        row("softmax", t.softmax_kernel, dict(
            BLOCK_COLS=block, num_warps=min(max(block // 512, 1), 32)))
for config in configs:
    for strides in t.UNIT_STRIDES.values():
        row("tf32", t.matmul_kernel, {**config, "IEEE": False, **strides})
# LLVM's optimizer and ptxas take most of ieee's time, and what is looked at is
# settled before them: left out, but for once, with a cache of their own.
if which == "tuned" or capability != 80:
    os.environ["DISABLE_LLVM_OPT"], os.environ["TRITON_CACHE_DIR"] = "1", cache
    CUDABackend.make_cubin = lambda *_: b""
for config in configs:
    for strides in t.UNIT_STRIDES.values():
        row("ieee", t.matmul_kernel, {**config, "IEEE": True, **strides})
print(json.dumps(rows))
"""


def compiled(capability, which, cache):
    """Rows (what, Triton's version, settings, shared bytes, PTX); cache is a
    directory for what is compiled in part."""
    path = f"{ROOT}:{TUNED.parent}:{clean_env().get('PYTHONPATH', '')}"
    result = subprocess.run(
        [sys.executable, "-c", WORKER, str(capability),
         str(1024 * LIMITS[capability]), which, str(cache)], text=True,
        capture_output=True, env=clean_env(
            PYTHONPATH=path, TRITON_DISABLE_LINE_INFO=1))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def right(capability, what, version, settings, shared, ptx):
    """Assert what must hold for one compiled kernel."""
    def count(pattern):
        return len(re.findall(pattern, ptx))
    tensor = count(r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)\.")
    fma = count(r"\bfma\.rn\.f32\s") + 2 * count(r"\bfma\.rn\.f32x2\s")
    assert shared <= 1024 * LIMITS[capability]
    if what == "softmax":
        # Two reductions; one warp alone needs neither memory nor barrier.
        barriers = 3 if version >= "3.8" else 5
        alone = settings["num_warps"] == 1
        assert count(r"\bbar(?:rier)?\.(?:cta\.)?sync") == (
            0 if alone else barriers)
        assert bool(shared) is not alone and not tensor
        assert count(r"\.local\b") == 0
    elif what == "ieee":
        assert not tensor and "tf32" not in ptx
        # One step of the loop, shared out among the threads: no product is
        # left out, and none is made of a multiply and an add.
        assert fma == settings["BLOCK_M"] * settings["BLOCK_N"] * settings[
            "BLOCK_K"] // (32 * settings["num_warps"])
    else:
        assert not fma and tensor == count(
            r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)\.\S*tf32") > 0


# Those with an instruction of their own for tf32 in CI, and the rest by hand.
IN_CI = pytest.mark.parametrize("capability", [
    pytest.param(capability, id=f"sm_{capability}", marks=[
        pytest.mark.slow if capability in (80, 90, 120) else
        pytest.mark.thorough]) for capability in LIMITS])


@IN_CI
def test_lesson(capability, tmp_path):
    rows = compiled(capability, "lesson", tmp_path)
    for row in rows:
        right(capability, *row)
    assert len(rows) == 5 + 8 + 3 * 2 * 2


@pytest.mark.thorough
@pytest.mark.skipif(not TUNED.exists(), reason="there is no solution to tune")
@pytest.mark.parametrize("capability", LIMITS, ids="sm_{}".format)
def test_tuned(capability, tmp_path):
    """The exercise's solution; what does not fit a card, the search skips."""
    rows = compiled(capability, "tuned", tmp_path)
    fit = [row for row in rows if row[3] <= 1024 * LIMITS[capability]]
    for row in fit:
        right(capability, *row)
    # Both precisions and layouts of at least half of the configs.
    assert len(fit) >= 2 * 2 * 6
