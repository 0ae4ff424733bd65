"""Which sizes, layouts and values a matmul is tried with, config by config.

Another config is another kernel: it needs masks of its own, more tiles than
one, a group, steps of K with a rest. A case is the lesson's Case.
"""
import functools
import random

ROW, COLUMN, STEPS, TURNED = ("row-major", "column-major", "steps",
                              "steps by columns")
# Of GROUP_M, where a size is computed from it: more would only take longer.
LARGEST_GROUP = 16


def group_of(config):
    """GROUP_M, as far as a case's size goes by it."""
    return min(config.get("GROUP_M", 1), LARGEST_GROUP)


def tile_rows(config):
    """How many rows of tiles show what a group does: a full group, and a last
    one of two rows, or of one where a group has no more than two."""
    group = group_of(config)
    return group + 2 if group > 2 else 3


def own_cases(t, config):
    """The cases that every config has to pass by itself.

    On a GPU each further set of strides that are 1, or multiples of 16, is
    another kernel to compile, and in ieee that takes seconds. So there most
    cases have steps along every axis, and sizes that make no such stride.
    """
    block_m, block_n, block_k = t.block_shape(config)
    above = (tile_rows(config) - 1) * block_m
    full = group_of(config)
    few = (33, 20, 2 * block_k + 6)
    # Sizes that 16, or 8, divides and a block does not.
    beside = tuple(side + (16 if side > 16 else 8)
                   for side in (block_m, block_n, block_k))
    half = tuple(3 * side // 2 for side in (block_m, block_n, block_k))
    mixed, turned, first, drawn_in = [(STEPS,) * 3] * 4
    if t.INTERPRET:
        mixed, turned = (COLUMN, ROW, STEPS), (TURNED,) * 3
        first, drawn_in = (COLUMN, STEPS, ROW), (ROW, ROW, COLUMN)
    drawn = [random.randint(1, 2 * side + 9)
             for side in (block_m, block_n, 2 * block_k)]
    case = t.Case
    # One less, since on a GPU sizes that 16 divides make another kernel.
    less = 0 if t.INTERPRET else 1
    tiles = [
        case("a full group", (full * block_m - less, block_n - less,
                              block_k + 8 - less), turned),
        case("wider than tall", (2 * block_m - less,
                                 (min(full, 4) + 1) * block_n - less,
                                 block_k + 8 - less), turned)]
    if t.INTERPRET:  # a GPU has 2048 cubed
        tiles += [case("four steps of K", (33, 20, 4 * block_k), turned),
                  case("eight steps of K", (33, 20, 8 * block_k), turned)]
    return [
        case("a group and more", (above + 5, 2 * block_n + 3, 3 * block_k + 5),
             (ROW, COLUMN, ROW)),
        case("all in steps", (block_m - 1, block_n + 1, 2 * block_k + 7),
             (STEPS, STEPS, STEPS), around=t.LARGE),
        case("whole blocks", (2 * block_m, 2 * block_n, 2 * block_k),
             (COLUMN, ROW, COLUMN)),
        case("one block", (block_m, block_n, block_k), (COLUMN, ROW, COLUMN)),
        case("columns first", (block_m + 1, block_n - 1, block_k - 1),
             first, around=t.LARGE),
        case("k over 2048", (3, 4, 2086), turned),
        *tiles,
        case("16 more than a block", beside, drawn_in, around=t.LARGE),
        case("a block and a half", half, drawn_in, around=t.LARGE),
        case("one product each", (40, 30, 1), (STEPS, ROW, COLUMN)),
        case("sizes drawn anew", tuple(drawn), drawn_in),
        case("powers of two", few, mixed, "powers of two", t.LARGE),
        case("whole numbers", few, mixed, "whole numbers"),
        case("2^100 and 2^-100", few, mixed, "scaled"),
        case("NaN, inf and -0.0", few, mixed, "NaN, inf and -0.0", t.LARGE),
        case("an earlier result", few, mixed, relaunched=True),
    ]


def shared_cases(t, configs):
    """[(case, order)]: those for which one config is enough, and in which
    order the configs are asked whether they take it."""
    case = t.Case
    blocks = [t.block_shape(config) for config in configs]
    block_m, block_n, block_k = map(max, zip(*blocks, strict=True))
    small = [
        case("a single number", (1, 1, 1), (ROW, ROW, ROW)),
        case("one row", (1, block_n + 40, 3 * block_k + 7),
             (ROW, COLUMN, COLUMN)),
        case("one column", (block_m + 40, 1, 3 * block_k + 7),
             (COLUMN, ROW, ROW), around=t.LARGE),
        case("nothing to add up", (5, 6, 0), (ROW, ROW, ROW)),
    ]
    shared = []
    for turn, each in enumerate(small):
        # What is quick to compile comes first, and each has its turn.
        order = in_order(configs, t.tile_size)
        turn %= len(order)
        shared.append((each, order[turn:] + order[:turn]))
    if t.INTERPRET:
        # The interpreter's time goes by the number of programs, so the long
        # sides go to the config with the largest block along them.
        shared += [
            (case("m over 2048", (2085, 6, 7), (ROW, STEPS, COLUMN),
                  around=t.LARGE), in_order(configs, along("BLOCK_M"))),
            (case("n over 2048", (5, 2086, 3), (STEPS, COLUMN, ROW)),
             in_order(configs, along("BLOCK_N")))]
    return shared


def gpu_cases(t):
    """What a GPU tries with every config, since it takes no time there."""
    case, steps = t.Case, (STEPS, STEPS, STEPS)
    return [case("m over 2048", (2085, 6, 7), steps),
            case("n over 2048", (5, 2086, 3), steps),
            case("every tile", (t.SIZE,) * 3, (ROW, ROW, ROW)),
            case("every tile", (t.SIZE,) * 3, (ROW, COLUMN, ROW))]


def in_order(configs, key):
    """The numbers of configs, the smallest by key first."""
    return sorted(range(len(configs)), key=[key(config) for config in configs
                                            ].__getitem__)


def along(name):
    """A key that puts the largest block of that name first."""
    def key(config):
        """The smaller, the larger the block."""
        return -config[name]
    return key


def wanted_at(t, case, precision):
    """Whether a case says something about a precision.

    The interpreter multiplies in float32 whatever the string says. A kernel
    may still round its operands in tf32, as the tensor cores would, and so it
    need not be exact there.
    """
    if case.catches == "one product each" and not t.INTERPRET:
        return precision == "tf32"  # for operands that are rounded to bf16
    exact = case.values in t.EXACT and case.values != "whole numbers"
    return not (t.INTERPRET and precision == "tf32" and exact)


def fitting_sizes(t, case, config, runs):
    """The case's sizes, or larger ones, at which the config would be run.

    runs(sizes): whether a submission's pruning leaves the config in. One that
    asks for whole blocks is tried at whole blocks. None if nothing fits.
    """
    blocks = t.block_shape(config)
    whole = tuple(-(-size // block) * block
                  for size, block in zip(case.sizes, blocks, strict=True))
    for sizes in (case.sizes, (*case.sizes[:2], whole[2]), whole):
        if runs(sizes):
            return sizes
    return None


def end_steps(t, launch, config, precision, runs):
    """[(label, function)] of a config in memory that ends, and in memory that
    is far apart. runs(sizes, layout): as above."""
    block_m, block_n, block_k = t.block_shape(config)
    # One tile, and two each way.
    places = {(20, 24, 40): ("ends", fence), (
        block_m + 20, block_n + 24, block_k + 8): ("ends", fence)}
    if precision == "ieee":
        places[3, 5, 40] = "is 2^24 elements apart", spread
    steps = []
    for sizes, (what, put) in places.items():
        for by_columns, layout in enumerate((ROW, COLUMN)):
            if not runs(sizes, layout):
                continue
            label = (f"{precision} {'x'.join(map(str, sizes))} "
                     f"{t.config_name(config)}, {layout} memory that {what}")
            steps.append((label, functools.partial(
                put, t, launch, dict(config), precision, sizes, by_columns)))
    return steps


def fence(t, launch, config, precision, sizes, by_columns):
    """Whether a product is right of matrices that end where memory ends, and
    of which only the result can be written."""
    return t.right_tile(launch, t.fenced,
                        functools.partial(t.fenced, writable=True), config,
                        precision, sizes, by_columns)


def spread(t, launch, config, precision, sizes, by_columns):
    """Whether a product is right of matrices with very large strides."""
    put = functools.partial(t.far_apart, stride=2**24 + 1)
    return t.right_tile(launch, put, put, config, precision, sizes,
                        by_columns)
