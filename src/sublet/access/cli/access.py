"""`access`: what you may use of a gateway, why not, and how to request access."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from sublet.access.calls import access as calls
from sublet.access.cli.limits import describe_limits, limits, read_limits
from sublet.access.model.access import Use
from sublet.access.model.access_words import describe_rest
from sublet.access.views.access import AccessAnswer, AccessAsked, AccessView
from sublet.access.views.convert import limits_of
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.options import reason_option
from sublet.cli.output import Output, table
from sublet.cli.texts import moment


@click.group("access", cls=CommandGroup, invoke_without_command=True, epilog=Example("sublet access"))
@click.pass_context
def access(ctx: click.Context) -> None:
    """Show what you may use, why not, your limits, and what is left of them this month."""
    if ctx.invoked_subcommand:
        return
    out: Output = ctx.obj
    view = out.link().do(calls.access())
    out.show(view, lambda: standings(view.items), lambda: (item.name for item in view.items if item.allowed))


def standings(items: Sequence[AccessView]) -> list[str]:
    """Show a person's standing with each target as a table."""
    rows = [
        (
            item.noun,
            item.name,
            "yes" if item.allowed else "no",
            describe_limits(item.limits),
            _describe_rest(item),
            _why(item),
        )
        for item in items
    ]
    return table(("NOUN", "NAME", "MAY", "LIMITS", "LEFT", "WHY"), rows) if rows else ["There is nothing to use here."]


def _describe_rest(view: AccessView) -> str:
    return describe_rest(limits_of(view.limits), Use(view.jobs, view.hours)) if view.allowed else ""


def _why(view: AccessView) -> str:
    if view.allowed or not view.how:
        return view.why
    return f"{view.why}; asked for" if view.asked else f"{view.why}; {view.how}"


@command("ask", "sublet access ask keeling --reason 'for the flood model of our course'")
@click.argument("name")
@reason_option("Why you need it; an operator reads it.", required=True)
@click.option("--app", is_flag=True, help="The name is an app's, not an account's or a system's.")
@click.option("--pledge", is_flag=True, help="The name is a pledge's.")
@click.option("--place", is_flag=True, help="The name is a place's.")
@click.option("--project", is_flag=True, help="The name is a project's.")
def ask(out: Output, name: str, reason: str, **nouns: bool) -> None:
    """Ask an operator to let you use something, or more of it. You get a mail when they have decided."""
    noun = next((noun for noun, is_meant in nouns.items() if is_meant), "")
    view = out.link().do(calls.ask(name, reason, noun))
    _show_request(out, view, f"You asked for the {view.request.noun} {view.request.name}: {view.request.id[:8]}.")


@command("list", "sublet access list")
@click.option("--all", "every", is_flag=True, help="Include requests that were decided.")
def list_(out: Output, every: bool) -> None:
    """List requests for access: your own, or everybody's if you are an operator."""
    view, now = out.link().do(calls.requests("" if every else "open")), datetime.now(UTC)
    rows = [
        (item.id[:8], item.person, f"{item.noun} {item.name}", moment(item.created, now), item.state, item.why)
        for item in view.items
    ]
    out.show(
        view,
        lambda: table(("ID", "PERSON", "WHAT", "ASKED", "STATE", "WHY"), rows) if rows else [],
        lambda: (item.id for item in view.items),
    )
    if not rows and out.for_people:
        out.note("No requests for access are open." if not every else "There are no requests for access.")


@command("grant", "sublet access grant 3f2a --cores 64 --hours-month 200 --expires 2027-06-30")
@click.argument("request")
@limits
@click.option("--answer", metavar="TEXT", default="", help="What to tell them.")
def grant(out: Output, request: str, answer: str, **given: Any) -> None:
    """Grant a request for access, by a rule for this person; for operators. They are notified by mail."""
    most, expires = read_limits(given)
    view = out.link().do(calls.grant(request, AccessAnswer(limits=most, expires=expires, answer=answer)))
    item = view.request
    _show_request(out, view, f"{item.person} may use the {item.noun} {item.name} now, by rule {item.rule[:8]}.")


@command("refuse", "sublet access refuse 3f2a --answer 'please use the teaching account'")
@click.argument("request")
@click.option("--answer", metavar="TEXT", default="", help="What to tell them.")
def refuse(out: Output, request: str, answer: str) -> None:
    """Refuse a request for access; for operators. The person is notified by mail."""
    view = out.link().do(calls.refuse(request, answer))
    item = view.request
    _show_request(out, view, f"{item.person}'s request for the {item.noun} {item.name} is refused.")


def _show_request(out: Output, view: AccessAsked, sentence: str) -> None:
    out.show(view, lambda: [sentence], lambda: [view.request.id])
    for note in view.notes:
        out.note(note)


for one in (ask, list_, grant, refuse):
    access.add_command(one)
