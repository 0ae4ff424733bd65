"""Softmax and matmul on drawn shapes, layouts and values, in float64's view.

The judge is the script's own check and tolerance, of which
test_planted_faults.py shows that they reject what is wrong.
"""
import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import triton_softmax_matmul as t

pytestmark = pytest.mark.interpreter  # a GPU would compile for each layout
LAYOUTS = "framed", "transposed", "every second", "one row", "reversed sizes"
drawn = hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
sizes = st.integers(1, 40)
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)
# Wide, and still far enough from float32's ends that no product of two, nor a
# sum of 40, overflows, or underflows to a subnormal with fewer bits.
scales = st.sampled_from([1e-15, 1e-7, 1.0, 1e7, 1e15])
specials = st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0]),
                    max_size=3)


def operand(rows, cols, layout, seed, scale, special=()):
    """A (rows, cols) view into NaN-filled memory, and that memory."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, cols), np.float32) * np.float32(scale)
    for value in special:
        values[rng.integers(rows), rng.integers(cols)] = value
    frame = torch.full((2 * (rows + cols) + 64,) * 2, torch.nan)
    view = {"framed": frame[16:16 + rows, 16:16 + cols],
            "transposed": frame[16:16 + cols, 16:16 + rows].t(),
            "every second": frame[16:, 16:][:2 * rows:2, :2 * cols:2],
            "one row": frame[16:17, 16:16 + cols],
            "reversed sizes": frame[16:].view(-1)[5:].as_strided(
                (rows, cols), (1, rows + 3))}[layout]
    view.copy_(torch.from_numpy(values[:len(view)]))
    return view.expand(rows, cols), frame  # by a stride of 0, if by any


@drawn
@hypothesis.given(sizes, st.integers(1, 300), layouts, seeds, st.sampled_from(
    [1e-30, 1e-3, 1.0, 50.0, 1e4, 1e30]), specials)
def test_softmax(rows, cols, layout, seed, scale, special):
    rows = min(rows, 6)
    x, frame = operand(rows, cols, layout, seed, scale, special)
    result = t.place_result((rows, cols), "row-major", "cpu", (2, 512))
    assert t.check_softmax(f"softmax {rows}x{cols} {layout}", t.softmax,
                           t.Placed(x, frame), result)


@drawn
@hypothesis.given(st.tuples(sizes, sizes, st.integers(0, 80)),
                  st.tuples(layouts, layouts), seeds,
                  st.tuples(scales, scales), st.tuples(specials, specials),
                  st.sampled_from(t.CONFIGS), st.booleans())
def test_matmul(mnk, layout, seed, scale, special, config, ieee):
    m, n, k = mnk
    if not k:
        layout, special = ("framed", "framed"), ((), ())
    operands = [t.Placed(*operand(*drawn_as)) for drawn_as in (
        (m, k, layout[0], seed, scale[0], special[0]),
        (k, n, layout[1], seed + 1, scale[1], special[1]))]
    case = t.Case(f"{layout}", (m, n, k), (*layout, "row-major"),
                  config=config)
    result = t.place_result((m, n), "row-major", "cpu", (128, 128))
    precision = "ieee" if ieee else "tf32"
    assert t.check_matmul(case, t.matmul, operands, {precision: result})


@drawn
@hypothesis.given(st.integers(1, 300), seeds, st.floats(-100, 100, width=32))
def test_softmax_is_shift_invariant_and_sums_to_1(cols, seed, shift):
    """Whole numbers, so that adding a shift rounds nothing off."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.integers(-99, 99, (2, cols)).astype("f"))
    y = t.softmax(x)
    assert y.equal(t.softmax(x + round(shift)))
    limit = t.softmax_tolerance(cols)[0]
    assert (y.double().sum(axis=1) - 1).abs().max() <= limit
    order = torch.from_numpy(rng.permutation(cols))
    assert (t.softmax(x[:, order]) - y[:, order]).abs().max() <= limit


@drawn
@hypothesis.given(st.tuples(sizes, sizes, sizes), seeds,
                  st.sampled_from(t.CONFIGS))
def test_matmul_of_whole_numbers_is_exact(mnk, seed, config):
    """Products and sums far below 2^24: not one bit may be lost."""
    m, n, k = mnk
    rng = np.random.default_rng(seed)
    a, b = (torch.from_numpy(rng.integers(-64, 64, shape).astype("f"))
            for shape in ((m, k), (k, n)))
    assert t.matmul(a, b, True, config).double().equal(a.double() @ b.double())
