"""`platform`: list, show, check, sweep and drain platforms."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.booking.calls import platforms
from sublet.booking.views.platforms import DrainView, PlatformView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.instants import read_coming
from sublet.cli.options import reason_option
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import moment, size, when
from sublet.kernel.texts import count_text


@click.group("platform", cls=CommandGroup, epilog=Example("sublet platform check here"))
def platform() -> None:
    """List, show, check and drain the platforms that offers come from."""


@command("list", "sublet platform list")
def list_platforms(out: Output) -> None:
    """List the platforms that you may use, and on a gateway the names of those that you can ask for."""
    view = out.link().do(platforms.platforms())
    rows = [_row(item) for item in view.items]
    out.show(
        view,
        lambda: (
            table(
                ("NAME", "KIND", "TERMS", "NODES", "CORES", "MEMORY", "GPUS", "STATE"), rows, least=("TERMS", "MEMORY")
            )
            if rows
            else []
        ),
        lambda: (item.name for item in view.items if not item.ask),
    )


def _row(view: PlatformView) -> tuple[str, ...]:
    gpus = sum(node.gpus for node in view.nodes)
    return (
        view.name,
        view.kind,
        view.terms,
        str(len(view.nodes) or ""),
        str(sum(node.cores for node in view.nodes) or ""),
        size(sum(node.memory for node in view.nodes)) if view.nodes else "",
        str(gpus or ""),
        _state(view),
    )


def _state(view: PlatformView) -> str:
    if view.ask:
        return f"not open to you: {view.ask}"
    working = "working" if view.working else f"not working: {view.problem}"
    return f"{_draining(view.drain)}; {working}" if view.drain else working


def _draining(drain: DrainView) -> str:
    until = f" until {moment(drain.until, datetime.now(UTC))}" if drain.until else ""
    return f"draining{until}{f' ({drain.reason})' if drain.reason else ''}"


@command("show", "sublet platform show here")
@click.argument("name")
def show(out: Output, name: str) -> None:
    """Show what a platform has."""
    view = out.link().do(platforms.platform(name))
    out.show(view, lambda: describe_platform(view, datetime.now(UTC)), lambda: [view.name])


def describe_platform(view: PlatformView, now: datetime) -> list[str]:
    """Describe a platform in full."""
    return pairs(
        [
            ("platform", view.name),
            ("kind", view.kind),
            ("terms", view.terms),
            ("state", _state(view)),
            ("drained since", when(view.drain.since, now) if view.drain else ""),
            ("ends what runs", when(view.drain.ends, now) if view.drain else ""),
            ("as of", when(view.as_of, now)),
            *(
                ("node", f"{n.name}: {count_text(n.cores, 'core')}, {size(n.memory)}{_gpus(n.gpus)}{_disk(n.disk)}")
                for n in view.nodes
            ),
            *(("storage", f"{name}: {size(room)}") for name, room in view.pools.items()),
            *(("tool", f"{name}: {version}") for name, version in sorted(view.tools.items())),
            *(("note", note) for note in view.notes),
            ("runs", "contained code only" if view.contained_only else ""),
        ]
    )


def _disk(room: int) -> str:
    return f", {size(room)} of disk" if room else ""


def _gpus(count: int) -> str:
    return f", {count_text(count, 'GPU')}" if count else ""


@command("check", "sublet platform check here")
@click.argument("name")
def check(out: Output, name: str) -> int:
    """Run the conformance suite on the live platform."""
    out.note(f"trying {name}; this runs a few small jobs there …")
    view = out.link().do(platforms.check(name))
    out.show(
        view,
        lambda: (
            f"{'ok ' if item.ok else 'bad'}  {item.rule}{': ' if item.detail else ''}{item.detail}"
            for item in view.items
        ),
        lambda: (item.rule for item in view.items if not item.ok),
    )
    return 0 if all(item.ok for item in view.items) else 1


@command("sweep", "sublet platform sweep expanse")
@click.option("--all", "all_", is_flag=True, help="Also images that were needed lately: nothing of yours stays.")
@click.argument("name")
def sweep(out: Output, name: str, all_: bool) -> None:
    """Remove leftovers that no session needs any more from a system.

    This also happens automatically, every hour while you are signed in. It removes files of deleted sessions, images
    that no session has needed for a while, and incomplete transfers.
    """
    view = out.link().do(platforms.sweep(name, all=all_))
    gone = (*view.sessions, *view.files)
    out.show(view, lambda: gone, lambda: gone)
    out.note(
        f"removed from {name}: {count_text(len(view.sessions), 'session')}, "
        f"{count_text(len(view.files), 'shared file')}"
    )


@command(
    "drain",
    "sublet platform drain keeling --until 2026-12-01T18:00 --reason 'new disks'",
    "sublet platform drain keeling --now --grace 30m",
)
@click.argument("name")
@click.option("--until", metavar="WHEN", help="When the drain ends automatically: 8h, 'tomorrow 9am', or an instant.")
@reason_option("The reason; everyone who wants to use it sees it.")
@click.option("--now", "at_once", is_flag=True, help="Cancel what still runs after the grace.")
@click.option("--grace", metavar="TIME", default="", help="How long it may still run, with --now.  [default: 10m]")
def drain(out: Output, name: str, until: str | None, reason: str, at_once: bool, grace: str) -> None:
    """Let nothing new start on a platform. Running sessions finish; waiting ones start later. Only operators can."""
    if grace and not at_once:
        raise click.UsageError("--grace needs --now; without it, running sessions may finish.")
    call = platforms.drain(name, until=read_coming(until) or "", reason=reason, now=at_once, grace=grace)
    view = out.link().do(call)
    out.show(view, lambda: _describe_drain(view, datetime.now(UTC)), lambda: [view.name])


def _describe_drain(view: PlatformView, now: datetime) -> list[str]:
    if view.drain is None:
        return [f"{view.name} is not being drained."]
    ends = f"What still runs there is cancelled {when(view.drain.ends, now)}." if view.drain.ends else ""
    there = ends or f"Running sessions may finish: sublet ps --everyone --platform {view.name}"
    return [view.drain.sentence, there, f"`sublet platform undrain {view.name}` lets it be used again."]


@command("undrain", "sublet platform undrain keeling")
@click.argument("name")
def undrain(out: Output, name: str) -> None:
    """End the drain of a platform; sessions that waited for it continue."""
    view = out.link().do(platforms.undrain(name))
    out.show(view, lambda: [f"{view.name} can be used again."], lambda: [view.name])


platform.add_command(list_platforms)
platform.add_command(drain)
platform.add_command(undrain)
platform.add_command(sweep)
platform.add_command(show)
platform.add_command(check)
