"""`group`: a gateway's groups, for operators."""

from __future__ import annotations

import click

from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.kernel.texts import count_text
from sublet.people.calls import profiles


@click.group("group", cls=CommandGroup, epilog=Example("sublet group join hydro anna@example.org"))
def group() -> None:
    """Manage groups of people, for use in access rules. Only operators can."""


@command("add", "sublet group add hydro --note 'who model rivers'")
@click.argument("name")
@click.option("--note", metavar="TEXT", default="", help="What it is for.")
def add(out: Output, name: str, note: str) -> None:
    """Create an empty group."""
    view = out.link().do(profiles.add_group(name, note))
    out.show(view, lambda: [f"The group {view.name} is there."], lambda: [view.name])
    out.note(f"`sublet group join {view.name} ADDRESS` takes people in.")


@command("list", "sublet group list")
def list_groups(out: Output) -> None:
    """List the groups."""
    view = out.link().do(profiles.groups())
    rows = [(group.name, str(len(group.members)), group.note) for group in view.items]
    out.show(
        view,
        lambda: table(("GROUP", "MEMBERS", "NOTE"), rows) if rows else [],
        lambda: (group.name for group in view.items),
    )


@command("show", "sublet group show hydro")
@click.argument("name")
def show(out: Output, name: str) -> None:
    """Show a group with its members."""
    view = out.link().do(profiles.group(name))
    lines = [("group", view.name), ("note", view.note), ("members", count_text(len(view.members), "member"))]
    out.show(view, lambda: [*pairs(lines), *(f"  {member}" for member in view.members)], lambda: view.members)


@command("remove", "sublet group remove hydro")
@click.argument("name")
def remove(out: Output, name: str) -> None:
    """Remove a group; its people stay."""
    out.link().do(profiles.remove_group(name))
    out.show({"removed": name}, lambda: [f"The group {name} is gone."], lambda: [name])


@command("join", "sublet group join hydro anna@example.org ben@example.org")
@click.argument("name")
@click.argument("addresses", nargs=-1, required=True)
def join(out: Output, name: str, addresses: tuple[str, ...]) -> None:
    """Add people to a group; they need not have signed in yet."""
    link = out.link()
    view = [link.do(profiles.join(name, address)) for address in addresses][-1]
    out.show(view, lambda: [f"{name} has {count_text(len(view.members), 'member')} now."], lambda: view.members)


@command("leave", "sublet group leave hydro anna@example.org")
@click.argument("name")
@click.argument("addresses", nargs=-1, required=True)
def leave(out: Output, name: str, addresses: tuple[str, ...]) -> None:
    """Remove people from a group."""
    link = out.link()
    view = [link.do(profiles.leave(name, address)) for address in addresses][-1]
    out.show(view, lambda: [f"{name} has {count_text(len(view.members), 'member')} now."], lambda: view.members)


for one in (add, list_groups, show, remove, join, leave):
    group.add_command(one)
