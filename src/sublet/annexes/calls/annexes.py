"""Annexes: plan, make, look, change, end; and templates for them."""

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
    """The caller's annexes, with the leases that have not ended."""
    return Call("GET", path_of("annexes"), as_view(AnnexList))


def annex(name: str) -> Call[AnnexView]:
    """One annex; or one of its leases, by `example#3`."""
    return Call("GET", path_of("annexes", name), READ_ANNEX)


def plan(ask: LeaseAsk) -> Call[PlanView]:
    """The whole resource request, before anything is sent."""
    return Call("POST", path_of("annexes", ask.name, "plan"), as_view(PlanView), body=body_of(plain(ask)))


def create(ask: LeaseAsk, key: str | None = None) -> Call[LeaseView]:
    """Make an annex."""
    return Call("POST", path_of("annexes"), as_view(LeaseView), body=body_of(plain(ask)), more=under(key))


def add(ask: LeaseAsk, key: str | None = None) -> Call[LeaseView]:
    """Put more nodes under a name."""
    path = path_of("annexes", ask.name, "leases")
    return Call("POST", path, as_view(LeaseView), body=body_of(plain(ask)), more=under(key))


def cancel(name: str) -> Call[AnnexView]:
    """Take back what still waits."""
    return _change(name, "cancel")


def shutdown(name: str, nodes: Sequence[int] = ()) -> Call[AnnexView]:
    """End leases, whatever they are doing; or only some nodes of one."""
    return _change(name, "shutdown", **({"nodes": list(nodes)} if nodes else {}))


def drain(name: str, nodes: Sequence[str] = ()) -> Call[AnnexView]:
    """Let leases, or some nodes of one, take no new jobs; each node ends when those that run on it are done."""
    return _change(name, "drain", **({"nodes": list(nodes)} if nodes else {}))


def undrain(name: str, nodes: Sequence[str] = ()) -> Call[AnnexView]:
    """Let them take jobs again."""
    return _change(name, "undrain", **({"nodes": list(nodes)} if nodes else {}))


def rename(name: str, new: str) -> Call[AnnexView]:
    """Call it otherwise."""
    return _change(name, "rename", name=new)


def open_(name: str) -> Call[AnnexView]:
    """Let it run all its owner's jobs."""
    return _change(name, "open")


def close(name: str, to_jobs: bool = False) -> Call[AnnexView]:
    """Let it run only the jobs that name it; or none, but sessions, at booked times."""
    return _change(name, "close", **({"to_jobs": True} if to_jobs else {}))


def share(name: str, guest: str) -> Call[AnnexView]:
    """Let someone run contained jobs on it."""
    return _change(name, "share", guest=guest)


def unshare(name: str, guest: str) -> Call[AnnexView]:
    """Let them no longer."""
    return _change(name, "unshare", guest=guest)


def history(name: str) -> Call[AnnexHistory]:
    """All leases that it ever had, and what happened to them."""
    return Call("GET", path_of("annexes", name, "history"), as_view(AnnexHistory))


def templates() -> Call[TemplateList]:
    """The caller's templates."""
    return Call("GET", path_of("templates"), as_view(TemplateList))


def template(name: str) -> Call[TemplateView]:
    """One of them."""
    return Call("GET", path_of("templates", name), as_view(TemplateView))


def save_template(name: str, details: DetailsView) -> Call[TemplateView]:
    """Keep details under a name."""
    return Call("PUT", path_of("templates", name), as_view(TemplateView), body=body_of(plain(details)))


def remove_template(name: str) -> Call[None]:
    """Forget one."""
    return Call("DELETE", path_of("templates", name), nothing)


def _change(annex: str, verb: str, **fields: Any) -> Call[AnnexView]:
    return Call("POST", path_of("annexes", annex, verb), READ_ANNEX, body=body_of(fields) if fields else None)
