"""Readers for the output of LSF's commands: jobs in JSON, hosts and queues as tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from sublet.booking.model.offer import Node, Take
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.batch.states import BY_OTHERS, QueueRow, part_of
from sublet.platforms.lsf.states import HELD, describe_exit

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "": 1 << 20}
AWAY = re.compile(r"unavail|unreach|closed_Adm|closed_Lock|closed_Wind|closed_LIM")
DEFAULTS = re.compile(r"^DEFAULT LIMITS:.*?(?=^[A-Z][A-Z ]+:|\Z)", re.MULTILINE | re.DOTALL)
COLUMNS = re.compile(r"\s{2,}")
FIELDS = (
    "jobid jobindex stat job_name queue exit_code exit_reason start_time finish_time pend_reason exec_host slots "
    "runtimelimit"
)
ADMINISTRATOR = re.compile(r"\b(admin|administrator|root)\b", re.IGNORECASE)  # who suspended a job, if not its owner
A_DAY = timedelta(days=1)  # for a job without a limit
NOTHING = frozenset({"", "-"})


def read_table(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table whose header names its columns; the last column may have spaces in it."""
    lines = [line for line in text.splitlines() if line.strip()]
    head = lines[0].split() if lines else []
    for line in lines[1:]:
        yield dict(zip(head, line.split(maxsplit=len(head) - 1), strict=False))


def read_size(text: str) -> int:
    """Read bytes in `251.4G`."""
    match = re.fullmatch(r"([\d.]+)([KMGT]?)", text)
    return int(float(match[1]) * UNITS[match[2]]) if match else 0


def read_nodes(load: str, hosts: str, gpus: str) -> tuple[SiteNode, ...]:
    """Read the hosts in `bhosts -w`, with their sizes from `lshosts -w` and `lshosts -gpu`."""
    sizes = {row.get("HOST_NAME", ""): row for row in read_table(hosts)}
    cards: dict[str, int] = {}
    for host in _fill_down(gpus):
        cards[host] = cards.get(host, 0) + 1
    nodes = []
    for row in read_table(load):
        name, most = row.get("HOST_NAME", ""), row.get("MAX", "")
        own = sizes.get(name, {})
        cores = int(most) if most.isdecimal() else int(own["ncpus"]) if own.get("ncpus", "").isdecimal() else 0
        if cores:
            node = Node(name, cores, read_size(own.get("maxmem", "")), cards.get(name, 0))
            nodes.append(SiteNode(node, (), here=not AWAY.search(row.get("STATUS", ""))))
    return tuple(nodes)


def _fill_down(text: str) -> Iterator[str]:
    """Yield the host of each GPU; only the first line of a host names it, and a GPU has a number."""
    host = ""
    for line in text.splitlines()[1:]:
        words = line.split()
        if line[:1].strip():
            host, words = words[0], words[1:]
        if host and words and words[0].isdecimal():
            yield host


def read_queues(text: str) -> tuple[SiteQueue, ...]:
    """Read the queues in `bqueues -l`."""
    return tuple(_queue(block) for block in re.split(r"^QUEUE:\s*", text, flags=re.MULTILINE)[1:])


def _queue(block: str) -> SiteQueue:
    return SiteQueue(
        name=block.split()[0],
        up="Open:Active" in block,
        default="default queue" in block,
        max_time=_find_run_limit(DEFAULTS.sub("", block)),
    )


def _find_run_limit(block: str) -> timedelta | None:
    """Return the longest time of a queue; limits stand side by side, each below its name."""
    lines = block.splitlines()
    for names, values in pairwise(lines):
        columns = COLUMNS.split(names.strip())
        if "RUNLIMIT" in columns:
            limits = dict(zip(columns, COLUMNS.split(values.strip()), strict=False))
            match = re.match(r"([\d.]+)\s*min", limits.get("RUNLIMIT", ""))
            return timedelta(minutes=float(match[1])) if match else None
    return None


def moment(text: str) -> datetime | None:
    """Read a time as bjobs prints it with LSB_DISPLAY_YEAR and TZ=UTC; a mark of its accuracy may follow."""
    plain = " ".join(text.split()[:4])
    for form in ("%b %d %H:%M:%S %Y", "%b %d %H:%M %Y"):
        try:
            return datetime.strptime(plain, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def list_records(text: str) -> list[Mapping[str, Any]]:
    """Read the jobs in `bjobs -json`; raise ValueError if they can't be read."""
    answer = json.loads(text[text.find("{") :], strict=False) if "{" in text else {}
    return [record for record in answer.get("RECORDS") or () if "ERROR" not in record]


def read_jobs(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `bjobs -json` by name, which is the session's key; those of an array as KEY/N."""
    rows: dict[str, QueueRow] = {}
    for record in list_records(text):
        row = _row(record)
        index = str(record.get("JOBINDEX", "0") or "0")
        if index.isdecimal() and int(index):
            part = replace(row, id=f"{row.id}[{index}]", array=row.id)
            rows[part_of(row.name, int(index) - 1)] = part
        elif row.name:
            rows[row.name] = row
    return rows


def _row(record: Mapping[str, Any]) -> QueueRow:
    state = str(record.get("STAT", ""))
    code = str(record.get("EXIT_CODE", "")).strip()
    is_over = state in ("DONE", "EXIT", "ZOMBI")
    reason = str(record.get("PEND_REASON", "")).strip().rstrip(";")
    if state == HELD:
        reason = BY_OTHERS if ADMINISTRATOR.search(reason) else HELD
    return QueueRow(
        id=str(record.get("JOBID", "")),
        name=str(record.get("JOB_NAME", "")).partition("[")[0],
        state=describe_exit(str(record.get("EXIT_REASON", ""))) if state == "EXIT" else state,
        reason=reason,
        start=moment(str(record.get("START_TIME", ""))),
        end=moment(str(record.get("FINISH_TIME", ""))) if is_over else None,
        queue=str(record.get("QUEUE", "")),
        nodes=str(record.get("EXEC_HOST", "")),
        code=0 if state == "DONE" else int(code) if state == "EXIT" and code.isdecimal() else None,
    )


def read_takes(text: str, now: datetime) -> tuple[Take, ...]:
    """Return what everybody's running jobs have of the hosts, until they reach their limits."""
    takes: list[Take] = []
    for record in list_records(text):
        start = moment(str(record.get("START_TIME", "")))
        if record.get("STAT") in ("RUN", "USUSP", "SSUSP") and start:
            end = max(start + read_limit(str(record.get("RUNTIMELIMIT", ""))), now + timedelta(minutes=1))
            takes += [Take(host, start, end, cores=cores) for host, cores in _hosts(str(record.get("EXEC_HOST", "")))]
    return tuple(takes)


def read_limit(text: str) -> timedelta:
    """Read a job's limit: `120.0 min`, or `02:00:00` where a site shows times so; a day if it has none."""
    if match := re.match(r"(\d+):(\d\d):(\d\d)", text):
        hours, minutes, seconds = map(int, match.groups())
        return timedelta(hours=hours, minutes=minutes, seconds=seconds)
    match = re.match(r"\d+", text)
    return timedelta(minutes=int(match[0])) if match else A_DAY


def _hosts(text: str) -> list[tuple[str, int]]:
    """Return the hosts in `4*c1:2*c2`, and the slots on each."""
    matches = [re.fullmatch(r"(?:(\d+)\*)?(.+)", word) for word in text.split(":") if word not in NOTHING]
    return [(match[2], int(match[1] or 1)) for match in matches if match]
