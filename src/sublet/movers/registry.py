"""Which movers there are: one entry point each, and what is wrong with those that can't be loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sublet.kernel.plugins import plugins
from sublet.movers.app import FOLDER, AppMover
from sublet.movers.file import FileMover
from sublet.movers.http import HttpMover
from sublet.movers.logins import Login
from sublet.movers.oci import OciMover
from sublet.movers.port import Mover

GROUP = "sublet.movers"


@dataclass(frozen=True)
class Movers:
    """The movers that can be used, and the broken ones with the reason."""

    found: Sequence[Mover]
    broken: Mapping[str, str]


def survey_movers(
    roots: Sequence[Path] | None = None,
    public_only: bool = False,
    home: Path | None = None,
    largest: int = 0,
    logins: Sequence[Login] = (),
) -> Movers:
    """Every mover that is installed: a plug-in that can't be loaded is shown as broken, not absent."""
    held: dict[object, Callable[[], Mover]] = {
        AppMover: lambda: AppMover(home / FOLDER if home else None),
        FileMover: lambda: FileMover(None if roots is None else tuple(root.resolve() for root in roots)),
        HttpMover: lambda: HttpMover(public_only=public_only, largest=largest),
        OciMover: lambda: OciMover(HttpMover(public_only=public_only, largest=largest), logins),
    }
    found: list[Mover] = []
    broken: dict[str, str] = {}
    for point in plugins(GROUP):
        try:
            made = point.load()
            found.append(held.get(made, made)())
        except Exception as why:  # a plug-in may fail in any way at all, and the others go on
            broken[point.name] = f"{point.value}: {type(why).__name__}: {why}"
    return Movers(found, broken)
