"""Checks that several kinds share; each problem is a reason that names its field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sublet.booking.model.bag import as_text
from sublet.booking.model.offer import IGNORED, Reason
from sublet.booking.model.request import Data, Request

INVALID = "urn:invalid-value"
MISSING = "urn:missing-required-value"
NOT_SUPPORTED = "urn:not-supported"
ANY_KIND = {"kind", "type", "name", "meta", "phase", "schedule", "costs", "metrics"}  # IVOA's, on every component
_IGNORED = "{where}: there is no field {name} here, and it was ignored."
WORDS_AT_MOST = 1024 * 1024  # bytes; the kernel accepts about 2 MiB of words and environment together


def invalid(field: str, message: str, *, wanted: object = "", nearest: str = "") -> Reason:
    """Return the reason that a field's value can't be used."""
    return Reason(INVALID, f"executable.{field}", message, wanted=str(wanted)[:200], nearest=nearest)


def missing(field: str, message: str, *, nearest: str = "") -> Reason:
    """Return the reason that a required field is missing."""
    return Reason(MISSING, f"executable.{field}", message, nearest=nearest)


def not_supported(field: str, message: str, *, wanted: object = "", nearest: str = "") -> Reason:
    """Return the reason that a valid field isn't supported here."""
    return Reason(NOT_SUPPORTED, f"executable.{field}", message, wanted=str(wanted)[:200], nearest=nearest)


def check_words(field: str, value: Any, *, empty: bool = False) -> list[Reason]:
    """Return what is wrong with a list of words: not text, with NUL, without a first word, or too long."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return [invalid(field, f"{field} must be a list of words.", wanted=value, nearest='["python3", "sim.py"]')]
    if not value:
        return [] if empty else [invalid(field, f"{field} is empty: there is nothing to run.")]
    for index, word in enumerate(value):
        if not isinstance(word, str):
            message = f"{field} must be a list of words; number {index} is {type(word).__name__}."
            return [invalid(f"{field}[{index}]", message, wanted=word, nearest=f'"{word}"')]
        if "\0" in word:
            return [invalid(f"{field}[{index}]", f"word {index} of {field} contains a NUL character.")]
    if not empty and not value[0]:
        return [invalid(f"{field}[0]", f"the first word of {field} is empty: there is nothing to run.")]
    if sum(len(word) for word in value) > WORDS_AT_MOST:
        message = f"{field} is longer than 1 MiB; put long lists in a file."
        return [Reason("urn:resource-limit", f"executable.{field}", message, limit="1 MiB")]
    return []


def check_environment(value: Any) -> list[Reason]:
    """Return what is wrong with an environment, a map of names to values."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [invalid("environment", "environment must be a map of names to values.", wanted=value)]
    reasons = []
    for name, text in value.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name or "\n" in name:
            reasons.append(
                invalid("environment", f"{name!r} can't be the name of an environment variable.", wanted=name)
            )
        elif not isinstance(text, (str, int, float)) or "\0" in str(text):
            reasons.append(
                invalid(f"environment.{name}", f"the value of {name} must be text without NUL.", wanted=text)
            )
    return reasons


def environment_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment as text."""
    return {name: as_text(value) for name, value in (fields.get("environment") or {}).items()}


def check_each_node(fields: Mapping[str, Any]) -> list[Reason]:
    """Return a reason unless `each_node` is true or false."""
    wanted = fields.get("each_node")
    if wanted is None or isinstance(wanted, bool):
        return []
    return [invalid("each_node", "each_node is true or false.", wanted=wanted, nearest="true")]


def tell_only_node(fields: Mapping[str, Any], nodes: int) -> dict[str, str]:
    """Return the variables for a program that runs on each node, if there is only one; several get them at run time."""
    if nodes > 1 or not fields.get("each_node"):
        return {}
    return {"SUBLET_NODES": "1", "SUBLET_NODE_NUMBER": "0", "SUBLET_FIRST_NODE": "localhost"}


def check_local_volumes(request: Request, kind: str) -> list[Reason]:
    """Return reasons for volumes at absolute paths, which this kind doesn't support."""
    return [
        Reason(
            NOT_SUPPORTED,
            "compute.volumes",
            f"{kind} sees the volume {volume.name or volume.path} below its working directory, not at {volume.path}.",
            wanted=volume.path,
            nearest=volume.path.lstrip("/") or "input",
        )
        for volume in request.compute.volumes
        if volume.path.startswith("/")
    ]


def unknown_fields(fields: Mapping[str, Any], known: Iterable[str], under: str = "") -> list[Reason]:
    """Return a remark for each unknown field: it may belong to a newer schema, or be mistyped."""
    given = {str(name) for name, value in fields.items() if value is not None}
    names = [name for name in sorted(given - set(known) - ANY_KIND) if not name.startswith("x-")]
    there = ", ".join(sorted(known))
    return [
        Reason(IGNORED, where, _IGNORED.format(where=where, name=name), nearest=there)
        for where, name in ((f"executable.{under}{name}", name) for name in names)
    ]


def bring(name: str, location: str, *, shared: bool = False) -> Data:
    """Return a file at a location as data to stage; a bare path is a file."""
    location = f"file://{location}" if location.startswith("/") else location
    return Data(name, "simple-data-resource", location, shared=shared)
