"""Gathers the evidence when a part is over: from the database, `sublet ps`, processes, directories and logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy

from tests.chaos.evidence import Ended, FailedTurn, Record
from tests.chaos.services import BrokenService
from tests.nursery import typed

MICROS = 1e6
HOUR, HALF = 3600.0, 1800.0
SESSIONS = 'SELECT id, name, platform, phase, created, ended, "end", claim_token FROM sessions'
BOOKED = "SELECT key FROM bookings WHERE takes IS NOT NULL"
LINKS = ("/tmp", "/var/tmp", "/dev/shm")


def query(database: str, sql: str) -> list[tuple[Any, ...]]:
    """Rows of the database, read beside the service."""
    engine = sqlalchemy.create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sqlalchemy.text(sql))]
    finally:
        engine.dispose()


def read_records(database: str) -> tuple[Record, ...]:
    """All sessions and offers."""
    return tuple(_read_record(*row) for row in query(database, SESSIONS))


def _read_record(
    id: str, name: str, platform: str, phase: str, created: int, ended: int | None, end: str | None, claim: str | None
) -> Record:
    said = json.loads(end) if end else {}
    return Record(
        id=str(id),
        name=name,
        platform=platform,
        phase=phase,
        created=created / MICROS,
        ended=ended / MICROS if ended is not None else None,
        kind=said.get("kind", ""),
        code=said.get("code"),
        signal=said.get("signal"),
        by=said.get("by", ""),
        detail=said.get("detail", ""),
        is_claimed=claim is not None,
    )


def undo_clock(time: float, first: float, last: float) -> float:
    """When something was, that was written down between these times by a clock which may have been off by an hour."""
    return next((time + hour for hour in (0.0, HOUR, -HOUR) if first - HALF <= time + hour <= last + HALF), time)


def read_booked(database: str) -> frozenset[str]:
    """The keys of bookings and holds that hold something."""
    return frozenset(str(key) for (key,) in query(database, BOOKED))


def list_sessions(socket: Path, home: Path) -> dict[str, str]:
    """Phases, as `sublet ps` lists them."""
    environment = {**os.environ, "SUBLET_URL": f"unix:{socket}", "SUBLET_HOME": str(home)}
    done = typed(["ps", "--all", "--limit", "100000", "--json"], environment)
    if done.returncode:
        raise RuntimeError(f"sublet ps: {done.stderr}")
    listed = json.loads(done.stdout)
    items = listed["items"] if isinstance(listed, dict) else listed
    return {item["id"]: item["phase"] for item in items}


def find_processes(base: Path) -> dict[int, str]:
    """Processes of sessions and shims of this run, by what they were started with; services are none of these."""
    mark = os.fsencode(base)
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes()
            around = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        is_session = b"SUBLET_SESSION=" in around and mark in around
        if words and (mark in words or is_session):
            found[int(entry)] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def find_orphans(base: Path) -> dict[int, str]:
    """Those that nobody needs; the connection to a site is meant to outlive the service."""
    return {pid: words for pid, words in find_processes(base).items() if not words.startswith("ssh")}


def find_directories(home: Path) -> Iterator[Path]:
    """The directories of sessions on this machine."""
    yield from (home / "platforms").glob("*/sessions/*")


def read_ends(home: Path) -> dict[str, Ended]:
    """How sessions ended, by the records that their shims left."""
    ends = {}
    for directory in find_directories(home):
        try:
            said = json.loads((directory / "end.json").read_text())
        except (OSError, ValueError):
            continue
        ends[directory.name] = Ended(said["kind"], said.get("code"))
    return ends


def find_leftovers(home: Path, ids: frozenset[str]) -> Iterator[str]:
    """Marks of running jobs, trash, control groups and links that should be gone."""
    for place in ("running", "trash"):
        yield from (str(path) for path in (home / "platforms").glob(f"*/{place}/*"))
    yield from (str(folder) for folder in find_groups(ids))
    yield from (f"{link} -> {os.readlink(link)}" for link in find_links(home))


def find_groups(ids: frozenset[str]) -> list[Path]:
    """The control groups of these sessions."""
    groups = Path("/sys/fs/cgroup").glob("**/sublet-*")
    return [group for group in groups if group.name.removeprefix("sublet-") in ids]


def find_links(place: Path) -> list[Path]:
    """The short paths to temporary files below a place."""
    links = (link for folder in LINKS for link in Path(folder).glob("sublet-*") if link.is_symlink())
    return [link for link in links if os.readlink(link).startswith(f"{place}/")]


def read_failed_turns(service: BrokenService) -> Iterator[FailedTurn]:
    """The turns of its loop that failed, by its log."""
    for line in service.log.read_text(errors="replace").splitlines():
        if '"turn.failed"' not in line:
            continue
        try:
            said = json.loads(line)
        except ValueError:
            continue  # cut off by a kill
        yield FailedTurn(datetime.fromisoformat(said["timestamp"]).timestamp(), service.number)
