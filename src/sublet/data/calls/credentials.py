"""Calls about credentials for storage: add, list, remove."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.data.views.credentials import (
    CredentialAsk,
    CredentialList,
    CredentialView,
    GlobusAsk,
    GlobusCodeAsk,
    GlobusVisitView,
)
from sublet.kernel.views import plain


def add(ask: CredentialAsk) -> Call[CredentialView]:
    """Store a credential, replacing the one for the same address."""
    return Call("POST", path_of("credentials"), as_view(CredentialView), body=body_of(plain(ask)))


def begin_globus(ask: GlobusAsk) -> Call[GlobusVisitView]:
    """Begin a sign-in to Globus."""
    return Call("POST", path_of("credentials", "globus"), as_view(GlobusVisitView), body=body_of(plain(ask)))


def finish_globus(ask: GlobusCodeAsk) -> Call[CredentialView]:
    """Finish a sign-in to Globus with the code that Globus showed."""
    return Call("POST", path_of("credentials", "globus", "code"), as_view(CredentialView), body=body_of(plain(ask)))


def credentials() -> Call[CredentialList]:
    """List the credentials, without their secrets."""
    return Call("GET", path_of("credentials"), as_view(CredentialList))


def remove(place: str) -> Call[None]:
    """Remove the credential for an address."""
    return Call("DELETE", path_of("credentials"), nothing, query={"place": place})
