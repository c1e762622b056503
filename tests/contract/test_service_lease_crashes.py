"""`kill -9` at every step of making a lease leaves no lease that nobody ends, and nothing that runs without one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sublet.annexes.leases import NOTHING_SENT
from sublet.booking.model.phases import ACTIVE, Phase
from sublet.kernel.errors import NoLease
from sublet.kernel.faults import LEASE_POINTS
from tests.contract.leases import ended, leasing, made
from tests.contract.services import ME, in_phase, reach
from tests.nursery import typed

pytestmark = pytest.mark.anyio
GOES_ON = ("accept.after", "lease.accepted", "preparing.after", "submit.before", "submit.after", "running.after")


def killed(home: Path, point: str) -> None:
    """Make a lease in a process that dies there."""
    died = typed([str(home)], {**os.environ, "SUBLET_CRASH_AT": point}, program="tests.contract.lease_maker")
    assert died.returncode == -signal.SIGKILL, died.stderr


@pytest.mark.parametrize("point", [*LEASE_POINTS, "preparing.after", "submit.before", "submit.after", "running.after"])
async def test_a_service_that_dies_there_leaves_no_orphan(tmp_path: Path, point: str) -> None:
    killed(tmp_path, point)
    async with leasing(tmp_path) as service:
        [lease] = (await service.annexes.registry.leases("example", ME))[1]
        if point in GOES_ON:
            await reach(service, lease.session, in_phase(Phase.RUNNING))
            await service.annexes.leases.shutdown("example", ME)
            over = await ended(service, lease.id)
            assert over.why == "me shut it down"
        else:
            over = await ended(service, lease.id)
            assert over.why == NOTHING_SENT
            with pytest.raises(NoLease):
                await service.annexes.leases.shutdown("example", ME)
        active = [one for one in (await service.sessions.page(ME)).items if one.phase in ACTIVE]
        assert active == []
        assert (await made(service)).number == 2
