"""Processes as /proc shows them: their identity, their descendants, and how to stop them all."""

from __future__ import annotations

import os
from functools import cache

from .shortage import is_short

PAGE = os.sysconf("SC_PAGE_SIZE")


@cache
def boot_id() -> str:
    """Return the kernel's boot ID, which changes with every restart."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third (the state) on; empty if there is no such process.

    Raise OSError if no file can be opened at the moment, so that this is unknown.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError as error:
        if is_short(error):
            raise
        return []
    return text[text.rindex(b")") + 2 :].split()  # the name may contain blanks and brackets


def start_time(pid: int) -> int | None:
    """Return when the process started, in ticks since boot; None if it is gone or a zombie."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def still(pid: int) -> bool:
    """Whether a process is stopped, or gone."""
    fields = stat_fields(pid)
    return not fields or fields[0] in (b"T", b"t", b"Z", b"X")


def is_alive(pid: int, start: int, boot: str) -> bool:
    """Whether this exact process still exists, as a pid alone may have been reused."""
    return start_time(pid) == start and boot_id() == boot


def pids() -> list[int]:
    """Return the pids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def threads_of(uid: int) -> int:
    """Return how many threads a user has in all processes."""
    total = 0
    for pid in pids():
        try:
            mine = os.stat(f"/proc/{pid}").st_uid == uid
        except OSError:
            continue
        fields = stat_fields(pid) if mine else []
        total += int(fields[17]) if fields else 0
    return total


def descendants(root: int) -> list[int]:
    """Return all living descendants of a process, parents first."""
    below: dict[int, list[int]] = {}
    for pid in pids():
        fields = stat_fields(pid)
        if fields and fields[0] not in (b"Z", b"X"):
            below.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        children = below.get(todo.pop(), [])
        found += children
        todo += children
    return found


def find_marked(word: bytes) -> list[int]:
    """Return all processes that have this word in their initial environment."""
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if word in file.read().split(b"\0"):
                    found.append(pid)
        except OSError as error:
            if is_short(error):
                raise
            continue  # gone, or somebody else's
    return found


def resident(some: list[int]) -> int:
    """Return the total resident memory of processes, in bytes."""
    total = 0
    for pid in some:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                total += int(file.read().split()[1]) * PAGE
        except OSError:
            continue
    return total


def send(some: list[int], signal: int) -> None:
    """Send a signal to each process that still exists."""
    for pid in some:
        try:
            os.kill(pid, signal)
        except OSError:
            continue  # gone meanwhile


def proportional(some: list[int]) -> int:
    """Return the total memory of processes with shared pages divided among them: exact, but slower to read."""
    total = 0
    for pid in some:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except OSError:
            continue
    return total
