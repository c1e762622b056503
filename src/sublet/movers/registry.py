"""Which movers there are: one entry point each, and what is wrong with those that can't be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from sublet.movers.port import Mover

GROUP = "sublet.movers"


def load_movers(roots: Sequence[Path] | None) -> tuple[list[Mover], dict[str, str]]:
    """The movers, and the broken ones with the reason; `roots` are the directories that files may come from."""
    movers: list[Mover] = []
    broken: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        try:
            made: Mover = point.load().made(roots)
            movers.append(made)
        except Exception as why:  # a plug-in may fail in any way at all, and the others go on
            broken[f"mover {point.name}"] = f"{type(why).__name__}: {why}"
    return movers, broken
