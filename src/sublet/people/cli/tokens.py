"""`token`: tokens, with which programs and browsers authenticate over TCP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click

from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.texts import when
from sublet.kernel.short_ids import pick_one, require_length
from sublet.people.calls import people
from sublet.people.views.people import TokenView


def _wishes(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--session", metavar="ID", help="For one session only, as long as that is there."),
        click.option("--note", metavar="TEXT", help="A description."),
        click.option("--expires", metavar="TIME", help="For how long it counts: 12h, 30d."),
        click.option(
            "--scope", "scopes", multiple=True, metavar="WORD", help="Its scope: read, run or manage; default: all."
        ),
        click.option("--person", metavar="NAME", help="For someone else; the operator can."),
    ):
        function = option(function)
    return function


@click.group(
    "token",
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=Example('curl -H "Authorization: Bearer $(sublet token -q)" http://127.0.0.1:8080/v1/whoami'),
)
@_wishes
@click.pass_context
def token(ctx: click.Context, /, **wishes: object) -> None:
    """Make a token and print it; it is shown this once."""
    if not ctx.invoked_subcommand and make.callback:
        ctx.invoke(make.callback, **wishes)


@command("make", "sublet token make --scope read --expires 7d", "sublet token make --session 3f2a91c0")
@_wishes
def make(
    out: Output,
    person: str | None,
    scopes: tuple[str, ...],
    expires: str | None,
    note: str | None,
    session: str | None,
) -> None:
    """Make a token and print it; it is shown this once.

    Its scope is read, run or manage, each of which includes those before it. A token can't create one with a wider
    scope or a longer life.
    """
    if session:
        if person or scopes or expires or note:
            raise click.UsageError("--session stands alone: that token lasts as long as the session.")
        made = out.link().do(people.session_token(session))
    else:
        made = out.link().do(people.new_token(person or "", expires or "", note or "", scopes))
    out.show(made, lambda: [made.token], lambda: [made.token])
    if out.for_people:
        out.note(f"{_for(made)}. Keep it secret; `sublet token revoke {made.id[:8]}` makes it worthless.")
        if person and out.link().do(people.whoami()).mode != "gateway":
            out.note(f"{made.person} can use it only for annexes that you share with them.")


def _for(made: TokenView) -> str:
    if made.session:
        return f"For the session {made.session[:8]} only, until that is deleted or its files' keep time is over"
    what = f" to {', '.join(made.scope)}" if made.scope else ""
    until = f"until {when(made.expires, datetime.now(UTC))}" if made.expires else "until it is revoked"
    return f"For {made.person}{what}, {until}"


@command("list", "sublet token list")
def list_tokens(out: Output) -> None:
    """List tokens, without their texts, and when each was last used."""
    view, now = out.link().do(people.tokens()), datetime.now(UTC)
    rows = [
        (
            t.id[:8],
            t.person,
            " ".join(t.scope) or ("pages" if t.use == "browser" else "all"),
            t.note,
            when(t.created, now),
            when(t.used, now),
            when(t.expires, now),
        )
        for t in view.items
    ]
    out.show(
        view,
        lambda: (
            table(
                ("ID", "PERSON", "FOR", "NOTE", "CREATED", "USED", "EXPIRES"),
                rows,
                keep=("EXPIRES",),
                least=("CREATED", "USED"),
            )
            if rows
            else []
        ),
        lambda: (t.id for t in view.items),
    )


@command("revoke", "sublet token revoke 3f2a91c0")
@click.argument("token")
def revoke(out: Output, token: str) -> None:
    """Revoke a token."""
    link = out.link()
    known = [match for match in link.do(people.tokens()).items if match.id.startswith(token)]
    require_length(token, "token")
    match = pick_one(token, "token", known, lambda match: f"{match.id[:13]} ({' '.join(match.scope) or 'everything'})")
    link.do(people.revoke(match.id if match else token))
    out.show({"revoked": token}, lambda: [f"{token} is revoked."], lambda: [token])


for one in (make, list_tokens, revoke):
    token.add_command(one)
