"""`cache`: what systems and this machine keep for later sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.booking.model.amounts import parse_duration
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.texts import size, when
from sublet.data.calls import caches as calls
from sublet.data.views.caches import CacheEntryView, CacheView


@click.group("cache", cls=CommandGroup, epilog=Example("sublet cache ls anvil"))
def cache() -> None:
    """Caches: data and images that systems and this machine keep for later sessions."""


@command("ls", "sublet cache ls", "sublet cache ls anvil")
@click.argument("platform", required=False, default="")
def ls(out: Output, platform: str) -> None:
    """List cached data on all platforms, or on one: size, last use, and sessions that need it now."""
    view, now = out.link().do(calls.caches(platform)), datetime.now(UTC)
    rows = [(each.platform, *_row(entry, now)) for each in view.items for entry in each.entries]
    names = (entry.short for each in view.items for entry in each.entries)
    head = ("ON", "NAME", "WHAT", "SIZE", "USED", "NEEDED BY")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: names)
    if out.for_people:
        for each in view.items:
            out.note(_summary(each))


@command("info", "sublet cache info")
@click.argument("platform", required=False, default="")
def info(out: Output, platform: str) -> None:
    """Show the size and limit of each platform's cache, and how much of it sessions need now."""
    view = out.link().do(calls.caches(platform))
    rows = [
        (
            each.platform,
            size(each.size) if not each.trouble else "",
            size(each.quota) if each.quota else "no limit",
            str(len(each.entries)) if not each.trouble else "",
            size(sum(entry.size for entry in each.entries if entry.needed_by)) if not each.trouble else each.trouble,
        )
        for each in view.items
    ]
    head = ("ON", "KEPT", "QUOTA", "ENTRIES", "NEEDED NOW")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (each.platform for each in view.items))
    if not rows and out.for_people:
        out.note("No platform here has a cache.")


@command(
    "rm",
    "sublet cache rm anvil cube.fits",
    "sublet cache rm anvil --unused 3d --dry-run",
    "sublet cache rm here --all",
)
@click.argument("platform")
@click.argument("name", nargs=-1)
@click.option("--unused", metavar="TIME", help="Everything that no session has needed for this TIME: 3d.")
@click.option("--all", "all_", is_flag=True, help="Everything that no session needs now.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def rm(out: Output, platform: str, name: tuple[str, ...], unused: str | None, all_: bool, dry_run: bool) -> None:
    """Remove cached data from PLATFORM, by its name or the first digits. It is fetched again when needed.

    Data that a session needs is never removed.
    """
    if sum((bool(name), unused is not None, all_)) != 1:
        raise click.UsageError("Say what to remove: one or more names, or --unused TIME, or --all.")
    idle = parse_duration(unused).total_seconds() if unused else 0
    gone, now = out.link().do(calls.remove(platform, name, idle, dry_run=dry_run)), datetime.now(UTC)
    rows = [_row(entry, now)[:4] for entry in gone.entries]
    names = (entry.short for entry in gone.entries)
    out.show(gone, lambda: table(("NAME", "WHAT", "SIZE", "USED"), rows) if rows else [], lambda: names)
    if out.for_people:
        verb = "would be removed" if dry_run else "removed"
        kept = f"{_count(len(rows))}, {size(gone.size)}, {verb} from {platform}."
        out.note(kept if rows else f"Nothing to remove from {platform}: all of it is needed, newer, or gone already.")


def _row(entry: CacheEntryView, now: datetime) -> tuple[str, str, str, str, str]:
    users = ", ".join(user[:8] for user in entry.needed_by)
    return entry.short, entry.label, size(entry.size), when(entry.used, now), users


def _summary(each: CacheView) -> str:
    if each.trouble:
        return f"{each.platform}: {each.trouble}"
    quota = f" of {size(each.quota)}" if each.quota else ""
    return f"{each.platform}: {_count(len(each.entries))}, {size(each.size)}{quota}"


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


for word in (ls, info, rm):
    cache.add_command(word)
