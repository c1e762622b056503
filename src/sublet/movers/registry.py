"""Loads the installed movers from their entry points, and reports those that can't be loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from sublet.kernel.plugins import plugins
from sublet.movers.port import AnyMover, Policy

GROUP = "sublet.movers"
TAKES_NO_POLICY = (
    "It takes no `policy`, so nobody could tell it what it may bring. "
    "A mover is made by `make(policy=…)`; see sublet.movers.port.Policy."
)


class TakesNoPolicy(TypeError):
    """What an entry point names can't be told what it may bring."""

    def __init__(self) -> None:
        """Say so, and what to do."""
        super().__init__(TAKES_NO_POLICY)


@dataclass(frozen=True)
class LoadedMovers:
    """The usable movers, and the broken ones with the reason."""

    found: Sequence[AnyMover]
    broken: Mapping[str, str]


def survey_movers(policy: Policy, points: Iterable[EntryPoint] | None = None) -> LoadedMovers:
    """Load every installed mover with this policy; one that fails to load is reported as broken, not omitted."""
    movers: list[AnyMover] = []
    broken: dict[str, str] = {}
    for point in plugins(GROUP) if points is None else points:
        try:
            movers.append(_make_mover(point.load(), policy))
        except Exception as why:  # a plug-in may fail in any way; the others must still load
            broken[point.name] = f"{point.value}: {type(why).__name__}: {why}"
    return LoadedMovers(movers, broken)


def _make_mover(make: Callable[..., AnyMover], policy: Policy) -> AnyMover:
    try:
        inspect.signature(make).bind(policy=policy)
    except TypeError as error:
        raise TakesNoPolicy from error
    return make(policy=policy)
