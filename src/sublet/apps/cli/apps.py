"""`app`: reviewed code with a manifest, which others can run without a shell."""

from __future__ import annotations

import click

from sublet.apps.cli.check import check, init
from sublet.apps.cli.proposals import check_upstream, list_apps, maintainers, propose, show
from sublet.apps.cli.reviews import approve, diff, refuse, review, revoke
from sublet.apps.cli.runs import run
from sublet.cli.command import CommandGroup, Example


@click.group("app", cls=CommandGroup, epilog=Example("sublet app check . --run --set years=2"))
def app() -> None:
    """Write, check and run apps; propose them to a gateway, and decide on what others propose."""


PROPOSING = (propose, list_apps, maintainers, show, check_upstream)
REVIEWING = (review, diff, approve, refuse, revoke)
for one in (check, init, run, *PROPOSING, *REVIEWING):
    app.add_command(one)
