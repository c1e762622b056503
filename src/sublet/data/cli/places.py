"""`place`: directories of systems that sessions share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import click

from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.texts import moment, size
from sublet.data.calls import places as calls
from sublet.data.views.places import PlaceAsk, PlaceView
from sublet.kernel.errors import NotFound
from sublet.kernel.texts import describe_duration

Kind = Literal["reference", "shared", "scratch"]
on_option = click.option("--on", "platform", metavar="PLATFORM", default="", help="Of which platform.")


@click.group("place", cls=CommandGroup, epilog=Example("sublet place add scratch --on anvil --scratch"))
def place() -> None:
    """Directories on systems that sessions share: reference data, a project's files, your own scratch."""


@command(
    "add",
    "sublet place add compute_shared --on keeling --path /data/keeling/shared",
    "sublet place add scratch --on anvil --scratch --path '$SCRATCH' --keep 14d --quota 500GiB",
    "sublet place add flood --on keeling --path /projects/flood --writable --app 'flood-*'",
)
@click.argument("name")
@click.option("--on", "platform", metavar="PLATFORM", required=True, help="The platform that it is on.")
@click.option("--path", default="", metavar="DIRECTORY", help="Where it is there; may begin with ~/ or a $VARIABLE.")
@click.option("--writable", is_flag=True, help="All who may use it share it, and change it; without this it is read.")
@click.option("--scratch", is_flag=True, help="A directory of each person's own, made for them below DIRECTORY.")
@click.option("--keep", metavar="TIME", help="How long scratch stays after its last use: 7d.")
@click.option("--quota", metavar="SIZE", help="How much each person's scratch may have when a session starts: 100GiB.")
@click.option("--target", default="", metavar="PATH", help="Where containers see it: /NAME.")
@click.option("--app", "apps", multiple=True, metavar="NAME", help="Only this app may use it; * stands for anything.")
@click.option("--note", default="", metavar="TEXT", help="A description, for people who choose.")
def add(
    out: Output,
    name: str,
    platform: str,
    path: str,
    writable: bool,
    scratch: bool,
    keep: str | None,
    quota: str | None,
    target: str,
    apps: tuple[str, ...],
    note: str,
) -> None:
    """Declare a place, or replace the one of this NAME there. On a gateway, access rules say who may use it."""
    if not path and not scratch:
        raise click.UsageError("Say where it is: --path DIRECTORY; or that it is scratch: --scratch.")
    if keep and not scratch:
        raise click.UsageError("--keep is for scratch; other places stay as they are.")
    if quota and not scratch:
        raise click.UsageError("--quota is for scratch only; other places have no part for each person.")
    kind: Kind = "scratch" if scratch else "shared" if writable else "reference"
    ask = PlaceAsk(
        name=name,
        platform=platform,
        kind=kind,
        path=path,
        target=target,
        writable=writable,
        keep=parse_duration(keep).total_seconds() if keep else 0,
        quota=parse_memory(quota) if quota else 0,
        apps=apps,
        note=note,
    )
    made = out.link().do(calls.add(ask))
    seen = f"containers see it at {made.target}; other programs below their working directory, as {made.name}"
    out.show(made, lambda: [f"{made.name} is a place of {made.platform}: {seen}."], lambda: [made.name])


@command("list", "sublet place list")
def list_places(out: Output) -> None:
    """List the places that you may use, and how long your scratch in them is kept."""
    view, now = out.link().do(calls.places()), datetime.now(UTC)
    rows = [
        (each.name, each.platform, _kind_text(each), each.path, _keep_text(each, now), each.note) for each in view.items
    ]
    head = ("NAME", "ON", "KIND", "DIRECTORY", "YOUR SCRATCH", "NOTE")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (each.name for each in view.items))
    if not rows and out.for_people:
        out.note("No places yet. Declare one: sublet place add")


@command("show", "sublet place show scratch --on anvil")
@click.argument("name")
@on_option
def show(out: Output, name: str, platform: str) -> None:
    """Show a place: where it is, who may change it, and until when your scratch in it is kept."""
    each, now = _find(out, name, platform), datetime.now(UTC)
    facts = {
        "platform": each.platform,
        "kind": _kind_text(each),
        "directory": each.path or "below Sublet's own directory",
        "containers see": each.target,
        "apps": ", ".join(each.apps) or "any session",
        "kept after use": describe_duration(timedelta(seconds=each.keep)) if each.keep else "",
        "quota": f"{size(each.quota)} for each person" if each.quota else "",
        "your scratch": _keep_text(each, now),
        "note": each.note,
    }
    rows = [(label, text) for label, text in facts.items() if text]
    out.show(each, lambda: table(("PLACE", each.name), rows), lambda: [each.name])


@command("remove", "sublet place remove compute_shared --on keeling")
@click.argument("name")
@on_option
def remove(out: Output, name: str, platform: str) -> None:
    """Remove the declaration of a place. Its files stay; people's scratch is deleted."""
    each = _find(out, name, platform)
    out.link().do(calls.remove(each.platform, each.name))
    gone = {"removed": each.name, "platform": each.platform}
    out.show(gone, lambda: [f"{each.name} is no place of {each.platform} any more."], lambda: [each.name])


@command("keep", "sublet place keep scratch 30d")
@click.argument("name")
@click.argument("time")
@on_option
def keep(out: Output, name: str, time: str, platform: str) -> None:
    """Keep your scratch for this TIME from now on. Each use extends it to at least the place's keep time."""
    each = _find(out, name, platform)
    kept = out.link().do(calls.keep(each.platform, each.name, parse_duration(time).total_seconds()))
    until = moment(kept.until, datetime.now(UTC))
    out.show(kept, lambda: [f"Your scratch in {kept.place} is kept until {until}."], lambda: [kept.place])


@command("clear", "sublet place clear scratch --on anvil")
@click.argument("name")
@on_option
def clear(out: Output, name: str, platform: str) -> None:
    """Remove your scratch and everything in it, unless a session of yours is using it."""
    each = _find(out, name, platform)
    out.link().do(calls.clear(each.platform, each.name))
    gone = {"cleared": each.name, "platform": each.platform}
    out.show(gone, lambda: [f"Your scratch in {each.name} on {each.platform} is removed."], lambda: [each.name])


def _find(out: Output, name: str, platform: str) -> PlaceView:
    items = out.link().do(calls.places()).items
    found = [each for each in items if each.name == name and platform in ("", each.platform)]
    if not found:
        where = f"{name} on {platform}" if platform else name
        raise NotFound(noun="place", name=where, hint="`sublet place list` lists the places.")
    if len(found) > 1:
        names = ", ".join(each.platform for each in found)
        raise click.UsageError(f"{name} is a place of {names}: say which with --on.")
    return found[0]


def _kind_text(each: PlaceView) -> str:
    return "shared, writable" if each.kind == "shared" else each.kind


def _keep_text(each: PlaceView, now: datetime) -> str:
    return f"kept until {moment(each.until, now)}" if each.until else ""


for word in (add, list_places, show, remove, keep, clear):
    place.add_command(word)
