"""Fits a request for an app to what its manifest allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sublet.apps.model.manifest import Manifest
from sublet.apps.model.resources import NAMES, parse, size_run, wrong
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import PlaceWish
from sublet.booking.model.request import COMPUTE_WITH_NODES, GIB, Compute, Request
from sublet.kernel.errors import BadAmount

FREE = Compute()
USUAL = Request(None).duration


def fit_request(request: Request, manifest: Manifest) -> Request | Reason:
    """Return the request with the app's resources, adjusted to those requested if the app can use them."""
    try:
        wanted = _read_amounts(request, manifest) | _read_named_amounts(request, manifest)
    except BadAmount as error:
        return Reason("urn:invalid-value", "resources", error.message, nearest=error.advice)
    if reasons := wrong(manifest, wanted):
        return reasons[0]
    size = size_run(manifest, wanted)
    compute = request.compute.exactly(size.amounts)
    if size.amounts.shape.memory % GIB:
        compute = replace(compute, kind=COMPUTE_WITH_NODES)
    places = add_places(request, manifest)
    if isinstance(places, Reason):
        return places
    executable = request.executable
    if executable and (size.tasks > 1 or "tasks" in manifest.resources):  # even if it is one
        executable = replace(executable, fields={**executable.fields, "tasks": size.tasks})
    return replace(request, executable=executable, compute=compute, duration=size.amounts.time, places=places)


def add_places(request: Request, manifest: Manifest) -> tuple[PlaceWish, ...] | Reason:
    """Return the manifest's places, then the request's, which can't choose where an app sees them.

    A place mounted over its code or image would run unreviewed code.
    """
    if moved := next((wish for wish in request.places if wish.path), None):
        told = f"An app sees the place {moved.name} where its manifest says, or whoever declared it."
        return Reason("urn:invalid-value", "places", told, moved.path, "", f"--place {moved.name}")
    asked = {wish.name: wish for wish in request.places}
    own = [
        PlaceWish(
            place.name,
            place.path,
            read_only=not place.writable or (place.name in asked and asked[place.name].read_only),
            is_needed=place.required or place.name in asked,
        )
        for place in manifest.places
    ]
    known = {place.name for place in manifest.places}
    return (*own, *(wish for wish in request.places if wish.name not in known))


def _read_amounts(request: Request, manifest: Manifest) -> dict[str, int]:
    """Return the requested amounts by the manifest's names, except those that are every request's defaults."""
    executable = request.executable
    tasks = executable.fields.get("tasks") if executable else None
    asked = {
        "nodes": (request.compute.nodes.min, FREE.nodes.min),
        _cores(manifest): (request.compute.cores.min, FREE.cores.min),
        "memory": (request.compute.memory.min, FREE.memory.min),
        "gpus": (request.compute.gpus.min, FREE.gpus.min),
        "time": (_seconds(request.duration), _seconds(USUAL)),
    }
    amounts = {name: value for name, (value, usual) in asked.items() if value != usual}
    return amounts | ({"tasks": tasks} if type(tasks) is int else {})


def _read_named_amounts(request: Request, manifest: Manifest) -> dict[str, int]:
    """Return the amounts that were requested by the manifest's own names."""
    said: Any = request.executable.fields.get("resources") if request.executable else None
    given = said if isinstance(said, Mapping) else {}
    amounts = {str(name): parse(str(name), value) if name in NAMES else 0 for name, value in given.items()}
    if amounts.get("cores", 1) > 1 and "tasks" not in amounts:
        amounts[_cores(manifest)] = amounts.pop("cores")
    return amounts


def _cores(manifest: Manifest) -> str:
    """Return the manifest's name for cores: `tasks` if it only knows tasks, which have one core each."""
    return "tasks" if "tasks" in manifest.resources and "cores" not in manifest.resources else "cores"


def _seconds(duration: timedelta) -> int:
    return round(duration.total_seconds())
