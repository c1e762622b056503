"""A site with Slurm's own limiter on, and others' jobs hidden: a guest stays within, and says what it can't see."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.booking.model.session import EndKind
from tests.real.clusters import MEMORY, Cluster, ended, logged_in, small
from tests.sites import Site
from tests.sites import running as site_running

pytestmark = pytest.mark.anyio
LIMIT = "SlurmctldParameters=rl_enable,rl_bucket_size=15,rl_refill_rate=6"
WANTED = Request(Executable("command"), Compute(memory=Range(MEMORY, MEMORY)), duration=timedelta(minutes=1))


@pytest.fixture(scope="module")
def strict(swept: None) -> Iterator[Site]:
    with site_running("--base", "box", "--nodes", "2", "--slurm", LIMIT, "--slurm", "PrivateData=jobs") as site:
        yield site


@pytest.fixture(scope="module")
def cluster(strict: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with logged_in(strict, home):
        yield Cluster(strict, home)


def refusals(site: Site) -> int:
    """How often the limiter told someone to wait."""
    log = Path(site.facts["logs"]) / "slurmctld.log"
    return len(re.findall("rate limit exceeded", log.read_text(), re.IGNORECASE))


def plans(site: Site) -> int:
    """How often Slurm was asked when a job would start."""
    found = re.search(r"REQUEST_JOB_WILL_RUN\s+\(\s*\d+\)\s+count:(\d+)", site.on("ctl", "sdiag"))
    return int(found[1]) if found else 0


async def test_two_platforms_of_one_account_never_meet_slurms_limiter(cluster: Cluster) -> None:
    one, other = await cluster.open("one", queue="shared", poll=1), await cluster.open("other", poll=1)
    survey = await one.survey()
    assert any("the view is partial" in note and "jobs" in note for note in survey.notes)
    assert any(note.startswith("Slurm takes 15 calls at once") for note in survey.notes)
    await other.survey()
    await asyncio.gather(*(way.offers(WANTED, ["exec"], datetime.now(UTC)) for way in (one, other) for _ in range(3)))
    keys = [f"test-{uuid4()}" for _ in range(6)]
    jobs = await asyncio.gather(*(one.submit(small("true"), key) for key in keys))
    for job in jobs:
        end = (await ended(one, job)).end
        assert end
        assert end.kind is EndKind.EXITED
    assert refusals(cluster.site) == 0
    for job in jobs:
        await one.clean(job)
    await one.close()
    await other.close()
    cluster.site.on("researcher@login", "sh", "-c", "for i in $(seq 12); do squeue >/dev/null & done; wait")
    assert refusals(cluster.site) > 0  # so it would have been seen


async def test_one_ask_asks_slurm_once_for_each_queue_that_fits(cluster: Cluster) -> None:
    slurm = await cluster.open("asks", queue="")
    await slurm.survey()
    before = plans(cluster.site)
    answer = await slurm.offers(WANTED, ["exec"], datetime.now(UTC))
    assert len(answer.offers) == 4
    assert plans(cluster.site) - before == 4
    await slurm.close()
