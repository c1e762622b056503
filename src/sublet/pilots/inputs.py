"""The inputs of jobs that name an annex: how they are read, and how a job is told where copies are."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.core.annex import JOB_SESSION, JOB_TARGET
from sublet.core.inputs import (
    JOB_FILES,
    JOB_IMAGE,
    JOB_INPUTS,
    JOB_READY,
    JOB_REMAPS,
    JOB_UNTIL,
    LARGE,
    Named,
)
from sublet.pilots.configuration import quoted_string
from sublet.pilots.jobs import to_queue
from sublet.pilots.occupancy import VANILLA, reread
from sublet.pilots.queue import text_of
from sublet.pilots.tools import Ad, Tools
from sublet.reach.port import Command

WAITING = "(JobStatus == 1 || JobStatus == 5)"
WORTH = f"(ContainerImage =!= undefined || TransferInputSizeMB >= {LARGE >> 20} || {JOB_INPUTS} =!= undefined)"
ATTRIBUTES = (
    *("ClusterId", "ProcId", "Iwd", "ContainerImage", "WantDockerImage", "TransferInput", "TransferInputRemaps"),
    *(JOB_TARGET, JOB_INPUTS, JOB_READY, JOB_IMAGE, JOB_FILES, JOB_REMAPS),
)
NONE, SHARED = "none", "shared"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits, and what it says of its inputs."""

    id: str
    annex: str
    named: Named
    seen: str = ""  # "", none, shared
    ready: str = ""  # the leases that it may use, as it was told


def to_waiting(tools: Tools) -> Command[list[Waiting]]:
    """The jobs that name an annex, wait, and have an image or large inputs; none that belongs to a session."""
    constraint = f"{VANILLA} && {WAITING} && {JOB_TARGET} =!= undefined && {JOB_SESSION} =?= undefined && {WORTH}"
    return reread(to_queue(tools, constraint, ATTRIBUTES), lambda ads: [read_waiting(ad) for ad in ads])


def read_waiting(ad: Ad) -> Waiting:
    """One such job; what it said when it was submitted counts, not what it was told since."""
    seen = text_of(ad.get(JOB_INPUTS))
    image, files, remaps = (JOB_IMAGE, JOB_FILES, JOB_REMAPS) if seen else FIRST
    names = tuple(name.strip() for name in text_of(ad.get(files)).split(",") if name.strip())
    pulled = ad.get("WantDockerImage") is True or "://" in text_of(ad.get(image))
    named = Named(
        directory=text_of(ad.get("Iwd")) or "/",
        image="" if pulled else text_of(ad.get(image)),
        files=names,
        remaps=text_of(ad.get(remaps)),
    )
    id = f"{ad['ClusterId']}.{ad['ProcId']}"
    return Waiting(id, text_of(ad.get(JOB_TARGET)), named, seen, text_of(ad.get(JOB_READY)))


FIRST = ("ContainerImage", "TransferInput", "TransferInputRemaps")


def looked_at() -> dict[str, str]:
    """What is set in a job that shares nothing."""
    return {JOB_INPUTS: quoted_string(NONE)}


def first_told(named: Named, until: int) -> dict[str, str]:
    """What is set in a job that shares something, when that is seen: what it said itself is kept."""
    kept = {JOB_IMAGE: named.image, JOB_FILES: ",".join(named.files), JOB_REMAPS: named.remaps}
    told = {name: quoted_string(value) for name, value in kept.items()}
    return {**told, JOB_UNTIL: str(until), JOB_READY: '""', JOB_INPUTS: quoted_string(SHARED)}


def told(changes: dict[str, str], ready: str) -> dict[str, str]:
    """What is set in a job when copies came or went."""
    return {**{name: quoted_string(value) for name, value in changes.items()}, JOB_READY: quoted_string(ready)}
