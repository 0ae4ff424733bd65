"""softmax and matmul: right for every layout, or refused by name."""
import numpy as np
import pytest
import torch
from conftest import DEVICE, GPU

import triton_softmax_matmul as t


def randn(*shape, **options):
    return torch.randn(*shape, device=DEVICE, **options)


def inside(rows, cols):
    """A view inside a larger tensor that is NaN elsewhere."""
    whole = torch.full((rows + 3, cols + 5), torch.nan, device=DEVICE)
    return whole[1:1 + rows, 2:2 + cols].copy_(randn(rows, cols))


LAYOUTS = {
    "contiguous": randn,
    "padded": inside,
    "a[::3]": lambda rows, cols: randn(3 * rows, cols)[::3],
    "a[:, ::2]": lambda rows, cols: randn(rows, 2 * cols)[:, ::2],
    "transposed": lambda rows, cols: randn(cols, rows).t(),
    "padded, transposed": lambda rows, cols: inside(cols, rows).t(),
    "one row, expanded": lambda rows, cols: randn(1, cols).expand(rows, cols),
    "one column, expanded": lambda rows, cols: (
        randn(rows, 1).expand(rows, cols)),
    "one number, expanded": lambda rows, cols: randn(1, 1).expand(rows, cols),
    "requires_grad": lambda rows, cols: randn(rows, cols, requires_grad=True),
    "nn.Linear weight.t()": lambda rows, cols: torch.nn.Linear(
        rows, cols, device=DEVICE).weight.t()}
# Where a result may go: any layout in which no element is met twice.
OUTS = {name: LAYOUTS[name] for name in (
    "contiguous", "padded", "a[::3]", "a[:, ::2]", "transposed",
    "padded, transposed")}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def numbers(x):
    return x.detach().cpu().numpy()


def right_softmax(x, y):
    """y is the softmax of x's rows, and without a gradient of its own."""
    assert y.shape == x.shape
    assert not y.requires_grad
    want = t.softmax64(numbers(x))
    error = np.abs(numbers(y) - want) / want.max(axis=1, keepdims=True)
    assert (error <= t.softmax_tolerance(x.shape[1])[0]).all()


def right_matmul(a, b, c, precision="ieee"):
    assert c.shape == (a.shape[0], b.shape[1])
    assert not c.requires_grad
    want, scale = t.matmul64(numbers(a), numbers(b))
    limit = t.matmul_tolerance(a.shape[1], precision)[0]
    assert (np.abs(numbers(c) - want) <= limit * scale).all()


def memory(x):
    """All of the memory that x is a view into, as integers: NaN equals NaN."""
    return torch.empty(0, dtype=torch.int32, device=x.device).set_(
        x.detach().untyped_storage()).clone()


# -------------------------------------------------------------------- layouts
@layouts
@pytest.mark.filterwarnings("ignore:Initializing zero-element")  # nn.Linear's
@pytest.mark.parametrize("shape", [
    (5, 37), (1, 9), (4, 1), (1, 1), (0, 3), (3, 64)])
def test_softmax_of_any_layout(layout, shape):
    x = LAYOUTS[layout](*shape)
    before = memory(x)
    right_softmax(x, t.softmax(x))
    assert memory(x).equal(before)


@layouts
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_matmul_of_any_two_layouts(layout, layout_b):
    a, b = LAYOUTS[layout](5, 37), LAYOUTS[layout_b](37, 9)
    before = memory(a), memory(b)
    right_matmul(a, b, t.matmul(a, b, True, t.CONFIGS[0]))
    assert memory(a).equal(before[0])
    assert memory(b).equal(before[1])


@pytest.mark.parametrize("m, n, k", [
    (1, 1, 1), (1, 9, 40), (9, 1, 40), (9, 40, 1), (0, 4, 3), (3, 0, 4),
    (0, 0, 5), (3, 4, 0), (0, 4, 0), (130, 70, 33)])
@pytest.mark.parametrize("layout", [
    "contiguous", "padded", "transposed", "requires_grad"])
@pytest.mark.parametrize("precision", t.PRECISIONS)
def test_matmul_of_any_shape(m, n, k, layout, precision):
    a, b = LAYOUTS[layout](m, k), LAYOUTS[layout](k, n)
    c = t.matmul(a, b, precision == "ieee", t.CONFIGS[0])
    right_matmul(a, b, c, precision)


@pytest.mark.parametrize("config", t.CONFIGS, ids=t.config_name)
def test_every_config(config):
    a, b = randn(150, 90), randn(90, 140)
    right_matmul(a, b, t.matmul(a, b, True, config))


def test_ieee_is_exact_where_float32_is():
    # tf32 has no 2049: 10 bits of mantissa end at 2048.
    whole = torch.arange(2000.0, 2200, device=DEVICE)[None]
    one = torch.ones(1, 1, device=DEVICE)
    assert t.matmul(one, whole, True).equal(whole)
    assert t.matmul(one, whole, False).equal(whole) != GPU


# ------------------------------------------------------------------------ out
@layouts
@pytest.mark.parametrize("where", OUTS)
def test_softmax_out(layout, where):
    x, out = LAYOUTS[layout](4, 21), OUTS[where](4, 21)
    given = memory(x), memory(out.fill_(torch.nan))
    assert t.softmax(x, out) is out
    right_softmax(x, out)
    assert memory(x).equal(given[0])
    # Put back what out held: all else in its memory must be as it was.
    assert memory(out.fill_(torch.nan)).equal(given[1])


@pytest.mark.parametrize("where", OUTS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_matmul_out(layout, where):
    a, b = LAYOUTS[layout](70, 33), LAYOUTS[layout](33, 67)
    out = OUTS[where](70, 67).fill_(torch.nan)
    given = memory(out)
    assert t.matmul(a, b, True, out=out) is out
    right_matmul(a, b, out)
    assert memory(out.fill_(torch.nan)).equal(given)


def test_empty_result_launches_nothing():
    # A grid of no programs is an error on a GPU; kernel=None cannot launch.
    empty, out = randn(0, 3), randn(0, 3)
    assert t.softmax(empty, out, kernel=None) is out
    assert t.matmul(randn(0, 5), randn(5, 3), True, out=out, kernel=None) is out
    assert t.matmul(randn(3, 5), randn(5, 0), True, kernel=None).shape == (3, 0)


def test_no_inner_dimension_writes_zeros():
    out = torch.full((3, 4), torch.nan, device=DEVICE)
    t.matmul(randn(3, 0), randn(0, 4), True, out=out)
    assert out.equal(torch.zeros_like(out))


# -------------------------------------------------------------------- refused
FLOATS = [torch.float64, torch.float16, torch.bfloat16]
OTHERS = [torch.int32, torch.int64, torch.bool, torch.complex64]
GOOD = randn(3, 3)
BAD = {
    **{str(dtype): (TypeError, torch.ones(3, 3, dtype=dtype, device=DEVICE))
       for dtype in FLOATS + OTHERS},
    "sparse": (TypeError, torch.eye(3, device=DEVICE).to_sparse()),
    # Its memory holds the numbers with the other sign.
    "lazily negated": (TypeError, torch.view_as_complex(
        randn(3, 3, 2)).conj().imag),
    "rank 0": (ValueError, randn(())),
    "rank 1": (ValueError, randn(3)),
    "rank 3": (ValueError, randn(3, 3, 3)),
    "meta": (ValueError, torch.empty(3, 3, device="meta")),
    "a list": (TypeError, [[1.0]]),
    "numpy": (TypeError, np.ones((3, 3), np.float32)),
    "None": (TypeError, None)}


CALLS = {
    "x": t.softmax,
    "a": lambda bad: t.matmul(bad, GOOD, True),
    "b": lambda bad: t.matmul(GOOD, bad, True),
    "out of softmax": lambda bad: t.softmax(GOOD, bad),
    "out of matmul": lambda bad: t.matmul(GOOD, GOOD, True, out=bad)}


@pytest.mark.parametrize("argument, what", [
    (argument, what) for argument in CALLS for what in BAD
    if not (argument.startswith("out") and what == "None")])  # new memory
def test_refused_by_name(argument, what):
    error, bad = BAD[what]
    with pytest.raises(error) as caught:
        CALLS[argument](bad)
    message = str(caught.value)
    assert message.startswith(f"{argument.split()[0]} ")
    if isinstance(bad, torch.Tensor):
        assert str(tuple(bad.shape)) in message
        assert str(bad.dtype) in message
        assert str(bad.device) in message
    else:
        assert str(type(bad)) in message


def test_inner_dimensions_differ():
    with pytest.raises(ValueError, match=r"a \(3, 4\), b \(5, 6\)"):
        t.matmul(randn(3, 4), randn(5, 6), True)


@pytest.mark.parametrize("cols", [0, 65537])
@pytest.mark.parametrize("rows", [0, 2])
def test_columns_that_no_program_holds(rows, cols):
    with pytest.raises(ValueError, match=rf"x is \({rows}, {cols}\)"):
        t.softmax(torch.empty(rows, cols, device=DEVICE))


def test_widest_row():
    x = randn(2, 65536)
    right_softmax(x, t.softmax(x))


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (4, 5), (1, 4)])
def test_out_of_the_wrong_shape(shape):
    out = torch.zeros(shape, device=DEVICE)
    for call in (lambda: t.softmax(randn(3, 4), out),
                 lambda: t.matmul(randn(3, 2), randn(2, 4), True, out=out)):
        with pytest.raises(ValueError) as caught:
            call()
        message = str(caught.value)
        assert message.startswith("out must be 2-D (3, 4): ")
        assert f"got {shape}" in message
    assert not out.any()


@pytest.mark.parametrize("out", [
    torch.zeros(1, 3, device=DEVICE).expand(3, 3),
    torch.zeros(3, 1, device=DEVICE).expand(3, 3)], ids=["row", "column"])
def test_out_that_overlaps_itself(out):
    for call in (lambda: t.softmax(GOOD, out),
                 lambda: t.matmul(GOOD, GOOD, True, out=out)):
        with pytest.raises(ValueError, match=r"out overlaps .*\(3, 3\)"):
            call()
    assert not out.any()


def test_out_whose_rows_overlap():
    # No stride is 0, and yet [1, 0] and [0, 1] have one address.
    for strides in ((1, 1), (2, 1), (4, 2), (3, 2)):
        out = torch.zeros(64, device=DEVICE).as_strided((3, 5), strides)
        with pytest.raises(ValueError, match=r"out overlaps itself.*\(3, 5\)"):
            t.softmax(randn(3, 5), out)


@pytest.mark.parametrize("shape, strides", [
    ((1, 4), (0, 1)), ((4, 1), (1, 0)), ((1, 1), (0, 0)), ((3, 5), (1, 3)),
    ((3, 5), (5, 1)), ((2, 3), (3, 2)), ((3, 2), (2, 3))])
def test_out_whose_elements_stand_apart(shape, strides):
    # A stride of 0 matters only where a second step is taken.
    whole = torch.zeros(64, device=DEVICE)
    out, x = whole.as_strided(shape, strides), randn(*shape)
    assert t.softmax(x, out) is out
    right_softmax(x, out)


def test_out_that_overlaps_an_input():
    whole = randn(6, 3)
    x, out = whole[:3], whole[1:4]  # shares two rows
    before = memory(whole)
    for call in (lambda: t.softmax(x, x), lambda: t.softmax(x, out),
                 lambda: t.softmax(x, x.t()),
                 lambda: t.matmul(x, GOOD, True, out=out),
                 lambda: t.matmul(GOOD, x, True, out=out)):
        with pytest.raises(ValueError, match=r"out overlaps .*\(3, 3\)"):
            call()
    assert memory(whole).equal(before)


@pytest.mark.interpreter
def test_out_that_overlaps_an_input_of_another_storage():
    numbers = np.zeros(100, np.float32)
    x = torch.from_numpy(numbers[:40]).view(5, 8)
    out = torch.from_numpy(numbers[36:76]).view(5, 8)
    assert x.untyped_storage().data_ptr() != out.untyped_storage().data_ptr()
    with pytest.raises(ValueError, match="out overlaps an input"):
        t.softmax(x, out)
    t.softmax(x, torch.from_numpy(numbers[40:80]).view(5, 8))


def test_out_beside_an_input_in_one_storage():
    # Rows in turn, columns in turn, one half each: none shares an element.
    whole = randn(6, 8)
    halves = [(whole[::2], whole[1::2]), (whole[:, ::2], whole[:, 1::2]),
              (whole[:3], whole[3:]), (whole[:, :4], whole[:, 4:])]
    for x, out in halves:
        values = x.clone()
        assert t.softmax(x, out) is out
        right_softmax(values, out)
        assert x.equal(values)


@pytest.mark.parametrize("mode", [False, True])
def test_tensors_of_the_other_mode(monkeypatch, mode):
    # On the CPU for a compiled kernel, or on a GPU for an interpreted one.
    monkeypatch.setattr(t, "INTERPRET", mode)
    monkeypatch.setattr(t, "DEVICE", "cpu" if mode else "cuda")
    x = torch.ones(2, 2, device="meta" if mode else "cpu")
    words = ("x must be on a {} device while TRITON_INTERPRET is {}: "
             r"got \(2, 2\)").format(*("cpu", "on") if mode else
                                     ("cuda", "off"))
    with pytest.raises(ValueError, match=words):
        t.softmax(x)
    with pytest.raises(ValueError, match="a must be"):
        t.matmul(x, x, True)


# ------------------------------------------------------------ 2^31 and beyond
@pytest.fixture
def lazy():
    """An empty tensor with large strides: it costs memory only where it is
    touched, on the CPU; on a GPU it is all there."""
    def make(shape, strides):
        try:
            return torch.empty_strided(shape, strides, device=DEVICE)
        except RuntimeError as error:  # out of memory is one, too
            pytest.skip(f"not enough memory: {str(error).splitlines()[0]}")
    return make


def test_matmul_refuses_to_reach_past_int32(lazy):
    # The last element, not the count, is what an offset must reach.
    far = lazy((2, 2), (2**31 - 1, 1))
    for name, a, b, out in (("a", far, randn(2, 2), None),
                            ("b", randn(2, 2), far.t(), None),
                            ("out", randn(2, 2), randn(2, 2), far)):
        with pytest.raises(ValueError, match=rf"{name} \(2, 2\) .*2\^31"):
            t.matmul(a, b, True, out=out)


def test_matmul_reaches_up_to_int32(lazy):
    far = lazy((2, 2), (2**31 - 2, 1))  # its last element is 2^31 - 1
    a, b = far.copy_(randn(2, 2)), randn(2, 2)
    right_matmul(a, b, t.matmul(a, b, True))


def test_softmax_reaches_past_int32(lazy):
    # The third row begins at 2^31, and an int32 row index would not say so.
    x, out = lazy((3, 8), (2**30, 1)), lazy((3, 8), (2**30, 1))
    x.copy_(randn(3, 8))
    assert t.softmax(x, out) is out
    right_softmax(x, out)


def test_more_rows_than_a_grid_has_programs():
    x = torch.zeros(1, 1, device=DEVICE).expand(2**31, 1)
    with pytest.raises(ValueError, match=r"x is \(2147483648, 1\)"):
        t.softmax(x, kernel=None)  # not to interpret them all, if it fails


# ---------------------------------------------------------------------- a GPU
@pytest.mark.gpu
def test_cpu_tensors_are_refused_when_compiling():
    x = torch.ones(2, 2)
    with pytest.raises(ValueError, match="x must be .* on a cuda device"):
        t.softmax(x)
    with pytest.raises(ValueError, match="b must be with the others"):
        t.matmul(x.cuda(), x, True)


@pytest.mark.gpu
def test_two_hundred_shapes():
    random = np.random.default_rng(86)
    for m, n, k in random.integers(1, 300, (200, 3)).tolist():
        a, b = randn(m, k), randn(k, n)
        ieee, tf32 = t.matmul(a, b, True), t.matmul(a, b, False)
        right_matmul(a, b, ieee)
        right_matmul(a, b, tf32, "tf32")
        assert not tf32.equal(ieee)
        right_softmax(a, t.softmax(a))


@pytest.mark.gpu
def test_two_runs_agree_to_the_bit():
    a, b = randn(500, 700), randn(700, 300)
    for config in t.CONFIGS:
        for ieee in (True, False):
            first = t.matmul(a, b, ieee, config)
            assert t.matmul(a, b, ieee, config).equal(first)
    assert t.softmax(a).equal(t.softmax(a))


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_device_that_is_not_the_current_one():
    assert torch.cuda.current_device() == 0
    a, b = randn(40, 50).to("cuda:1"), randn(50, 60).to("cuda:1")
    right_softmax(a, t.softmax(a))
    right_matmul(a, b, t.matmul(a, b, True))
    assert t.softmax(a).device == a.device
    assert torch.cuda.current_device() == 0
    with pytest.raises(ValueError, match="b must be with the others"):
        t.matmul(a, b.to("cuda:0"), True)


@pytest.mark.gpu
def test_softmax_of_more_than_int32_elements():
    rows, cols = 756480, 3152  # 2.4e9 elements
    needed = 3 * rows * cols * 4
    if torch.cuda.mem_get_info()[0] < needed:
        pytest.skip(f"needs {needed >> 30} GiB of free GPU memory")
    x = randn(rows, cols)
    y = t.softmax(x)
    for some in (slice(0, 100), slice(2**31 // cols - 50, 2**31 // cols + 50),
                 slice(rows - 100, rows)):
        right_softmax(x[some], y[some])
    assert ((y.sum(1) - 1).abs() <= t.softmax_tolerance(cols)[0]).all()


@pytest.mark.gpu
def test_matmul_of_as_many_elements_as_int32_counts():
    if torch.cuda.mem_get_info()[0] < 2**35:
        pytest.skip("needs 32 GiB of free GPU memory")
    # A of 2^31 elements, the last at 2^31 - 1; then a C that its lowest tiles
    # overhang to past 2^31, where an offset wraps and must not be stored to.
    for m, n, k in (65536, 40, 32768), (65550, 32760, 40):
        a, b = randn(m, k), randn(k, n)
        c = t.matmul(a, b, True)
        for some in slice(0, 100), slice(m - 100, m):
            right_matmul(a[some], b, c[some])
    with pytest.raises(ValueError, match=r"a \(65537, 32768\) spans over 2"):
        t.matmul(torch.empty(65537, 32768, device=DEVICE),
                 randn(32768, 40), True)
