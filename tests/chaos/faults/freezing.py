"""A service that stands still for longer than its claims last, and then goes on as if nothing had happened."""

from __future__ import annotations

import time

from tests.chaos.plan import Fault
from tests.chaos.world import World


def freeze(world: World, fault: Fault) -> None:
    """SIGSTOP, and SIGCONT; where there is another service, it takes over meanwhile."""
    service = world.services[fault.target]
    service.freeze()
    time.sleep(fault.lasts)
    service.thaw()
    world.note_deaths()
