"""Annexes: nodes of clusters that others run, leased under a name, for HTCondor jobs."""

from __future__ import annotations

import click

from sublet.cli.annex_changes import cancel, close, open_, rename, share, shutdown, unshare
from sublet.cli.annex_create import add, clone, create
from sublet.cli.annex_setup import setup
from sublet.cli.annex_status import history, logs, status
from sublet.cli.annex_templates import template
from sublet.cli.command import Example, Group


@click.group("annex", cls=Group, epilog=Example("sublet annex create example --system expanse --nodes 2 --lifetime 4h"))
def annex() -> None:
    """Lease nodes under a name, for HTCondor jobs.

    NAME is an annex, NAME#3 its third lease, NAME@2026-11-14 its leases of that day.
    """


for one in (
    *(create, add, status, shutdown, cancel, clone, rename, share, unshare),
    *(open_, close, history, logs, template, setup),
):
    annex.add_command(one)
