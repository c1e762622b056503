"""Commands about a person's jobs at the access point, and the parsers of their output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.annexes.model.annex import JOB_GUEST, JOB_SESSION, JOB_TARGET, JOB_TIME, SLOT_ANNEX, SLOT_END
from sublet.annexes.model.inputs import JOB_PROGRAM, JOB_PULLED
from sublet.annexes.model.jobs import JobWord, NodeRoom, QueuedJob
from sublet.annexes.model.universes import VANILLA, name_universe
from sublet.annexes.pilots.occupancy import ACTIVE, NOT_AT_THE_POINT, reread
from sublet.platforms.htcondor.commands import to_factories, to_history, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.slots import to_slots
from sublet.platforms.htcondor.tools import Ad, Tools, reading
from sublet.reach.port import Command, Outcome

WORDS: tuple[JobWord, ...] = ("idle", "running", "removed", "completed", "held", "ending", "suspended")
ATTRIBUTES = (
    *("ClusterId", "ProcId", "JobStatus", "JobBatchName", "Cmd", "RemoteHost", "LastRemoteHost", "QDate"),
    *("EnteredCurrentStatus", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "HoldReason"),
    *("RemoveReason", "ExitCode", "JobSetName", "JobUniverse", "AllowedExecuteDuration", "Requirements"),
    *("ShouldTransferFiles", "ConcurrencyLimits", "NumVacates", "VacateReason"),
    *(JOB_TARGET, JOB_SESSION, JOB_GUEST, JOB_TIME, JOB_PROGRAM, JOB_PULLED),
)
SLOT = (
    *("SlotType", "State", "Cpus", "Memory", "Disk", "GPUs", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk"),
    *("TotalSlotGPUs", SLOT_END),
)
KIB, MIB = 1 << 10, 1 << 20
_STEP = re.compile(r"^\[(\d+)\]\s+(\S+(?: now)?)\s+(\S.*)$", re.MULTILINE)
_REFERENCE = re.compile(r"(?<![\w)\]])\[(\d+)\]")  # to another step; after a word or bracket it is a subscript


def to_list(tools: Tools, constraint: str = "true") -> Command[list[QueuedJob]]:
    """Build the command that lists the person's own jobs in the queue."""
    return reread(to_queue(tools, f"{NOT_AT_THE_POINT} && ({constraint})", ATTRIBUTES), read_jobs)


def to_list_factories(tools: Tools, constraint: str) -> Command[list[QueuedJob]]:
    """Build the command that lists the person's clusters with jobs yet to be created, each as if it were one job."""
    return reread(to_factories(tools, f"{NOT_AT_THE_POINT} && ({constraint})", ATTRIBUTES), read_jobs)


def to_remember(tools: Tools, constraint: str) -> Command[list[QueuedJob]]:
    """Build the command that lists jobs that have left the queue."""
    return reread(to_history(tools, f"{NOT_AT_THE_POINT} && ({constraint})", ATTRIBUTES, 100), read_jobs)


def to_rooms(tools: Tools, annex: str) -> Command[list[NodeRoom]]:
    """Build the command that returns the total and free resources of an annex's nodes."""
    query = to_slots(tools, f'{SLOT_ANNEX} =?= {quote_string(annex)} && SlotType =!= "Dynamic"', SLOT)
    return reread(query, lambda ads: [read_room(ad) for ad in ads])


def to_unmet(tools: Tools, job: str, annex: str) -> Command[list[str]]:
    """Build the command that lists the requirements of a job that no slot of an annex meets, by HTCondor's analysis."""
    machines = f"{SLOT_ANNEX} =?= {quote_string(annex)}"
    words = ("condor_q", "-better-analyze", job, "-slotconstraint", machines)
    return Command(tools.words(*words), read_unmet)


def to_vacate(tools: Tools, constraint: str) -> Command[bool]:
    """Build the command that stops running jobs at once, so that they wait again."""
    words = tools.words("condor_vacate_job", "-fast", "-constraint", constraint)
    return Command(words, lambda outcome: outcome.code == 0 and reading(lambda _: True)(outcome))


def runs_on(masters: Iterable[str]) -> str:
    """Return the constraint for jobs on the slots of pilots, given the names of their masters."""
    active = " || ".join(f"JobStatus == {status}" for status in sorted(ACTIVE))
    names = quote_string(",".join(master.partition("@")[0] for master in masters))
    return f'({active}) && stringListMember(split(RemoteHost ?: "", "@")[1], {names}) =?= true'


def read_jobs(ads: list[Ad]) -> list[QueuedJob]:
    """Parse jobs, sorted by id."""
    return [_job(ad) for ad in sorted(ads, key=lambda ad: (ad["ClusterId"], ad.get("ProcId", -1)))]


def _job(ad: Ad) -> QueuedJob:
    seconds = number_of(ad.get(JOB_TIME)) or number_of(ad.get("AllowedExecuteDuration"))
    status = int(ad.get("JobStatus", 0))
    return QueuedJob(
        id=f"{ad['ClusterId']}.{ad['ProcId']}" if "ProcId" in ad else str(ad["ClusterId"]),
        state=WORDS[status - 1] if 0 < status <= len(WORDS) else "idle",
        name=str(ad.get("JobBatchName") or str(ad.get(JOB_PROGRAM) or ad.get("Cmd", "")).rpartition("/")[2]),
        annex=text_of(ad.get(JOB_TARGET)),
        node=text_of(ad.get("RemoteHost") or ad.get("LastRemoteHost")),
        submitted=moment_of(ad.get("QDate")),
        since=moment_of(ad.get("EnteredCurrentStatus")),
        cores=number_of(ad.get("RequestCpus")),
        memory=_times(ad.get("RequestMemory"), MIB),
        disk=_times(ad.get("RequestDisk"), KIB),
        gpus=number_of(ad.get("RequestGPUs")),
        time=timedelta(seconds=seconds) if seconds else None,
        why=text_of(ad.get("HoldReason") or ad.get("RemoveReason")),
        code=number_of(ad.get("ExitCode")),
        session=text_of(ad.get(JOB_SESSION)),
        guest=text_of(ad.get(JOB_GUEST)),
        jobset=text_of(ad.get("JobSetName")),
        universe=name_universe(int(ad.get("JobUniverse") or VANILLA)),
        in_place=ad.get("ShouldTransferFiles") == "NO",
        pulled=text_of(ad.get(JOB_PULLED)),
        limits=text_of(ad.get("ConcurrencyLimits")),
        returns=number_of(ad.get("NumVacates")) or 0,
        returned=text_of(ad.get("VacateReason")),
    )


def read_room(ad: Ad) -> NodeRoom:
    """Parse a partitionable or static slot of a node."""
    free = {name: int(ad.get(name) or 0) for name in ("Cpus", "Memory", "Disk", "GPUs")}
    whole = {name: int(ad.get(f"TotalSlot{name}") or free[name]) for name in free}
    is_static = ad.get("SlotType") == "Static"
    if is_static and ad.get("State") == "Claimed":
        free = dict.fromkeys(free, 0)
    return NodeRoom(
        cores=whole["Cpus"],
        free_cores=free["Cpus"],
        memory=whole["Memory"] * MIB,
        free_memory=free["Memory"] * MIB,
        disk=whole["Disk"] * KIB,
        free_disk=free["Disk"] * KIB,
        gpus=whole["GPUs"],
        free_gpus=free["GPUs"],
        ends=moment_of(ad.get(SLOT_END)),
        is_static=is_static,
    )


def read_unmet(outcome: Outcome) -> list[str]:
    """Parse the requirements that matched nothing, if there is an analysis; alternatives are one requirement."""
    steps = {number: (matched, condition.strip()) for number, matched, condition in _STEP.findall(outcome.text)}
    parts = {number for _, condition in steps.values() for number in _REFERENCE.findall(condition)}

    def spell_out(condition: str) -> str:
        return _REFERENCE.sub(lambda part: spell_out(steps[part[1]][1]) if part[1] in steps else "…", condition)

    unmet = [(number, condition) for number, (matched, condition) in steps.items() if matched == "0"]
    return [spell_out(condition) for number, condition in unmet if number not in parts]


def find_unknown(jobs: Sequence[QueuedJob], wanted: Sequence[str]) -> list[str]:
    """Return the ids that name no job."""
    there = {job.id for job in jobs} | {job.id.partition(".")[0] for job in jobs}
    return [id for id in wanted if id not in there]


def text_of(value: Any) -> str:
    """Return a string from an ad; empty if it is an expression."""
    return value if isinstance(value, str) and not value.startswith("/Expr(") else ""


def number_of(value: Any) -> int | None:
    """Return a number from an ad, or None."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def moment_of(value: Any) -> datetime | None:
    """Return a time from an ad, or None."""
    number = number_of(value)
    return datetime.fromtimestamp(number, UTC) if number else None


def _times(value: Any, unit: int) -> int | None:
    number = number_of(value)
    return None if number is None else number * unit
