"""Calls about community accounts."""

from __future__ import annotations

from typing import Any

from sublet.access.views.accounts import AccountList, AccountPlanList, AccountView, HostKeyList, RekeyView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def accounts() -> Call[AccountList]:
    """List the accounts."""
    return Call("GET", path_of("accounts"), as_view(AccountList))


def account(name: str) -> Call[AccountView]:
    """Show an account."""
    return Call("GET", path_of("accounts", name), as_view(AccountView))


def add(wish: dict[str, Any]) -> Call[AccountView]:
    """Add an account, with its private key."""
    return Call("POST", path_of("accounts"), as_view(AccountView), body=body_of(wish))


def change(name: str, wish: dict[str, Any]) -> Call[AccountView]:
    """Change the given fields of an account."""
    return Call("PATCH", path_of("accounts", name), as_view(AccountView), body=body_of(wish))


def remove(name: str) -> Call[None]:
    """Remove an account."""
    return Call("DELETE", path_of("accounts", name), nothing)


def check(name: str) -> Call[AccountView]:
    """Sign in with an account now, to check it."""
    return Call("POST", path_of("accounts", name, "check"), as_view(AccountView))


def plan(document: object) -> Call[AccountPlanList]:
    """Show what the accounts of an `hpc.json` would become here."""
    return Call("POST", path_of("account-plans"), as_view(AccountPlanList), body=body_of({"document": document}))


def host_keys(host: str, port: int) -> Call[HostKeyList]:
    """List the keys that a host shows."""
    wish = {"host": host, "port": port}
    return Call("POST", path_of("host-keys"), as_view(HostKeyList), body=body_of(wish))


def rekey() -> Call[RekeyView]:
    """Seal everything with the newest master key."""
    return Call("POST", path_of("vault", "rekey"), as_view(RekeyView))
