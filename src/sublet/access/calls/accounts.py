"""Community accounts."""

from __future__ import annotations

from typing import Any

from sublet.access.views.accounts import AccountList, AccountPlanList, AccountView, HostKeyList, RekeyView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def accounts() -> Call[AccountList]:
    """All of them."""
    return Call("GET", path_of("accounts"), as_view(AccountList))


def account(name: str) -> Call[AccountView]:
    """One of them."""
    return Call("GET", path_of("accounts", name), as_view(AccountView))


def add(wish: dict[str, Any]) -> Call[AccountView]:
    """Add one, with its private key."""
    return Call("POST", path_of("accounts"), as_view(AccountView), body=body_of(wish))


def change(name: str, wish: dict[str, Any]) -> Call[AccountView]:
    """Change what is given."""
    return Call("PATCH", path_of("accounts", name), as_view(AccountView), body=body_of(wish))


def remove(name: str) -> Call[None]:
    """Forget one."""
    return Call("DELETE", path_of("accounts", name), nothing)


def check(name: str) -> Call[AccountView]:
    """Sign in by it now."""
    return Call("POST", path_of("accounts", name, "check"), as_view(AccountView))


def plan(document: object) -> Call[AccountPlanList]:
    """What an `hpc.json` would be here."""
    return Call("POST", path_of("account-plans"), as_view(AccountPlanList), body=body_of({"document": document}))


def host_keys(host: str, port: int) -> Call[HostKeyList]:
    """The keys that a host shows."""
    wish = {"host": host, "port": port}
    return Call("POST", path_of("host-keys"), as_view(HostKeyList), body=body_of(wish))


def rekey() -> Call[RekeyView]:
    """Seal everything with the newest master key."""
    return Call("POST", path_of("vault", "rekey"), as_view(RekeyView))
