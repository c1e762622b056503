"""Logins to systems: opened once, in the person's terminal and by their ssh, and used by all later commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.kernel.errors import BadRequest, NoOwnLogins, NotFound
from sublet.kernel.home import Home, sublet_home
from sublet.systems.own import Systems

if TYPE_CHECKING:
    from sublet.reach.login import Login


def own_names(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the names of the person's own systems."""
    return [name for name in Systems(sublet_home().systems).own_names() if name.startswith(begun)]


def mode_of(home: Home) -> str:
    """Return the mode of the home's service, from its settings."""
    import os
    import tomllib

    try:
        with open(home.settings, "rb") as file:
            settings = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        settings = {}
    return os.environ.get("SUBLET_MODE") or str(settings.get("mode", "personal"))


def login_of(name: str) -> Login:
    """Return the login of one of the person's own systems."""
    from pathlib import Path  # these load asyncio, which only logins need

    from sublet.reach.login import Login
    from sublet.systems.door import door_of

    home = sublet_home()
    systems = Systems(home.systems)
    system = systems.find(name)
    if name not in systems.own_names():
        raise NotFound(f"{name} is in the catalogue, but not yet yours.", hint=f"sublet system add {name} --user NAME")
    if system.key:
        raise BadRequest(
            f"{name} has a service account's key, so you don't need to sign in.",
            hint=f"`sublet platform check {name}` tries it.",
        )
    if mode_of(home) == "gateway":
        raise NoOwnLogins(platform=name)
    door: Any = door_of(system)
    return Login(control=Path(home.root) / "run" / "ssh", platform=name, **door)


@command("login", "sublet system login expanse")
@click.argument("name", shell_complete=own_names)
def login(out: Output, name: str) -> None:
    """Sign in to a system of yours, with its second factor: once, until the connection ends.

    ssh asks in this terminal; for a new host, it shows the host key for you to confirm. What you type goes to ssh
    alone. Sessions that wait for this login then continue.
    """
    import asyncio

    opening = login_of(name)
    if not opening.shared:
        out.note(
            f"{name} allows no shared connection: everything that waits is done over this one. Ctrl-C ends it sooner."
        )
        asyncio.run(opening.stay())
        out.show({"system": name}, lambda: [f"What waited for {name} is done; the connection is closed."], lambda: ())
        return
    record = asyncio.run(opening.open())
    answer = {"system": name, "target": record.target, "opened": record.opened.isoformat(), "pid": record.pid}
    out.show(answer, lambda: [f"You are signed in to {name} as {record.target}."], lambda: [record.target])
    out.note(f"Sessions that waited for it continue. `sublet system logout {name}` ends it.")


@command("logout", "sublet system logout expanse")
@click.argument("name", shell_complete=own_names)
def logout(out: Output, name: str) -> None:
    """End the login to a system. Jobs there keep running; their sessions wait until you sign in again."""
    import asyncio

    closing = login_of(name)
    asyncio.run(closing.close())
    out.show({"system": name}, lambda: [f"You are signed out of {name}."], lambda: ())
