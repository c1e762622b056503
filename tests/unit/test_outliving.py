"""A job that is still there after its time: stopped at once here, and left to its own system's clock elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from sublet.booking.loop.step import has_outlived
from sublet.platforms.htcondor.platform import HTCondor
from sublet.platforms.local.platform import Local
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.port import Platform
from sublet.platforms.slurm.platform import Slurm
from tests.unit.test_lease_state import NOW, SESSION

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("platform", "late", "stopped"),
    [
        (Local, timedelta(0), False),
        (Local, HOUR, True),
        (MemoryPlatform, HOUR, True),
        (Slurm, HOUR, False),  # the clock of this machine may have been set by an hour
        (HTCondor, HOUR, False),
        (Slurm, 4 * HOUR, True),
    ],
)
def test_a_clock_that_is_an_hour_off_stops_nothing_elsewhere(
    platform: type[Platform], late: timedelta, stopped: bool
) -> None:
    session = replace(SESSION, until=NOW)
    assert has_outlived(session, cast(Platform, platform), NOW + late) is stopped


def test_what_has_no_end_yet_outlives_nothing() -> None:
    assert not has_outlived(replace(SESSION, until=None), cast(Platform, Local), NOW)
