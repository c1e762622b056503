"""Commands for pilots that a site starts itself: invite a site and, at the site, fetch and run requests."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sublet.annexes.calls import invitations
from sublet.booking.model.amounts import parse_duration
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output
from sublet.kernel.errors import ServiceUnreachable
from sublet.kernel.texts import describe_duration

if TYPE_CHECKING:
    from sublet.client.pulling import PulledRequest

HERE = os.path.join("~", ".sublet", "pulled")
SLURM = "sbatch -N {nodes} -t {minutes} --mem={memory}M"


@click.group("pilot", cls=CommandGroup, epilog=Example("sublet pilot pull partner.invitation"))
def pilot() -> None:
    """Let a site fetch requests for leases, and answer them with nodes of its own.

    You don't sign in to the site, and nothing is sent to it: its operator runs `sublet pilot pull`.
    """


@command(
    "invite",
    "sublet pilot invite partner --out partner.invitation",
    "sublet annex create example --system partner --nodes 2 --cores 8 --lifetime 4h",
)
@click.argument("site")
@click.option("--out", "file", type=click.Path(dir_okay=False), help="Write it to this file, for its owner alone.")
@click.option("--anew", is_flag=True, help="Make earlier invitations of this site worthless.")
def invite(out: Output, site: str, file: str | None, anew: bool) -> None:
    """Invite a site, and print what its operator needs.

    SITE becomes a system that `sublet annex create` can name. Requests to it wait until the site fetches them.
    """
    from sublet.client.pulling import write_invitation  # only needed here

    view = out.link().do(invitations.invite(site, anew=anew))
    text = write_invitation(view.site, view.urls, view.pin, view.token)
    if file:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
    out.show(view, lambda: [f"{file} is written."] if file else text.splitlines(), lambda: [file or text.rstrip()])
    if out.for_people:
        named = os.path.basename(file) if file else "INVITATION"
        out.note(f"Keep it secret. Who runs {site} answers with: sublet pilot pull {named}")


@command("withdraw", "sublet pilot withdraw partner")
@click.argument("site")
def withdraw(out: Output, site: str) -> None:
    """Withdraw the invitation of a site; leases that it has started continue."""
    out.link().do(invitations.withdraw(site))
    out.show({"withdrawn": site}, lambda: [f"{site} is invited no longer."], lambda: [site])


@command("pull", "sublet pilot pull partner.invitation", f"sublet pilot pull partner.invitation -- {SLURM}")
@click.argument("invitation", type=click.Path(exists=True, dir_okay=False))
@click.argument("words", nargs=-1, metavar="[-- COMMAND…]", type=click.UNPROCESSED)
@click.option("--directory", default=HERE, show_default=True, help="Where leases are unpacked; nodes must see it.")
@click.option("--every", default="10s", show_default=True, metavar="TIME", help="How often to ask.")
@click.option("--once", is_flag=True, help="Answer one request, and return; when it has ended, if it runs here.")
def pull(out: Output, invitation: str, words: tuple[str, ...], directory: str, every: str, once: bool) -> None:
    """Fetch requests for leases from the person who invited you, and run them on this machine or with COMMAND.

    COMMAND is called with a script and its argument, and must start the script on each requested node; {nodes},
    {cores}, {memory} (MiB), {gpus} and {minutes} in it are replaced. Without COMMAND, requests for one node run here.
    The nodes run HTCondor jobs of the person who invited you, and no one else's; they run as your own account.
    """
    from sublet.client.pulling import Pulling  # only needed here

    pulling, pause = Pulling(invitation), parse_duration(every).total_seconds()
    place = os.path.abspath(os.path.expanduser(directory))
    out.note(f"Jobs of whoever wrote {os.path.basename(invitation)} will run as your own account; you answer for them.")
    while True:
        try:
            for request in pulling.list_wanted():
                if not words and not request.fits_here:
                    continue
                runs = pulling.start(request, place, words)
                _take(out, request)
                if once:
                    runs.wait()
                    return
        except ServiceUnreachable as error:
            out.note(error.message)
        time.sleep(pause)


def _take(out: Output, request: PulledRequest) -> None:
    nodes, cores = (
        f"{count} {what}{'' if count == 1 else 's'}"
        for count, what in ((request.nodes, "node"), (request.cores, "core"))
    )
    size = f"{nodes} with {cores} for {describe_duration(timedelta(seconds=request.seconds))}"
    out.show({"taken": request.key}, lambda: [f"{request.key[:8]} is taken: {size}."], lambda: [request.key])


for each in (invite, withdraw, pull):
    pilot.add_command(each)
