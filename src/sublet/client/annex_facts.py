"""What both clients show of annexes, and how both of them ask for nodes and wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import OWN_LINES, AnnexView, DetailsView, LeaseAsk, LeaseView
from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.booking.model.scheduler import scheduler_specs
from sublet.client.following import FIRST_PAUSE, LONGEST_PAUSE, Pause, Steps
from sublet.kernel.errors import LeaseRefused, NotUpYet

PARSERS: dict[str, Callable[[str], Any]] = {
    "memory": parse_memory,
    "lifetime": parse_duration,
    "idle": parse_duration,
}


class AnnexFacts:
    """What was last seen of an annex."""

    def __init__(self, view: AnnexView) -> None:
        """All of it is in `view`."""
        self.view = view

    @property
    def name(self) -> str:
        """Its name."""
        return self.view.name

    @property
    def leases(self) -> tuple[LeaseView, ...]:
        """The leases that have not ended."""
        return self.view.leases

    @property
    def nodes(self) -> int:
        """How many of its nodes are up."""
        return sum(node.state == "up" for lease in self.view.leases for node in lease.nodes)

    def __repr__(self) -> str:
        """Short, for a person at a prompt."""
        states = ", ".join(f"{lease.name} {lease.state}" for lease in self.leases) or "no leases"
        return f"<annex {self.name}: {states}>"


def lease_ask(name: str, template: str, like: str, details: dict[str, Any]) -> LeaseAsk:
    """Asks for nodes in words: `nodes=2, memory="8GiB", lifetime="4h"`."""
    asked = {word: value for word, value in details.items() if word in scheduler_specs() and word not in OWN_LINES}
    values = {word: _read(word, value) for word, value in details.items() if word not in asked}
    values |= {"scheduler": asked} if asked else {}
    return LeaseAsk(name=name, template=template, like=like, details=DetailsView(**values))


def _read(word: str, value: Any) -> Any:
    return PARSERS[word](value) if isinstance(value, str) and word in PARSERS else value


def lease_name(annex: str, number: int | None) -> str:
    """An annex, or one of its leases."""
    return annex if number is None else f"{annex}#{number}"


def until_up(name: str, timeout: timedelta | float | None) -> Steps[AnnexView]:
    """Look at an annex until all nodes of all its leases have reported; LeaseRefused if it has none any more."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
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
    """Whether all its nodes are."""
    return sum(node.state == "up" for node in lease.nodes) >= (lease.details.nodes or 1)
