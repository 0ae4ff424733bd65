"""Inputs from public reports about such kernels, with the right values.

The number is the report's row in README.md here, which names the tests of the
other rows too; a bare address is that report's.
"""
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT, clean_env

import triton_softmax_matmul as t

INF, NAN = torch.inf, torch.nan


# 1: tenstorrent/tt-metal issue 56056, a finite row where NaN is right
@pytest.mark.parametrize("row, nan", [
    ([-INF] * 3, True), ([1, INF, 2], True), ([1, NAN, 2], True),
    ([-INF, 0, 1], False)])
def test_softmax_of_a_special_row(row, nan, device):
    y = t.softmax(torch.tensor([row], device=device)).cpu()
    if nan:
        assert y.isnan().all()
    else:
        assert y[0, 0] == 0 and torch.allclose(
            y[0, 1:], 1 / (1 + torch.tensor([np.e, 1 / np.e])).float())


# 4: Dao-AILab/flash-attention issue 1930, the one finite value comes late
def test_softmax_of_one_finite_value(device):
    x = torch.full((1, 64), -INF, device=device)
    x[0, 40] = -3
    assert t.softmax(x).cpu().equal(torch.eye(64)[40:41])


# 6: vllm-project/vllm pull 55009, padding of 0 in a very negative row
def test_softmax_of_a_very_negative_row(device):
    x = torch.full((2, 5), -50.0, device=device)
    assert torch.allclose(t.softmax(x), torch.tensor(0.2, device=device))


# 7: triton-lang/triton issue 9838, widths that are no power of two
@pytest.mark.parametrize("cols", [3, 17, 127, 255])
def test_softmax_of_equal_values(cols, device):
    y = t.softmax(torch.zeros(2, cols, device=device))
    assert torch.allclose(y, torch.tensor(1 / cols, device=device), rtol=1e-6)


# 8: triton-lang/triton issue 3281, and 27: issue 934, masked lanes of the
# last step along K count as 0; with k = 1, an outer product
@pytest.mark.parametrize("k", [1, 5, 15, 33, 37, 47])
def test_matmul_tail_along_k(k, device):
    a = torch.arange(3.0 * k, device=device).view(3, k)
    b = torch.arange(4.0 * k, device=device).view(k, 4)
    c = t.matmul(a, b, True)
    assert c.double().equal(a.double() @ b.double())
    assert k > 1 or c.equal(a * b)


# 11: triton-lang/triton issue 2150, an out with the odd strides of its input
def test_softmax_into_empty_like_of_a_transposed_tensor(device):
    x = torch.randn(4, 8, device=device).t()
    out = torch.empty_like(x)
    assert out.stride() == (1, 8) and t.softmax(x, out) is out
    assert torch.allclose(out, torch.softmax(x, 1))


# 23: gpu-mode/lectures issue 51, sizes below, at and above one block
@pytest.mark.parametrize("size", [10, 63, 64, 65])
def test_matmul_around_one_block(size, device):
    eye = torch.eye(size, device=device)
    b = torch.arange(1.0 * size**2, device=device).view(size, size)
    for config in t.CONFIGS:
        assert t.matmul(eye, b, True, config).equal(b)


# 28: triton-lang/triton issue 2654, and 29, thinking-machines-lab/
# batch_invariant_ops issue 23: whole numbers above 2048 stay what they are
def test_ieee_keeps_whole_numbers(device):
    b = torch.arange(8192.0, device=device)[None]
    assert t.matmul(torch.ones(1, 1, device=device), b, True).equal(b)
    assert t.matmul(torch.eye(64, device=device), b.view(64, 128), True).equal(
        b.view(64, 128))


# 30: triton-lang/triton issue 6265, one tolerance for both multipliers
def test_tolerance_goes_with_the_precision():
    (ieee, said), (tf32, told) = (t.matmul_tolerance(512, p)
                                  for p in t.PRECISIONS)
    assert ieee < 1e-5 and tf32 > 1e-3
    assert told.endswith(said) and told != said


# 33: triton-lang/triton issue 5941, a default taken from the environment
def test_the_default_precision_is_not_asked_for():
    result = subprocess.run(
        [sys.executable, "-c", "import triton_softmax_matmul as t; "
         "del t.CONFIGS[1:]; print(t.emitted(80))"], text=True, cwd=ROOT,
        env=clean_env(TRITON_F32_DEFAULT="tf32x3"), capture_output=True)
    assert result.stdout.endswith("True\n"), result.stdout + result.stderr


# 67, 68, 70, 75: triton-lang/triton issues 2306 and 3754, flagos-ai/FlagGems
# pull 411, intel/intel-xpu-backend-for-triton pull 5645: the same warm-up for
# all, the median, milliseconds, and the right rate
def test_how_rows_are_timed(monkeypatch, capsys):
    asked = []

    def do_bench(run, **settings):
        asked.append(settings)
        return run()

    monkeypatch.setattr(t.triton.testing, "do_bench", do_bench)
    runs = {"one": lambda: (1.0, 0.9, 1.2), "two": lambda: (4.0, 3.0, 9.0)}
    times = t.time_rows("title", runs, 8e9, "TB/s", direct=runs)
    assert times == {"one": 1.0, "two": 4.0}
    assert asked[0] == asked[1] == {
        "warmup": 100, "rep": 300, "quantiles": [0.5, 0.2, 0.8]}
    _, title, one, two = capsys.readouterr().out.splitlines()
    assert "median" in title
    assert " ".join(one.split()) == (
        "one 1.0000 ms (0.9000 .. 1.2000) 8.00 TB/s 1.00")
    assert " ".join(two.split()) == (
        "two 4.0000 ms (3.0000 .. 9.0000) 2.00 TB/s 0.25")
