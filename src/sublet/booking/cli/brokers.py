"""`broker`: other brokers that requests are forwarded to."""

from __future__ import annotations

import sys

import click

from sublet.booking.calls import brokers as calls
from sublet.booking.views.brokers import BrokerAddition, BrokerView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.prompts import ask_for
from sublet.cli.screen import is_terminal
from sublet.kernel.errors import BadBroker, NotFound

NOT_OWN = "A gateway signs for its people: what it needs is set by its operator (docs/identity.md)."


@click.group("broker", cls=CommandGroup, epilog=Example("sublet broker add cam https://broker.cam.example.org --token"))
def broker() -> None:
    """Add, list, check and remove other brokers; their offers appear beside your own.

    A broker is another Sublet, or any service that speaks IVOA's Execution Broker.
    """


@command(
    "add",
    "sublet broker add cam https://broker.cam.example.org --token <token.txt",
    "sublet broker add uksrc https://uksrc.example.org",
)
@click.argument("name")
@click.argument("url", metavar="URL")
@click.option("--token", is_flag=True, help="Show it a token of this service's own, typed or read from the input.")
@click.option("--older", is_flag=True, help="It speaks a schema before 1.0; detected automatically where possible.")
def add(out: Output, name: str, url: str, token: bool, older: bool) -> int:
    """Forward requests to the broker at URL, and call it NAME.

    The token is stored sealed. Without one, people show their own: sublet broker login NAME, or sublet credential add
    URL --token
    """
    wish = BrokerAddition(name=name, url=url, token=_read_token() if token else "", older=older)
    return _show(out, out.link().do(calls.add(wish)), f"{name} is added.")


@command("token", "sublet broker token cam <token.txt")
@click.argument("name")
def token(out: Output, name: str) -> int:
    """Replace the token for a broker; type it, or pass it on standard input."""
    return _show(out, out.link().do(calls.set_token(name, _read_token())), f"{name} is shown another token.")


@command("login", "sublet broker login cam")
@click.argument("name")
@click.option("--issuer", metavar="NAME", help="Sign in by this issuer of the broker, if there are several.")
def login(out: Output, name: str, issuer: str | None) -> int:
    """Sign in to a broker with a code of its IAM. Your own service then uses your token there.

    The login is stored in SUBLET_HOME, readable by you alone, and renewed automatically. Commands still go to your
    own service. `sublet logout URL` ends the login.
    """
    from sublet.client.address import gateway_at
    from sublet.client.gateways import keep
    from sublet.client.link import Link
    from sublet.kernel.home import sublet_home
    from sublet.people.cli.device_login import find_issuer, sign_in_by_device
    from sublet.people.cli.signing_in import require_private

    link = out.link()
    known = {each.name: each for each in link.do(calls.brokers()).items}
    if name not in known:
        raise NotFound(noun="broker", name=name, hint="`sublet broker list` lists the brokers.")
    if link.address.home is None:
        raise BadBroker(name=name, why="the service that passes requests on to it is not your own", hint=NOT_OWN)
    there = gateway_at(known[name].url)
    require_private(there)
    way = find_issuer(Link(there), issuer, is_wanted=True)
    if way:
        keep(sublet_home(), there.text, sign_in_by_device(way), go_there=False)
    return _show(out, link.do(calls.check(name)), f"You are signed in to {name}.")


@command("list", "sublet broker list")
def list_brokers(out: Output) -> None:
    """List the brokers that requests are forwarded to."""
    view = out.link().do(calls.brokers())
    rows = [
        (known.name, known.url, "this service's" if known.has_token else "people's own", known.problem or "")
        for known in view.items
    ]
    head = ("NAME", "ADDRESS", "TOKEN", "PROBLEM")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (known.name for known in view.items))
    if not rows and out.for_people:
        out.note("No brokers yet. Add one: sublet broker add NAME URL")


@command("check", "sublet broker check cam")
@click.argument("name")
def check(out: Output, name: str) -> int:
    """Check that a broker answers and accepts the token, or say what is wrong."""
    return _show(out, out.link().do(calls.check(name)), f"{name} answers.")


@command("remove", "sublet broker remove cam")
@click.argument("name")
def remove(out: Output, name: str) -> None:
    """Stop forwarding to a broker, and delete its token. Records of its sessions stay."""
    out.link().do(calls.remove(name))
    out.show({"removed": name}, lambda: [f"{name} is removed."], lambda: [name])


def _show(out: Output, view: BrokerView, well: str) -> int:
    """Show the outcome, with the broker's notes or what is wrong; return the exit code."""
    words = f"{view.name}: {view.problem}" if view.problem else " ".join((well, *view.notes))
    out.show(view, lambda: [words], lambda: [view.problem or view.name])
    return 1 if view.problem else 0


def _read_token() -> str:
    if is_terminal(sys.stdin):
        return ask_for("Token", "Type it, or send it to standard input.", hide_input=True)
    return sys.stdin.read().strip()


for word in (add, token, login, list_brokers, check, remove):
    broker.add_command(word)
