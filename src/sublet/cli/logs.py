"""`logs`: what a session printed."""

from __future__ import annotations

import sys

import click

from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.client.following import Following
from sublet.client.waiting import follow, so_far


@command("logs", "sublet logs -f 3f2a")
@click.option("--follow", "-f", "go_on", is_flag=True, help="Go on until the session is over.")
@click.option("--stderr", is_flag=True, help="What it printed to stderr, instead of stdout.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many bytes at the beginning.")
@click.argument("session")
def logs(out: Output, go_on: bool, stderr: bool, offset: int, session: str) -> None:
    """Show what a session printed, while it runs and after."""
    link = out.link()
    following = Following(session, "stderr" if stderr else "stdout", offset)
    pieces = follow(link, following) if go_on else so_far(link, following)
    if out.json:
        text = b"".join(pieces).decode("utf-8", "replace")
        out.data({"session": session, "stream": following.stream, "text": text, "next": following.offset})
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
