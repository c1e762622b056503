"""The files of one session: HTCondor's description of its jobs, and the program that `job.sh` reads."""

from __future__ import annotations

import json
import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files

from sublet.annexes.model.annex import (
    IN_TIME,
    JOB_BOOKED,
    JOB_GUEST,
    JOB_KEPT,
    JOB_SESSION,
    JOB_SUPPLIER,
    JOB_TARGET,
    JOB_TIME,
    TARGETED,
)
from sublet.annexes.model.inputs import HAS_IMAGE, WAITS
from sublet.booking.model.job import Job
from sublet.platforms.batch.quoting import function, variable, word
from sublet.platforms.batch.scripts import read_script
from sublet.platforms.htcondor.configuration import literal, quote_string
from sublet.platforms.told import tell_amounts

KIB, MIB = 1 << 10, 1 << 20
LITTLE = 64 * MIB  # of a node's disk, besides the data sent: a job may use more if it is free
ONCE = "((MY.NumShadowStarts ?: 0) < MY.SubletTries)"  # a job goes to another node only when the service allows it
SETTLED = 10  # seconds for a stopped job's files to be sent back, beyond its grace period
PERSON = "SubletPerson"  # a job's attribute: the person whose session it is
SHARED = "shared"  # below a session's directory: files that a system may keep by their content


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a session's jobs may run, and under which limits."""

    directory: str  # the session's, at the access point
    annex: str = ""  # its ID; empty: any slot of the pool
    supplier: str = ""  # whose slots they are
    grace: timedelta = timedelta(seconds=5)
    lease: timedelta | None = None  # how long a job outlives a lost connection to its node; None: HTCondor's default
    guest: str = ""  # the person, if that isn't the annex's owner
    size: int = 0  # bytes that are sent to the node
    node: str = ""  # the node that is booked for them; empty: any
    image: str = ""  # the address of an image that their systems have cached; empty: none


@cache
def script(name: str) -> str:
    """Read one of this package's scripts, for the node or the access point."""
    return files("sublet.platforms.htcondor").joinpath("shell", f"{name}.sh").read_text()


def placeholder(key: str) -> str:
    """Return the path that stands for a session's directory until the node has assigned one."""
    return f"/sublet/session/{key}"


def seconds_of(time: timedelta) -> int:
    """Return a job's own time in whole seconds, at least one."""
    return max(1, round(time.total_seconds()))


def program(job: Job, key: str, time: timedelta, grace: timedelta) -> str:
    """Write the shell assignments and functions that `job.sh` reads.

    Raise ValueError for values that no shell can hold.
    """
    seconds, first, here = seconds_of(time), job.program.argv[0], placeholder(key)
    values: dict[str, object] = {
        "session": key,
        "placeholder": here,
        "duration": seconds,
        "limit": job.amounts.shape.memory // 1024,
        "warn": min(round(job.warn.total_seconds()), seconds // 2),
        "grace": min(round(grace.total_seconds()), seconds // 4),
        "first": first,
        "missing": json.dumps(f"{first[:300]}: no such program is there"),
    }
    variables = {
        "PYTHONUNBUFFERED": "1",
        **tell_amounts(job.amounts),
        "SUBLET_PARTS": str(job.amounts.parts),
        **job.program.environment,
    }
    links = [f"share {word(path)} {word(os.path.basename(target))}" for path, target in job.kept.items()]
    links += [
        f"link {word(mount.source)} {word(mount.target)} {int(mount.read_only)}"
        for mount in job.mounts
        if not mount.target.startswith("/")
    ]
    naming = [name for name, content in job.program.files.items() if here.encode() in content]
    exports = [f"export {variable(name)}={_place(value, here)}" for name, value in variables.items()]
    lines = [f"{name}={word(str(value))}" for name, value in values.items()]
    lines += [
        function("links", links),
        function("files", [f"place {word(f'work/{name}')}" for name in naming]),
        function("environment", exports),
        function("program", ["exec " + " ".join(_place(value, here) for value in job.program.argv)]),
    ]
    return "\n".join(lines) + "\n"


def _place(value: str, here: str) -> str:
    """Quote a value as one word, with the session's directory replaced by the one on the node."""
    return '"$dir"'.join(word(piece) if piece else "" for piece in value.split(here)) or "''"


def _on(node: str) -> str:
    """Return the constraint that a slot, whatever its number, is on this node."""
    tail = f"@{node}"
    return f"(substr(TARGET.Name, -{len(tail.encode())}) =?= {quote_string(tail)})"


def description(job: Job, key: str, place: JobPlace, time: timedelta, brought: tuple[str, ...]) -> str:
    """Write the description for condor_submit.

    `brought` are the parts of the session's directory that are sent to the node.
    """
    root = literal(place.directory)
    each = job.amounts.shape
    above = "../../" if job.amounts.parts > 1 else ""
    values = {
        "universe": "vanilla",
        "executable": f"{root}/job.sh",
        "initialdir": f"{root}/parts/$(Process)" if job.amounts.parts > 1 else root,
        "environment": '"SUBLET_PART=$(Process)"',
        "log": f"{root}/log",
        "output": "stdout",
        "error": "stderr",
        "stream_output": "true",
        "stream_error": "true",
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT_OR_EVICT",
        "transfer_input_files": ", ".join(f"{above}{name}" for name in brought),
        "transfer_output_files": "work, record.json",
        "request_cpus": str(each.cores),
        "request_memory": str(-(-each.memory // MIB)),
        "request_disk": str((2 * place.size + LITTLE + each.disk) // KIB),
        "want_graceful_removal": "true",
        "job_max_vacate_time": str(round(place.grace.total_seconds()) + SETTLED),
        "notification": "never",
        "requirements": " && ".join((TARGETED, IN_TIME, ONCE, *([_on(place.node)] if place.node else ()))),
        # A stopped job's files are in the spool until they are collected.
        "leave_in_queue": "JobStatus == 3 && NumJobStarts > 0",
        "batch_name": literal(_line(job.name) or key),
    }
    if each.gpus:
        values["request_gpus"] = str(each.gpus)
    if place.lease is not None:
        values["job_lease_duration"] = str(seconds_of(place.lease))
    attributes = {JOB_SESSION: quote_string(key), PERSON: quote_string(_line(job.person)), "SubletTries": "1"}
    attributes |= {JOB_TIME: str(seconds_of(time)), "WantIOProxy": "true"}
    if place.annex:
        attributes |= {JOB_TARGET: quote_string(place.annex), JOB_SUPPLIER: quote_string(place.supplier)}
    shared = [name for name in brought if name.startswith(f"{SHARED}/")]
    if shared and place.annex and not place.guest:  # a guest's files must not be used for the owner's other jobs
        attributes[JOB_KEPT] = quote_string(f"{above}{shared[0]}")
        values["requirements"] += f" && {WAITS}"
    elif place.image:
        attributes[JOB_KEPT] = quote_string(place.image)
        values["requirements"] += f" && {HAS_IMAGE}"
    if place.node:
        attributes[JOB_BOOKED] = "true"
    if place.guest:
        attributes[JOB_GUEST] = quote_string(_line(place.guest))
    lines = [f"{name} = {value}" for name, value in values.items()]
    lines += [f"My.{name} = {literal(value)}" for name, value in attributes.items()]
    return "\n".join([*lines, f"queue {job.amounts.parts}"]) + "\n"


def _line(text: str) -> str:
    """Return a text on one line, without `$`, which HTCondor would expand in every attribute when a job is matched."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text[:200].replace("$", "_")).split())


def files_of(job: Job, key: str, time: timedelta, grace: timedelta) -> Mapping[str, bytes]:
    """Return the files for the session's directory, besides those in the working directory."""
    text = program(job, key, time, grace)
    return {
        "job.sh": script("job").encode(),
        "life.sh": read_script("life").encode(),
        "program": text.encode("utf-8", "surrogateescape"),
    }
