"""Annexes: nodes of clusters that others run, leased under a name, for HTCondor jobs."""

from __future__ import annotations

import click

from sublet.cli.command import Example, Lazy

WHERE = {
    **dict.fromkeys(("create", "add", "clone"), "annex_create"),
    **dict.fromkeys(("status", "history", "logs"), "annex_status"),
    **dict.fromkeys(("shutdown", "cancel", "rename", "share", "unshare", "close"), "annex_changes"),
    **dict.fromkeys(("drain", "undrain"), "annex_drains"),
    "open": "annex_changes:open_",
    "template": "annex_templates",
    "setup": "annex_setup",
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
