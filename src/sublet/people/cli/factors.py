"""`person totp`: one's second factor at a gateway, by an authenticator app."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output
from sublet.cli.prompts import ask_for
from sublet.cli.screen import columns_of, has_colours
from sublet.kernel.texts import count_text
from sublet.people.calls import factors
from sublet.people.cli.codes import ask_until_right

if TYPE_CHECKING:
    from sublet.client.link import Link
    from sublet.people.views.factors import RecoveryView


@click.group("totp", cls=CommandGroup, epilog=Example("sublet person totp on"))
def totp() -> None:
    """Your second factor: each sign-in also asks for a code from your authenticator."""


@command("on", "sublet person totp on")
@click.option("--code", metavar="CODE", help="What the authenticator shows; else it is asked for.")
def on(out: Output, code: str | None) -> None:
    """Turn it on: scan the QR code with your authenticator, or give it the secret, then type a code that it shows.

    Each of the printed recovery codes lets you in once without it. Keep them somewhere safe.
    """
    link = out.link()
    begun = link.do(factors.begin())
    picture = _draw(begun.uri) if not out.quiet else []
    for line in picture:
        click.echo(line, err=True)
    scan = "Scan this with your authenticator, or add it" if picture else "Add this to your authenticator,"
    out.note(f"{scan} by its address or by the secret alone:")
    out.note(f"\n  {begun.uri}\n  {begun.secret}\n")
    made = link.do(factors.confirm(code)) if code else _confirm(out, link)
    out.show(made, lambda: ["It is on. Your recovery codes:", *made.codes], lambda: made.codes)


def _draw(uri: str) -> list[str]:
    """Draw the URI as a QR code if it fits the terminal; dark on light, whatever the terminal's colours."""
    from sublet.people.model.qr_code import draw_blocks, make_code  # only needed here

    code, columns = make_code(uri), columns_of(sys.stderr)
    lines = draw_blocks(code) if code and columns else []
    if not columns or not lines or len(lines[0]) > columns or not sys.stderr.encoding.lower().startswith("utf"):
        return []
    return [f"\033[38;5;231;48;5;16m{line}\033[0m" for line in lines] if has_colours(sys.stderr) else lines


def _confirm(out: Output, link: Link) -> RecoveryView:
    """Ask for codes until one is right; the secret stays the same."""
    ask = "Type it in a terminal, or give it with --code."
    return ask_until_right(out, lambda: link.do(factors.confirm(ask_for("Code", ask))))


@command("off", "sublet person totp off", "sublet person totp off --person anna@example.org")
@click.option("--code", metavar="CODE", help="What the authenticator shows, or a recovery code; else it is asked for.")
@click.option("--person", metavar="NAME", help="For someone who has lost theirs; an operator can.")
def off(out: Output, code: str | None, person: str | None) -> None:
    """Turn it off."""
    link = out.link()
    if person:
        link.do(factors.reset(person))
    else:
        link.do(factors.remove(code or ask_for("Code", "Type it in a terminal, or give it with --code.")))
    out.show({"on": False}, lambda: ["It is off."], list)


@command("status", "sublet person totp status")
def status(out: Output) -> None:
    """Say whether it is on."""
    view = out.link().do(factors.factor())
    left = f"It is on; {count_text(view.recovery, 'recovery code')} left."
    out.show(view, lambda: [left if view.on else "It is off."], lambda: ["on" if view.on else "off"])


for one in (on, off, status):
    totp.add_command(one)
