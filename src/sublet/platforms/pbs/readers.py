"""Readers for the output of PBS's commands with `-F json`, where numbers may be text and times are local."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.booking.model.offer import Node, Take
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.batch.states import BY_OTHERS, QueueRow, part_of
from sublet.platforms.pbs.states import FINISHED, HOLD, KILLED, describe_end

UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "w": 8, "kw": 8 << 10, "mw": 8 << 20}
AWAY = re.compile(r"down|offline|unknown|stale|maintenance|provisioning|initializing")
MENDS = (  # faults in the JSON of some versions → what it was to be
    (re.compile(r",(\s*[}\]])"), r"\1"),
    (re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)'), lambda match: match[0] if match[1] else r"\\"),
    (re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+'), lambda match: write_word(match[0])),
)
PLAIN = re.compile(r'".*|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null', re.DOTALL)
A_DAY = timedelta(days=1)  # for a job without a walltime
NO_NODES: Mapping[str, Node] = {}
MARK = "s-"  # before a session's key: names must begin with a letter


def write_word(word: str) -> str:
    """Return a string, number or name of JSON as it is, and anything else as a string.

    PBS writes all that C reads as a number without quotation marks: 007, 0x1F, .5, +1, nan.
    """
    return word if PLAIN.fullmatch(word) else f'"{word}"'


def read_json(text: str) -> dict[str, Any]:
    """Parse what a command printed, with what some versions get wrong; raise ValueError if it can't be read.

    They print text before it, commas after a last value, single backslashes, and names such as 007 or nan as numbers.
    """
    body = text[text.find("{") :] if "{" in text else "{}"
    try:
        answer = json.loads(body, strict=False, parse_constant=str)  # a job may be called NaN
    except ValueError:
        for wrong, right in MENDS:
            body = wrong.sub(right, body)
        answer = json.loads(body, strict=False)
    return answer if isinstance(answer, dict) else {}


def read_size(value: object) -> int:
    """Read bytes in `263794756kb`."""
    match = re.fullmatch(r"(\d+)([a-z]*)", str(value or "").lower())
    return int(match[1]) * UNITS.get(match[2] or "b", 1) if match else 0


def read_length(value: object) -> timedelta | None:
    """Read a time in `24:00:00` or in seconds."""
    parts = str(value or "").split(":")
    if not all(part.isdecimal() for part in parts):
        return None
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return timedelta(seconds=seconds)


def moment(value: object) -> datetime | None:
    """Read a time as qstat prints it with TZ=UTC, or in seconds since the epoch."""
    text = " ".join(str(value or "").split())
    if text.isdecimal():
        return datetime.fromtimestamp(int(text), UTC) if int(text) else None
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def count(value: object) -> int:
    """Read a whole number; 0 if it isn't one."""
    return int(str(value)) if str(value or "").isdecimal() else 0


def read_nodes(text: str) -> tuple[SiteNode, ...]:
    """Read the nodes in `pbsnodes -a -F json`; a host that is several vnodes is one node."""
    hosts: dict[str, SiteNode] = {}
    for name, described in (read_json(text).get("nodes") or {}).items():
        vnode = _node(name, described)
        known = hosts.get(vnode.node.name)
        hosts[vnode.node.name] = _join(known, vnode) if known else vnode
    return tuple(hosts.values())


def _join(host: SiteNode, vnode: SiteNode) -> SiteNode:
    """Return a host with one more of its vnodes; one that takes no jobs adds nothing."""
    parts = [each.node for each in (host, vnode) if each.here]
    sizes = (sum(getattr(part, name) for part in parts) for name in ("cores", "memory", "gpus"))
    return SiteNode(Node(host.node.name, *sizes), host.queues or vnode.queues, here=bool(parts))


def _node(name: str, node: Mapping[str, Any]) -> SiteNode:
    has: Mapping[str, Any] = node.get("resources_available") or {}
    cores = count(has.get("ncpus")) or count(node.get("pcpus"))
    own = Node(str(has.get("host") or name), cores, read_size(has.get("mem")), count(has.get("ngpus")))
    queue = str(node.get("queue") or has.get("Qlist") or "")
    return SiteNode(own, tuple(queue.split(",")) if queue else (), here=not AWAY.search(str(node.get("state", ""))))


def read_jobs(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `qstat -f -F json` by session key, those of an array as KEY/N."""
    rows: dict[str, QueueRow] = {}
    for number, job in (read_json(text).get("Jobs") or {}).items():
        name = str(job.get("Job_Name", ""))
        if name.startswith(MARK):
            row = _row(number, name.removeprefix(MARK), job)
            part = re.match(r"\d+\[(\d+)\]", number)
            rows[part_of(row.name, int(part[1])) if part else row.name] = row
    return rows


def _row(number: str, key: str, job: Mapping[str, Any]) -> QueueRow:
    state, comment = str(job.get("job_state", "")), str(job.get("comment") or "")
    status = int(job["Exit_status"]) if re.fullmatch(r"-?\d+", str(job.get("Exit_status", ""))) else None
    is_over = state in FINISHED
    estimated: Mapping[str, Any] = job.get("estimated") or {}
    signal = status - KILLED if status is not None and status >= KILLED else 0
    return QueueRow(
        id=number,
        name=key,
        state=describe_end(status or 0, comment, str(job.get("substate", ""))) if is_over else state,
        reason=_find_holder(job) if state == HOLD else comment.removeprefix("Not Running: ").strip(),
        start=moment(job.get("stime")) or (None if is_over else moment(estimated.get("start_time"))),
        end=moment(job.get("mtime")) if is_over else None,
        queue=str(job.get("queue", "")),
        nodes=str(job.get("exec_host", "")),
        code=None if status is None or status < 0 or signal else status,
        signal=signal,
        array=re.sub(r"\[\d*\]", "[]", number) if "[" in number else "",
    )


def _find_holder(job: Mapping[str, Any]) -> str:
    """Return that its owner holds a job, or that an operator or PBS itself does: it has a letter for each."""
    return BY_OTHERS if set(str(job.get("Hold_Types", ""))) & set("osp") else HOLD


def read_exclusive(text: str) -> frozenset[str]:
    """Return the hosts in `pbsnodes -a -F json` that a job has for itself, however little it asks for."""
    nodes = (read_json(text).get("nodes") or {}).items()
    return frozenset(_node(name, node).node.name for name, node in nodes if "excl" in str(node.get("sharing", "")))


def read_takes(
    text: str, now: datetime, nodes: Mapping[str, Node] = NO_NODES, exclusive: Container[str] = ()
) -> tuple[Take, ...]:
    """Return what everybody's running jobs have of the nodes, until the end of their walltime.

    A job that shares no nodes, or runs on `exclusive` ones, has the whole of each.
    """
    takes: list[Take] = []
    for job in (read_json(text).get("Jobs") or {}).values():
        start = moment(job.get("stime"))
        if job.get("job_state") in ("R", "E", "S") and start:
            asked: Mapping[str, Any] = job.get("Resource_List") or {}
            end = max(start + (read_length(asked.get("walltime")) or A_DAY), now + timedelta(minutes=1))
            is_alone = "excl" in str(asked.get("place", ""))
            for host, cores, gpus in _list_chunks(job):
                node = nodes.get(host) if is_alone or host in exclusive else None
                sizes = (node.cores, node.gpus) if node else (cores, gpus)
                takes.append(Take(host, start, end, cores=sizes[0], gpus=sizes[1]))
    return tuple(takes)


def _list_chunks(job: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return each chunk of a job: its host, cores and GPUs.

    `exec_host` is like `c1/0*4+c2/1*4`; `exec_vnode` has as many parts, like `(c1:ncpus=4:ngpus=1)+(c2[0]:ncpus=4)`.
    """
    hosts = [
        (host, int(cores or 1))
        for host, cores in re.findall(r"([^/+]+)/\d+(?:\*(\d+))?", str(job.get("exec_host", "")))
    ]
    chunks = re.findall(r"\(([^()]*)\)", str(job.get("exec_vnode", "")))
    if len(chunks) != len(hosts):
        return [(host, cores, 0) for host, cores in hosts]
    pairs = zip(hosts, chunks, strict=True)
    return [(host, _sum(chunk, "ncpus") or cores, _sum(chunk, "ngpus")) for (host, cores), chunk in pairs]


def _sum(chunk: str, name: str) -> int:
    return sum(map(int, re.findall(rf":{name}=(\d+)", chunk)))
