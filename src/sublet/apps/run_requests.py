"""A request to run an app, and its conversion to a request document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sublet.booking.documents.short import full_document
from sublet.booking.model.scheduler import SCHEDULER_NAMES
from sublet.kernel.document_fields import refuse_unknown_fields

WHOLE = "data"  # the name of an app's whole data folder, if none was given


@dataclass(frozen=True, kw_only=True)
class AppWish:
    """Which app to run, where, and with which parameters, data and resources."""

    app: str = ""
    repository: str = ""  # instead of its name
    maintainer: str = ""  # the generic image that the repository must be approved for; empty: any
    version: str = ""
    hpc: str = ""
    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)  # parameters with their types
    words: Mapping[str, str] = field(default_factory=dict)  # parameters as text, to be converted by the app's schema
    data: Mapping[str, str] = field(default_factory=dict)  # name of an input → its location
    places: Sequence[str] = ()  # directories of the system that the app should see
    outputs: Sequence[Mapping[str, Any]] = ()  # results to send somewhere, as in a request
    resources: Mapping[str, Any] = field(default_factory=dict)
    scheduler: Mapping[str, Any] = field(default_factory=dict)  # constraint, nice, …, as in a request


def document_of(wish: AppWish, app: str, version: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that requests the app."""
    data = [{"name": name.strip("/") or WHOLE, "location": place} for name, place in wish.data.items()]
    short: dict[str, Any] = {"app": app, "version": version, "parameters": dict(parameters), "name": wish.name or app}
    refuse_unknown_fields(wish.scheduler, SCHEDULER_NAMES, "scheduler")
    short |= wish.scheduler
    if wish.places:
        short["places"] = list(wish.places)
    if wish.outputs:
        short["outputs"] = [dict(output) for output in wish.outputs]
    if wish.hpc:
        short["platform"] = wish.hpc
    full = full_document({**short, "data": data} if data else short)
    if wish.resources:
        full["executable"]["resources"] = dict(wish.resources)
    return full
