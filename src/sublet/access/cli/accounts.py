"""`account`: community accounts, under which a gateway runs its people's sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from sublet.access.calls import accounts as calls
from sublet.access.cli.account_secrets import confirm_host_keys, read_file, with_passphrase
from sublet.access.views.accounts import AccountView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import when

FIELDS = (
    click.option("--port", type=click.IntRange(1, 65535), help="The port of sshd there."),
    click.option("--directory", metavar="PATH", help="Where sessions are kept there: below the home, or $SCRATCH/x."),
    click.option("--description", metavar="TEXT", help="What everybody reads of it."),
    click.option("--queue", metavar="NAME", help="The partition; without any, each that fits is asked."),
    click.option("--project", metavar="NAME", help="The allocation that pays."),
    click.option("--qos", metavar="NAME", help="The quality of service."),
    click.option("--option", "options", multiple=True, metavar="--X=Y", help="An option of sbatch for each job."),
    click.option("--module", "modules", multiple=True, metavar="NAME", help="A module that each job loads."),
    click.option("--capacity", type=click.IntRange(1), help="How many of its sessions are at the site at once."),
    click.option("--wckey/--no-wckey", default=None, help="Name the person in each job's wckey too."),
    click.option("--certificate", metavar="FILE", help="The key's certificate, where the centre signs keys."),
    click.option("--host-key", metavar="FILE", default="", help="Its keys: a known_hosts file, or a line of it."),
    click.option("--fingerprint", metavar="SHA256:…", default="", help="The fingerprint that its centre publishes."),
)


def fields(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that describe an account."""
    for option in reversed(FIELDS):
        function = option(function)
    return function


@click.group("account", cls=CommandGroup, epilog=Example("sublet account import hpc.json --dry-run"))
def account() -> None:
    """Add, list, check and remove community accounts.

    A gateway signs in by an account's key, which is stored sealed by a master key, and opened into a private ssh-agent
    alone. Each job's record at the site names the person it is for.
    """


@command("add", "sublet account add keeling --host keeling.example.org --user community --key community.key")
@click.argument("name")
@click.option("--host", required=True, help="The login host.")
@click.option("--user", required=True, help="The user name there.")
@click.option("--key", required=True, metavar="FILE", help="Its private key; - reads it from the input.")
@fields
def add(out: Output, name: str, host: str, user: str, key: str, **given: Any) -> None:
    """Add an account; people whom the access rules allow can use it at once.

    The key is read once and stored encrypted; you can delete its file then. You are asked for a passphrase if it has
    one.
    """
    wish = {"name": name, "host": host, "user": user, **_read_options(given)}
    wish["host_keys"] = confirm_host_keys(out, host, given["port"] or 22, given["host_key"], given["fingerprint"])
    _add(out, wish, read_file(key, "the key"))
    if key != "-":
        out.note(f"The key is stored sealed: {key} is needed here no longer.")


@command(
    "change",
    "sublet account change keeling --capacity 20 --queue shared",
    may_be_empty=("directory", "queue", "project", "qos"),
)
@click.argument("name")
@click.option("--host", help="The login host.")
@click.option("--user", help="The user name there.")
@click.option("--key", metavar="FILE", help="Another private key; - reads it from the input.")
@fields
def change(out: Output, name: str, key: str | None, **given: Any) -> None:
    """Change an account, or give it another key; what is not named stays as it is."""
    wish = {field: given[field] for field in ("host", "user") if given[field]} | _read_options(given)
    link = out.link()
    if wish.get("host") or given["host_key"] or given["fingerprint"]:
        old = link.do(calls.account(name))
        host, port = wish.get("host") or old.host, given["port"] or old.port
        wish["host_keys"] = confirm_host_keys(out, host, port, given["host_key"], given["fingerprint"])
    if key:
        wish["key"] = read_file(key, "the key")
    view = with_passphrase(out, wish, lambda ask: link.do(calls.change(name, ask)))
    out.show(view, lambda: [f"{name} is changed."], lambda: [name])


@command("list", "sublet account list")
def list_accounts(out: Output) -> None:
    """List the accounts, and how many of their places are taken."""
    view = out.link().do(calls.accounts())
    rows = [
        (account.name, _where(account), _places(account), account.problem or account.description)
        for account in view.items
    ]
    out.show(
        view,
        lambda: table(("NAME", "WHERE", "THERE", "DESCRIPTION"), rows) if rows else [],
        lambda: (account.name for account in view.items),
    )


@command("show", "sublet account show keeling")
@click.argument("name")
def show(out: Output, name: str) -> None:
    """Show what is known of an account; its private key is never shown."""
    view = out.link().do(calls.account(name))
    out.show(view, lambda: pairs(_facts(view)), lambda: [view.name])


@command("import", "sublet account import hpc.json --dry-run", "sublet account import hpc.json --leave-out mount")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Only say what becomes of each field.")
@click.option("--only", metavar="NAME", multiple=True, help="Only this one of the file; may be repeated.")
@click.option("--leave-out", metavar="FIELD", multiple=True, help="Go on without this field; may be repeated.")
@click.option("--key", metavar="FILE", help="The private key, if not the one that the file names.")
@click.option("--host-key", metavar="FILE", default="", help="The hosts' keys: a known_hosts file, or a line of one.")
@click.option("--fingerprint", metavar="SHA256:…", default="", help="The fingerprint that its centre publishes.")
def import_accounts(
    out: Output,
    file: str,
    dry_run: bool,
    only: tuple[str, ...],
    leave_out: tuple[str, ...],
    key: str | None,
    host_key: str,
    fingerprint: str,
) -> int:
    """Add the accounts of an `hpc.json`, as the CyberGIS Job Supervisor has them.

    Each field is shown with what it becomes. If a field would change how jobs run, and isn't supported here, you have
    to leave it out by name. Keys are read from the paths in the file; you can delete them then.
    """
    from sublet.access.cli.account_import import Importing  # only needed here

    importing = Importing(out, file, leave_out, key, host_key, fingerprint)
    return importing.run(only, dry_run=dry_run)


@command("remove", "sublet account remove keeling")
@click.argument("name")
def remove(out: Output, name: str) -> None:
    """Remove an account and its key; the records of its sessions stay."""
    out.link().do(calls.remove(name))
    out.show({"removed": name}, lambda: [f"{name} is removed, with its key."], lambda: [name])


@command("check", "sublet account check keeling")
@click.argument("name")
def check(out: Output, name: str) -> int:
    """Sign in with an account now, or say what is wrong."""
    view = out.link().do(calls.check(name))
    good = [f"{name}: signed in as {view.user} at {view.host}."]
    out.show(view, lambda: [f"{name}: {view.problem}"] if view.problem else good, lambda: [view.problem or "ok"])
    return 1 if view.problem else 0


@command("key", "sublet account key /etc/sublet/master-key")
@click.argument("file")
@click.option("--more", is_flag=True, help="Put a new key before those in the file; then run: sublet account rekey")
def key(out: Output, file: str, more: bool) -> None:
    """Create a master key, which encrypts stored secrets. Keep it outside SUBLET_HOME, and not in the same backup."""
    from sublet.kernel.home import sublet_home
    from sublet.kernel.master_key import make, outside

    path = os.path.abspath(os.path.expanduser(file))
    outside(path, sublet_home().root)
    made = make(path, more=more)
    out.show({"key": made.id, "file": path}, lambda: [f"The key {made.id} is in {path}."], lambda: [path])
    if more:
        out.note("Now: sublet account rekey. After that the older lines of the file can go.")
    else:
        out.note(f'Name it in sublet.toml: master_key = "{path}". Without it, stored secrets are lost: keep a copy.')


@command("rekey", "sublet account rekey")
def rekey(out: Output) -> None:
    """Encrypt all stored secrets again, with the newest master key."""
    view = out.link().do(calls.rekey())
    words = ", ".join(f"{count} of {noun}" for noun, count in view.sealed.items()) or "nothing was stored"
    out.show(view, lambda: [f"Sealed with the newest key: {words}."], list)


def _read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, as the service expects them."""
    apart = ("host_key", "fingerprint", "certificate", "host", "user")
    wish = {name: value for name, value in given.items() if name not in apart and value not in (None, ())}
    if given["certificate"]:
        wish["certificate"] = read_file(given["certificate"], "the certificate").strip()
    return wish


def _add(out: Output, wish: dict[str, Any], key: str) -> AccountView:
    link = out.link()
    view: AccountView = with_passphrase(out, {**wish, "key": key}, lambda ask: link.do(calls.add(ask)))
    out.show(view, lambda: [f"{view.name} is added; its key is {view.key}."], lambda: [view.name])
    return view


def _where(account: AccountView) -> str:
    return f"{account.user}@{account.host}" if account.host else account.kind


def _places(account: AccountView) -> str:
    waiting = f", {account.waiting} wait" if account.waiting else ""
    return (
        f"{account.there} of {account.capacity}{waiting}" if account.capacity else ""
    )  # hidden from people who may not use the account


def _facts(account: AccountView) -> list[tuple[str, str]]:
    now = datetime.now(UTC)
    return [
        ("name", account.name),
        ("description", account.description),
        ("problem", account.problem),
        ("platform", account.kind),
        ("places", _places(account)),
        ("where", f"{account.user}@{account.host} port {account.port}" if account.host else ""),
        ("host keys", ", ".join(account.host_keys)),
        ("key", account.key),
        ("certificate", "there is one" if account.certificate else ""),
        ("directory", account.directory),
        ("queue", account.queue),
        ("project", account.project),
        ("qos", account.qos),
        ("options", " ".join(account.options)),
        ("modules", " ".join(account.modules)),
        ("wckey", "names the person" if account.wckey else ""),
        ("globus", " ".join(f"{name} {value}" for name, value in account.globus.items())),
        ("added", f"{when(account.created, now)} by {account.by}" if account.created else ""),
    ]


for word in (add, change, list_accounts, show, import_accounts, remove, check, key, rekey):
    account.add_command(word)
