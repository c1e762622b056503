"""What a session runs, for its page: the program, its data, and the requested amounts; never values of secrets."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sublet.booking.model.request import Data, Executable, Range, Request
from sublet.kernel.data_urls import shorten_location
from sublet.kernel.texts import describe_duration
from sublet.web.words import count_text, memory_about

LONGEST = 20_000  # characters of a program that a page shows
OWN_KINDS = ("pilot",)  # the service's own programs, which contain the credentials of nodes
HIDDEN = ("environment", "pinned")  # shown elsewhere, or internal
SECRET = re.compile(r"(?i)(token|secret|password|passwd|signature|credential|api_?key|^sig$|^key$)")
LABELS = {
    "argv": "Command",
    "script": "Script",
    "command": "Command",
    "entrypoint": "Entry point",
    "image": "Image",
    "location": "Location",
    "app": "App",
    "parameters": "Parameters",
    "requirements": "Requirements",
    "interface": "Interface",
    "each_node": "On each node",
}


@dataclass(frozen=True, slots=True)
class WorkPart:
    """One item that a session runs or was given."""

    label: str
    text: str
    is_code: bool = True  # shown as it is, with a button that copies it
    is_cut: bool = False


def describe_work(request: Request) -> list[WorkPart]:
    """Describe the program, the names in its environment, its data, and the requested amounts."""
    executable = request.executable
    parts = [*_program(executable)] if executable and executable.kind not in OWN_KINDS else []
    parts += [_of_data(item) for item in request.data]
    return [*parts, WorkPart("Asked for", _amounts(request), is_code=False)]


def _program(executable: Executable) -> Iterator[WorkPart]:
    fields = executable.fields
    for name, value in fields.items():
        if name in HIDDEN or value in (None, "", [], {}):
            continue
        text = _text(name, value)
        yield WorkPart(LABELS.get(name, name.capitalize()), text[:LONGEST], is_cut=len(text) > LONGEST)
    pinned = fields.get("pinned")
    if isinstance(pinned, Mapping):
        yield from _version(pinned)
    if environment := fields.get("environment"):
        names = ", ".join(sorted(environment)) if isinstance(environment, Mapping) else ""
        yield WorkPart("Environment", f"{names} (values are not shown)", is_code=False)


def _version(pinned: Mapping[str, Any]) -> Iterator[WorkPart]:
    """Describe where an app's code comes from."""
    where = [str(pinned[name]) for name in ("repository", "commit") if pinned.get(name)]
    if where:
        yield WorkPart("Code", " @ ".join(where))
    if pinned.get("image"):
        yield WorkPart("Image", str(pinned["image"]))


def _text(name: str, value: Any) -> str:
    if name in ("argv", "command") and isinstance(value, list):
        return shlex.join(str(word) for word in value)
    if name == "image" and isinstance(value, Mapping):
        return "\n".join(hide_credentials(str(item)) for item in value.get("locations") or [value])
    if name == "location":
        return hide_credentials(str(value))
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(_without_secrets(value), indent=2, ensure_ascii=False, default=str)


def _without_secrets(value: Any) -> Any:
    """Return a value without the parts whose names say that they are secret."""
    if isinstance(value, Mapping):
        return {name: "…" if SECRET.search(str(name)) else _without_secrets(item) for name, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _of_data(data: Data) -> WorkPart:
    size = f" ({memory_about(data.size)})" if data.size else ""
    location = hide_credentials(shorten_location(data.location))
    return WorkPart(f"Data: {data.name}", f"{location or data.kind}{size}")


def hide_credentials(address: str) -> str:
    """Return an address without the password, or the signed query, that it may contain."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    host = f"…@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    secret = any(SECRET.search(parameter.partition("=")[0].rpartition("-")[2]) for parameter in parts.query.split("&"))
    if host == parts.netloc and not secret:
        return address
    return urlunsplit((parts.scheme, host, parts.path, "…" if secret else parts.query, parts.fragment))


def _amounts(request: Request) -> str:
    compute = request.compute
    words = [_range(compute.nodes, "node")] if compute.nodes.max > 1 else []
    words += [_range(compute.cores, "core"), _memory(compute.memory)]
    if compute.gpus.max:
        words.append(_range(compute.gpus, "GPU"))
    if compute.disk.max:
        words.append(f"{_memory(compute.disk)} of disk")
    words.append(f"for {describe_duration(request.duration)}")
    words += [f"on {request.platform}"] if request.platform else []
    words += [name if value is True else f"{name} {value}" for name, value in _scheduler_words(request)]
    return ", ".join(words)


def _scheduler_words(request: Request) -> Iterator[tuple[str, Any]]:
    asked = request.scheduler
    yield from ((name, value) for name, value in asked.list_asked().items() if name != "options")
    yield from asked.free()


def _range(amount: Range, noun: str) -> str:
    return count_text(amount.min, noun) if amount.min == amount.max else f"{amount.min}–{count_text(amount.max, noun)}"


def _memory(amount: Range) -> str:
    low, high = memory_about(amount.min), memory_about(amount.max)
    return low if low == high else f"{low}–{high}"
