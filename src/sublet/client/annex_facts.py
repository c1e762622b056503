"""What both clients share about annexes: their facts, asking for nodes, and waiting for nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import OWN_LINES, AnnexView, DetailsView, LeaseAsk, LeaseView
from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.booking.model.scheduler import scheduler_specs
from sublet.client.following import FIRST_PAUSE, LONGEST_PAUSE, Pause, Steps, read_timeout
from sublet.kernel.errors import LeaseRefused, NotUpYet

PARSERS: dict[str, Callable[[str], Any]] = {
    "memory": parse_memory,
    "lifetime": parse_duration,
    "idle": parse_duration,
}


class AnnexFacts:
    """An annex, as it was last seen."""

    def __init__(self, view: AnnexView) -> None:
        """Show the facts of a view, which is available as `view`."""
        self.view = view

    @property
    def name(self) -> str:
        """The annex's name."""
        return self.view.name

    @property
    def leases(self) -> tuple[LeaseView, ...]:
        """The leases that have not ended."""
        return self.view.leases

    @property
    def nodes(self) -> int:
        """The number of nodes that are up."""
        return sum(node.state == "up" for lease in self.view.leases for node in lease.nodes)

    def __repr__(self) -> str:
        """Return a short description for interactive use."""
        states = ", ".join(f"{lease.name} {lease.state}" for lease in self.leases) or "no leases"
        return f"<annex {self.name}: {states}>"


def lease_ask(name: str, template: str, like: str, details: dict[str, Any]) -> LeaseAsk:
    """Build a request for nodes from keyword arguments, as in `nodes=2, memory="8GiB", lifetime="4h"`."""
    asked = {word: value for word, value in details.items() if word in scheduler_specs() and word not in OWN_LINES}
    values = {word: _read(word, value) for word, value in details.items() if word not in asked}
    values |= {"scheduler": asked} if asked else {}
    return LeaseAsk(name=name, template=template, like=like, details=DetailsView(**values))


def _read(word: str, value: Any) -> Any:
    return PARSERS[word](value) if isinstance(value, str) and word in PARSERS else value


def lease_name(annex: str, number: int | None) -> str:
    """Return the name of an annex, or of one of its leases."""
    return annex if number is None else f"{annex}#{number}"


def until_up(name: str, timeout: timedelta | float | None) -> Steps[AnnexView]:
    """Poll an annex until all nodes of all its leases have reported; raise LeaseRefused if it has no lease left."""
    seconds = read_timeout(timeout)
    deadline = None if seconds is None else time.monotonic() + seconds
    pause = FIRST_PAUSE
    while True:
        view: AnnexView = yield annexes.annex(name)
        if not view.leases:
            last = (yield annexes.history(name)).annex.leases[-1:]
            raise LeaseRefused(why=last[0].why if last else "nothing was asked for.")
        if all(is_up(lease) for lease in view.leases):
            return view
        if deadline is not None and time.monotonic() >= deadline:
            raise NotUpYet(name=name, seconds=seconds)
        yield Pause(pause)
        pause = min(pause * 1.3, LONGEST_PAUSE)


def is_up(lease: LeaseView) -> bool:
    """Whether all nodes of a lease are up."""
    return sum(node.state == "up" for node in lease.nodes) >= (lease.details.nodes or 1)
