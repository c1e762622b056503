"""The gateways that a person signed in to: a token for each, in a private file."""

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

CURRENT = "current"  # the file that names the gateway that commands use


def login_to(home: Home, gateway: str) -> KeptLogin | None:
    """Return the stored login to a gateway, or None."""
    if secret := read_private(_file(home, gateway)):
        return KeptLogin(secret)
    return load_login(home, gateway)


def current(home: Home) -> str:
    """Return the gateway that commands use; empty if it is the person's own service."""
    return read_private(os.path.join(home.gateways, CURRENT))


def keep(home: Home, gateway: str, token: str | KeptLogin, *, go_there: bool = True) -> None:
    """Store a token and, with `go_there`, make its gateway the one that commands use."""
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
    """Delete the token for a gateway; if commands used that gateway, they use the person's own service again."""
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
