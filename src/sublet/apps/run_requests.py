"""A wish to run an app, and the document that it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sublet.booking.documents.short import full_document
from sublet.booking.model.scheduler import SCHEDULER_NAMES
from sublet.kernel.document_fields import refuse_unknown_fields

WHOLE = "data"  # what an app's whole data folder is called, where no name was given


@dataclass(frozen=True, kw_only=True)
class AppWish:
    """Which app, where, with which values, data and resources."""

    app: str = ""
    repository: str = ""  # instead of its name
    maintainer: str = ""  # whose generic image the repository was approved for, if that matters
    version: str = ""
    hpc: str = ""
    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)  # parameters, as they are
    words: Mapping[str, str] = field(default_factory=dict)  # parameters as text, to be typed by the app's schema
    data: Mapping[str, str] = field(default_factory=dict)  # the name of an input → where it is
    places: Sequence[str] = ()  # directories of the system that it is to see
    outputs: Sequence[Mapping[str, Any]] = ()  # results that are sent somewhere: as a request has them
    resources: Mapping[str, Any] = field(default_factory=dict)
    scheduler: Mapping[str, Any] = field(default_factory=dict)  # constraint, nice, …: as a request has them


def document_of(wish: AppWish, app: str, version: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The document that asks for it."""
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
