"""Tokens: what lets a program or a browser in over TCP."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.cli.command import Example, Group, command
from sublet.cli.output import Output, table
from sublet.cli.texts import when
from sublet.client.calls import people


@click.group(
    "token",
    cls=Group,
    invoke_without_command=True,
    epilog=Example('curl -H "Authorization: Bearer $(sublet token -q)" http://127.0.0.1:8080/v1/whoami'),
)
@click.option("--person", metavar="NAME", help="For someone else; the operator can.")
@click.option("--expires", metavar="TIME", help="For how long it counts: 12h, 30d.")
@click.option("--note", metavar="TEXT", help="What it is for.")
@click.pass_context
def token(ctx: click.Context, person: str | None, expires: str | None, note: str | None) -> None:
    """Make a token and print it; it is shown this once."""
    if ctx.invoked_subcommand:
        return
    out: Output = ctx.obj
    made = out.link().do(people.new_token(person or "", expires or "", note or ""))
    out.show(made, lambda: [made.token], lambda: [made.token])
    if out.for_people:
        until = f"until {when(made.expires, datetime.now(UTC))}" if made.expires else "until it is revoked"
        out.note(f"For {made.person}, {until}. Keep it secret; `sublet token revoke {made.id[:8]}` makes it worthless.")
        if person:
            out.note(f"Unless this is a gateway, {made.person} can use it only for annexes that you share with them.")


@command("list", "sublet token list")
def list_tokens(out: Output) -> None:
    """List tokens, without their texts."""
    view, now = out.link().do(people.tokens()), datetime.now(UTC)
    rows = [(t.id[:8], t.person, t.note, when(t.created, now), when(t.expires, now)) for t in view.items]
    out.show(
        view,
        lambda: table(("ID", "PERSON", "NOTE", "CREATED", "EXPIRES"), rows) if rows else [],
        lambda: (t.id for t in view.items),
    )


@command("revoke", "sublet token revoke 3f2a91c0")
@click.argument("token")
def revoke(out: Output, token: str) -> None:
    """Make a token worthless."""
    link = out.link()
    known = [one.id for one in link.do(people.tokens()).items if one.id.startswith(token)]
    link.do(people.revoke(known[0] if len(known) == 1 else token))
    out.show({"revoked": token}, lambda: [f"{token} is revoked."], lambda: [token])


token.add_command(list_tokens)
token.add_command(revoke)
