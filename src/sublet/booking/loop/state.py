"""What the loop is doing at present, for those who show it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sublet.booking.store.clocks import ClockStep


@dataclass
class LoopState:
    """Kept in memory by the loop; other processes have their own."""

    staging: dict[str, str] = field(default_factory=dict)  # what is being brought for a session, and how far it is
    fresh: set[str] = field(default_factory=set)  # sessions being prepared that nobody tried to submit yet
    trouble: str = ""  # why the loop can't carry sessions on at present
    turned: float | None = None  # when the loop began its last turn, by the monotonic clock; None: no loop runs here
    clock_step: ClockStep | None = None  # the last one of this machine's clock since it was started
