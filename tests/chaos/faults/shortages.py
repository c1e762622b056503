"""Too little of something: room on the disk, descriptors."""

from __future__ import annotations

import errno
import os
import resource
import time
from pathlib import Path

from tests.chaos.plan import Fault
from tests.chaos.world import World

PIECE = b"\0" * 65536
NOTICED = 2.0  # seconds until a full disk must be told
SPARE = 2  # descriptors that it may still open


def fill_disk(world: World, fault: Fault) -> None:
    """Take all room that there is below SUBLET_HOME."""
    balloon = world.home / "balloon"
    try:
        _fill(balloon)
        full = time.time()
        time.sleep(fault.lasts)
        if not world.postgres:
            world.outages.append((full + NOTICED, time.time()))
    finally:
        balloon.unlink(missing_ok=True)
    world.note_deaths()


def _fill(balloon: Path) -> None:
    with balloon.open("wb", buffering=0) as file:
        for piece in (PIECE, PIECE[:4096], PIECE[:1]):
            try:
                while file.write(piece):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def take_descriptors(world: World, fault: Fault) -> None:
    """Let a service have few more descriptors than it has open."""
    service = world.services[fault.target]
    soft, hard = resource.prlimit(service.pid, resource.RLIMIT_NOFILE)
    few = len(os.listdir(f"/proc/{service.pid}/fd")) + SPARE
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (min(few, soft), hard))
    time.sleep(fault.lasts)
    world.note_deaths()
    if service.is_alive:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (soft, hard))
