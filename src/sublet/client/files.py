"""Which of a person's files go to a session, and where they land there: one rule for commands, documents and programs.

What is named by a relative path lands where it was named; an absolute path, or one that goes up, lands under its last
name. A command brings the files that its words name, and `workdir` a whole folder.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sublet.client.folder import Folder, measure_folder, read_folder
from sublet.kernel.errors import BadRequest

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
PLACED = ("path", "name", "storage")  # an item of `data` that has one of these says itself where it is seen
HERE = "here:"  # before the path of what is to be sent from this machine to a service on another
COMMANDS = ("run", "bag", "steps")  # the fields whose words may name files


class Files:
    """What one request brings from here."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.size = 0
        self.folder: Folder | None = None
        self._sources: dict[str, str] = {}  # by where they land

    @property
    def names(self) -> list[str]:
        """Where each thing lands, in the order in which they were named."""
        return ([f"{self.folder.name}/"] if self.folder else []) + list(self._sources)

    def bring_folder(self, value: Any, directory: str) -> dict[str, Any]:
        """The field `workdir`: a folder whose content lands in the working directory."""
        given = dict(value) if isinstance(value, Mapping) else {"location": value}
        if not isinstance(given.get("location"), str):
            return given
        path = find_path(given["location"], directory)
        self.folder = read_folder(path, given["location"], given.get("ignore", ()))
        self.size += self.folder.size
        return {"location": path, "ignore": list(self.folder.ignore), **self._describe_size(self.folder.size)}

    def bring_data(self, item: Any, directory: str) -> Any:
        """One item of the field `data`; an address stays as it is."""
        given = dict(item) if isinstance(item, Mapping) else {"location": item}
        location = given.get("location")
        if not isinstance(location, str) or ADDRESS.match(location):
            return item
        given["location"] = path = find_path(location, directory)
        if not any(name in given for name in PLACED):
            given |= {"path": land_at(location, path), "writable": given.get("writable", True)}
        if "path" in given and not self._add(path, str(given["path"])):
            return None
        self.size += os.path.getsize(path) if os.path.isfile(path) else measure_folder(path, given.get("ignore", ()))
        return given

    def bring_named(self, words: Iterable[str], directory: str) -> list[dict[str, Any]]:
        """The files and folders that a command names."""
        brought = []
        for word in dict.fromkeys(words):
            path, lands = os.path.join(directory, word), os.path.normpath(word)
            if lands == "." or not self._add(path, lands):
                continue
            item: dict[str, Any] = {"location": os.path.abspath(path), "path": lands, "writable": True}
            if os.path.isdir(path):
                folder = read_folder(path, word)
                item |= {"ignore": list(folder.ignore), **self._describe_size(folder.size)}
                self.size += folder.size
            else:
                self.size += os.path.getsize(path)
            brought.append(item)
        return brought

    def _add(self, source: str, lands: str) -> bool:
        """Remember it; False if it is there anyway. Two things can't be in one place."""
        source, lands = os.path.realpath(source), os.path.normpath(lands)
        other = self._sources.get(lands)
        if other is None and self.folder and self.folder.holds(lands):
            other = os.path.realpath(os.path.join(self.folder.path, lands))
        if other is not None and other != source:
            raise BadRequest(
                detail=f"{source} and {other} would both be at {lands}",
                hint="Say where one of them goes: --data FILE:PATH, or {location: …, path: …} in the document.",
            )
        if other is None:
            self._sources[lands] = source
        return other is None

    def _describe_size(self, size: int) -> dict[str, int]:
        return {"size": size} if size else {}


def mark_here(item: Any) -> Any:
    """An item of `data`, or a `workdir`, that is to be sent from this machine."""
    return {**item, "location": f"{HERE}{item['location']}"}


def find_path(location: str, directory: str) -> str:
    """The whole path of something that must be here."""
    path = os.path.normpath(os.path.join(directory, os.path.expanduser(location)))
    if not os.path.exists(path):
        where = "here" if directory == os.getcwd() else f"in {directory}"
        raise BadRequest(detail=f"there is no file {location} {where}", hint="Data is a file, a directory, or a URL.")
    return path


def land_at(location: str, path: str) -> str:
    """Where it is seen: as it was named, if that stays below the working directory."""
    plain = os.path.normpath(os.path.expanduser(location))
    is_inside = not os.path.isabs(plain) and plain.split("/")[0] not in ("..", ".")
    return plain if is_inside else os.path.basename(path) or "data"


def find_named_files(document: Mapping[str, Any], directory: str) -> list[str]:
    """The relative paths that the command of a document names, and that are there."""
    return [word for word in dict.fromkeys(_candidates(document)) if _is_here(word, directory)]


def _is_here(word: str, directory: str) -> bool:
    """Something in the directory or below; never what is reached by going up."""
    is_inside = bool(word) and "\0" not in word and not os.path.isabs(word) and ".." not in word.split("/")
    return is_inside and len(word) < 4096 and os.path.exists(os.path.join(directory, word))


def list_steps(document: Mapping[str, Any]) -> list[Any]:
    """The steps of a document, as they are written."""
    steps = document.get("steps")
    listed = steps.get("run") if isinstance(steps, Mapping) else steps
    return listed if isinstance(listed, list) else []


def list_step_lines(document: Mapping[str, Any]) -> list[Any]:
    """The commands of the steps of a document, as they are written."""
    return [step.get("run") if isinstance(step, Mapping) else step for step in list_steps(document)]


def _candidates(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _arguments(document.get("run"))
    for line in list_step_lines(document):
        yield from _arguments(line)
    bag = document.get("bag")
    tasks = bag.get("tasks") if isinstance(bag, Mapping) else bag
    for task in tasks if isinstance(tasks, list) else ():
        yield from _arguments(task.get("argv") if isinstance(task, Mapping) else task)
    if isinstance(bag, Mapping):
        yield from _arguments(bag.get("template"))
        grid = bag.get("grid")
        table = bag.get("table")
        columns = list(grid.values()) if isinstance(grid, Mapping) else []
        columns += [list(row.values()) for row in table if isinstance(row, Mapping)] if isinstance(table, list) else []
        for values in columns:
            yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _arguments(line: Any) -> Iterator[str]:
    """The words of a command that may be paths: not the program, unless it is named by one."""
    try:
        words = shlex.split(line) if isinstance(line, str) else line
    except ValueError:
        return
    for number, word in enumerate(words if isinstance(words, (list, tuple)) else ()):
        if not isinstance(word, str):
            continue
        if word.startswith("-"):
            yield word.partition("=")[2]
        elif number or "/" in word:
            yield word
