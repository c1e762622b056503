"""`again`: run a session once more, with changes."""

from __future__ import annotations

from typing import Any

import click

from sublet.booking.calls import moves
from sublet.booking.cli.asking import show_answer
from sublet.booking.cli.choosing import prefer_option
from sublet.booking.cli.fetching import Destination, check_folder, overwrite_option
from sublet.booking.cli.running import accept_and_follow
from sublet.booking.cli.waiting import ask_service
from sublet.booking.model.scheduler import scheduler_specs
from sublet.cli.command import command
from sublet.cli.keys import key_option
from sublet.cli.output import Output
from sublet.cli.scheduler import read_scheduler_flags, scheduler_wishes
from sublet.cli.setting import set_json, set_words


@command(
    "again",
    "sublet again 3f2a --cores 8 --time 4h",
    "sublet again 3f2a --set years=20 --ask",
)
@click.argument("session")
@click.option("--cores", metavar="N", help="Cores on each node: 4, or 4-16 for at least and at most.")
@click.option("--memory", metavar="SIZE", help="Memory on each node: 8GiB.")
@click.option("--gpus", metavar="N", help="GPUs on each node.")
@click.option("--disk", metavar="SIZE", help="Disk of each node's own.")
@click.option("--nodes", metavar="N", help="How many nodes.")
@click.option("--time", "-t", metavar="TIME", help="For how long: 10m, 2h, 1-12:00:00.")
@click.option("--start", metavar="WHEN", help="When it may begin: 'tomorrow 9am'; else soon.")
@click.option("--platform", metavar="NAME", help="Only on this platform.")
@scheduler_wishes
@click.option("--name", metavar="NAME", help="What to call it.")
@click.option("--set", "words", metavar="NAME=VALUE", multiple=True, help="A parameter; typed as what it replaces.")
@click.option("--set-json", "values", metavar="NAME=JSON", multiple=True, help="A parameter, as JSON.")
@click.option("--ask", "only_ask", is_flag=True, help="Show the offers, and take none.")
@key_option
@prefer_option
@click.option("--detach", "-d", is_flag=True, help="Print its id, and don't follow it.")
@click.option("--yes", "-y", is_flag=True, help="Accept whatever it costs.")
@click.option("--out", "to", metavar="DIR", callback=check_folder, help="Fetch the results into this directory.")
@overwrite_option
def again(
    out: Output,
    session: str,
    words: tuple[str, ...],
    values: tuple[str, ...],
    only_ask: bool,
    detach: bool,
    yes: bool,
    to: str | None,
    overwrite: bool,
    key: str | None,
    prefer: str | None,
    **changes: Any,
) -> int:
    """Run a session again, with changes; everything else stays the same.

    The changes are shown first; then it works like `sublet run`.
    """
    link = out.link()
    asked = read_scheduler_flags(changes)
    fields = {name: value for name, value in changes.items() if value is not None and name not in scheduler_specs()}
    fields |= {name: asked.pop(name) for name in ("queue", "project") if name in asked}
    fields |= {"scheduler": asked} if asked else {}
    fields |= {"set": set_json(values), "words": set_words(words)}
    view = ask_service(out, link, moves.again(session, fields, firm=not only_ask, key=key))
    for note in view.notes:
        out.note(f"changed: {note}")
    if only_ask or not view.offers:
        return show_answer(out, view, prefer)
    return accept_and_follow(
        out, link, view, detach=detach, yes=yes, to=Destination.read(to, overwrite=overwrite), prefer=prefer
    )
