"""`credential`: credentials for the storage that your data is in."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

import click

from sublet.access.model.known_hosts import read_host_keys
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.prompts import ask_for
from sublet.cli.screen import is_terminal
from sublet.cli.texts import when
from sublet.data.calls import credentials as calls
from sublet.data.views.credentials import CredentialAsk, CredentialView, GlobusAsk, GlobusCodeAsk
from sublet.kernel.errors import BadRequest, PassphraseNeeded, UnknownHostKey

Kind = Literal["login", "token", "s3", "key"]
ASKS: dict[Kind, str] = {"login": "Password", "token": "Token", "s3": "Secret access key"}
LONGEST_KEY = 1 << 16  # bytes
SSH_PORT = 22


@click.group("credential", cls=CommandGroup, epilog=Example("sublet credential add davs://data.example.org --user me"))
def credential() -> None:
    """Store credentials for your storage: passwords, tokens, SSH and S3 keys, each for one address."""


@command(
    "add",
    "sublet credential add davs://data.example.org/team --user marie",
    "sublet credential add s3://my-bucket --access-key AKIA… --endpoint https://s3.example.org",
    "sublet credential add https://archive.example.org --token <token.txt",
    "sublet credential add sftp://hpc.org --user marie --key ~/.ssh/id_ed25519 --host-key SHA256:…",
    "sublet credential add rucio://rucio.example.org --user marie",
    "sublet credential add globus:// --sign-in",
)
@click.argument("place", metavar="ADDRESS")
@click.option("--user", metavar="NAME", help="A login: this user name, and a password or a key.")
@click.option("--key", metavar="FILE", help="Of sftp: and rsync+ssh: addresses, a private key instead of a password.")
@click.option(
    "--host-key",
    metavar="TEXT",
    help="The host key that is right: its fingerprint (SHA256:…), the key, or a known_hosts file.",
)
@click.option("--token", is_flag=True, help="A token, which the server is shown as a bearer's.")
@click.option(
    "--client-id",
    metavar="ID",
    help="Of Globus, the client that a refresh token was given to, or the app that you sign in by.",
)
@click.option("--sign-in", is_flag=True, help="Sign in to Globus in a browser, and type the code that it shows.")
@click.option("--access-key", metavar="KEY", help="A pair of S3 keys: this one, and its secret.")
@click.option("--session-token", is_flag=True, help="The S3 keys are temporary: their session token is asked for too.")
@click.option("--endpoint", metavar="URL", help="The server that s3://BUCKET is on; Amazon's if left out.")
@click.option("--region", metavar="NAME", help="The region that S3 requests are signed for: us-east-1.")
def add(
    out: Output,
    place: str,
    user: str | None,
    key: str | None,
    host_key: str | None,
    token: bool,
    client_id: str | None,
    sign_in: bool,
    access_key: str | None,
    session_token: bool,
    endpoint: str | None,
    region: str | None,
) -> None:
    """Store a credential for all addresses that begin with ADDRESS. It replaces an older one.

    For Globus, ADDRESS is globus://COLLECTION, or globus:// for all collections. Sign in (--sign-in), or store a
    token of its Transfer service (valid for two days), a refresh token (--client-id), or the secret of your own
    client (--user CLIENT-ID).

    Type the password, token or secret key, or pass it on standard input; it is never an argument. It is stored
    encrypted, and sent to that server only. A session token is typed after its secret key, or is the next line.
    """
    if sum((user is not None, token, sign_in, access_key is not None)) != 1:
        raise click.UsageError("Say what it is: --user NAME, --token, --access-key KEY, or for Globus --sign-in.")
    if (key or host_key) and not user:
        raise click.UsageError("--key and --host-key belong to a login by SSH: add --user NAME.")
    if client_id and not ((token or sign_in) and place.startswith("globus:")):
        raise click.UsageError("--client-id belongs to a refresh token of Globus: globus:// --token --client-id ID.")
    if session_token and access_key is None:
        raise click.UsageError("--session-token belongs to temporary S3 keys: --access-key KEY --session-token.")
    if sign_in:
        _sign_in_to_globus(out, place, client_id or "")
        return
    kind: Kind = "key" if key else "login" if user else "token" if token else "s3"
    secret = _read_key_file(key) if key else _read_secret(ASKS[kind])
    secret, second = _read_session_token(secret) if session_token else (secret, "")
    ask = CredentialAsk(
        place=place,
        kind=kind,
        secret=secret,
        user=user or access_key or client_id or "",
        endpoint=_read_host_keys(place, host_key) if host_key else endpoint or "",
        region=region or "",
        session_token=second,
    )
    kept = _store(out, ask)
    out.show(kept, lambda: [f"Kept, for addresses that begin with {kept.place}."], lambda: [kept.place])


def _store(out: Output, ask: CredentialAsk) -> CredentialView:
    """Store a credential, after asking for the passphrase of a key that has one."""
    try:
        return out.link().do(calls.add(ask))
    except PassphraseNeeded:
        advice = "Type it in a terminal, or keep a key without one."
        passphrase = ask_for("Passphrase of the key", advice, hide_input=True)
        return out.link().do(calls.add(replace(ask, passphrase=passphrase)))


def _sign_in_to_globus(out: Output, place: str, client: str) -> None:
    """Have the person sign in on Globus' own page, and store what Globus gives for the code that is shown there."""
    visit = out.link().do(calls.begin_globus(GlobusAsk(place=place, client_id=client)))
    out.note(f"Open this address, sign in, and type the code that is shown there:\n{visit.address}")
    code = _read_secret("Code")
    done = GlobusCodeAsk(place=place, client_id=visit.client_id, verifier=visit.verifier, code=code)
    kept = out.link().do(calls.finish_globus(done))
    out.show(kept, lambda: [f"Kept, for addresses that begin with {kept.place}."], lambda: [kept.place])


def _read_key_file(path: str) -> str:
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read(LONGEST_KEY)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadRequest(f"{path} can't be read: {why}.", hint="Name the file of a private key.") from error


def _read_host_keys(place: str, given: str) -> str:
    """Return a fingerprint as given, or the host's keys from a line or file of known hosts."""
    if given.startswith("SHA256:"):
        return given
    parts = urlsplit(place)
    text = _read_key_file(given) if os.path.exists(os.path.expanduser(given)) else given
    keys = read_host_keys(text, parts.hostname or "", parts.port or SSH_PORT)
    if not keys:
        hint = "Give a fingerprint (SHA256:…), a known_hosts file or a line of one."
        raise UnknownHostKey(f"There is no key of {parts.hostname} in {given}.", hint=hint)
    return "\n".join(keys)


def _read_secret(what: str) -> str:
    if is_terminal(sys.stdin):
        return ask_for(what, "Type it, or send it to standard input.", hide_input=True)
    return sys.stdin.read().rstrip("\r\n")


def _read_session_token(secret: str) -> tuple[str, str]:
    """Return a secret key and its session token, which is typed next, or was the second line of standard input."""
    if is_terminal(sys.stdin):
        return secret, _read_secret("Session token")
    secret, _, token = secret.partition("\n")
    if not token:
        raise click.UsageError("Give the secret key on the first line of standard input, and the session token next.")
    return secret.rstrip("\r"), token


@command("list", "sublet credential list")
def list_credentials(out: Output) -> None:
    """List the addresses that have credentials, without the secrets."""
    view, now = out.link().do(calls.credentials()), datetime.now(UTC)
    rows = [
        (known.place, known.kind, known.user, known.endpoint.partition("\n")[0][:60], when(known.created, now))
        for known in view.items
    ]
    head = ("ADDRESS", "KIND", "USER", "SERVER", "ADDED")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (known.place for known in view.items))
    if not rows and out.for_people:
        out.note("No credentials yet. Add one: sublet credential add")


@command("remove", "sublet credential remove s3://my-bucket")
@click.argument("place", metavar="ADDRESS...", nargs=-1, required=True)
def remove(out: Output, place: tuple[str, ...]) -> None:
    """Remove credentials."""
    link = out.link()
    for address in place:
        link.do(calls.remove(address))
    out.show({"removed": list(place)}, lambda: (f"{address} is forgotten." for address in place), lambda: place)


for word in (add, list_credentials, remove):
    credential.add_command(word)
