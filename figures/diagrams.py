"""Draws the diagrams of how the matmul shares out its work, and of the edges.

    python3 figures/diagrams.py

tile-order.svg shows which program computes which tile of C; masked-tail.svg
which lanes of a block hang over the edge, and what becomes of them. Nobody
worked these out by hand: the order is the lesson's tile_of, and the edges are
what the lesson's kernels ask for when they are called as plain functions of
Python, with numpy in the place of triton.language.
"""
import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))
sys.path.append(str(HERE.parent))
import drawing
import numpy as np

import triton_softmax_matmul as t


# ----------------------------------------------------------- watching a kernel
class Program(int):
    """A program's number, which can be asked for in 64 bits."""

    def to(self, dtype):
        """The number, which in Python is as long as it has to be."""
        return self


class Watched:
    """In the place of triton.language: computes with numpy, notes accesses.

    A pointer is a number here, so an address is an offset in elements.
    loads and stores are lists of (addresses, mask), in the kernel's order.
    """

    float32 = int64 = None

    def __init__(self, pid):
        self.pid = pid
        self.loads, self.stores = [], []

    def program_id(self, axis):
        return Program(self.pid)

    def cdiv(self, length, block):
        return -(-length // block)

    def arange(self, start, end):
        return np.arange(start, end)

    def zeros(self, shape, dtype):
        return np.zeros(shape)

    def load(self, addresses, mask, other):
        addresses, mask = np.broadcast_arrays(addresses, mask)
        # A copy, because the kernel moves its pointers on in place.
        self.loads.append((addresses.copy(), mask))
        return np.where(mask, 1.0, other)

    def store(self, addresses, value, mask):
        self.stores.append(tuple(np.broadcast_arrays(addresses, mask)))

    def dot(self, a, b, acc, input_precision):
        return acc + a @ b

    def exp(self, x):
        return np.exp(x)

    def max(self, x, axis):
        return np.max(x, axis)

    def sum(self, x, axis):
        return np.sum(x, axis)


def watch(kernel, pid, *arguments, **settings):
    """What program pid of a kernel loads and stores: a Watched."""
    watched = Watched(pid)
    function = t.plain_function(kernel)
    names = {**function.__globals__, "tl": watched}
    types.FunctionType(function.__code__, names)(*arguments, **settings)
    return watched


# ----------------------------------------------------------- which tile is mine
TILES_M, TILES_N = 6, 16
SOME = 16  # programs that are looked at
CELL_X, CELL_Y = 30, 21  # the size of a tile


def order(group):
    """{program: (tile row, tile column)}."""
    return {pid: t.tile_of(pid, TILES_M, TILES_N, group)
            for pid in range(TILES_M * TILES_N)}


def panels_read(group):
    """The rows of A and the columns of B that the first programs read."""
    tiles = order(group)
    rows = {tiles[pid][0] for pid in range(SOME)}
    cols = {tiles[pid][1] for pid in range(SOME)}
    return rows, cols


def plural(count, word):
    """A number of things in words."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def reads_in_words(group):
    """How many panels the first programs read, as a sentence."""
    rows, cols = panels_read(group)
    return (f"Programs 0 to {SOME - 1} read {plural(len(rows), 'row')} of A "
            f"and {plural(len(cols), 'column')} of B: "
            f"{len(rows) + len(cols)} panels.")


def draw_order(page, top, group, heading):
    """C's tiles with their programs' numbers, A's rows and B's columns."""
    left = 150
    rows, cols = panels_read(group)
    page.rect("panel", 8, top, 684, 254, rx=6)
    page.text("name", 20, top + 23, heading)
    page.text("small", 20, top + 239, reads_in_words(group))
    page.text("small end", left - 10, top + 62, "columns of B")
    for col in range(TILES_N):
        page.rect("first" if col in cols else "plain", left + col * CELL_X,
                  top + 38, CELL_X - 3, 40)
    page.text("small", 20, top + 82, "rows of A")
    for row in range(TILES_M):
        y = top + 88 + row * CELL_Y
        page.rect("first" if row in rows else "plain", 20, y, 118, CELL_Y - 3)
    for pid, (row, col) in order(group).items():
        x, y = left + col * CELL_X, top + 88 + row * CELL_Y
        page.rect("first" if pid < SOME else "plain", x, y, CELL_X - 3,
                  CELL_Y - 3)
        page.text("tiny mid bold" if pid < SOME else "tiny mid muted",
                  x + CELL_X / 2 - 1.5, y + 12.5, str(pid))
    if group > 1:
        draw_groups(page, top + 88, group)


def draw_groups(page, top, group):
    """A bracket beside each group of rows of tiles."""
    x = 150 + TILES_N * CELL_X + 4
    for first in range(0, TILES_M, group):
        count = min(group, TILES_M - first)
        y = top + first * CELL_Y
        end = y + count * CELL_Y - 3
        page.path("line", ["M", x, y, "h", 5, "V", end, "h", -5])
        page.text("small", x + 10, (y + end) / 2 - 2, "group")
        page.text("small", x + 10, (y + end) / 2 + 11, f"of {count}")


def tile_order():
    """The diagram of the tile order, as SVG text."""
    group = t.CONFIGS[0]["GROUP_M"]
    along, grouped = reads_in_words(1), reads_in_words(group)
    page = drawing.Drawing(
        598, "Which program computes which tile of C",
        f"{TILES_M} x {TILES_N} tiles of C, twice, each with the number of "
        f"the program that computes it. Counted along rows, GROUP_M = 1: "
        f"{along} With GROUP_M = {group} the programs go down {group} rows of "
        f"tiles before they step to the right: {grouped} The last group has "
        f"{TILES_M % group} rows, since {TILES_M} is not a multiple of "
        f"{group}.")
    page.text("head", 16, 26, "Which program computes which tile of C?")
    page.text("small", 16, 46, "Programs start in about the order of their "
              "numbers. Those that run at the same time share the L2 cache,")
    page.text("small", 16, 62, "so what matters is how much they read between "
              "them. Blue: the first 16, and what they read.")
    draw_order(page, 72, 1, "GROUP_M = 1: along the rows")
    draw_order(page, 334, group,
               f"GROUP_M = {group}: down {group} rows of tiles, then one to "
               "the right")
    return page.svg()


# --------------------------------------------------------------- over the edge
# A row of 5 in a block of 8; and a product in tiles of 4 x 4, small enough to
# be drawn, whose last tile hangs over both edges of C, and over the end of K.
N_COLS, BLOCK_COLS = 5, 8
ROW = ["3", "1", "4", "1", "5", "9", "2", "6"]
M, N, K, BLOCK = 6, 7, 6, 4
BLOCKS = {"BLOCK_M": BLOCK, "BLOCK_N": BLOCK, "BLOCK_K": BLOCK, "GROUP_M": 2}
LAST = 3  # the program of the tile at the lower right


def watch_softmax():
    """Row 0 of a softmax: which lanes are loaded, and which are stored."""
    return watch(t.softmax_kernel, 0, 0, 0, N_COLS, N_COLS,
                 BLOCK_COLS=BLOCK_COLS)


def watch_matmul():
    """The program of the last tile, on three row-major matrices."""
    return watch(t.matmul_kernel, LAST, 0, 0, 0, M, N, K, K, 1, N, 1, N, 1,
                 **BLOCKS, IEEE=True)


SQUARE = 24  # pixels a number
LEFT_A, LEFT_B = 76, 420  # of the drawn matrices
TOP_B, TOP_A = 78, 330  # below the top of their panel


def draw_tail_of_a_row(page, top):
    """Memory, and the block that hangs over the end of the row in it."""
    watched = watch_softmax()
    addresses, mask = watched.loads[0]
    page.rect("panel", 8, top, 684, 138, rx=6)
    page.text("name", 20, top + 23, f"softmax: a row of {N_COLS} in a block of "
              f"{BLOCK_COLS} lanes")
    page.text("small end", 128, top + 56, "memory")
    page.text("small end", 128, top + 100, "the block x")
    for lane in range(BLOCK_COLS):
        x = 140 + lane * 44
        page.rect("plain", x, top + 40, 44, SQUARE)
        page.text("code mid", x + 22, top + 56, ROW[addresses[lane]])
        page.rect("loaded" if mask[lane] else "masked", x, top + 84, 44, SQUARE)
        page.text("code mid", x + 22, top + 100,
                  ROW[addresses[lane]] if mask[lane] else "-inf")
        if mask[lane]:
            page.path("line", ["M", x + 22, top + 64, "V", top + 84])
    page.path("tile", ["M", 140 + N_COLS * 44, top + 34, "V", top + 70])
    right = 140 + BLOCK_COLS * 44 + 14
    page.text("small", right, top + 50, "behind the row: the next one,")
    page.text("small", right, top + 64, "or memory of somebody else")
    page.text("code", right, top + 94, "mask = cols < n_cols")
    page.text("code", right, top + 110, "other = -inf")
    page.text("small", 20, top + 128, "Masked lanes load nothing and hold -inf,"
              " which neither wins the maximum nor adds to the sum. They store "
              "nothing.")


def draw_matrix(page, left, top, rows, cols, name):
    """An empty matrix, and its name and size above it."""
    for row in range(rows):
        for col in range(cols):
            page.rect("plain", left + col * SQUARE, top + row * SQUARE, SQUARE,
                      SQUARE)
    page.text("bold", left, top - 8, name)


def places(first_row, first_col):
    """Where the lanes of a block would lie without wrapping: row, column."""
    found = []
    for row in range(BLOCK):
        for col in range(BLOCK):
            found.append((first_row + row, first_col + col))
    return found


def kinds_of_lanes(width, lanes, where):
    """What becomes of each lane of a block, as (kind, row, column).

    "loaded" where it lies; "masked"; or "ghost", which lies over an edge, and
    "wrapped" for the place that is loaded instead. width: of the matrix;
    lanes: (addresses, mask); where: what places() returns.
    """
    kinds = []
    for (row, col), address, inside in zip(where, *map(np.ravel, lanes),
                                           strict=True):
        if not inside:
            kinds.append(("masked", row, col))
        elif address == row * width + col:
            kinds.append(("loaded", row, col))
        else:
            kinds.append(("ghost", row, col))
            kinds.append(("wrapped", *divmod(int(address), width)))
    return kinds


def kinds_of_results(mask, where):
    """The same of the tile of C, which is stored, or hangs over: a ghost."""
    kinds = []
    for (row, col), inside in zip(where, mask.ravel(), strict=True):
        kinds.append(("loaded" if inside else "ghost", row, col))
    return kinds


def edges():
    """{"A", "B", "C": what becomes of each lane}, of the last step along K."""
    watched = watch_matmul()
    tile_row, tile_col = t.tile_of(LAST, 2, 2, BLOCKS["GROUP_M"])
    row, col = tile_row * BLOCK, tile_col * BLOCK
    step = (K - 1) // BLOCK * BLOCK
    a_lanes, b_lanes = watched.loads[-2:]
    (_, c_mask), = watched.stores
    return {"A": kinds_of_lanes(K, a_lanes, places(row, step)),
            "B": kinds_of_lanes(N, b_lanes, places(step, col)),
            "C": kinds_of_results(c_mask, places(row, col))}


def draw_lanes(page, left, top, kinds):
    """The lanes of a block, each as what becomes of it."""
    for kind, row, col in kinds:
        x, y = left + col * SQUARE, top + row * SQUARE
        if kind == "ghost":
            page.rect("ghost", x + 1.5, y + 1.5, SQUARE - 3, SQUARE - 3)
        else:
            page.rect(kind, x, y, SQUARE, SQUARE)
        if kind == "masked":
            page.text("code mid", x + SQUARE / 2, y + 16, "0")


def draw_ways(page, top_a, top_b):
    """Arrows from where a lane would lie to where it is wrapped to."""
    x = LEFT_A - 6
    for row in range(M, 2 * BLOCK):
        start, end = (top_a + (at + 0.5) * SQUARE for at in (row, row % M))
        page.arrow("way", ["M", x, start, "C", x - 36, start, x - 36, end, x,
                           end])
    y = top_b + 2 * BLOCK * SQUARE + 4
    for col in range(N, 2 * BLOCK):
        start, end = (LEFT_B + (at + 0.5) * SQUARE for at in (col, col % N))
        page.arrow("way", ["M", start, y, "C", start, y + 30, end, y + 30, end,
                           top_b + K * SQUARE + 4])


def draw_tail_of_a_tile(page, top):
    """A, B and C, with the last step of the program of the last tile."""
    page.rect("panel", 8, top, 684, 536, rx=6)
    page.text("name", 20, top + 23, f"matmul: C is {M} x {N} and K is {K}, in "
              f"blocks of {BLOCK} x {BLOCK}")
    page.text("small", 20, top + 41, "The program of the last tile, in its last"
              " step along K.")
    found = edges()
    top_a, top_b = top + TOP_A, top + TOP_B
    draw_matrix(page, LEFT_A, top_a, M, K, "A")
    draw_matrix(page, LEFT_B, top_b, K, N, "B")
    draw_matrix(page, LEFT_B, top_a, M, N, "C")
    draw_lanes(page, LEFT_A, top_a, found["A"])
    draw_lanes(page, LEFT_B, top_b, found["B"])
    draw_lanes(page, LEFT_B, top_a, found["C"])
    row, col = min(places for _, *places in found["C"])
    page.rect("tile", LEFT_B + col * SQUARE, top_a + row * SQUARE,
              BLOCK * SQUARE, BLOCK * SQUARE)
    draw_ways(page, top_a, top_b)
    draw_legend(page, top + 66)


def draw_legend(page, top):
    """What the squares mean."""
    lines = [
        ("loaded", "", "in A and B, loaded; in C, stored"),
        ("ghost", "", "hangs over. In A and B its row or column is"),
        (None, "", "wrapped round, with % m or % n; in C it is"),
        (None, "", "not stored, by c_mask"),
        ("wrapped", "", "what is loaded in its place: an element that"),
        (None, "", "exists, for a result that nobody sees"),
        ("masked", "0", "past the end of K: not loaded, and 0, since"),
        (None, "", "any other number would be added to every"),
        (None, "", "result of the tile"),
    ]
    y = top
    for kind, letter, words in lines:
        if kind:
            y += 8
            page.rect(kind, 20, y, 18, 18)
            page.text("code mid", 29, y + 13, letter)
        page.text("small", 48, y + 13, words)
        y += 17
    page.rect("tile", 20, y + 8, 18, 18)
    page.text("small", 48, y + 21, "the tile of this program")


def describe_edges():
    """What masked-tail.svg shows, in words."""
    _, mask = watch_softmax().loads[0]
    told = [f"Softmax, a row of {N_COLS} in a block of {BLOCK_COLS} lanes: "
            f"lanes {in_words(np.flatnonzero(mask))} are loaded, lanes "
            f"{in_words(np.flatnonzero(~mask))} are masked and hold minus "
            "infinity."]
    told.append(f"Matmul, C is {M} x {N} and K is {K}, in blocks of {BLOCK} x "
                f"{BLOCK}; the last tile's last step along K.")
    found = edges()
    wrapped = sorted({row for kind, row, _ in found["A"] if kind == "wrapped"})
    over = sorted({row for kind, row, _ in found["A"] if kind == "ghost"})
    told.append(f"Rows {in_words(over)} of the tile hang over A, and rows "
                f"{in_words(wrapped)} are loaded in their place.")
    wrapped = sorted({col for kind, _, col in found["B"] if kind == "wrapped"})
    over = sorted({col for kind, _, col in found["B"] if kind == "ghost"})
    told.append(f"Column {in_words(over)} hangs over B, and column "
                f"{in_words(wrapped)} is loaded in its place.")
    masked = sorted({col for kind, _, col in found["A"] if kind == "masked"})
    told.append(f"Along K, {in_words(masked)} lie past the end: masked, and 0.")
    stored = [place for kind, *place in found["C"] if kind == "loaded"]
    told.append(f"Of the tile's {BLOCK * BLOCK} results {len(stored)} are "
                "stored.")
    return " ".join(told)


def in_words(numbers):
    """Some numbers in words: "6 and 7"."""
    if not len(numbers):
        return "none"
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def masked_tail():
    """The diagram of the edges, as SVG text."""
    page = drawing.Drawing(734, "What hangs over the edge, and what becomes of "
                           "it", describe_edges())
    page.text("head", 16, 26, "A block has its size, a matrix another: what "
              "hangs over the edge?")
    draw_tail_of_a_row(page, 40)
    draw_tail_of_a_tile(page, 186)
    return page.svg()


# ------------------------------------------------------------------------- main
FIGURES = {"tile-order.svg": tile_order, "masked-tail.svg": masked_tail}


def main():
    """Draw both; return the exit status."""
    for name, draw in FIGURES.items():
        (HERE / name).write_text(draw(), encoding="utf-8")
        print(f"drew {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
