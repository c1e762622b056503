"""QR codes (ISO/IEC 18004), for an authenticator app's camera: bytes, error level M, versions 1 to 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise, product

Modules = list[list[bool]]  # rows of modules; True: dark
Grid = list[list[bool | None]]  # None: free for data

# Error correction codewords per block, by version, at level M
CORRECTION = (10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22)
BLOCKS = (1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9)
FIELD = 0x11D  # the polynomial of the field GF(256)
FORMAT, VERSION = 0x537, 0x1F25  # generators of the codes that protect format and version
FORMAT_MASK = 0x5412
BYTES = 0b0100  # the mode
PADS = (0xEC, 0x11)
MASKS: tuple[Callable[[int, int], bool], ...] = (
    lambda x, y: (x + y) % 2 == 0,
    lambda _, y: y % 2 == 0,
    lambda x, _: x % 3 == 0,
    lambda x, y: (x + y) % 3 == 0,
    lambda x, y: (x // 3 + y // 2) % 2 == 0,
    lambda x, y: x * y % 2 + x * y % 3 == 0,
    lambda x, y: (x * y % 2 + x * y % 3) % 2 == 0,
    lambda x, y: ((x + y) % 2 + x * y % 3) % 2 == 0,
)
FINDER = [True, False, True, True, True, False, True]  # a line across a finder pattern
QUIET = 4  # light modules on each side


def make_code(text: str) -> Modules | None:
    """Return the modules of a code, without quiet zone; None if the text is too long."""
    data = text.encode()
    for version, (correction, blocks) in enumerate(zip(CORRECTION, BLOCKS, strict=True), 1):
        grid = lay_patterns(version)
        room = sum(module is None for row in grid for module in row) // 8 - correction * blocks
        words = pack_bytes(data, version, room)
        if len(words) == room:
            return _fill(grid, interleave(words, correction, blocks))
    return None


def lay_patterns(version: int) -> Grid:
    """Lay the fixed patterns of this version; modules for the format are light."""
    size = 17 + 4 * version
    grid: Grid = [[None] * size for _ in range(size)]
    for i in range(8, size - 8):
        grid[6][i] = grid[i][6] = i % 2 == 0
    for x, y in ((3, 3), (size - 4, 3), (3, size - 4)):
        _lay_square(grid, x, y, 4, {0, 1, 3})
    for x, y in product(_align(version), repeat=2):
        if grid[y][x] is None or (min(x, y) == 6 and 8 < max(x, y) < size - 9):
            _lay_square(grid, x, y, 2, {0, 2})
    _lay_format(grid, 0)
    if version >= 7:
        bits = version << 12 | _divide(version << 12, VERSION)
        for i in range(18):
            a, b = size - 11 + i % 3, i // 3
            grid[a][b] = grid[b][a] = bool(bits >> i & 1)
    return grid


def pack_bytes(data: bytes, version: int, room: int) -> list[int]:
    """Return the codewords of data: mode, length, bytes, and padding to the available room."""
    width = 8 if version < 10 else 16
    bits = f"{BYTES:04b}{len(data):0{width}b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, max(0, room * 8 - len(bits)))
    bits += "0" * (-len(bits) % 8)
    words = [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]
    return words + [PADS[i % 2] for i in range(room - len(words))]


def interleave(words: Sequence[int], correction: int, blocks: int) -> list[int]:
    """Return the codewords in layout order: the first of each block, the second of each, and so on."""
    short, longer = divmod(len(words), blocks)  # the last blocks are longer by one
    ends = [short * (i + 1) + max(0, i + 1 - blocks + longer) for i in range(blocks)]
    parts = [words[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    checks = [correct(part, correction) for part in parts]
    data = [part[i] for i in range(short + 1) for part in parts if i < len(part)]
    return data + [check[i] for i in range(correction) for check in checks]


def correct(words: Sequence[int], count: int) -> list[int]:
    """Return the Reed-Solomon error correction codewords of a block."""
    generator, root = [1], 1
    for _ in range(count):
        shifted = [*generator, 0]
        generator = [a ^ multiply(b, root) for a, b in zip(shifted, [0, *generator], strict=True)]
        root = multiply(root, 2)
    rest = [0] * count
    for word in words:
        factor = word ^ rest[0]
        rest = [a ^ multiply(b, factor) for a, b in zip([*rest[1:], 0], generator[1:], strict=True)]
    return rest


def multiply(a: int, b: int) -> int:
    """Multiply two bytes in the field."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (FIELD if a & 0x80 else 0)
        b >>= 1
    return product


def find_free(grid: Grid) -> Iterator[tuple[int, int]]:
    """Yield the places for data in order: two columns at a time from the right, up and down."""
    size = len(grid)
    for turn, right in enumerate([*range(size - 1, 6, -2), 5, 3, 1]):
        for y in range(size) if turn % 2 else range(size - 1, -1, -1):
            yield from ((x, y) for x in (right, right - 1) if grid[y][x] is None)


def _fill(grid: Grid, words: Sequence[int]) -> Modules:
    """Lay the data with the mask that has the lowest penalty."""
    bits = [bool(word >> i & 1) for word in words for i in range(7, -1, -1)]
    free = list(find_free(grid))
    bits += [False] * (len(free) - len(bits))
    codes: list[Modules] = []
    for number, mask in enumerate(MASKS):
        code: Grid = [list(row) for row in grid]
        for (x, y), bit in zip(free, bits, strict=True):
            code[y][x] = bit != mask(x, y)
        _lay_format(code, number)
        codes.append([[bool(module) for module in row] for row in code])
    return min(codes, key=_weigh)


def _weigh(code: Modules) -> int:
    """Return a code's penalty: long runs, squares, patterns like a finder, and imbalance of dark and light."""
    weight, size = 0, len(code)
    like_finder = ([*FINDER, *[False] * 4], [*[False] * 4, *FINDER])
    for line in [*code, *map(list, zip(*code, strict=True))]:
        runs = (len(list(run)) for _, run in groupby(line))
        weight += sum(length - 2 for length in runs if length >= 5)
        weight += 40 * sum(line[i : i + 11] in like_finder for i in range(size - 10))
    for above, below in pairwise(code):
        weight += 3 * sum(above[i] == above[i + 1] == below[i] == below[i + 1] for i in range(size - 1))
    dark = sum(map(sum, code)) * 100 / size**2
    return weight + 10 * int(abs(dark - 50) / 5)


def _align(version: int) -> list[int]:
    """Return the rows and columns of alignment patterns."""
    if version == 1:
        return []
    count, last = version // 7 + 2, 10 + 4 * version
    step = (version * 4 + count * 2 + 1) // (count * 2 - 2) * 2
    return [6, *(last - step * i for i in range(count - 2, -1, -1))]


def _lay_square(grid: Grid, x: int, y: int, reach: int, dark: set[int]) -> None:
    """Lay a pattern of rings around a module; rings at these distances are dark."""
    for dy, dx in product(range(-reach, reach + 1), repeat=2):
        if 0 <= y + dy < len(grid) and 0 <= x + dx < len(grid):
            grid[y + dy][x + dx] = max(abs(dx), abs(dy)) in dark


def _lay_format(grid: Grid, mask: int) -> None:
    """Lay level (M is 00) and mask, twice."""
    size, bits = len(grid), (mask << 10 | _divide(mask << 10, FORMAT)) ^ FORMAT_MASK
    for i in range(15):
        bit = bool(bits >> i & 1)
        row = i if i < 6 else i + 1 if i < 8 else size - 15 + i
        column = size - 1 - i if i < 8 else 7 if i == 8 else 14 - i
        grid[row][8], grid[8][column] = bit, bit
    grid[size - 8][8] = True


def _divide(bits: int, generator: int) -> int:
    """Return the remainder of a polynomial division."""
    while bits.bit_length() >= generator.bit_length():
        bits ^= generator << bits.bit_length() - generator.bit_length()
    return bits


def draw_blocks(code: Modules) -> list[str]:
    """Draw a code as text, two rows per line; light modules are drawn, as on a dark terminal, with quiet zone."""
    size = len(code) + 2 * QUIET
    margin = [False] * QUIET
    rows = [[False] * size] * QUIET + [[*margin, *row, *margin] for row in code] + [[False] * size] * QUIET
    rows.append([True] * size)  # nothing is drawn below an odd number of rows
    shapes = {(False, False): "█", (False, True): "▀", (True, False): "▄", (True, True): " "}
    pairs = zip(rows[0::2], rows[1::2], strict=False)
    return ["".join(shapes[above, below] for above, below in zip(*pair, strict=True)) for pair in pairs]


def draw_path(code: Modules) -> str:
    """Return the dark modules as an SVG path, each a unit square."""
    places = ((x, y) for y, row in enumerate(code, QUIET) for x, dark in enumerate(row, QUIET) if dark)
    return "".join(f"M{x} {y}h1v1h-1z" for x, y in places)
