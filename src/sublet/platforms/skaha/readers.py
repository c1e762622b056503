"""Readers for Skaha's answers, by its public description and its own client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sublet.booking.model.job import State

GB = 1 << 30
STATES = {
    "Pending": State.QUEUED,
    "Running": State.RUNNING,
    "Terminating": State.RUNNING,
    "Succeeded": State.ENDED,
    "Completed": State.ENDED,
    "Failed": State.ENDED,
    "Error": State.ENDED,
}
WELL = ("Succeeded", "Completed")


@dataclass(frozen=True, slots=True)
class SkahaSession:
    """One session, as Skaha describes it."""

    id: str
    name: str
    status: str
    started: datetime | None = None
    expires: datetime | None = None
    connect: str = ""

    @property
    def state(self) -> State:
        """The session's state."""
        return STATES.get(self.status, State.UNKNOWN)


@dataclass(frozen=True, slots=True)
class SkahaSizes:
    """What a session may ask for: only these numbers of cores, and of GB of memory."""

    cores: tuple[int, ...] = (1,)
    memory: tuple[int, ...] = (1,)
    gpus: tuple[int, ...] = ()

    def fit(self, cores: int, memory: int, gpus: int) -> tuple[int, int, int]:
        """Return the smallest sizes that are enough: cores, GB, GPUs."""
        wanted = -(-memory // GB)
        return _least(self.cores, cores), _least(self.memory, wanted), _least(self.gpus, gpus) if gpus else 0


def _least(options: Sequence[int], wanted: int) -> int:
    return min((option for option in options if option >= wanted), default=max(options, default=wanted))


def read_session(value: Mapping[str, Any]) -> SkahaSession:
    """Read a session."""
    return SkahaSession(
        str(value.get("id", "")),
        str(value.get("name", "")),
        str(value.get("status", "")),
        read_time(value.get("startTime")),
        read_time(value.get("expiryTime")),
        str(value.get("connectURL") or "") if value.get("status") == "Running" else "",
    )


def read_time(text: object) -> datetime | None:
    """Read a time, which Skaha writes in UTC; None if it isn't one."""
    if not isinstance(text, str) or not text or text == "<none>":
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_sizes(context: Mapping[str, Any]) -> SkahaSizes:
    """Read what may be asked for from the context, whose older and newer versions have different names."""
    return SkahaSizes(
        _options(context, "cores", "availableCores") or (1,),
        _options(context, "memoryGB", "availableRAM") or (1,),
        _options(context, "gpus", "availableGPUs"),
    )


def _options(context: Mapping[str, Any], name: str, older: str) -> tuple[int, ...]:
    value = context.get(name)
    listed = value.get("options") if isinstance(value, Mapping) else context.get(older)
    return tuple(sorted(int(option) for option in listed or () if int(option) > 0))
