"""The inputs of jobs that name an annex: how they are read, and how a job is told where copies are."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.annexes.model.annex import JOB_KEPT, JOB_SESSION, JOB_TARGET
from sublet.annexes.model.inputs import (
    IN_REGISTRY,
    JOB_CONTENT,
    JOB_FILES,
    JOB_IMAGE,
    JOB_INPUTS,
    JOB_LOOKED,
    JOB_PROGRAM,
    JOB_PULLED,
    JOB_READY,
    JOB_REMAPS,
    JOB_UNTIL,
    LARGE,
    NamedInput,
    rewritten,
)
from sublet.annexes.pilots.occupancy import VANILLA, reread
from sublet.annexes.pilots.queue import number_of, text_of
from sublet.platforms.htcondor.commands import IDLE, RUNNING, to_edit, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

WAITING = "(JobStatus == 1 || JobStatus == 5)"
WORTH = (
    f"(ContainerImage =!= undefined || TransferInputSizeMB >= {LARGE >> 20} || ExecutableSize >= {LARGE >> 10}"
    f" || {JOB_INPUTS} =!= undefined || {JOB_KEPT} =!= undefined)"
)
ATTRIBUTES = (
    *("ClusterId", "ProcId", "Iwd", "ContainerImage", "WantDockerImage", "TransferInput", "TransferInputRemaps"),
    *("JobStatus", "EnteredCurrentStatus", "JobCurrentStartDate", "PreserveRelativePaths"),
    *("Cmd", "TransferExecutable", "ExecutableSize"),
    *(
        JOB_SESSION,
        JOB_KEPT,
        JOB_TARGET,
        JOB_INPUTS,
        JOB_READY,
        JOB_CONTENT,
        JOB_LOOKED,
        JOB_IMAGE,
        JOB_FILES,
        JOB_REMAPS,
        JOB_PROGRAM,
    ),
)
NONE, SHARED = "none", "shared"
LOOK_AGAIN = 20  # seconds after which it is confirmed again that a job's files are unchanged
RECENTLY = 600  # seconds after its start for which a job is compared with the files that it should have


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits or has just started, and its inputs."""

    id: str
    annex: str
    named: NamedInput
    seen: str = ""  # "", none, shared
    ready: str = ""  # the leases that it was told to use
    waits: bool = False  # whether it is kept from other leases
    content: str = ""  # the content of its shared files, as it was told
    status: int = IDLE
    since: int = 0  # when its status began, in seconds since the epoch
    looked: int = 0  # when its files were last seen to be as it was told
    started: int = 0  # when it started, if it is running

    @property
    def is_running(self) -> bool:
        """Whether the job has started."""
        return self.status == RUNNING


def to_waiting(tools: Tools, now: int) -> Command[list[WaitingJob]]:
    """Build the command that lists the jobs of annexes with an image or large inputs that wait, or have just started.

    Of jobs that have started, only those that share inputs are listed; of sessions' jobs, only those with an image.
    """
    just = f'(JobStatus == {RUNNING} && {JOB_INPUTS} =?= "{SHARED}" && JobCurrentStartDate > {now - RECENTLY})'
    constraint = (
        f"{VANILLA} && ({WAITING} || {just}) && {JOB_TARGET} =!= undefined"
        f" && ({JOB_SESSION} =?= undefined || {JOB_KEPT} =!= undefined) && {WORTH}"
    )
    return reread(to_queue(tools, constraint, ATTRIBUTES), lambda ads: [read_waiting(ad) for ad in ads])


def read_waiting(ad: Ad) -> WaitingJob:
    """Parse a waiting job, with its inputs as submitted and not as rewritten since."""
    seen = text_of(ad.get(JOB_INPUTS))
    is_session = ad.get(JOB_SESSION) is not None
    image, files, remaps, program = KEPT if seen else FIRST
    image = JOB_KEPT if is_session and not seen else image
    names = tuple(name.strip() for name in text_of(ad.get(files)).split(",") if name.strip())
    written = text_of(ad.get(image))
    pulled = ad.get("WantDockerImage") is True or "://" in written
    named = NamedInput(
        directory=text_of(ad.get("Iwd")) or "/",
        image="" if pulled else written,
        files=names,
        remaps=text_of(ad.get(remaps)),
        program=text_of(ad.get(program)) if _sends_large_program(ad) else "",
        keeps_paths=ad.get("PreserveRelativePaths") is True,
        address=written if IN_REGISTRY.fullmatch(written) else "",
        is_session=is_session,
    )
    ready = ad.get(JOB_READY)
    id = f"{ad['ClusterId']}.{ad['ProcId']}"
    return WaitingJob(
        id,
        text_of(ad.get(JOB_TARGET)),
        named,
        seen,
        text_of(ready),
        text_of(ready) == ready,
        text_of(ad.get(JOB_CONTENT)),
        number_of(ad.get("JobStatus")) or IDLE,
        number_of(ad.get("EnteredCurrentStatus")) or 0,
        number_of(ad.get(JOB_LOOKED)) or 0,
        number_of(ad.get("JobCurrentStartDate")) or 0,
    )


def _sends_large_program(ad: Ad) -> bool:
    """Whether a job sends its executable, and that was large at submission."""
    kibibytes = number_of(ad.get("ExecutableSize")) or 0
    return ad.get("TransferExecutable") is not False and kibibytes >= LARGE >> 10


FIRST = ("ContainerImage", "TransferInput", "TransferInputRemaps", "Cmd")
KEPT = (JOB_IMAGE, JOB_FILES, JOB_REMAPS, JOB_PROGRAM)  # the same, as submitted


def mark_looked_at(named: NamedInput, why: str) -> dict[str, str]:
    """Return the attributes of a job that shares nothing; `why` is why its node has to pull its image."""
    return {JOB_INPUTS: quote_string(NONE), **say_pulled(named, why)}


def say_pulled(named: NamedInput, why: str) -> dict[str, str]:
    """Return the attribute that says why a job's node pulls its registry image; `why` is empty if it needn't."""
    plain = " ".join(why.replace("$", "_").split())[:300]  # HTCondor expands $$ in every attribute
    return {JOB_PULLED: quote_string(plain) if plain else "undefined"} if named.address else {}


def first_told(named: NamedInput, until: int) -> dict[str, str]:
    """Return the attributes that keep a job's original inputs, for a job that is found to share something."""
    image = named.image or named.address
    kept = dict(zip(KEPT, (image, ",".join(named.files), named.remaps, named.program), strict=True))
    values = {name: quote_string(value) for name, value in kept.items()}
    return {**values, JOB_UNTIL: str(until), JOB_READY: '""', JOB_INPUTS: quote_string(SHARED)}


def change_ready(changes: dict[str, str], ready: str, content: str) -> dict[str, str]:
    """Return the attributes for a job when copies of this content were added or removed."""
    values = {name: quote_string(value) if value else "undefined" for name, value in changes.items()}
    return {**values, JOB_READY: quote_string(ready), JOB_CONTENT: quote_string(content)}


def forget_copies(named: NamedInput, until: int) -> dict[str, str]:
    """Return the attributes for a job whose files have changed: no copy is valid, and it waits for new ones."""
    return {**change_ready(rewritten(named, []), "", ""), JOB_UNTIL: str(until)}


def send_files(named: NamedInput, why: str = "") -> dict[str, str]:
    """Return the attributes for a job that has nothing left to share: HTCondor sends its files."""
    return {**change_ready(rewritten(named, []), "", ""), JOB_READY: "undefined", **say_pulled(named, why)}


def needs_look(job: WaitingJob, now: int) -> bool:
    """Whether a waiting job has to be told that its files were checked now."""
    return job.status == IDLE and (job.since >= job.looked or now - job.looked >= LOOK_AGAIN)


def to_confirm(tools: Tools, looked: int) -> Command[int]:
    """Build the command that confirms to waiting jobs with shared inputs that their files are unchanged."""
    of_them = f'{VANILLA} && JobStatus == {IDLE} && {JOB_INPUTS} =?= "{SHARED}" && {JOB_TARGET} =!= undefined'
    due = f"(EnteredCurrentStatus >= ({JOB_LOOKED} ?: 0) || {looked} - ({JOB_LOOKED} ?: 0) >= {LOOK_AGAIN})"
    return to_edit(tools, f"{of_them} && {due}", {JOB_LOOKED: str(looked)})
