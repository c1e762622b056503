"""A lease whose nodes are several slots, with what its system's file adds, is drained while jobs run on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import LeaseView
from tests.real.workers import SMALL, Worker

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm, pytest.mark.engines]

ADDED = """options: [--nice=7]
pilot:
- GLIDEIN_Site = "Example"
- STARTD_ATTRS = $(STARTD_ATTRS) GLIDEIN_Site
"""
WAITS = f"executable = /bin/sh\narguments = \"-c 'until [ -e $(file) ]; do sleep 1; done'\"\n{SMALL}queue 2\n"
DETAILS = (
    "--queue",
    "shared",
    "--nodes",
    "1",
    "--cores",
    "4",
    "--memory",
    "1GiB",
    "--lifetime",
    "15m",
    "--idle",
    "15m",
)


@pytest.fixture
def added(worker: Worker) -> Iterator[None]:
    """A system whose file adds to every lease."""
    file = worker.person.kept("systems", f"{worker.person.site.name}.yaml")
    before = file.read_text()
    file.write_text(before + ADDED)
    yield
    file.write_text(before)


@pytest.mark.usefixtures("added")
def test_a_lease_of_several_slots_is_drained_and_ends_after_its_jobs(worker: Worker) -> None:
    person, site = worker.person, worker.person.site
    words = ("cut", "--system", site.name, *DETAILS, "--slots", "2")
    plan = worker.types("annex", "create", *words, "--dry-run")
    for shown in ("slots ", "--slots", "--nice=7", 'GLIDEIN_Site = "Example"', "the system's file"):
        assert shown in plan
    worker.types("annex", "create", *words, "--yes", "--wait")

    def lease() -> LeaseView:
        return person.client().do(annexes.annex("cut#1")).leases[0]

    [node] = lease().nodes
    assert (node.slots, node.cores) == (2, 4)
    of_it = f'SubletLease == "{lease().id}"'
    slots = worker.condor("condor_status", "-constraint", of_it, "-af", "SlotType", "Cpus", "GLIDEIN_Site")
    assert slots.splitlines() == ["Static 2 Example"] * 2
    nice = site.on("ctl", "squeue", "-ah", "-o", "%y", "-n", lease().session)
    assert nice.split() == ["7"]

    go = "/home/researcher/go"  # of the cluster
    runs = worker.submits(worker.has("waits.sub", WAITS.replace("$(file)", go)), "cut")
    for number in (0, 1):
        worker.waits_for(f"{runs}.{number}", "running")
    assert "no new jobs" in worker.types("annex", "drain", "cut", "--node", node.node)
    waits = worker.submits("waits.sub", "cut")
    assert "Every node of cut is being drained" in worker.explained(f"{waits}.0")
    assert "draining" in worker.types("annex", "status", "cut")
    of_draining = f"{of_it} && SubletDraining"
    site.wait(lambda: len(worker.condor("condor_status", "-constraint", of_draining, "-af", "Name").split()) == 2, 60)
    site.on("researcher@login", "touch", go)
    for number in (0, 1):
        worker.waits_for(f"{runs}.{number}")
    site.wait(lambda: lease().state == "ended", 90)
    assert "it was drained" in lease().why
    states = worker.condor("condor_q", waits, "-af", "JobStatus").split()
    assert states == ["1", "1"], "what came after the order waits for other nodes"
    worker.types("job", "remove", waits)
    site.on("researcher@login", "rm", go)
