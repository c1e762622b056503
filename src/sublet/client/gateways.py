"""The gateways that a person signed in to: a token for each, in a file that is theirs alone."""

from __future__ import annotations

import os

from sublet.kernel.home import Home
from sublet.kernel.kept_logins import (
    KeptLogin,
    forget_login,
    keep_login,
    load_login,
    make_directory,
    read_private,
    write_private,
)
from sublet.kernel.quoting import quote

CURRENT = "current"  # the file that names the gateway to which commands go


def login_to(home: Home, gateway: str) -> KeptLogin | None:
    """The token for a gateway, and how it is renewed, if it is; None: none is kept."""
    if secret := read_private(_file(home, gateway)):
        return KeptLogin(secret)
    return load_login(home, gateway)


def token_of(home: Home, gateway: str) -> str:
    """The token for a gateway; empty: none is kept."""
    login = login_to(home, gateway)
    return login.access if login else ""


def current(home: Home) -> str:
    """The gateway to which commands go; empty: to one's own service."""
    return read_private(os.path.join(home.gateways, CURRENT))


def keep(home: Home, gateway: str, token: str | KeptLogin, *, go_there: bool = True) -> None:
    """Keep a token, and let commands go to its gateway from now on."""
    make_directory(home)
    if isinstance(token, KeptLogin):
        keep_login(home, gateway, token)
        _remove(_file(home, gateway))
    else:
        write_private(_file(home, gateway), token)
        forget_login(home, gateway)
    if go_there:
        write_private(os.path.join(home.gateways, CURRENT), gateway)


def forget(home: Home, gateway: str) -> None:
    """Forget a token; commands go to one's own service again, if they went to its gateway."""
    if current(home) == gateway:
        _remove(os.path.join(home.gateways, CURRENT))
    _remove(_file(home, gateway))
    forget_login(home, gateway)


def _file(home: Home, gateway: str) -> str:
    return os.path.join(home.gateways, f"{quote(gateway)}.token")


def _remove(place: str) -> None:
    try:
        os.unlink(place)
    except FileNotFoundError:
        pass
