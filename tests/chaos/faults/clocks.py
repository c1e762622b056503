"""The machine's clock is set by an hour, and set back."""

from __future__ import annotations

import time

from tests.chaos.plan import Fault
from tests.chaos.world import World


def step_clock(world: World, fault: Fault) -> None:
    """For Sublet alone: its services and shims read how far the clock is off in a file."""
    part = world.clock.with_suffix(".part")
    part.write_text(fault.detail)
    part.rename(world.clock)
    time.sleep(fault.lasts)
    world.clock.unlink()
    world.note_deaths()
