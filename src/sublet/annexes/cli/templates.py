"""Commands for templates: the details of leases, saved under names."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import click

from sublet.annexes.calls import annexes
from sublet.annexes.cli.details import details, read_details
from sublet.annexes.model.leasing import LINES, describe_option, text_of, type_value
from sublet.annexes.views.annexes import DetailsView, TemplateView
from sublet.booking.model.scheduler import scheduler_specs
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import moment
from sublet.kernel.errors import NoLease


@click.group("template", cls=CommandGroup, epilog=Example("sublet annex template save big --from example"))
def template() -> None:
    """Save, list, show and remove templates for leases."""


@command(
    "save",
    "sublet annex template save big --from example",
    "sublet annex template save big --system expanse --queue compute --nodes 8",
)
@click.argument("name")
@click.option("--from", "lease", metavar="NAME[#N]", help="Begin with the details of a lease that there was.")
@details
def save(out: Output, name: str, lease: str | None, **given: Any) -> None:
    """Save details of leases under a name: from an existing lease, from options, or both."""
    link = out.link()
    spoken = read_details(given)
    if lease:
        leases = link.do(annexes.history(lease)).annex.leases
        if not leases:
            raise NoLease(name=lease, wanted="was ever asked for")
        over: dict[str, Any] = {field.name: getattr(spoken, field.name) for field in fields(spoken)}
        over["scheduler"] = {**leases[-1].details.scheduler, **spoken.scheduler}
        spoken = replace(leases[-1].details, **{key: value for key, value in over.items() if value not in ("", None)})
    view = link.do(annexes.save_template(name, spoken))
    out.show(view, lambda: [f"The template {name} is kept.", *_lines(view)], lambda: [name])


@command("list", "sublet annex template list")
def list_(out: Output) -> None:
    """List your templates."""
    view, now = out.link().do(annexes.templates()), datetime.now(UTC)
    rows = [(template.name, type_details(template.details), moment(template.changed, now)) for template in view.items]
    out.show(
        view,
        lambda: table(("TEMPLATE", "DETAILS", "CHANGED"), rows) if rows else [],
        lambda: (template.name for template in view.items),
    )
    if not rows and out.for_people:
        out.note("You have no templates. Keep one with: sublet annex template save NAME --from ANNEX")


@command("show", "sublet annex template show big")
@click.argument("name")
def show(out: Output, name: str) -> None:
    """Show a template."""
    view = out.link().do(annexes.template(name))
    out.show(view, lambda: _lines(view), lambda: [view.name])


@command("remove", "sublet annex template remove big")
@click.argument("name")
def remove(out: Output, name: str) -> None:
    """Remove a template."""
    out.link().do(annexes.remove_template(name))
    out.show({"removed": name}, lambda: [f"{name} is removed."], lambda: [name])


def _lines(view: TemplateView) -> list[str]:
    asked = [(name, describe_option(value)) for name, value in _list_options(view.details)]
    return pairs([*((name, text_of(name, value)) for name, value in _list_lines(view.details)), *asked])


def type_details(details: DetailsView) -> str:
    """Format details as they would be typed."""
    words = [f"--{name} {type_value(name, value)}" for name, value in _list_lines(details)]
    for name, value in _list_options(details):
        flag = scheduler_specs()[name].flag_name
        several = value if isinstance(value, tuple) else (value,)
        words += [flag if each is True else f"{flag} {each}" for each in several]
    return " ".join(words)


def _list_options(details: DetailsView) -> list[tuple[str, Any]]:
    """Return the scheduler options; each free option as `NAME=VALUE`."""
    free = details.scheduler.get("options", {})
    words = tuple(name if value is True else f"{name}={value}" for name, value in free.items())
    return [(name, words if name == "options" else value) for name, value in details.scheduler.items()]


def _list_lines(details: DetailsView) -> list[tuple[str, Any]]:
    values = [(name, getattr(details, name)) for name in LINES]
    return [(name, value) for name, value in values if value not in ("", None)]


for one in (save, list_, show, remove):
    template.add_command(one)
