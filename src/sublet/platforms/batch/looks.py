"""Readers for what the shared scripts print about sessions' directories: records, parts and results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sublet.booking.model.session import Usage
from sublet.booking.model.together import Joined
from sublet.kernel.path_texts import show_path
from sublet.platforms.batch.states import EndRecord, SiteLook, session_of
from sublet.platforms.port import ResultFile, Results

FOLDER = "d"  # in place of a size: an empty folder


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def read_looks(text: str, keys: Sequence[str]) -> dict[str, SiteLook]:
    """Read the states of these sessions' directories from the output of `look.sh`."""
    looks = dict.fromkeys(keys, SiteLook())
    for line in text.split("\n"):
        key, *columns = line.split("\t")
        if session_of(key) in looks and len(columns) == 12:
            looks[key] = _look(*columns)
    return looks


def _look(  # one argument for each file of a session
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
        began=_at(start) if start else None,
        ends=_at(max(start + (_count(duration) or 0), _count(until) or 0)) if start else None,
        cancel=_text(cancel) if cancel else None,
        warning=warning,
        record=read_record(end),
        lasts=timedelta(seconds=_count(duration) or 0),
        parts=_count(parts) or 1,
        joined=read_joined(joined),
        connector=connector,
    )


def read_joined(text: str) -> Joined | None:
    """Read the output of `join.sh`: an exit code or a dash, and a message; None if it hasn't run."""
    code, _, words = text.strip().partition(" ")
    return Joined(_count(code), words) if code else None


def _text(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return ""


def read_record(text: str) -> EndRecord | None:
    """Read a job's own record of its end; None if there is none or it is truncated."""
    try:
        record = json.loads(text)
        wall = max(0.0, record["ended"] - record["started"])
        usage = Usage(round(wall, 3), _seconds(record.get("times", "")), int(record.get("peak", 0)))
        return EndRecord(
            record["kind"],
            record["code"],
            record["by"],
            record["detail"],
            _at(record["started"]),
            _at(record["ended"]),
            str(record["job"]),
            record.get("node", ""),
            bool(record.get("oom")),
            usage,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _seconds(times: str) -> float:
    """Sum up what the shell's `times` prints: `0m1.20s 0m0.30s`."""
    return round(sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", times)), 3)


def read_results(stdout: bytes) -> Results:
    """Read the files and empty folders that `results.sh` lists, sorted by name."""
    files, folders = [], []
    for entry in stdout.split(b"\0"):
        size, _, rest = entry.decode("utf-8", "surrogateescape").partition(" ")
        seconds, _, name = rest.partition(" ")
        path = show_path(name.removeprefix("./"))
        if size == FOLDER:
            folders.append(path)
        elif name:
            files.append(ResultFile(path, int(size), _at(float(seconds))))
    return Results(tuple(sorted(files, key=lambda file: file.path)), tuple(sorted(folders)))
