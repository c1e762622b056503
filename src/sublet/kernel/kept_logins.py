"""Logins to other services: tokens in files that only their owner can read, renewed automatically by their issuer."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sublet.kernel.errors import NotSignedIn
from sublet.kernel.home import Home
from sublet.kernel.quoting import quote

EARLY = 30.0  # seconds before its expiry at which a token is renewed
USUAL_LIFE = 3600.0  # seconds, of a token whose issuer names no expiry
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """A token for a service, and the means to renew it."""

    access: str = field(repr=False)
    expires: float = 0.0  # seconds since 1970; 0: unknown, and never renewed
    refresh: str = field(default="", repr=False)  # empty: the person has to sign in again when it expires
    title: str = ""  # the issuer's name for people
    client_id: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    target: Mapping[str, str] = field(default_factory=dict)  # form fields that name the service which accepts the token

    @property
    def is_due(self) -> bool:
        """Whether the token should be renewed before it is used."""
        return bool(self.expires) and time.time() >= self.expires - EARLY


def read_grant(login: KeptLogin, answer: Mapping[str, Any]) -> KeptLogin:
    """Return the login with an issuer's new tokens; it keeps its refresh token if the issuer sent no new one."""
    life, refresh = answer.get("expires_in"), answer.get("refresh_token")
    seconds = float(life) if isinstance(life, int | float) and not isinstance(life, bool) else USUAL_LIFE
    kept = refresh if isinstance(refresh, str) and refresh else login.refresh
    return replace(login, access=str(answer.get("access_token") or ""), expires=time.time() + seconds, refresh=kept)


def keep_login(home: Home, service: str, login: KeptLogin) -> None:
    """Store a login, replacing an earlier one for the same service."""
    make_directory(home)
    write_private(_file(home, service), json.dumps(asdict(login)))


def load_login(home: Home, service: str) -> KeptLogin | None:
    """Return the stored login for a service, or None."""
    text = read_private(_file(home, service))
    try:
        return KeptLogin(**json.loads(text)) if text else None
    except (ValueError, TypeError):
        return None  # written by an incompatible version: treat it as missing


def forget_login(home: Home, service: str) -> None:
    """Delete the stored login for a service, if there is one."""
    try:
        os.unlink(_file(home, service))
    except FileNotFoundError:
        pass


def renew_login(home: Home, service: str, stale: str) -> KeptLogin | None:
    """Return a login with a token other than the stale one; of several processes, only one asks the issuer.

    Return None if there is no login. Raise NotSignedIn if the issuer refuses, or ProviderUnreachable if it can't be
    reached.
    """
    import fcntl

    with open(os.open(os.path.join(home.gateways, "lock"), os.O_RDWR | os.O_CREAT, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        login = load_login(home, service)
        if login is None or (login.access != stale and not login.is_due):
            return login
        renewed = _ask_for_another(service, login)
        keep_login(home, service, renewed)
        return renewed


def _ask_for_another(service: str, login: KeptLogin) -> KeptLogin:
    from sublet.kernel.issuer_calls import call_issuer, unreachable

    ended = NotSignedIn(f"Your login to {service} has ended.", hint=f"sublet login {service}")
    if not login.refresh:
        raise ended
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh, "client_id": login.client_id}
    status, answer = call_issuer(login.title, login.token_endpoint, {**form, **login.target})
    if status in (400, 401, 403):
        raise ended
    if status != 200 or not answer.get("access_token"):
        raise unreachable(login.title, f"it answered with {status}")
    return read_grant(login, answer)


def find_token(home: Home, url: str) -> str:
    """Return the token for the service at this address, renewed if due; empty if there is no login."""
    service = full_address(url)
    login = load_login(home, service)
    if login and login.is_due:
        login = renew_login(home, service, login.access)
    return login.access if login else ""


def full_address(url: str) -> str:
    """Normalize a service's address for looking up its login: with its port, without a trailing slash."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or PORTS.get(parts.scheme)}{parts.path.rstrip('/')}"


def make_directory(home: Home) -> None:
    """Create the directory of logins, accessible only to its owner."""
    os.makedirs(home.root, mode=0o700, exist_ok=True)
    os.makedirs(home.gateways, mode=0o700, exist_ok=True)
    os.chmod(home.gateways, 0o700)


def read_private(place: str) -> str:
    """Return a file's text, or an empty string if it can't be read."""
    try:
        with open(place, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def write_private(place: str, text: str) -> None:
    """Write a file atomically, never readable by others."""
    part = f"{place}.{os.getpid()}"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text + "\n")
    os.replace(part, place)


def _file(home: Home, service: str) -> str:
    return os.path.join(home.gateways, f"{quote(service)}.login")
