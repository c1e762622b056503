"""Deaths at named points, of the service and of shims."""

from __future__ import annotations

import time

from sublet.platforms.local.shim.faults import VARIABLE
from tests.chaos.plan import Fault
from tests.chaos.world import World


def crash_service(world: World, fault: Fault) -> None:
    """The service dies where it is told to, if its work brings it there in time."""
    service = world.services[fault.target]
    service.kill()
    service.launch(**{VARIABLE: fault.detail})
    service.wait_death(fault.lasts)
    service.kill()
    service.launch()


def crash_shims(world: World, fault: Fault) -> None:
    """All shims that it starts meanwhile die there."""
    service = world.services[fault.target]
    service.kill()
    service.launch(**{VARIABLE: fault.detail})
    time.sleep(fault.lasts)
    service.kill()
    service.launch()
