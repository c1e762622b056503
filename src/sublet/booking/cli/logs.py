"""`logs`: what a session printed."""

from __future__ import annotations

import re
import sys

import click

from sublet.booking.calls import sessions
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.client.following import Following
from sublet.client.link import Link
from sublet.client.waiting import follow, so_far


@command("logs", "sublet logs --tail 100 -f 3f2a")
@click.option("--follow", "-f", "go_on", is_flag=True, help="Follow until the session ends.")
@click.option("--stderr", is_flag=True, help="Show stderr instead of stdout.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many bytes at the beginning.")
@click.option("--tail", "-n", metavar="LINES", help="Only so many of the last lines; or the last bytes: 64KiB.")
@click.argument("session")
def logs(out: Output, go_on: bool, stderr: bool, offset: int, tail: str | None, session: str) -> None:
    """Show what a session printed, while it runs and after.

    Only the last 1 MiB is searched for the last lines.
    """
    link = out.link()
    stream = "stderr" if stderr else "stdout"
    if tail is not None:
        offset = max(offset, _find_tail(link, session, stream, tail))
    following = Following(session, stream, offset)
    pieces = follow(link, following) if go_on else so_far(link, following)
    if out.json:
        text = b"".join(pieces).decode("utf-8", "replace")
        out.data({"session": session, "stream": following.stream, "text": text, "next": following.offset})
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _find_tail(link: Link, session: str, stream: str, tail: str) -> int:
    """Return the offset at which the last lines, or bytes, begin."""
    by_lines = tail.isascii() and tail.isdecimal()
    if not by_lines and not SIZE.fullmatch(tail):
        raise click.UsageError(f"--tail {tail}: it takes a number of lines, or of bytes with their unit: 100, 64KiB.")
    answer = link.do(sessions.logs(session, stream, tail=MOST if by_lines else tail))
    start = int(answer.headers.get("sublet-offset", "0"))
    if not by_lines:
        return start
    lines = answer.body.splitlines(keepends=True)
    return start + sum(len(line) for line in lines[: max(0, len(lines) - int(tail))])


MOST = "1MiB"
SIZE = re.compile(r"\d+(\.\d+)?\s*[A-Za-z]{1,3}")
