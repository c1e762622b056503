"""The question before a lease ends: how many jobs run on its nodes, and which."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.model.lease_state import AnnexState, LeaseState
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Affected, Confirmation
from sublet.web.words import count_text

RUNNING = ("running", "suspended")


async def ask_about_lease(service: Service, name: str, person: Person, *, queued: bool = False) -> Confirmation:
    """Return the question before the leases that a name means are ended or, if `queued`, cancelled."""
    state = await service.annexes.status.annex_state(name, person)
    annex = f"/web/annexes/{quote(state.annex.name)}"
    if queued:
        effects = ("Its request leaves the queue, with the place that it has there.",)
        return Confirmation(f"Take back {name}?", effects, f"Take back {name}", annex)
    live = [lease for lease in state.leases if lease.lease.ended is None]
    running = sum(node.running for lease in live for node in lease.nodes)
    jobs = await _running_jobs(service, state, live, person) if running else ()
    return Confirmation(f"End {name}?", _effects(live, running, state.trouble), f"End {name}", annex, jobs)


def _effects(live: Sequence[LeaseState], running: int, trouble: str) -> tuple[str, ...]:
    busy = [f"{node.running} on {node.node}" for lease in live for node in lease.nodes if node.running]
    if running:
        verb = "runs" if running == 1 else "run"
        return (
            f"{count_text(running, 'job')} {verb} on it now: {', '.join(busy)}.",
            "They are stopped, lose what they have not saved, and wait in the queue again. The nodes are given back.",
        )
    if trouble:
        return (f"Whether jobs run on it is not known: {trouble}.", "Jobs that run are stopped and wait again.")
    return ("No job runs on it now. The nodes are given back, or its request is taken back if it still waits.",)


async def _running_jobs(
    service: Service, state: AnnexState, live: Sequence[LeaseState], person: Person
) -> tuple[Affected, ...]:
    """Return the running jobs of the annex or on these leases' nodes; none if the access point doesn't answer."""
    try:
        listed = (await service.annexes.jobs.jobs(person)).jobs
    except SubletError:
        return ()  # their number is known from the nodes
    nodes = {node.node for lease in live for node in lease.nodes}
    return tuple(_name_job(job) for job in listed if job.state in RUNNING and _is_on(job, state.annex.id, nodes))


def _is_on(job: QueuedJob, annex: str, nodes: set[str]) -> bool:
    return job.annex == annex or job.node.rpartition("@")[2] in nodes


def _name_job(job: QueuedJob) -> Affected:
    owner = f"job {job.id} of {job.guest}" if job.guest else f"job {job.id}"
    return Affected(job.name, owner)
