"""Calls about annexes and their templates: plan, create, show, change, end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sublet.annexes.views.annexes import (
    AnnexHistory,
    AnnexList,
    AnnexView,
    DetailsView,
    LeaseAsk,
    LeaseView,
    PlanView,
    TemplateList,
    TemplateView,
)
from sublet.client.call import Call, as_view, body_of, nothing, path_of, under
from sublet.kernel.views import plain

READ_ANNEX = as_view(AnnexView)


def annexes() -> Call[AnnexList]:
    """List the caller's annexes, with the leases that haven't ended."""
    return Call("GET", path_of("annexes"), as_view(AnnexList))


def annex(name: str) -> Call[AnnexView]:
    """Show an annex, or one of its leases by `example#3`."""
    return Call("GET", path_of("annexes", name), READ_ANNEX)


def plan(ask: LeaseAsk) -> Call[PlanView]:
    """Return the complete resource request without submitting it."""
    return Call("POST", path_of("annexes", ask.name, "plan"), as_view(PlanView), body=body_of(plain(ask)))


def create(ask: LeaseAsk, key: str | None = None) -> Call[LeaseView]:
    """Create an annex."""
    return Call("POST", path_of("annexes"), as_view(LeaseView), body=body_of(plain(ask)), more=under(key))


def add(ask: LeaseAsk, key: str | None = None) -> Call[LeaseView]:
    """Lease more nodes for an annex."""
    path = path_of("annexes", ask.name, "leases")
    return Call("POST", path, as_view(LeaseView), body=body_of(plain(ask)), more=under(key))


def cancel(name: str) -> Call[AnnexView]:
    """Cancel the leases that are still queued."""
    return _change(name, "cancel")


def shutdown(name: str, nodes: Sequence[int] = ()) -> Call[AnnexView]:
    """End leases at once, or only some nodes of a lease."""
    return _change(name, "shutdown", **({"nodes": list(nodes)} if nodes else {}))


def drain(name: str, nodes: Sequence[str] = ()) -> Call[AnnexView]:
    """Drain leases, or some nodes of a lease: they take no new jobs, and each node ends when its jobs are done."""
    return _change(name, "drain", **({"nodes": list(nodes)} if nodes else {}))


def undrain(name: str, nodes: Sequence[str] = ()) -> Call[AnnexView]:
    """Let draining leases or nodes take jobs again."""
    return _change(name, "undrain", **({"nodes": list(nodes)} if nodes else {}))


def rename(name: str, new: str) -> Call[AnnexView]:
    """Rename an annex."""
    return _change(name, "rename", name=new)


def open_(name: str) -> Call[AnnexView]:
    """Let an annex run all its owner's jobs."""
    return _change(name, "open")


def close(name: str, to_jobs: bool = False) -> Call[AnnexView]:
    """Let an annex run only the jobs that name it; with `to_jobs`, only sessions at booked times."""
    return _change(name, "close", **({"to_jobs": True} if to_jobs else {}))


def share(name: str, guest: str) -> Call[AnnexView]:
    """Let someone run jobs in containers on an annex."""
    return _change(name, "share", guest=guest)


def unshare(name: str, guest: str) -> Call[AnnexView]:
    """Stop sharing an annex with someone."""
    return _change(name, "unshare", guest=guest)


def history(name: str) -> Call[AnnexHistory]:
    """List all leases that an annex ever had, and their events."""
    return Call("GET", path_of("annexes", name, "history"), as_view(AnnexHistory))


def templates() -> Call[TemplateList]:
    """List the caller's templates."""
    return Call("GET", path_of("templates"), as_view(TemplateList))


def template(name: str) -> Call[TemplateView]:
    """Show a template."""
    return Call("GET", path_of("templates", name), as_view(TemplateView))


def save_template(name: str, details: DetailsView) -> Call[TemplateView]:
    """Save details as a template."""
    return Call("PUT", path_of("templates", name), as_view(TemplateView), body=body_of(plain(details)))


def remove_template(name: str) -> Call[None]:
    """Delete a template."""
    return Call("DELETE", path_of("templates", name), nothing)


def _change(annex: str, verb: str, **fields: Any) -> Call[AnnexView]:
    return Call("POST", path_of("annexes", annex, verb), READ_ANNEX, body=body_of(fields) if fields else None)
