"""Faults of a cluster: its controller, a node, its cable, and the connection to it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from tests.chaos.gathering import find_processes
from tests.chaos.plan import Fault
from tests.chaos.slurm_site import NODE, SlurmSite
from tests.chaos.world import World, wait_for

LONGEST_WAIT = 8.0  # seconds for a job to be submitted


def crash_controller(world: World, fault: Fault) -> None:
    """Slurmctld loses its last second: right after the next sbatch."""
    cluster = _site_of(world)
    before = cluster.find_submitted()
    wait_for(lambda: bool(cluster.find_submitted() - before), LONGEST_WAIT, 0.02)
    time.sleep(fault.lasts)
    cluster.site.crash("ctl")
    cluster.site.boot("ctl")


def crash_node(world: World, fault: Fault) -> None:
    """Power is lost, and comes back."""
    cluster = _site_of(world)
    cluster.site.crash(NODE)
    time.sleep(fault.lasts)
    cluster.site.boot(NODE)


def pull_cable(world: World, fault: Fault) -> None:
    """The login host says nothing any more, not even an end of its connections."""
    cluster = _site_of(world)
    cluster.site.pull_cable("login")
    time.sleep(fault.lasts)
    cluster.site.put_cable("login")


def kill_connection(world: World, fault: Fault) -> None:
    """The shared connection of OpenSSH is killed."""
    for pid, words in find_processes(world.base).items():
        if words.startswith("ssh"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _site_of(world: World) -> SlurmSite:
    assert world.cluster
    return world.cluster
