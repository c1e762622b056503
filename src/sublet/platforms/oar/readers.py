"""Readers for the output of OAR's commands: all in JSON, with times in seconds since the epoch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sublet.booking.model.offer import Node, Take
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.batch.states import QueueRow, part_of
from sublet.platforms.oar.states import HOLD, describe_error

MIB = 1 << 20
HERE = frozenset({"Alive", "Absent"})  # an absent node is asleep, and may be woken for a job
DEFAULT_QUEUE = "default"
MEMORY = ("memnode", "mem")  # the names that sites use for a node's memory, in MiB
GPU = ("gpu", "gpudevice")
DISK = ("disk_size", "disksize")  # a node's own disk, in MiB


def read_json(text: str) -> Any:
    """Parse what a command printed; None if it is empty or no JSON."""
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return None


def moment(seconds: object) -> datetime | None:
    """Read a time; None for 0."""
    try:
        number = int(str(seconds))
    except ValueError:
        return None
    return datetime.fromtimestamp(number, UTC) if number > 0 else None


@dataclass(frozen=True, slots=True)
class OarResource:
    """The smallest unit that OAR allocates: usually a core; sites may count threads."""

    id: str
    host: str
    core: str
    gpu: str = ""
    state: str = "Alive"
    model: str = ""  # of its GPU
    memory: int = 0  # of its node, in bytes; 0: OAR doesn't say
    disk: int = 0


def read_resources(text: str) -> tuple[OarResource, ...]:
    """Read the resources for jobs in `oarnodes -J`; licences and the like have another type."""
    rows = _list_rows(read_json(text))
    return tuple(
        OarResource(
            id=str(row["resource_id"]),
            host=str(row["network_address"]),
            core=str(row.get("core") or row["resource_id"]),
            gpu=_find_gpu(row),
            state=str(row.get("state", "")),
            model=str(row.get("gpu_model") or "") if _find_gpu(row) else "",
            memory=_find_size(row, MEMORY),
            disk=_find_size(row, DISK),
        )
        for row in rows
        if row.get("type", "default") == "default" and row.get("network_address") and row.get("resource_id")
    )


def _list_rows(answer: object) -> list[Mapping[str, Any]]:
    """Return each resource, whether OAR's version lists them, or keys them by number, or by host and number."""
    if isinstance(answer, list):
        return [row for row in answer if isinstance(row, dict)]
    if not isinstance(answer, dict):
        return []
    if "resource_id" in answer:
        return [answer]
    rows: list[Mapping[str, Any]] = []
    for number, value in answer.items():
        if isinstance(value, dict) and "network_address" in value:
            rows.append({"resource_id": number, **value})
        else:
            rows += _list_rows(value)
    return rows


def _find_gpu(row: Mapping[str, Any]) -> str:
    number = next((str(row[name]) for name in GPU if row.get(name) not in (None, "", "0", 0)), "")
    return number


def _find_size(row: Mapping[str, Any], names: Iterable[str]) -> int:
    sizes = (str(row.get(name) or "") for name in names)
    return next((int(size) * MIB for size in sizes if size.isdecimal() and int(size)), 0)


def read_nodes(resources: Iterable[OarResource], memory: int = 0) -> tuple[SiteNode, ...]:
    """Return the nodes of these resources; `memory` is the memory of each if OAR doesn't say."""
    by_host: dict[str, list[OarResource]] = {}
    for resource in resources:
        by_host.setdefault(resource.host, []).append(resource)
    return tuple(_node(host, some, memory) for host, some in by_host.items())


def _node(host: str, resources: list[OarResource], memory: int) -> SiteNode:
    first = resources[0]
    cores = len({resource.core for resource in resources})
    gpus = len({resource.gpu for resource in resources if resource.gpu})
    node = Node(host, cores, first.memory or memory, gpus, first.disk)
    is_here = any(resource.state in HERE for resource in resources)
    models = dict.fromkeys(resource.model for resource in resources if resource.model)
    return SiteNode(node, (), here=is_here, gpu_types=tuple(models))


def read_gantt(text: str, resources: Iterable[OarResource]) -> tuple[Take, ...]:
    """Read what all jobs have, and will have, of the nodes from `oarstat --gantt -J`."""
    answer = read_json(text) or {}
    known = {resource.id: resource for resource in resources}
    takes: list[Take] = []
    for job in (answer.get("jobs") or {}).values():
        start, end = moment(job.get("start_time")), moment(job.get("stop_time"))
        if start and end and start < end:
            used = [known[number] for number in map(str, job.get("resource_id") or ()) if number in known]
            takes += _list_takes(used, start, end)
    return tuple(takes)


def _list_takes(resources: Iterable[OarResource], start: datetime, end: datetime) -> list[Take]:
    cores: dict[str, set[str]] = {}
    gpus: dict[str, set[str]] = {}
    for resource in resources:
        cores.setdefault(resource.host, set()).add(resource.core)
        gpus.setdefault(resource.host, set()).update({resource.gpu} - {""})
    return [Take(host, start, end, cores=len(some), gpus=len(gpus[host])) for host, some in cores.items()]


def read_queue(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `oarstat -f -J -u`; raise ValueError for what is no JSON, which isn't an empty queue."""
    if text.strip() and read_json(text) is None:
        raise ValueError(f"it is no answer of oarstat: {text[:80]!r}")
    return read_jobs(text)


def read_jobs(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `oarstat -f -J` by name, those of an array as NAME/N."""
    rows: dict[str, QueueRow] = {}
    for number, job in sorted((read_json(text) or {}).items(), key=lambda pair: int(pair[0])):
        if name := str(job.get("name") or ""):
            row = _row(number, name, job)
            rows[_key(row, job)] = row
    return rows


def _key(row: QueueRow, job: Mapping[str, Any]) -> str:
    return part_of(row.name, int(job["array_index"]) - 1) if row.array else row.name


def _row(number: str, name: str, job: Mapping[str, Any]) -> QueueRow:
    state = str(job.get("state", ""))
    events = {str(event.get("type", "")) for event in job.get("events") or () if isinstance(event, dict)}
    status = job.get("exit_code")
    code = int(status) if status is not None and str(status).isdecimal() else None
    started = moment(job.get("startTime"))
    planned = moment(job.get("scheduledStart")) if state != HOLD else None  # a plan from before it was held
    is_part = " --array" in str(job.get("initial_request") or "")
    return QueueRow(
        id=number,
        name=name,
        state=describe_error(events) if state == "Error" else state,
        reason=_find_holder(job) if state == HOLD else _find_reason(str(job.get("message") or "")),
        start=started or planned,
        end=moment(job.get("stopTime")),
        queue=str(job.get("queue") or DEFAULT_QUEUE),
        nodes="+".join(job.get("assigned_network_address") or ()),
        code=None if code is None else code >> 8,
        signal=0 if code is None else code & 127,
        array=str(job.get("array_id") or "") if is_part else "",
    )


def _find_holder(job: Mapping[str, Any]) -> str:
    """Return that its owner holds a job, or who else; its owner may release it in any case."""
    events = [event for event in job.get("events") or () if isinstance(event, dict)]
    words = [str(event.get("description", "")) for event in events if event.get("type") == "HOLD_WAITING_JOB"]
    holder = re.match(r"User (\S+) launched oarhold", words[-1]) if words else None
    if holder is None or holder[1] == str(job.get("owner") or holder[1]):
        return HOLD
    return f"by {holder[1]} there; `sublet resume` releases it"


def _find_reason(message: str) -> str:
    """Return OAR's reason why a job waits; what it says of every job (its size and options) isn't one."""
    return "" if message.startswith(("R=", "FIFO", "Karma")) else message
