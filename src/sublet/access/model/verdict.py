"""What a policy service is asked, and how its answer is read: anything but a clear yes is a no."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sublet.access.model.access import NO_LIMITS, AccessTarget, Limits, Who
from sublet.booking.model.request import Request
from sublet.booking.model.shape import TotalAmounts
from sublet.kernel.document import parse_document
from sublet.kernel.errors import SubletError

COUNTED = ("cores", "memory", "gpus", "nodes")
LONGEST = 500  # characters of its reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """A policy service's decision, with its limits and reason."""

    allowed: bool
    reason: str = ""
    limits: Limits = NO_LIMITS
    is_decided: bool = True  # False: it failed or was late, so a retry may help


def describe_person(name: str, who: Who) -> dict[str, Any]:
    """Describe a person for the policy service."""
    return {"name": name, "names": sorted(who.names), "groups": sorted(who.groups)}


def describe_amounts(amounts: TotalAmounts) -> dict[str, Any]:
    """Describe amounts over all nodes; times in seconds, sizes in bytes."""
    counts = {name: getattr(amounts, name) for name in COUNTED}
    return {**counts, "seconds": amounts.time.total_seconds(), "core_hours": amounts.hours}


def describe_executable(request: Request) -> dict[str, Any]:
    """Describe the executable: its kind, and the app or images that it names."""
    executable = request.executable
    if executable is None:
        return {}
    named = {key: executable.fields.get(key) for key in ("app", "version", "location")}
    images = list_images(executable.fields)
    texts = {key: value for key, value in named.items() if isinstance(value, str) and value}
    return {"kind": executable.kind, **texts, **({"image": images[0], "images": images} if images else {})}


def list_images(fields: Mapping[str, Any]) -> list[str]:
    """List all images that may run: each location of an image, and those of a Compose file's services."""
    named = fields.get("image") or fields.get("standard_image")
    whole = [named] if isinstance(named, str) else []
    if isinstance(named, Mapping):
        digest = f"@{named['digest']}" if named.get("digest") else ""
        whole = [f"{location}{digest}" for location in named.get("locations") or ()]
    return whole + _list_service_images(fields.get("compose"))


def _list_service_images(compose: Any) -> list[str]:
    """List the images of a Compose file; empty if it can't be parsed, as it can't run either."""
    try:
        document = parse_document(compose.encode()) if isinstance(compose, str) else compose
    except SubletError:
        return []
    services = document.get("services") if isinstance(document, Mapping) else None
    listed = services.values() if isinstance(services, Mapping) else ()
    return [str(service["image"]) for service in listed if isinstance(service, Mapping) and "image" in service]


def make_input(
    act: str, person: Mapping[str, Any], target: AccessTarget, wanted: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Build the document that is sent, as the `input` of a decision."""
    return {
        "action": act,
        "time": now.isoformat(timespec="seconds"),
        "person": dict(person),
        "target": {"noun": target[0], "name": target[1]},
        "request": dict(wanted),
    }


def read_verdict(answer: object) -> Verdict:
    """Read `{"result": true}`, or a result with `allow`, `reason` and `limits`; raise ValueError if it is neither.

    An undefined decision has no result, and counts as no.
    """
    if not isinstance(answer, Mapping):
        raise ValueError("it is not a JSON object")
    result = answer.get("result")
    if result is None:
        return Verdict(False, "its policy does not decide this")
    if isinstance(result, bool):
        return Verdict(result)
    if not isinstance(result, Mapping) or not isinstance(result.get("allow"), bool):
        raise ValueError("its result is neither true, false, nor an object with `allow`")
    reason = result.get("reason", "")
    if not isinstance(reason, str):
        raise ValueError("its reason is not a text")
    return Verdict(result["allow"], " ".join(reason.split())[:LONGEST], _read_limits(result.get("limits")))


def _read_limits(limits: object) -> Limits:
    """Read the limits of one session; raise ValueError for unknown ones, as they couldn't be enforced."""
    if limits is None:
        return NO_LIMITS
    known = {*COUNTED, "seconds", "core_hours"}
    if not isinstance(limits, Mapping) or not known >= limits.keys():
        raise ValueError(f"its limits are not of {', '.join(sorted(known))}")
    values = {name: _number(name, value) for name, value in limits.items() if value is not None}
    seconds = values.pop("seconds", None)
    hours = values.pop("core_hours", None)
    time = None if seconds is None else timedelta(seconds=min(seconds, 1e9))
    return Limits(**{name: int(value) for name, value in values.items()}, time=time, hours=hours)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"its limit of {name} is no number from 0 on")
    return float(value)
