"""How busy the nodes of annexes are, and which jobs name them: commands, and how their answers are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from sublet.annexes.model.annex import JOB_TARGET, SLOT_LEASE, SLOT_NODE
from sublet.annexes.model.lease_state import JobCounts, Slots
from sublet.platforms.htcondor.commands import COMPLETED, HELD, REMOVED, RUNNING, SENDING, SUSPENDED, to_queue
from sublet.platforms.htcondor.slots import to_slots
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

A = TypeVar("A")
B = TypeVar("B")

MIB = 1 << 20
SLOT = (
    *(SLOT_LEASE, SLOT_NODE, "Machine", "SlotType", "State", "Cpus", "TotalSlotCpus", "TotalSlotMemory"),
    *("TotalSlotGPUs", "TotalGPUs", "LastHeardFrom", "UpdateInterval"),
)
VANILLA = "JobUniverse == 5"  # containers too; what manages a DAG runs at the access point
NOT_AT_THE_POINT = "JobUniverse =!= 7 && JobUniverse =!= 12"  # also those that no annex runs: they can be removed
OVER = {REMOVED, COMPLETED}
ACTIVE = {RUNNING, SENDING, SUSPENDED}
USUAL = 1  # seconds between two updates, where a slot doesn't say: what pilots are told


def to_occupancy(tools: Tools) -> Command[list[Slots]]:
    """What each node of each lease offers."""
    return reread(to_slots(tools, f"{SLOT_LEASE} =!= undefined", SLOT), read_occupancy)


def to_jobs(tools: Tools) -> Command[dict[str, JobCounts]]:
    """The jobs that name an annex, by its id."""
    return reread(to_queue(tools, f"{VANILLA} && {JOB_TARGET} =!= undefined", (JOB_TARGET, "JobStatus")), read_jobs)


def reread(command: Command[A], reader: Callable[[A], B]) -> Command[B]:
    """The same command, whose answer is read once more."""
    return replace(command, reader=lambda outcome: reader(command.reader(outcome)))  # type: ignore[arg-type,return-value]


def read_occupancy(ads: list[Ad]) -> list[Slots]:
    """One for each node: its slots, put together."""
    by_node: dict[tuple[str, int], list[Ad]] = defaultdict(list)
    for ad in ads:
        by_node[str(ad[SLOT_LEASE]), int(ad.get(SLOT_NODE, 0))].append(ad)
    return [_node(lease, number, ads) for (lease, number), ads in by_node.items()]


def _node(lease: str, number: int, ads: list[Ad]) -> Slots:
    whole = [ad for ad in ads if ad.get("SlotType") != "Dynamic"]
    taken = [ad for ad in ads if ad.get("SlotType") != "Partitionable" and ad.get("State") == "Claimed"]
    return Slots(
        lease=lease,
        node=number,
        machine=str(ads[0].get("Machine", "")),
        cores=_sum(whole, "TotalSlotCpus", "Cpus"),
        busy=_sum(taken, "Cpus"),
        running=len(taken),
        slots=sum(ad.get("SlotType") == "Static" for ad in ads),
        memory=_sum(whole, "TotalSlotMemory") * MIB,
        gpus=_sum(whole, "TotalSlotGPUs", "TotalGPUs"),
        heard=datetime.fromtimestamp(max(int(ad.get("LastHeardFrom", 0)) for ad in ads), UTC),
        interval=timedelta(seconds=min(int(ad.get("UpdateInterval", USUAL)) for ad in ads)),
    )


def _sum(ads: list[Ad], *names: str) -> int:
    return sum(int(next((ad[name] for name in names if name in ad), 0)) for ad in ads)


def read_jobs(ads: list[Ad]) -> dict[str, JobCounts]:
    """How many of each annex's wait, run and are held."""
    counts: Mapping[str, Counter[str]] = defaultdict(Counter)
    for ad in ads:
        status = int(ad.get("JobStatus", 0))
        if status not in OVER:
            word = "running" if status in ACTIVE else "held" if status == HELD else "idle"
            counts[str(ad[JOB_TARGET])][word] += 1
    return {annex: JobCounts(**numbers) for annex, numbers in counts.items()}
