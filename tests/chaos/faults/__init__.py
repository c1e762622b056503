"""How each kind of fault is injected: a function that breaks something for its time, and mends it."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.chaos.evidence import Injected
from tests.chaos.faults import clocks, databases, freezing, killing, points, shortages, sites
from tests.chaos.plan import Fault
from tests.chaos.world import World

INJECTORS: dict[str, Callable[[World, Fault], None]] = {
    "kill": killing.kill,
    "kill-near-start": killing.kill_near_start,
    "kill-starting": killing.kill_starting,
    "crash-point": points.crash_service,
    "shim-point": points.crash_shims,
    "freeze": freezing.freeze,
    "full-disk": shortages.fill_disk,
    "few-descriptors": shortages.take_descriptors,
    "database-crash": databases.crash_database,
    "clock": clocks.step_clock,
    "controller-crash": sites.crash_controller,
    "node-crash": sites.crash_node,
    "cable": sites.pull_cable,
    "ssh-master": sites.kill_connection,
}


def inject(world: World, fault: Fault) -> None:
    """Break it, mend it, have all services up again, and write down when that was."""
    began = time.time()
    INJECTORS[fault.kind](world, fault)
    world.revive()
    world.injected.append(Injected(fault.kind, fault.detail, began, time.time()))
