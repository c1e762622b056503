"""The shim's start: it claims the job, records its identity, and lets the service continue."""

from __future__ import annotations

import os
from contextlib import suppress

from . import clocks
from .faults import point
from .processes import boot_id, start_time
from .shortage import NO_ROOM, is_short, patiently


def main(directory: str, ready: int) -> None:
    """Run the job of a session directory, unless it has run already; a byte on `ready` says that it is claimed.

    Nobody needs to read that byte: if the service has been killed meanwhile, the job continues.
    """
    os.chdir(directory)
    os.umask(0o077)
    try:
        os.mkdir("ran")
    except FileExistsError:
        return
    try:
        is_first = os.fork()
    except OSError as error:
        os.rmdir("ran")  # undo the claim: it may be tried again
        os._exit(NO_ROOM if is_short(error) else 1)
    if is_first:
        os._exit(0)  # the service waits for this one only; the shim itself is orphaned
    os.setsid()
    point("shim.claimed")
    me, began, steady = os.getpid(), clocks.wall(), clocks.steady()
    start, boot = patiently(lambda: start_time(me)), patiently(boot_id)
    with patiently(lambda: open("ran/new", "w", encoding="ascii")) as file:
        known = f'"pid":{me},"start":{start},"boot":"{boot}","began":{began!r},"steady":{steady!r}'
        file.write(f'{{{known},"marks_begin":true}}')
    os.rename("ran/new", "ran/shim.json")
    point("shim.named")
    with suppress(OSError):
        os.write(ready, b"1")
    os.close(ready)
    point("shim.ready")
    from .watch import Watch  # late, so that the service doesn't wait for its imports

    Watch(steady).run()
