"""`up` and `down`: the person's own service in the background."""

from __future__ import annotations

import os
import signal
import time

from sublet.booking.calls.health import health
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.client.address import Address
from sublet.client.link import Link
from sublet.kernel.errors import ServiceUnreachable
from sublet.kernel.home import sublet_home
from sublet.kernel.serving import Serving, read_serving
from sublet.people.calls.people import entry

PATIENCE = 30.0  # seconds that a service may take to stop


@command("up", "sublet up")
def up(out: Output) -> None:
    """Start your own service in the background, unless it runs already.

    Commands start it automatically when they need it; this also prints the address of its web pages.
    """
    home = sublet_home()
    link = Link(Address(socket=home.socket, home=home), note=out.note)
    view = link.do(health())
    serving = read_serving(home)
    url = serving.url if serving else ""
    page = link.do(entry()) if url else ""
    answer = {"status": view.status, "version": view.version, "url": url, "page": page, "socket": home.socket}
    out.show(
        answer | {"pid": serving.pid if serving else None},
        lambda: [f"Your Sublet service is up: {page or home.socket}"],
        lambda: [page or home.socket],
    )
    if page and out.for_people:
        out.note("The link signs you in once, within five minutes. `sublet down` stops the service.")


@command("down", "sublet down")
def down(out: Output) -> None:
    """Stop your own service. Running sessions continue, and are found again when it starts."""
    serving = read_serving(sublet_home())
    if serving:
        _stop(serving)
    out.show(
        {"stopped": serving is not None},
        lambda: ["Your Sublet service is down." if serving else "No service of yours was running."],
        lambda: (),
    )


def _stop(serving: Serving) -> None:
    home = sublet_home()
    os.kill(serving.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while read_serving(home) == serving:
        if time.monotonic() > deadline:
            why = f"process {serving.pid} did not end in {PATIENCE:.0f} s"
            raise ServiceUnreachable(address=serving.socket, why=why, hint=f"End it with: kill -9 {serving.pid}")
        time.sleep(0.02)
