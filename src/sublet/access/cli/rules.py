"""`rule`: access rules of a gateway."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from sublet.access.calls import access as access_calls
from sublet.access.calls import rules
from sublet.access.cli.access import standings
from sublet.access.cli.limits import describe_limits, limits, read_limits
from sublet.access.model.access import NOUNS
from sublet.access.views.access import RuleAsk, RuleChange, RuleView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import when
from sublet.kernel.texts import count_text

ADD = "sublet rule add allow '*@illinois.edu' --account keeling --cores 64 --hours-month 1000 --expires 2027-06-30"


@click.group("rule", cls=CommandGroup, epilog=Example("sublet rule list"))
def rule() -> None:
    """Manage access rules: who may use what of a gateway, and how much of it; for operators.

    A deny overrides every allow. If several allows match, the most generous limit of each amount applies; a deny with
    limits caps it. Without an allow, access is denied.
    """


@command(
    "add",
    "sublet rule add allow '*@illinois.edu' --account keeling --cores 64 --hours-month 1000",
    "sublet rule add deny eve@illinois.edu --system '*' --note 'left in May'",
)
@click.argument("effect", type=click.Choice(["allow", "deny"]))
@click.argument("who", metavar="WHO")
@click.option("--system", "--platform", "system", metavar="NAME", help="About a system; * stands for any characters.")
@click.option("--account", metavar="NAME", help="About a community account.")
@click.option("--pledge", metavar="NAME", help="About a part of a platform that is pledged.")
@click.option("--app", metavar="NAME", help="About an app.")
@click.option("--place", metavar="NAME", help="About a directory that sessions share.")
@click.option("--project", metavar="NAME", help="About a project with a budget: who may charge it.")
@limits
@click.option("--note", metavar="TEXT", default="", help="The reason; people who are denied can read it.")
def add(out: Output, effect: str, who: str, note: str, **given: Any) -> None:
    """Add a rule for WHO: *@illinois.edu, group:NAME, or a person's name. It counts at once.

    A deny without limits denies WHO all access; with limits it caps their use.
    """
    about = [(noun, name) for noun in NOUNS if (name := given.pop(noun))]
    if len(about) != 1:
        raise click.UsageError(
            "Say what it is about: one of --system, --account, --pledge, --app, --place and --project."
        )
    most, expires = read_limits(given)
    noun, name = about[0]
    ask = RuleAsk(effect=effect, who=who, noun=noun, name=name, limits=most, expires=expires, note=note)
    _show_change(out, out.link().do(rules.add(ask)), "is added")


@command("list", "sublet rule list")
def list_(out: Output) -> None:
    """List the rules, oldest first."""
    view, now = out.link().do(rules.rules()), datetime.now(UTC)
    rows = [
        (
            rule.id[:8],
            rule.effect,
            rule.who,
            f"{rule.noun} {rule.name}",
            describe_limits(rule.limits),
            _until(rule, now),
            rule.note,
        )
        for rule in view.items
    ]
    out.show(
        view,
        lambda: (
            table(
                ("ID", "EFFECT", "WHO", "WHAT", "LIMITS", "EXPIRES", "NOTE"),
                rows,
                keep=("EFFECT",),
                least=("NOTE",),
            )
            if rows
            else []
        ),
        lambda: (rule.id for rule in view.items),
    )
    if not rows and out.for_people:
        out.note(f"There are no rules, so nobody can use anything. Add one with: {ADD}")


@command("show", "sublet rule show 3f2a")
@click.argument("rule")
def show(out: Output, rule: str) -> None:
    """Show a rule."""
    view = out.link().do(rules.rule(rule))
    out.show(view, lambda: _lines(view), lambda: [view.id])


@command("remove", "sublet rule remove 3f2a")
@click.argument("rule")
def remove(out: Output, rule: str) -> None:
    """Remove a rule, with immediate effect. Running sessions continue, and are listed."""
    _show_change(out, out.link().do(rules.remove(rule)), "is removed")


@command("test", "sublet rule test anna@illinois.edu")
@click.argument("person")
def test(out: Output, person: str) -> None:
    """Show what someone may use, and which rules decide it."""
    view = out.link().do(access_calls.access(person))
    out.show(
        view, lambda: standings(view.items), lambda: (standing.name for standing in view.items if standing.allowed)
    )


def _show_change(out: Output, view: RuleChange, what: str) -> None:
    rule = view.rule
    sentence = f"Rule {rule.id[:8]} {what}: {rule.effect} {rule.who} on {rule.noun} {rule.name}."
    out.show(view, lambda: [sentence], lambda: [rule.id])
    for note in view.notes:
        out.note(note)
    if view.running and out.for_people:
        out.note(f"{count_text(len(view.running), 'session')} of people who lose their access by this go on:")
        rows = [(run.session[:8], run.person, run.platform, run.phase, run.name) for run in view.running]
        for line in table(("SESSION", "PERSON", "WHERE", "PHASE", "NAME"), rows):
            out.note(line)


def _lines(view: RuleView) -> list[str]:
    now = datetime.now(UTC)
    return pairs(
        [
            ("rule", view.id),
            ("effect", view.effect),
            ("who", view.who),
            (view.noun, view.name),
            ("limits", describe_limits(view.limits)),
            ("expires", _until(view, now)),
            ("note", view.note),
            ("added", f"{when(view.created, now)} by {view.by}"),
        ]
    )


def _until(view: RuleView, now: datetime) -> str:
    if view.expires is None:
        return ""
    return f"{view.expires:%Y-%m-%d}{' (over)' if view.expires <= now else ''}"


for one in (add, list_, show, remove, test):
    rule.add_command(one)
