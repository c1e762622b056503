"""`app run`: run an approved app with one's own parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import click

from sublet.apps.calls import runs as app_runs
from sublet.booking.cli.asking import show_answer
from sublet.booking.cli.choosing import prefer_option
from sublet.booking.cli.fetching import Destination, check_folder, overwrite_option
from sublet.booking.cli.running import accept_and_follow
from sublet.booking.cli.waiting import ask_service
from sublet.booking.cli.wishes import number_of, read_output
from sublet.cli.command import command
from sublet.cli.keys import key_option
from sublet.cli.output import Output
from sublet.cli.scheduler import read_scheduler_flags, scheduler_wishes
from sublet.cli.setting import set_json, set_words

RESOURCES = ("nodes", "tasks", "cores", "memory", "gpus", "time")


@command(
    "run",
    "sublet app run summa --hpc keeling --set years=10 --data forcing=https://example.org/forcing.nc",
    "sublet app run summa@3 --set-json 'cells=[1, 2]' --cores 4 --ask",
)
@click.argument("app")
@click.option("--hpc", "--platform", "hpc", metavar="NAME", help="Only there: a system, or a community account.")
@click.option("--set", "words", metavar="NAME=VALUE", multiple=True, help="A parameter; the app says of which type.")
@click.option("--set-json", "values", metavar="NAME=JSON", multiple=True, help="A parameter, as JSON.")
@click.option(
    "--data",
    metavar="[NAME=]WHERE",
    multiple=True,
    help="An input of the app: a URL, or upload:NAME/. Can be repeated.",
)
@click.option("--place", "places", metavar="NAME", multiple=True, help="A place of the system that it is to see.")
@click.option("--output", metavar="FILES=ADDRESS", multiple=True, help="Send results there: 'out/*=s3://bucket/run1/'.")
@click.option("--nodes", metavar="N", help="How many nodes.")
@click.option("--tasks", metavar="N", help="How many copies of its execution stage.")
@click.option("--cores", metavar="N", help="Cores for each task.")
@click.option("--memory", metavar="SIZE", help="Memory on each node: 8GiB.")
@click.option("--gpus", metavar="N", help="GPUs on each node.")
@click.option("--time", "-t", metavar="TIME", help="For how long: 10m, 2h, 1-12:00:00.")
@scheduler_wishes
@click.option("--name", metavar="NAME", help="What to call it.")
@click.option("--ask", "only_ask", is_flag=True, help="Show the offers, and take none.")
@key_option
@prefer_option
@click.option("--wait/--detach", "-w/-d", default=True, help="Follow it to its end (the default), or not.")
@click.option("--yes", "-y", is_flag=True, help="Accept whatever it costs.")
@click.option("--out", "to", metavar="DIR", callback=check_folder, help="Fetch the results into this directory.")
@overwrite_option
@click.option("--keep", is_flag=True, help="With --out: leave it on the system too.")
def run(
    out: Output,
    app: str,
    words: tuple[str, ...],
    values: tuple[str, ...],
    data: tuple[str, ...],
    places: tuple[str, ...],
    output: tuple[str, ...],
    only_ask: bool,
    wait: bool,
    yes: bool,
    to: str | None,
    overwrite: bool,
    keep: bool,
    hpc: str | None,
    name: str | None,
    key: str | None,
    prefer: str | None,
    **given: Any,
) -> int:
    """Run an approved app: ask, take the best offer, follow the output.

    APP is its name, or NAME@3 for one version. Defaults come from its manifest. The service checks values, resources
    and access, and a NO says why. The exit code is the app's, as with `sublet run`.
    """
    link = out.link()
    title, _, version = app.partition("@")
    wish = {
        "version": version,
        "hpc": hpc or "",
        "name": name or "",
        "words": set_words(words),
        "set": set_json(values),
        "data": dict(_inputs(data, local=link.address.local)),
        "places": places,
        "outputs": [read_output(item) for item in output],
        "resources": {each: number_of(given[each]) for each in RESOURCES if given[each] is not None},
        "scheduler": read_scheduler_flags(given),
    }
    view = ask_service(out, link, app_runs.ask(title, wish, firm=not only_ask, key=key))
    if only_ask or not view.offers:
        return show_answer(out, view, prefer)
    return accept_and_follow(
        out,
        link,
        view,
        detach=not wait,
        yes=yes,
        to=Destination.read(to, keep=keep, overwrite=overwrite),
        prefer=prefer,
    )


def _inputs(items: Iterable[str], *, local: bool) -> Iterable[tuple[str, str]]:
    """Parse inputs: `forcing=https://…` is the input forcing; a location alone is the whole data folder."""
    for item in items:
        name, given, place = item.partition("=")
        if not given or "/" in name or ":" in name:
            name, place = "", item
        yield (
            name,
            os.path.abspath(os.path.expanduser(place))
            if local and "://" not in place and not place.startswith("upload:")
            else place,
        )
