"""Calls about apps: propose, show, decide."""

from __future__ import annotations

from sublet.apps.views.apps import (
    AppList,
    AppView,
    FacilitiesView,
    MaintainerList,
    ProposeAsk,
    ReviewView,
    RevokedView,
    UpstreamView,
    VersionView,
)
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain

FETCHING = 900.0  # seconds that a repository or registry may keep the service waiting


def apps() -> Call[AppList]:
    """List the apps that the caller may see."""
    return Call("GET", path_of("apps"), as_view(AppList))


def app(name: str) -> Call[AppView]:
    """Show an app with its versions."""
    return Call("GET", path_of("apps", name), as_view(AppView))


def maintainers() -> Call[MaintainerList]:
    """List the generic images for code without its own."""
    return Call("GET", path_of("maintainers"), as_view(MaintainerList))


def facilities() -> Call[FacilitiesView]:
    """Show what the platforms that the caller may use offer to apps."""
    return Call("GET", path_of("facilities"), as_view(FacilitiesView))


def propose(ask: ProposeAsk) -> Call[VersionView]:
    """Propose a repository."""
    return Call("POST", path_of("apps"), as_view(VersionView), body=body_of(plain(ask)), patience=FETCHING)


def review(name: str, number: int, against: int | None = None) -> Call[ReviewView]:
    """Show a version with its files, and what is new in it."""
    return Call("GET", path_of("apps", name, str(number)), as_view(ReviewView), query={"against": against})


def upstream(name: str, number: int) -> Call[UpstreamView]:
    """Check the branch of a version for changes."""
    return Call("GET", path_of("apps", name, str(number), "upstream"), as_view(UpstreamView), patience=FETCHING)


def approve(name: str, number: int, tree: str, why: str = "") -> Call[VersionView]:
    """Approve exactly these files."""
    fields = body_of({"tree": tree, "why": why})
    return Call("POST", _path(name, number, "approve"), as_view(VersionView), body=fields, patience=FETCHING)


def refuse(name: str, number: int, why: str) -> Call[VersionView]:
    """Refuse a version."""
    return Call("POST", _path(name, number, "refuse"), as_view(VersionView), body=body_of({"why": why}))


def revoke(name: str, number: int, why: str, *, cancel: bool = False) -> Call[RevokedView]:
    """Revoke a version."""
    fields = body_of({"why": why, "cancel": cancel})
    return Call("POST", _path(name, number, "revoke"), as_view(RevokedView), body=fields)


def _path(name: str, number: int, verb: str) -> str:
    return path_of("apps", name, str(number), verb)
