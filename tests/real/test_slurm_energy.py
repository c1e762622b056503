"""Energy of sessions on a cluster whose nodes count it: by Slurm's own plug-in, over a counter that is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.session import Usage
from sublet.platforms.slurm.platform import Slurm
from tests.real.clusters import Cluster, ended, logged_in, small
from tests.sites import Site

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
COUNTING = (  # pm_counters reads files that blades of Cray have below /sys
    "--accounts",
    *("--slurm", "AcctGatherEnergyType=acct_gather_energy/pm_counters"),
    *("--slurm", "JobAcctGatherFrequency=task=1,energy=1"),
)
COUNTER = "/sys/cray/pm_counters/energy"
PLAY = f"""
mkdir -p /tmp/sys && mount --rbind /sys /tmp/sys && mount -t tmpfs tmpfs /sys
for folder in /tmp/sys/*; do mkdir "/sys/${{folder##*/}}" && mount --rbind "$folder" "/sys/${{folder##*/}}"; done
mkdir -p {Path(COUNTER).parent}
echo 100 W >{Path(COUNTER).parent}/power
echo 1000 J >{COUNTER}
chmod 666 {COUNTER}
"""


@pytest.fixture
def cluster(new_site: Callable[..., Site], tmp_path: Path) -> Iterator[Cluster]:
    """A site whose first nodes have a counter, and its last has none."""
    site = new_site(*COUNTING)
    for node in site.plan.computes[:-1]:
        site.on(node, "sh", "-c", PLAY)
    with logged_in(site, tmp_path):
        yield Cluster(site, tmp_path)


async def measure(slurm: Slurm, job: str) -> Usage:
    """What a job used, when it has ended."""
    state = await ended(slurm, job)
    assert state.end
    assert state.end.usage
    await slurm.clean(job)
    return state.end.usage


async def test_energy_is_measured_where_nodes_count_it_and_unknown_where_they_do_not(cluster: Cluster) -> None:
    counting = await cluster.open(queue="debug")
    await counting.survey()
    job = await counting.submit(small("sh", "-c", f"echo 5000 J >{COUNTER}"), f"test-{uuid4()}")
    usage = await measure(counting, job)
    assert (usage.energy_source, round(usage.energy * 3_600_000)) == ("measured", 4000)
    blind = await cluster.open(queue="shared")
    await blind.survey()
    job = await blind.submit(small("true"), f"test-{uuid4()}")
    usage = await measure(blind, job)
    assert (usage.energy_source, usage.energy) == ("", 0)
