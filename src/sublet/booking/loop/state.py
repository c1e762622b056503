"""The present state of the loop, for display."""

from __future__ import annotations

from dataclasses import dataclass, field

from sublet.booking.store.clocks import ClockStep


@dataclass
class LoopState:
    """The loop's state in memory; each process has its own."""

    staging: dict[str, str] = field(default_factory=dict)  # what is being staged for a session, and how far it is
    fresh: set[str] = field(default_factory=set)  # sessions being prepared that certainly weren't submitted yet
    trouble: str = ""  # why the loop can't advance sessions at present
    turned: float | None = None  # when the loop began its last turn, by the monotonic clock; None if no loop runs here
    clock_step: ClockStep | None = None  # the last step of this machine's clock since it booted
