"""Shows which platforms haven't answered yet, while a request is being answered."""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import replace
from typing import TypeVar

from sublet.booking.calls.offers import pending
from sublet.cli.output import Output
from sublet.cli.progress import Progress
from sublet.client.call import Call
from sublet.client.link import Link
from sublet.kernel.errors import SubletError

T = TypeVar("T")
PATIENCE = 0.5  # seconds: a faster answer needs no progress line


def ask_service(out: Output, link: Link, call: Call[T]) -> T:
    """Send a request; on a terminal, show which platforms haven't answered yet."""
    if not (out.for_people and sys.stderr.isatty()):
        return link.do(call)
    progress, done = Progress(wanted=True), threading.Event()
    threading.Thread(target=_tell, args=(link, progress, done), daemon=True).start()
    try:
        return link.do(call)
    finally:
        done.set()
        progress.end()


def _tell(link: Link, progress: Progress, done: threading.Event) -> None:
    beside = Link(replace(link.address, home=None))  # without a home, it starts no service
    while not done.wait(PATIENCE):
        with contextlib.suppress(SubletError):
            names = {name for request in beside.do(pending()).items for name in request.waiting}
            if names and not done.is_set():
                progress.show(f"waiting for {', '.join(sorted(names))} …")
