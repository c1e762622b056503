"""`doctor`'s checks of SUBLET_HOME: writable, private, with free space, and on a suitable machine."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator

from sublet.cli.doctor.findings import DoctorFinding
from sublet.cli.texts import size
from sublet.kernel.home import Home
from sublet.kernel.whereabouts import objections, on_network, probe

LITTLE, TOO_LITTLE = 5 * 1024**3, 200 * 1024**2  # bytes of free disk
FEW = 1000  # free inodes
TRIAL = 1 << 16  # bytes written as a test
ROOM = "Free some space: sessions write below SUBLET_HOME."


def place(home: Home) -> Iterator[DoctorFinding]:
    """Check that SUBLET_HOME is private, on a local disk with free space, and not on a login node."""
    facts = probe(home.root)
    above = _existing(home)
    yield _state(home, above)
    against = objections(facts)
    if not on_network(facts.filesystem):
        yield DoctorFinding("ok", "file system", facts.filesystem)
    if not against:
        yield DoctorFinding("ok", "machine", f"{facts.hostname}, no login node")
    for objection in against:
        yield DoctorFinding("bad", "machine", objection.why, objection.advice)
    yield from _room(above)


def can_be_written(home: Home) -> bool:
    """Whether a service could write to the home."""
    return not _try_to_write(_existing(home))


def _existing(home: Home) -> str:
    """Return the home, or its closest parent that exists."""
    above = home.root
    while not os.path.exists(above):
        above = os.path.dirname(above)
    return above


def _state(home: Home, above: str) -> DoctorFinding:
    if trouble := _try_to_write(above):
        todo = "Make it writable, or set SUBLET_HOME to a directory of yours."
        return DoctorFinding("bad", "SUBLET_HOME", f"{home.root} can't be written: {trouble}", todo)
    if above == home.root and stat.S_IMODE(os.stat(above).st_mode) & 0o077:
        return DoctorFinding("warn", "SUBLET_HOME", f"others can look into {home.root}", f"chmod 700 {home.root}")
    return DoctorFinding("ok", "SUBLET_HOME", home.root)


def _try_to_write(directory: str) -> str:
    """Return the system's message if a file can't be written; permissions alone don't show that."""
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".doctor") as file:
            file.write(b"\0" * TRIAL)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _room(directory: str) -> Iterator[DoctorFinding]:
    free = shutil.disk_usage(directory).free
    state = "bad" if free < TOO_LITTLE else "warn" if free < LITTLE else "ok"
    yield DoctorFinding(state, "free disk", size(free), "" if state == "ok" else ROOM)
    files = os.statvfs(directory)
    if files.f_files and files.f_favail < FEW:
        yield DoctorFinding("bad", "free files", f"{files.f_favail} more files can be made", ROOM)
