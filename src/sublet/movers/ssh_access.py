"""Access to files over SSH: with a person's credential, or with the owner's own `ssh` configuration.

Keys, passwords and codes are never arguments, and an unknown host key is never accepted.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind, credential_for
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import check_place
from sublet.movers.port import Policy
from sublet.reach.agent import Agent
from sublet.reach.host_keys import describe_keys, find_confirmed
from sublet.reach.prompts import Prompt, Prompter, answering
from sublet.reach.refusals import HostKey, last_words, read_refusal
from sublet.reach.target import check_name

SSH_PORT = 22
ALIAS = "sublet-data"  # the alias under which a credential's host keys are known
HOME = "/~"  # paths with this prefix are below the home directory
ALWAYS = {
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "RequestTTY": "no",
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "ForwardAgent": "no",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ConnectTimeout": "20",
    "NumberOfPasswordPrompts": "1",
    "LogLevel": "INFO",  # ssh's messages about a refusal are parsed
}
NO_CREDENTIAL = (
    "nothing here opens it; keep a key or a password for it: sublet credential add {place} --user NAME --key FILE"
)


class SshDenied(Exception):
    """There is no way in; the words say why, and what to do."""


@dataclass(frozen=True)
class SshPlace:
    """The host, user and path of an address."""

    host: str
    port: int  # 0: the default
    user: str
    path: str  # absolute, or relative to the home directory


@dataclass(frozen=True)
class SshWay:
    """How to call `ssh` for an address."""

    place: SshPlace
    options: tuple[str, ...]
    environment: Mapping[str, str]

    def to_run(self, *words: str) -> tuple[str, ...]:
        """Return the ssh command with these arguments."""
        return ("ssh", "-T", *self.options, *words)

    @property
    def shell_line(self) -> str:
        """The ssh command as one line, for programs that take it so."""
        return shlex.join(("ssh", "-T", *self.options))


def check_ssh_address(location: str) -> str:
    """Return what is wrong with an address; empty if it names a host and a path."""
    try:
        split_ssh_address(location)
    except ValueError as error:
        return str(error)
    return ""


def check_ssh_data(data: Data, example: str) -> list[Reason]:
    """Return what is wrong with the address or checksum of data that comes over SSH."""
    return check_place(data, check_ssh_address(data.location), example)


def split_ssh_address(location: str) -> SshPlace:
    """Split an address into host, port, user and path; raise ValueError if it is wrong."""
    parts = urlsplit(location)
    host, user, path = parts.hostname or "", unquote(parts.username or ""), unquote(parts.path)
    if not host:
        raise ValueError("it names no host")
    if parts.password:
        raise ValueError("it has a password in it; keep that with: sublet credential add")
    if parts.query or parts.fragment or "\0" in path:
        raise ValueError("it has a ? or # in it; write those as %3F and %23")
    if not path.strip("/"):
        raise ValueError("it names no file")
    try:
        check_name(host)
        check_name(user)
    except PlatformRefused as error:
        raise ValueError(error.clause) from error
    if path == HOME or path.startswith(f"{HOME}/"):
        path = path.removeprefix(HOME).lstrip("/") or "."
    return SshPlace(host, parts.port or 0, user, path)


@contextlib.asynccontextmanager
async def open_way(policy: Policy, location: str) -> AsyncIterator[SshWay]:
    """Provide what `ssh` needs for an address while the block lasts; raise SshDenied if there is no access."""
    place, credential = split_ssh_address(location), credential_for(policy.credentials, location)
    is_owner = policy.file_roots is None  # whoever may read all of this machine's files may use its user's keys too
    if credential is None and not is_owner:
        raise SshDenied(NO_CREDENTIAL.format(place=f"sftp://{place.host}"))
    with tempfile.TemporaryDirectory(prefix="sublet-ssh-") as name:  # only this user can enter it
        async with contextlib.AsyncExitStack() as stack:
            try:
                address = await _find_host(policy, place)
                options = ALWAYS | ({"HostName": address} if address != place.host else {})
                options |= await _trust(place, address, credential, Path(name), is_owner=is_owner)
                shown, variables = await _show(stack, place, credential, Path(name))
            except SubletError as error:
                raise SshDenied(error.clause) from error
            words = [word for key, value in (options | shown).items() for word in ("-o", f"{key}={value}")]
            words += ["-F", "none"] if credential else []
            words += ["-l", user] if (user := place.user or (credential.user if credential else "")) else []
            words += ["-p", str(place.port)] if place.port else []
            yield SshWay(place, tuple(words), _environment(is_owner=is_owner) | variables)


async def _find_host(policy: Policy, place: SshPlace) -> str:
    """Resolve the host once, if only public addresses are allowed; otherwise return its name."""
    if not policy.public_only:
        return place.host
    try:
        return (await public_addresses(place.host, place.port or SSH_PORT))[0]
    except (NotPublic, OSError) as error:
        raise SshDenied(str(error)) from error


async def _trust(
    place: SshPlace, address: str, credential: Credential | None, folder: Path, *, is_owner: bool
) -> dict[str, str]:
    """Return the options for host keys: those of the credential, or those that this machine's owner knows."""
    confirmed = credential.endpoint.splitlines() if credential else []
    if not confirmed and is_owner:
        return {}
    keys = await find_confirmed(address, place.port or SSH_PORT, confirmed)
    if not keys:
        shown = await describe_keys(address, place.port or SSH_PORT)
        if confirmed:
            raise SshDenied(f"{place.host} shows {shown}, and not the host key that was confirmed; ask who runs it")
        raise SshDenied(_describe_unconfirmed(place, shown))
    file = folder / "known_hosts"
    file.write_text("".join(f"{ALIAS} {key}\n" for key in keys))
    return {"UserKnownHostsFile": str(file), "GlobalKnownHostsFile": "/dev/null", "HostKeyAlias": ALIAS}


async def _show(
    stack: contextlib.AsyncExitStack, place: SshPlace, credential: Credential | None, folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options and variables with which ssh uses this key or password, and no other on this machine."""
    if credential is None:
        return {"BatchMode": "yes"}, {}
    if credential.kind is CredentialKind.KEY:
        agent = Agent(folder)
        stack.push_async_callback(agent.close)
        await stack.enter_async_context(agent.holding(place.host, credential.secret, folder / "key.pub"))
        return {
            "BatchMode": "yes",
            "IdentityAgent": str(agent.socket),
            "IdentityFile": "none",
            "PreferredAuthentications": "publickey",
        }, {}
    variables = await stack.enter_async_context(answering(_answer_once(credential.secret), folder))
    return {
        "IdentityAgent": "none",
        "IdentityFile": "none",
        "PubkeyAuthentication": "no",
        "PreferredAuthentications": "password,keyboard-interactive",
    }, variables


def _answer_once(password: str) -> Prompter:
    """Return a prompter that gives the password once; a second prompt, such as for a code, gets no answer."""
    answers = [password]

    async def answer(prompt: Prompt) -> str | None:
        return answers.pop() if prompt.secret and answers else None

    return answer


def _environment(*, is_owner: bool) -> dict[str, str]:
    kept = ("PATH", "HOME", "SSH_AUTH_SOCK") if is_owner else ("PATH",)
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C"}


async def explain_refusal(place: SshPlace, words: str) -> str:
    """Explain why ssh failed; for an unknown host key, show it and say how to accept it."""
    refusal = read_refusal(place.host, place.host, words)
    if refusal.values.get("host_key") is HostKey.CHANGED:
        return f"{refusal.clause}. {refusal.advice}"
    if refusal.values.get("host_key") is not HostKey.UNCONFIRMED:
        return last_words(words)
    try:
        return _describe_unconfirmed(place, await describe_keys(place.host, place.port or SSH_PORT))
    except PlatformUnreachable as error:
        return error.clause


def _describe_unconfirmed(place: SshPlace, shown: str) -> str:
    port = f":{place.port}" if place.port else ""
    return (
        f"nobody has confirmed its host key. It shows {shown}; if that is what its owner publishes, accept it: "
        f"sublet credential add sftp://{place.host}{port} --user NAME --key FILE --host-key SHA256:…"
    )
