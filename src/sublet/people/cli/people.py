"""`person`: a gateway's people, for operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import click

from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.options import reason_option
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import moment, when
from sublet.client.address import find_address
from sublet.client.link import Link
from sublet.kernel.errors import ServiceUnreachable
from sublet.kernel.texts import count_text
from sublet.people.calls import profiles
from sublet.people.cli.factors import totp
from sublet.people.views.people import PersonView

ROLES = ("person", "reviewer", "operator")


@click.group("person", cls=CommandGroup, epilog=Example("sublet person add anna@example.org --role operator"))
def person() -> None:
    """Add, list, show, block and remove the people of a gateway. Only operators can."""


@command("add", "sublet person add anna@example.org --role operator")
@click.argument("address")
@click.option("--role", type=click.Choice(ROLES), default="person", help="What part they have.  [default: person]")
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="Settings, instead of sublet.toml.")
def add(out: Output, address: str, role: str, config: str | None) -> None:
    """Add a person before they first sign in; they can sign in whatever `signing.allow` says.

    Create the first operator on the gateway's own machine, as the user that runs the service; it need not be running.
    """
    view = _add(address, role, config)
    out.show(view, lambda: [f"{view.name} is known now, as {_part(view)}."], lambda: [view.name])


def _add(address: str, role: str, config: str | None) -> PersonView:
    """Add someone through the service, or directly in the database if one's own service doesn't run."""
    there = find_address()
    try:
        if not config:
            return Link(replace(there, home=None)).do(profiles.add(address, role))
    except ServiceUnreachable:
        if not there.home:
            raise
    from sublet.cli.serve import add_directly  # loads the database code

    return add_directly(config, address, role)


@command("list", "sublet person list --role operator")
@click.option("--role", type=click.Choice(ROLES), help="Only those who have this part.")
@click.option("--blocked", is_flag=True, help="Only those who are blocked.")
def list_people(out: Output, role: str | None, blocked: bool) -> None:
    """List the people."""
    link, now, after = out.link(), datetime.now(UTC), ""
    views: list[PersonView] = []
    while True:
        page = link.do(profiles.people(role or "", blocked, after))
        views += page.items
        if page.next is None:
            break
        after = page.next
    rows = [
        (
            view.name,
            view.role,
            "yes" if view.second_factor else "",
            ", ".join(view.groups),
            moment(view.seen, now),
            _describe_blocked(view),
        )
        for view in views
    ]
    head = ("PERSON", "ROLE", "SECOND FACTOR", "GROUPS", "SIGNED IN", "BLOCKED")
    out.show(
        {"items": views},
        lambda: table(head, rows) if rows else [],
        lambda: (view.name for view in views),
    )


@command("show", "sublet person show anna@example.org")
@click.argument("address")
def show(out: Output, address: str) -> None:
    """Show a person: identities, groups, sessions, and the rules that apply to them."""
    view, now = out.link().do(profiles.person(address)), datetime.now(UTC)
    lines = [
        ("person", view.name),
        ("role", view.role),
        ("second factor", "yes" if view.second_factor else "no"),
        ("blocked", _describe_blocked(view)),
        ("groups", ", ".join(view.groups)),
        ("known since", when(view.created, now)),
        ("added by", view.by),
        ("signed in", when(view.seen, now)),
        *((identity.kind, identity.value) for identity in view.identities),
        *_work(view),
    ]
    out.show(view, lambda: [*pairs(lines), *_sessions(view, now)], lambda: [view.name])


def _work(view: PersonView) -> list[tuple[str, str]]:
    work = view.work
    if work is None:
        return []
    return [
        ("sessions", f"{work.running} running, {work.waiting} waiting"),
        ("offers", f"held for {count_text(work.held, 'request')}" if work.held else ""),
        ("tokens", str(work.tokens)),
        *(("rule", rule) for rule in work.rules),
    ]


def _sessions(view: PersonView, now: datetime) -> list[str]:
    from sublet.booking.cli.sessions import draw_sessions

    rows = draw_sessions(view.work.sessions, now) if view.work else []
    return ["", *rows] if rows else []


@command("role", "sublet person role anna@example.org reviewer")
@click.argument("address")
@click.argument("role", type=click.Choice(ROLES))
def set_role(out: Output, address: str, role: str) -> None:
    """Change someone's role, with immediate effect."""
    view = out.link().do(profiles.set_role(address, role))
    out.show(view, lambda: [f"{view.name} is {_part(view)} now."], lambda: [view.name])


@command("block", "sublet person block eve@example.org --reason 'left the project' --cancel")
@click.argument("address")
@reason_option("The reason, for other operators; with --cancel, also for the person.")
@click.option("--cancel", is_flag=True, help="Also cancel all of their active sessions.")
def block(out: Output, address: str, reason: str, cancel: bool) -> None:
    """Block someone: their tokens and browser sessions stop working at once.

    Their sessions continue, and waiting ones still start, unless you use --cancel.
    """
    view, now = out.link().do(profiles.block(address, reason, cancel=cancel)), datetime.now(UTC)
    out.show(view, lambda: _describe_block(view, now), lambda: [view.name])


def _describe_block(view: PersonView, now: datetime) -> list[str]:
    """Say that someone is blocked, and what happens to their active sessions."""
    lines = [f"{view.name} is blocked."]
    if number := len(view.cancelled):
        return [*lines, f"{count_text(number, 'session')} of theirs {'is' if number == 1 else 'are'} being cancelled."]
    under_way = view.work.running + view.work.waiting if view.work else 0
    if not under_way:
        return [*lines, "They have nothing under way."]
    what = f"{count_text(under_way, 'session')} of theirs {'goes' if under_way == 1 else 'go'} on:"
    return [*lines, what, *_sessions(view, now)[1:], f"This ends them: sublet cancel --person {view.name}"]


@command("unblock", "sublet person unblock eve@example.org")
@click.argument("address")
def unblock(out: Output, address: str) -> None:
    """Unblock someone."""
    view = out.link().do(profiles.unblock(address))
    out.show(view, lambda: [f"{view.name} can sign in again."], lambda: [view.name])


@command("remove", "sublet person remove eve@example.org")
@click.argument("address")
def remove(out: Output, address: str) -> None:
    """Remove someone, with their identities and tokens. They may sign in again; to keep them out, block them."""
    out.link().do(profiles.remove(address))
    out.show({"removed": address}, lambda: [f"{address} is forgotten."], lambda: [address])


@command(
    "identity",
    "sublet person identity anna@example.org system:expanse anna7",
    "sublet person identity anna@example.org email anna@home.example --remove",
)
@click.argument("address")
@click.argument("kind")
@click.argument("value")
@click.option("--remove", "gone", is_flag=True, help="Know them by it no more.")
def identity(out: Output, address: str, kind: str, value: str, gone: bool) -> None:
    """Add an identity to a person: an e-mail address, a uid, an HTCondor owner, or a user name on a system.

    The kinds are email, oidc, uid, htcondor, and system:NAME.
    """
    change = profiles.remove_identity if gone else profiles.add_identity
    view = out.link().do(change(address, kind, value))
    what = "is no longer" if gone else "is"
    out.show(view, lambda: [f"{kind} {value} {what} {view.name}."], lambda: [view.name])


def _part(view: PersonView) -> str:
    return f"an {view.role}" if view.role == "operator" else f"a {view.role}"


def _describe_blocked(view: PersonView) -> str:
    return (view.why or "yes") if view.blocked else ""


for one in (add, list_people, show, set_role, block, unblock, remove, identity, totp):
    person.add_command(one)
