"""The gateways that a person signed in to: a token for each, in a file that is theirs alone."""

from __future__ import annotations

import os

from sublet.client.call import quote
from sublet.kernel.home import Home

CURRENT = "current"  # the file that names the gateway to which commands go


def token_of(home: Home, gateway: str) -> str:
    """The token for a gateway; empty: none is kept."""
    return _read(_file(home, gateway))


def current(home: Home) -> str:
    """The gateway to which commands go; empty: to one's own service."""
    return _read(os.path.join(home.gateways, CURRENT))


def keep(home: Home, gateway: str, token: str) -> None:
    """Keep a token, and let commands go to its gateway from now on."""
    os.makedirs(home.root, mode=0o700, exist_ok=True)
    os.makedirs(home.gateways, mode=0o700, exist_ok=True)
    os.chmod(home.gateways, 0o700)
    _write(_file(home, gateway), token)
    _write(os.path.join(home.gateways, CURRENT), gateway)


def forget(home: Home, gateway: str) -> None:
    """Forget a token; commands go to one's own service again, if they went to its gateway."""
    places = [_file(home, gateway)]
    if current(home) == gateway:
        places.append(os.path.join(home.gateways, CURRENT))
    for place in places:
        try:
            os.unlink(place)
        except FileNotFoundError:
            pass


def _file(home: Home, gateway: str) -> str:
    return os.path.join(home.gateways, f"{quote(gateway)}.token")


def _read(place: str) -> str:
    try:
        with open(place, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _write(place: str, text: str) -> None:
    """Put it there at once and whole; nobody else can read it at any time."""
    part = f"{place}.{os.getpid()}"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text + "\n")
    os.replace(part, place)
