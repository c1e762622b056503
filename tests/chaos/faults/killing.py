"""`kill -9` of a service: at any moment, just after a session's start, and while the service itself starts."""

from __future__ import annotations

import time

from tests.chaos.plan import Fault
from tests.chaos.world import World

LONGEST_WAIT = 6.0  # seconds for a client to accept something


def kill(world: World, fault: Fault) -> None:
    """At any moment."""
    service = world.services[fault.target]
    service.kill()
    service.launch()


def kill_near_start(world: World, fault: Fault) -> None:
    """Within 0.4 s of the next session's start."""
    service = world.services[fault.target]
    world.submitting.clear()
    world.submitting.wait(LONGEST_WAIT)
    time.sleep(fault.lasts)
    service.kill()
    service.launch()


def kill_starting(world: World, fault: Fault) -> None:
    """Twice while it starts."""
    service = world.services[fault.target]
    for _ in range(2):
        service.kill()
        service.launch()
        time.sleep(fault.lasts)
    service.kill()
    service.launch()
