"""The person's own systems: one file each in SUBLET_HOME, which overrides the catalogue's facts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sublet.kernel.errors import BadRequest, NotFound
from sublet.systems import catalogue
from sublet.systems.catalogue import SUFFIX, blame_line, document_of
from sublet.systems.edited import with_fields
from sublet.systems.fields import BadField, Path
from sublet.systems.model.system import System
from sublet.systems.reader import check_fields, read_system

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


class Systems:
    """All systems that a person can name: their own, and the catalogue's."""

    def __init__(self, directory: str) -> None:
        """Keep own systems in this directory, which is created with the first of them."""
        self.directory = directory

    def own_names(self) -> list[str]:
        """List the person's own systems."""
        return catalogue.names(self.directory)

    def names(self) -> list[str]:
        """List all systems; an own system replaces the catalogue's of the same name."""
        return sorted({*self.own_names(), *catalogue.names()})

    def file(self, name: str) -> str:
        """Return the path of an own system's file."""
        return os.path.join(self.directory, check_name(name) + SUFFIX)

    def find(self, name: str) -> System:
        """Return a system by name, own systems first; raise NotFound if there is none."""
        if name in self.own_names():
            return self._own(name)
        if name not in catalogue.names():
            hint = f"`sublet system list` shows the systems.{catalogue.nearest(name, self.names())}"
            raise NotFound(noun="system", name=name, hint=hint)
        return catalogue.find_in_catalogue(name)

    def add(self, name: str, document: Mapping[str, Any]) -> System:
        """Save a new system, readable by its owner only; raise BadRequest if it already exists."""
        import yaml

        file = self.file(name)
        for directory in (os.path.dirname(self.directory), self.directory):
            os.makedirs(directory, mode=0o700, exist_ok=True)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            hint = f"Edit {file}, or `sublet system remove {name}` first."
            raise BadRequest(f"The system {name} already exists.", hint=hint) from None
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            yaml.safe_dump(dict(document), opened, sort_keys=False, allow_unicode=True)
        try:
            return self._own(name)
        except BaseException:
            os.unlink(file)  # an unreadable system would only be in the way
            raise

    def put(self, name: str, facts: Mapping[str, Any]) -> System:
        """Update facts in an own system's file; everything else in the file is kept as written."""
        file = self.file(name)
        document = merge_documents(document_of(name, file), facts)
        try:
            system = read_system(name, merge_documents(_like(document), document))
        except BadField as wrong:
            raise blame_line(wrong, name, file) from None
        with open(file, encoding="utf-8") as opened:
            text = with_fields(opened.read(), {key: document[key] for key in facts})
        part = f"{file}.part"
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(part, file)
        return system

    def remove(self, name: str) -> None:
        """Remove an own system."""
        try:
            os.unlink(self.file(name))
        except FileNotFoundError:
            reason = f"{name} is in the catalogue" if name in catalogue.names() else f"There is no system {name}"
            raise NotFound(
                f"{reason}; only your own can be removed.", hint="`sublet system list` shows which they are."
            ) from None

    def _own(self, name: str) -> System:
        file = self.file(name)
        document = document_of(name, file)
        whole: dict[str, Any] = {}
        try:
            check_fields(document)  # on its own first, so that an error gets its line number
            whole = merge_documents(_like(document), document)
            return replace(read_system(name, whole), own=tuple(_paths(document)))
        except BadField as wrong:
            raise blame_line(BadField(_own_path(wrong.path, whole, document), wrong.detail), name, file) from None


def check_name(name: str) -> str:
    """Return the name; raise BadRequest if it can't name a file and a platform."""
    if not _NAME.fullmatch(name):
        hint = "Use small letters, digits, dots, dashes and underscores, 40 at most, and begin with a letter or digit."
        raise BadRequest(f"A system can't be called {name!r}.", hint=hint)
    return name


def merge_documents(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge one document over another: field by field, queues by their names, other lists as a whole."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[key] = merge_documents(before, value)
        elif key == "queues" and isinstance(value, list) and isinstance(before, list):
            merged[key] = _merge_queues(before, value)
        else:
            merged[key] = value
    return merged


def _merge_queues(base: list[dict[str, Any]], over: list[dict[str, Any]]) -> list[dict[str, Any]]:
    changes = {queue["name"]: queue for queue in over}
    known = {queue["name"] for queue in base}
    kept = [merge_documents(queue, changes.get(queue["name"], {})) for queue in base]
    return kept + [queue for queue in over if queue["name"] not in known]


def _like(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the catalogue's document that this one is based on."""
    like, known = str(document.get("like", "")), catalogue.names()
    if not like:
        return {}
    if like not in known:
        raise BadField(("like",), f"there is no {like} in the catalogue.{catalogue.nearest(like, known)}")
    return document_of(like, os.path.join(catalogue.DIRECTORY, like + SUFFIX))


def _own_path(path: Path, whole: Mapping[str, Any], own: Mapping[str, Any]) -> Path:
    """Translate a path in the merged document to the own document, which has fewer queues."""
    if not whole or path[:1] != ("queues",) or len(path) < 2 or not isinstance(path[1], int):
        return path
    name = whole["queues"][path[1]]["name"]
    own_queues = own.get("queues", [])
    index = next((index for index, queue in enumerate(own_queues) if queue["name"] == name), None)
    return ("queues", name, *path[2:]) if index is None else ("queues", index, *path[2:])


def _paths(document: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{before}{key}.")
        else:
            yield before + key
