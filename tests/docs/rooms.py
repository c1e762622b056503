"""Draws the rooms of `src/sublet` by its imports: `python -m tests.docs.rooms` writes docs/pictures/rooms.svg."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path

from tests.source import ROOT as SOURCE
from tests.source import parse_source

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
ROWS = (  # from the top: a room uses rooms of the rows below it, never of those above
    ("cli",),
    ("server",),
    ("web", "client"),
    ("api", "app"),
    ("service",),
    ("doors",),
    ("notices",),
    ("annexes", "apps", "archive"),
    ("access",),
    ("people",),
    ("booking",),
    ("data",),
    ("store",),
    ("platforms", "kinds", "movers"),
    ("systems", "reach"),
    ("kernel",),
)
EDGES = ("api", "pages", "cli", "views", "calls", "model", "store")  # layers inside a subject
SUBJECTS = ("booking", "data", "people", "access", "annexes", "apps", "archive", "notices", "systems", "doors")
ALONE = "sublet.platforms.local.shim"  # a program of its own, which imports nothing of Sublet
WIDTH, ROW, HIGH, GAP = 960, 66, 46, 16


def room_of(module: str) -> str:
    """The room that a module is in; the few modules that wire everything are `app`."""
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else "app"
    return name if any(name in row for row in ROWS) else "app"


def layer_of(module: str) -> str:
    """The layer of its subject that a module is in; empty: its use cases."""
    parts = module.split(".")
    if parts[1:2] == ["doors"]:
        return "api" if parts[-1] == "api" else ""
    return parts[2] if len(parts) > 2 and parts[1] in SUBJECTS and parts[2] in EDGES else ""


def find_modules() -> dict[str, Path]:
    """All modules of Sublet, by name; but the package itself, which only names what programs use of it."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path in (SOURCE / "sublet" / "__init__.py", SOURCE / "sublet" / "__main__.py"):
            continue
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of Sublet that a file imports, wherever it does so."""
    for node in ast.walk(parse_source()[path]):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from [whole] if whole in modules else [node.module] if node.module in modules else []
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


@cache
def use_between_rooms() -> set[tuple[str, str]]:
    """Which room's use cases import which other room; views, pages and models are left out, since all may read them."""
    modules = find_modules()
    return {
        (room_of(module), room_of(other))
        for module, path in modules.items()
        for other in imports_of(path, modules)
        if not layer_of(module) and not layer_of(other) and not other.startswith(ALONE)
        if room_of(module) != room_of(other)
    }


def without_detours(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that no chain of others stands for."""

    def reaches(start: str, end: str, seen: frozenset[str] = frozenset()) -> bool:
        return any(
            other == end or (other not in seen and reaches(other, end, seen | {other}))
            for (one, other) in edges
            if one == start
        )

    return {
        (one, other)
        for (one, other) in edges
        if not any(reaches(between, other) for (first, between) in edges if first == one and between != other)
    }


def purpose_of(room: str) -> str:
    """The first line of the room's own docstring."""
    return (import_module(f"sublet.{room}").__doc__ or "").strip().split("\n")[0].rstrip(".")


def place_rooms() -> dict[str, tuple[float, float, float]]:
    """Where each room is drawn: left, top, width."""
    places = {}
    for number, row in enumerate(ROWS):
        width = (WIDTH - GAP * (len(row) + 1)) / len(row)
        for index, room in enumerate(row):
            places[room] = (GAP + index * (width + GAP), GAP + number * ROW, width)
    return places


def draw() -> str:
    """The picture."""
    places = place_rooms()
    counts = dict.fromkeys(places, 0)
    for module in find_modules():
        counts[room_of(module)] += 1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {GAP + len(ROWS) * ROW}" '
        'font-family="sans-serif" role="img" aria-label="The rooms of Sublet, and which of them uses which">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for one, other in sorted(without_detours(use_between_rooms())):
        (left, top, width), (to_left, to_top, to_width) = places[one], places[other]
        lines.append(
            f'<path d="M{left + width / 2:.0f} {top + HIGH} L{to_left + to_width / 2:.0f} {to_top}" '
            'stroke="#8a97a8" stroke-width="1.5" fill="none"/>'
        )
    for room, (left, top, width) in places.items():
        size = "files" if counts[room] != 1 else "file"
        lines += [
            f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{HIGH}" rx="6" '
            'fill="#eef3f8" stroke="#33526e"/>',
            f'<text x="{left + 12:.0f}" y="{top + 19}" font-size="15" font-weight="bold" fill="#12283c">{room}</text>',
            f'<text x="{left + width - 12:.0f}" y="{top + 19}" font-size="11" text-anchor="end" fill="#5a6b7c">'
            f"{counts[room]} {size}</text>",
            f'<text x="{left + 12:.0f}" y="{top + 37}" font-size="11" fill="#33526e">'
            f"{escape(shorten(purpose_of(room), int(width / 5.9)))}</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])


def shorten(text: str, most: int) -> str:
    """At most so many characters, cut between words."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    PICTURE.write_text(draw())
