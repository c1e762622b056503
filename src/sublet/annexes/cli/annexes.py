"""The command group for annexes: nodes of clusters that others run, leased under a name, for HTCondor jobs."""

from __future__ import annotations

import click

from sublet.cli.command import Example, Lazy

WHERE = {
    **dict.fromkeys(("create", "add", "clone"), "annexes.cli.create"),
    **dict.fromkeys(("status", "history", "logs"), "annexes.cli.status"),
    **dict.fromkeys(("shutdown", "cancel", "rename", "share", "unshare", "close"), "annexes.cli.changes"),
    **dict.fromkeys(("drain", "undrain"), "annexes.cli.drains"),
    "open": "annexes.cli.changes:open_",
    "template": "annexes.cli.templates",
    "setup": "annexes.cli.setup",
}


@click.group(
    "annex",
    cls=Lazy,
    where=WHERE,
    epilog=Example("sublet annex create example --system expanse --nodes 2 --lifetime 4h"),
)
def annex() -> None:
    """Lease nodes under a name, for HTCondor jobs.

    NAME is an annex, NAME#3 its third lease, NAME@2026-11-14 its leases of that day.
    """
