"""A database server that crashes, and a database whose pages are damaged."""

from __future__ import annotations

import time

from tests.chaos.plan import Fault
from tests.chaos.world import World


def crash_database(world: World, fault: Fault) -> None:
    """SIGQUIT: PostgreSQL ends without saving anything, and recovers when it is started again."""
    assert world.postgres
    world.postgres.stop()
    gone = time.time()
    time.sleep(fault.lasts)
    world.outages.append((gone, time.time()))
    world.postgres.start()
    world.note_deaths()
