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
TUNED = ROOT / "exercise" / "solution" / "autotuned.py"
WORKER = """
import json, sys, triton, triton_softmax_matmul as t
capability, which = int(sys.argv[1]), sys.argv[2]
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
    precisions = "tf32",  # ieee would take minutes and no more memory
else:
    configs, precisions = t.CONFIGS, t.PRECISIONS
    for warps in (1, 2, 4, 8, 16):
        row("softmax", t.softmax_kernel, dict(BLOCK_COLS=1024, num_warps=warps))
    for cols in (384, 512, 2048, 4096, 8192, 16384, 32768, 65536):
        block = triton.next_power_of_2(cols)  # as the launcher has it
        row("softmax", t.softmax_kernel, dict(
            BLOCK_COLS=block, num_warps=min(max(block // 512, 1), 32)))
# B's other layout is left out where it would take minutes and show nothing new.
both = {"ieee": which == "lesson" and capability in (80, 90),
        "tf32": which == "lesson"}
for config in configs:
    for precision in precisions:
        for stride in [*t.LAYOUTS.values()][:1 + both[precision]]:
            row(precision, t.matmul_kernel, config | {
                "IEEE": precision == "ieee", "stride_ak": 1, "stride_cn": 1,
                stride: 1})
print(json.dumps(rows))
"""


def compiled(capability, which):
    """Rows (what, Triton's version, settings, shared bytes, PTX)."""
    path = f"{ROOT}:{TUNED.parent}:{clean_env().get('PYTHONPATH', '')}"
    result = subprocess.run(
        [sys.executable, "-c", WORKER, str(capability), which], text=True,
        capture_output=True, env=clean_env(PYTHONPATH=path))
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


@pytest.mark.parametrize("capability", [
    pytest.param(capability, marks=[pytest.mark.slow] * (
        capability != 80)) for capability in LIMITS],
    ids="sm_{}".format)
def test_lesson(capability):
    rows = compiled(capability, "lesson")
    for row in rows:
        right(capability, *row)
    assert len(rows) == 5 + 8 + 3 * (4 if capability in (80, 90) else 3)


@pytest.mark.slow
@pytest.mark.skipif(not TUNED.exists(), reason="there is no solution to tune")
@pytest.mark.parametrize("capability", LIMITS, ids="sm_{}".format)
def test_tuned(capability):
    """The exercise's solution; what does not fit a card, the search skips."""
    rows = compiled(capability, "tuned")
    for row in rows:
        if row[3] <= 1024 * LIMITS[capability]:
            right(capability, *row)
    assert any(row[3] <= 1024 * LIMITS[capability] for row in rows)
