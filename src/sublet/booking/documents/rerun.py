"""A request to run again with changes: the new document, and each change in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from sublet.booking.documents.kinds import NODE_COMPUTE, short_name
from sublet.booking.documents.shapes import AFTER, WHERE, Document
from sublet.booking.documents.short import full_document, plain_amounts
from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.shape import SIZES
from sublet.kernel.document_fields import refuse
from sublet.kernel.texts import describe_duration

SOON = "as soon as possible"
WITH_PARAMETERS = frozenset({"app", "jupyter-notebook"})


def with_changes(
    document: Mapping[str, Any], changes: Mapping[str, Any], set: Mapping[str, Any], words: Mapping[str, str]
) -> tuple[Document, tuple[str, ...]]:
    """Return the changed document in the full form, and the changes in words.

    `changes` has the fields of the short form; `set` and `words` change parameters. Requested times belong to the
    first run: without a new `start`, the next one is as soon as possible.
    """
    old = full_document(document)
    new, notes = deepcopy(old), list[str]()
    given = {name: value for name, value in changes.items() if value not in (None, "")}
    wanted = full_document({"run": ["true"], **{n: v for n, v in given.items() if n in (*SIZES, "time", "start")}})
    named = _resources(new, given, wanted["compute"])
    for name in SIZES:
        if name in given:
            new["compute"][name] = wanted["compute"][name]
            unit = "GiB" if name in ("memory", "disk") else ""
            before = named.get(name, _amount(old["compute"].get(name), unit))
            notes += _describe_change(name, before, _amount(new["compute"][name], unit))
    if wanted["compute"]["kind"] == NODE_COMPUTE:
        new["compute"]["kind"] = NODE_COMPUTE
    notes += _when(old, new, wanted, given, named)
    for name in WHERE:
        if name in given:
            new[name] = given[name]
            notes += _describe_change(name, old.get(name), new[name])
    if new.pop(AFTER, None):
        notes.append("after: what it waited for then is not waited for again")
    if "name" in given:
        new["executable"]["meta"]["name"] = given["name"]
        notes += _describe_change("name", old["executable"]["meta"].get("name"), given["name"])
    return new, (*notes, *_parameters(new, set, words))


def _resources(new: Document, given: Mapping[str, Any], compute: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace an app's resources, which override other amounts, by the new ones; return the old ones by name."""
    executable = new.get("executable", {})
    if short_name(str(executable.get("kind", ""))) != "app":
        return {}
    named = executable.pop("resources", None) or {}
    kept = {name: value for name, value in named.items() if name not in given}
    if changed := kept | plain_amounts(given, compute):
        executable["resources"] = changed
    return dict.fromkeys((*SIZES, "time")) | named  # what wasn't given is as in the manifest


def _when(
    old: Document, new: Document, wanted: Document, given: Mapping[str, Any], named: Mapping[str, Any]
) -> list[str]:
    """Set the new duration and start, and describe the changes."""
    notes: list[str] = []
    before, after = old["schedule"]["requested"], new["schedule"]["requested"]
    if "time" in given:
        after["duration"] = wanted["schedule"]["requested"]["duration"]
        was_asked = named.get("time", before["duration"])
        notes += _describe_change("time", was_asked and _length(was_asked), _length(after["duration"]))
    was = before.get("start") or old["compute"].get("starts")
    after.pop("start", None)
    new["compute"].pop("starts", None)
    for place, name in ((after, "start"), (new["compute"], "starts")):
        value = (wanted["schedule"]["requested"] if name == "start" else wanted["compute"]).get(name)
        if value:
            place[name] = value
    if was or "start" in given:
        notes += _describe_change("start", was, given.get("start") or SOON)
    return notes


def _parameters(new: Document, set: Mapping[str, Any], words: Mapping[str, str]) -> list[str]:
    """Override parameters and describe the changes; a word gets the type of the value that it replaces."""
    if not set and not words:
        return []
    executable = new.get("executable", {})
    kind = short_name(str(executable.get("kind", "")))
    if kind not in WITH_PARAMETERS:
        refuse("set", f"a {kind} has no parameters", "Parameters are for apps and notebooks.")
    old = dict(executable.get("parameters") or {})
    typed = {name: type_like(word, old.get(name)) for name, word in words.items()}
    executable["parameters"] = {**old, **typed, **set}
    return [line for name, value in {**typed, **set}.items() for line in _describe_change(name, old.get(name), value)]


def type_like(word: str, old: Any) -> Any:
    """Return a word as text if it replaces text; else parse it as JSON, and keep it as text if it is none."""
    if isinstance(old, str):
        return word
    try:
        return json.loads(word)
    except ValueError:
        return word


def _describe_change(name: str, old: Any, new: Any) -> list[str]:
    """Describe a change in words; empty if nothing changed."""
    return [] if _text(old) == _text(new) else [f"{name}: {_text(old)} → {_text(new)}"]


def _text(value: Any) -> str:
    if value is None:
        return "(not said)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _amount(bounds: Any, unit: str) -> Any:
    """Write an amount as a person would: `4`, `4-16`, `1500MiB`."""
    if not isinstance(bounds, Mapping):
        return bounds
    least, most = (f"{end}{unit}" if isinstance(end, int) else str(end) for end in (bounds["min"], bounds["max"]))
    return least if least == most else f"{least}-{most}"


def _length(text: Any) -> str:
    return describe_duration(parse_duration(str(text)))
