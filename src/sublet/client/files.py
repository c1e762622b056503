"""Which local files are sent to a session, and to which paths there: one rule for commands, documents and programs.

A relative path keeps its path; an absolute path, or one with `..`, becomes its last component. A command brings the
files that its words name, and `workdir` a whole folder.
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
PLACED = ("path", "name", "storage")  # with one of these, an item of `data` gives its own path
HERE = "here:"  # prefix of a path to upload from this machine to a service on another
COMMANDS = ("run", "bag", "steps")  # the fields with commands, whose words may name files


class Files:
    """The local files that one request brings along."""

    def __init__(self) -> None:
        """Start without any files."""
        self.size = 0
        self.folder: Folder | None = None
        self._sources: dict[str, str] = {}  # target path → local path

    @property
    def names(self) -> list[str]:
        """The target paths, in the order in which the files were named."""
        return ([f"{self.folder.name}/"] if self.folder else []) + list(self._sources)

    def bring_folder(self, value: Any, directory: str) -> dict[str, Any]:
        """Add the folder of the field `workdir`, whose content becomes the working directory; return the field."""
        given = dict(value) if isinstance(value, Mapping) else {"location": value}
        if not isinstance(given.get("location"), str):
            return given
        path = find_path(given["location"], directory)
        self.folder = read_folder(path, given["location"], given.get("ignore", ()))
        self.size += self.folder.size
        return {"location": path, "ignore": list(self.folder.ignore), **self._describe_size(self.folder.size)}

    def bring_data(self, item: Any, directory: str) -> Any:
        """Add an item of the field `data`; return it with absolute paths, or None if that file was added already."""
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
        """Add the files and folders that a command names; return their items of `data`."""
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
        """Record a file; return False if it was added already, and raise BadRequest if another has the same target."""
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
    """Mark an item of `data`, or a `workdir`, for upload from this machine."""
    return {**item, "location": f"{HERE}{item['location']}"}


def find_path(location: str, directory: str) -> str:
    """Return the absolute path of a local file; raise BadRequest if it doesn't exist."""
    path = os.path.normpath(os.path.join(directory, os.path.expanduser(location)))
    if not os.path.exists(path):
        where = "here" if directory == os.getcwd() else f"in {directory}"
        raise BadRequest(detail=f"there is no file {location} {where}", hint="Data is a file, a directory, or a URL.")
    return path


def land_at(location: str, path: str) -> str:
    """Return a file's target path: as it was named if that is below the working directory, or else its base name."""
    plain = os.path.normpath(os.path.expanduser(location))
    is_inside = not os.path.isabs(plain) and plain.split("/")[0] not in ("..", ".")
    return plain if is_inside else os.path.basename(path) or "data"


def find_named_files(document: Mapping[str, Any], directory: str) -> list[str]:
    """Return the relative paths that a document's commands name and that exist."""
    return [word for word in dict.fromkeys(_candidates(document)) if _is_here(word, directory)]


def find_named_above(document: Mapping[str, Any], directory: str) -> list[str]:
    """Return the paths that a document's commands name, exist and lead up, so that they can't be sent along."""
    named = (word for word in dict.fromkeys(_candidates(document)) if leads_up(word))
    return [word for word in named if _exists(word, directory)]


def leads_up(word: str) -> bool:
    """Whether a word is a relative path with `..` to something that has a name."""
    return ".." in word.split("/") and not os.path.isabs(word) and os.path.basename(os.path.normpath(word)) != ".."


def _is_here(word: str, directory: str) -> bool:
    """Whether a word is a path that exists in or below the directory; paths with `..` never count."""
    return bool(word) and not os.path.isabs(word) and ".." not in word.split("/") and _exists(word, directory)


def _exists(word: str, directory: str) -> bool:
    return "\0" not in word and len(word) < 4096 and os.path.exists(os.path.join(directory, word))


def list_steps(document: Mapping[str, Any]) -> list[Any]:
    """Return the steps of a document, as they are written."""
    steps = document.get("steps")
    listed = steps.get("run") if isinstance(steps, Mapping) else steps
    return listed if isinstance(listed, list) else []


def list_step_lines(document: Mapping[str, Any]) -> list[Any]:
    """Return the commands of a document's steps, as they are written."""
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
    """Yield the words of a command that may be paths: the program itself only if it contains a slash."""
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
