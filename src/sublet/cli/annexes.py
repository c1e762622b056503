"""Annexes: nodes that are leased under a name, to run HTCondor jobs on."""

from __future__ import annotations

import click

from sublet.cli.annex_setup import setup
from sublet.cli.command import Example, Group


@click.group("annex", cls=Group, epilog=Example("sublet annex setup"))
def annex() -> None:
    """Lease nodes under a name, and run HTCondor jobs on them."""


annex.add_command(setup)
