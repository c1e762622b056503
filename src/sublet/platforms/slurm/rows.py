"""How a Slurm site tells of jobs: rows of squeue, sacct and scontrol, and what the sessions' directories say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from sublet.booking.model.session import Usage
from sublet.booking.model.together import Joined
from sublet.platforms.slurm.readers import at, count, moment, pairs
from sublet.platforms.slurm.states import SiteLook, SlurmRecord, SlurmRow, part_of, session_of

QUEUE_FORMAT = "%F|%K|%T|%r|%S|%e|%P|%N|%j"
PAST_FORMAT = "JobID,State,ExitCode,Start,End,Partition,NodeList,JobName"
CUT = "..."


def read_queue(text: str) -> dict[str, SlurmRow]:
    """The jobs in `squeue`, by their names, those of an array as NAME/N; of two alike, the one that is still there."""
    rows: dict[str, SlurmRow] = {}
    for line in text.splitlines():
        parts = line.split("|", 8)
        if len(parts) == 9:
            id, array, state, reason, start, end, queue, nodes, name = (part.strip() for part in parts)
            row = SlurmRow(id, name, state, reason, moment(start), moment(end), queue, nodes)
            for key, one in _each(row, array):
                if not (key in rows and rows[key].active):
                    rows[key] = one
    return rows


def _each(row: SlurmRow, array: str) -> Iterator[tuple[str, SlurmRow]]:
    """A row for each part that it speaks of; under the plain name if it doesn't say which, or not of all of them."""
    numbers = elements(array)
    for number in numbers:
        yield part_of(row.name, number), replace(row, id=f"{row.id}_{number}")
    if not numbers or array.endswith(CUT):
        yield row.name, row


def elements(text: str) -> tuple[int, ...]:
    """The numbers in `3`, `[0-9%2]`, `0-9:3` or `0,2,4-6`; none if it is no array.

    Of a list that is too long only the beginning is printed, and dots: its last number may not be whole.
    """
    found: list[int] = []
    words = text.strip("[]").partition("%")[0].split(",")
    for word in words[:-1] if text.endswith(CUT) else words:
        span = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", word)
        if span:
            first = int(span[1])
            found += range(first, int(span[2] or first) + 1, int(span[3] or 1))
    return tuple(found)


def read_past(text: str) -> dict[str, SlurmRow]:
    """The jobs in `sacct -X -P`, by their names, those of an array as NAME/N."""
    rows: dict[str, SlurmRow] = {}
    for line in text.splitlines():
        parts = line.split("|", 7)
        if len(parts) == 8:
            id, said, exit, start, end, queue, nodes, name = (part.strip() for part in parts)
            state, _, by = said.partition(" by ")
            code, signal = _exit(exit)
            id, _, array = id.partition("_")
            row = SlurmRow(id, name, state.split()[0], "", moment(start), moment(end), queue, nodes, code, signal, by)
            rows |= _each(row, array)
    return rows


def read_jobs(text: str) -> dict[str, SlurmRow]:
    """The jobs in `scontrol show job -o`, by their names, those of an array as NAME/N."""
    rows: dict[str, SlurmRow] = {}
    for said in map(pairs, text.splitlines()):
        if said.get("JobName"):
            code, signal = _exit(said.get("ExitCode", ""))
            row = SlurmRow(
                said.get("ArrayJobId") or said["JobId"],
                said["JobName"],
                said["JobState"],
                said.get("Reason", ""),
                moment(said.get("StartTime", "")),
                moment(said.get("EndTime", "")),
                said.get("Partition", ""),
                said.get("NodeList", ""),
                code,
                signal,
            )
            rows |= _each(row, said.get("ArrayTaskId", ""))
    return rows


def _exit(text: str) -> tuple[int | None, int]:
    found = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (None, 0)


def read_looks(text: str, keys: Sequence[str]) -> dict[str, SiteLook]:
    """What the directories of these sessions say, as `look.sh` prints it."""
    looks = dict.fromkeys(keys, SiteLook())
    for line in text.split("\n"):
        key, *said = line.split("\t")
        if session_of(key) in looks and len(said) == 12:
            looks[key] = _look(*said)
    return looks


def _look(  # one argument for each of its files
    flags: str,
    id: str,
    duration: str,
    ran: str,
    began: str,
    until: str,
    cancel: str,
    warning: str,
    end: str,
    parts: str,
    joined: str,
    connector: str,
) -> SiteLook:
    start = float(began) if re.fullmatch(r"\d+(\.\d+)?", began) else None
    return SiteLook(
        claimed="c" in flags,
        ran="r" in flags,
        timed="t" in flags,
        termed="k" in flags,
        paused="p" in flags,
        id=ran or id,
        began=at(start) if start else None,
        ends=at(max(start + (count(duration) or 0), count(until) or 0)) if start else None,
        cancel=_text(cancel) if cancel else None,
        warning=warning,
        record=read_record(end),
        lasts=timedelta(seconds=count(duration) or 0),
        parts=count(parts) or 1,
        joined=read_joined(joined),
        connector=connector,
    )


def read_joined(text: str) -> Joined | None:
    """What `join.sh` said: an exit code, or a dash, and words; None if it has not been done."""
    code, _, words = text.strip().partition(" ")
    return Joined(count(code), words) if code else None


def _text(said: str) -> str:
    try:
        return str(json.loads(said))
    except ValueError:
        return ""


def read_record(text: str) -> SlurmRecord | None:
    """A job's own record of its end; None if there is none, or only a part."""
    try:
        said = json.loads(text)
        wall = max(0.0, said["ended"] - said["started"])
        usage = Usage(round(wall, 3), _seconds(said.get("times", "")), int(said.get("peak", 0)))
        return SlurmRecord(
            said["kind"],
            said["code"],
            said["by"],
            said["detail"],
            at(said["started"]),
            at(said["ended"]),
            str(said["job"]),
            said.get("node", ""),
            bool(said.get("oom")),
            usage,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _seconds(times: str) -> float:
    """The sum of what the shell's `times` prints: `0m1.20s 0m0.30s`."""
    return round(sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", times)), 3)
