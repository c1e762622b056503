"""Starts a shim, signals it, and cleans up after one that was killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from hashlib import sha256
from pathlib import Path

from sublet.booking.model.job import Job
from sublet.booking.model.session import End, EndKind
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.kernel.short_paths import fits, shorten
from sublet.platforms.local.shim import START, clocks, faults, processes
from sublet.platforms.local.shim.cgroups import ControlGroup
from sublet.platforms.local.shim.processes import boot_id, find_marked, send, start_time
from sublet.platforms.local.shim.shortage import NO_ROOM, is_short
from sublet.platforms.local.shim.watch import SIGNALS
from sublet.platforms.sessiondir import SessionDir, Shim
from sublet.platforms.told import tell_amounts, tell_places

HERE = os.path.dirname(os.path.abspath(__file__))
SLOWEST_START = 30.0  # seconds
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def socket_of(home: Path, key: str) -> str:
    """Return the path of the Unix socket where an interactive job may listen; empty if no path is short enough."""
    path = shorten(home / "s") / f"{sha256(key.encode()).hexdigest()[:12]}.sock"
    return str(path) if fits(path) else ""


def environment(
    job: Job, session: SessionDir, given: Mapping[str, Sequence[int]], inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return a job's environment: inherited variables, then those of its amounts and session, then its own."""
    gpus = ",".join(map(str, given["gpus"]))
    return {
        "PATH": PLAIN_PATH,
        "LANG": "C.UTF-8",
        "HOME": str(session.work),
        **inherited,
        "TMPDIR": session.make_scratch(),
        **tell_amounts(job.amounts),
        "PYTHONUNBUFFERED": "1",  # so that its output can be read while it runs
        "CUDA_VISIBLE_DEVICES": gpus,
        "SUBLET_SESSION": session.key,
        "SUBLET_PART": "0",
        "SUBLET_PARTS": "1",
        "SUBLET_UNTIL": job.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "SUBLET_DATA": str(session.root / "data"),
        "SUBLET_WARNING": str(session.root / "warning"),
        **tell_places(job.places, str(session.work)),
        **job.program.environment,
    }


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def start(session: SessionDir) -> None:
    """Start the shim and wait until it has claimed the job: from then on it runs on its own."""
    ready, theirs = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # inherited by the shim: an early signal must not kill it
    try:
        with open(session.root / "shim.log", "ab", opener=_private) as log:
            first = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START, HERE, str(session.root), str(theirs)],
                env={"PATH": PLAIN_PATH, "LANG": "C.UTF-8", **faults.order(), **clocks.order()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs,),
                start_new_session=True,
                cwd="/",
            )
        faults.point("shim.launched")
        os.close(theirs)
        theirs = -1
        _wait_for(ready)
        first.wait(SLOWEST_START)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlatformUnreachable(platform=session.platform, why=f"the shim could not be started: {error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(ready)
        if theirs >= 0:
            os.close(theirs)
    if not session.ran and (first.returncode == NO_ROOM or first.returncode < 0):
        why = "this machine is short of processes or memory, so the shim did not start"
        raise PlatformUnreachable(platform=session.platform, why=why)
    if not session.ran:
        raise PlatformRefused(platform=session.platform, why=f"the shim did not start{_last_words(session)}")


def _wait_for(ready: int) -> None:
    """Wait for data or the end of a pipe; `select` can't handle descriptors above 1023."""
    poll = select.poll()
    poll.register(ready, select.POLLIN)
    poll.poll(SLOWEST_START * 1000)


def _last_words(session: SessionDir) -> str:
    """Return the last line of a failed shim's log, in parentheses."""
    try:
        lines = (session.root / "shim.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return f" ({lines[-1]})" if lines else ""


def poke(shim: Shim, number: signal.Signals) -> bool:
    """Signal the shim, if this exact process still exists, and return whether it does."""
    try:
        process = os.pidfd_open(shim.pid)
    except OSError as error:
        if is_short(error):
            raise
        return False
    try:
        if start_time(shim.pid) != shim.start or boot_id() != shim.boot:
            return False
        signal.pidfd_send_signal(process, number)
    except OSError as error:
        if is_short(error):
            raise
        return False
    finally:
        os.close(process)
    return True


def find_shim(session: SessionDir) -> int | None:
    """Return the pid of a session's shim by its command line, even before it has written its record; None if absent."""
    mark = f"\0{session.root}\0".encode()
    for pid in processes.pids():
        try:
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        except OSError as error:
            if is_short(error):  # then it may well exist
                raise
    return None


def stop_lost(session: SessionDir) -> None:
    """Stop a job whose directory was removed by hand."""
    shim = find_shim(session)
    if shim is None:
        sweep(session)
        return
    with suppress(OSError):
        os.kill(shim, signal.SIGUSR2)


def sweep(session: SessionDir, seconds: float = 5.0) -> list[int]:
    """Kill all processes of a job that lost its shim; return those that couldn't be killed."""
    try:
        group = ControlGroup(0, *(session.root / "ran" / "group").read_text().splitlines())
    except OSError:
        group = None
    word = f"SUBLET_SESSION={session.key}".encode()
    deadline = time.monotonic() + seconds
    if group:
        group.close()
    while left := [
        pid for pid in {*find_marked(word), *(group.pids() if group else [])} if start_time(pid) is not None
    ]:
        send(left, signal.SIGKILL)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.005)
    if group:
        group.remove()
    return []


def settle(session: SessionDir, shim: Shim | None) -> None:
    """Record the end of a job whose shim is gone without a record, with no more than is known."""
    now = clocks.wall()
    if shim and shim.boot != boot_id():
        end = End(EndKind.NODE_LOST, detail="the machine was restarted while it ran")
    elif session.never_ran:
        sweep(session)  # its cgroup, and the process that waited in it to become the program
        end = End(EndKind.NOT_STARTED, detail="the shim that was to start it was killed before it did, so it never ran")
    else:
        left = sweep(session)
        swept = f"these processes could not be stopped: {left}" if left else "what it had running was stopped"
        why = f"the shim that stayed with it was killed, so how it ended isn't known; {swept}{_last_words(session)}"
        end = End(EndKind.UNKNOWN, detail=why)
    session.settle(end, shim.began_now if shim else now, now)
    session.remove_scratch()
