"""`notify`: notifications by webhook or by mail."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.texts import when
from sublet.kernel.texts import count_text
from sublet.notices.calls import hooks
from sublet.notices.views.hooks import HookView


@click.group("notify", cls=CommandGroup, epilog=Example("sublet notify add --all --mail me@example.org --on ended"))
def notify() -> None:
    """Notifications when sessions start, end or fail: by a signed webhook, or by mail."""


@command(
    "add",
    "sublet notify add 3f2a --url https://example.org/told --on ended",
    "sublet notify add --all --mail me@example.org --on failed,warned --expires 90d",
)
@click.argument("session", required=False)
@click.option("--all", "-a", "every", is_flag=True, help="Of all your sessions, also those to come.")
@click.option("--url", metavar="ADDRESS", help="Call this address; it must be public, and https.")
@click.option("--mail", metavar="ADDRESS", help="Write to this address; it must be your own.")
@click.option("--on", metavar="WORDS", help="Which changes: started, ended, failed, paused …; all if left out.")
@click.option("--expires", metavar="TIME", help="For how long; default: 30d.")
def add(
    out: Output,
    session: str | None,
    every: bool,
    url: str | None,
    mail: str | None,
    on: str | None,
    expires: str | None,
) -> None:
    """Add a notification for one session, or for all.

    Calls are signed: the secret is printed this once, and docs/hooks.md shows how to check a call with it.
    """
    if bool(session) == every:
        raise click.UsageError("Name a session, or say --all.")
    if bool(url) == bool(mail):
        raise click.UsageError("Say where to: --url or --mail.")
    address = url or f"mailto:{mail}"
    made = out.link().do(hooks.add(address, session or "", (on or "").split(",") if on else (), expires or ""))
    out.show(made, lambda: [f"{made.id[:8]} tells {made.address} on {', '.join(made.on)}."], lambda: [made.id])
    if made.secret and not out.json:
        click.echo(f"secret: {made.secret}" if out.for_people else made.secret)
    if out.for_people:
        until = when(made.expires, datetime.now(UTC))
        out.note(f"Until {until}. Try it: sublet notify test {made.id[:8]}")


@command("list", "sublet notify list")
def list_hooks(out: Output) -> None:
    """List notifications, and whether the last one was delivered."""
    view, now = out.link().do(hooks.hooks()), datetime.now(UTC)
    rows = [
        (item.id[:8], item.session[:8] or "all", item.address, ",".join(item.on), when(item.expires, now), _state(item))
        for item in view.items
    ]
    head = ("ID", "SESSION", "ADDRESS", "ON", "EXPIRES", "STATE")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (item.id for item in view.items))
    if not rows and out.for_people:
        out.note("No notifications yet. Add one: sublet notify add")


def _state(hook: HookView) -> str:
    if hook.trouble:
        return f"given up: {hook.trouble}"
    if hook.told and hook.told[0].next and hook.told[0].answer:
        return f"failed {count_text(hook.told[0].tries, 'time')}, is tried again: {hook.told[0].answer}"
    return f"told: {hook.told[0].answer}" if hook.told and hook.told[0].answer else ""


@command("remove", "sublet notify remove 3f2a91c0")
@click.argument("hook", nargs=-1, required=True)
def remove(out: Output, hook: tuple[str, ...]) -> None:
    """Remove a notification."""
    link = out.link()
    for name in hook:
        link.do(hooks.remove(name))
    out.show({"removed": list(hook)}, lambda: (f"{name} is removed." for name in hook), lambda: hook)


@command("test", "sublet notify test 3f2a91c0")
@click.argument("hook")
def test(out: Output, hook: str) -> None:
    """Send a test now. A webhook that was disabled after failures is enabled again if it accepts the test."""
    view = out.link().do(hooks.test(hook))
    out.show(view, lambda: [f"{hook} took it: {view.answer}."], lambda: [view.answer])


for word in (add, list_hooks, remove, test):
    notify.add_command(word)
