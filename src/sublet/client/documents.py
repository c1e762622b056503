"""Builds the document of a request: reads files, applies parameters, and makes paths absolute."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sublet.client.files import COMMANDS, Files, find_named_above, find_named_files, mark_here
from sublet.client.missing import (
    check_apart,
    check_programs,
    looks_like_image_file,
    refuse_missing_image,
    refuse_missing_notebook,
)
from sublet.client.names import name_of
from sublet.client.values import plain_document
from sublet.client.wishes import refuse_misspelt
from sublet.kernel.errors import BadRequest

Document = Mapping[str, Any] | str | os.PathLike[str]
FULL = ("executable", "request")  # fields that only the full form has
# Fields that a request's default name comes from.
NAMING = ("run", "script", "notebook", "compose", "bag", "steps", "interactive", "image")
STAY = "stay"  # only for the client: don't send the files that the command names
NOT_HERE = "the service is on another machine, and takes no image files from this one"
BY_NAME = 'A command is given as `sublet run -- echo hello`; in Python as run="echo hello" or run=["echo", "hello"].'
IMAGE_BY_ADDRESS = "Give the image as one of a registry (ghcr.io/owner/name:tag), or by an https: address."


@dataclass(frozen=True)
class Prepared:
    """A document that can be sent, and the local files that belong to it."""

    document: Mapping[str, Any]
    files: Files
    missing: str = ""  # the program file of its command, if it isn't here and may exist only where it runs
    above: tuple[str, ...] = ()  # paths that its command names and that lead up, so that they can't be sent along


def document_of(document: Document | None, wishes: Mapping[str, Any], *, local: bool) -> Mapping[str, Any]:
    """Return the document: a mapping, YAML text, or a file, with the `wishes` applied to its short form."""
    refuse_misspelt(wishes)
    return prepare(document, wishes, local=local).document


def prepare(document: Document | None, wishes: Mapping[str, Any], *, local: bool) -> Prepared:
    """Return the document, like `document_of`, and the local files that belong to it.

    A `start` without a time zone is in this machine's time zone. If the service sees the same files as the caller,
    relative paths are resolved here, or in the document's own directory.
    """
    directory, file = os.getcwd(), ""
    if document is None:
        read: Mapping[str, Any] = {}
    elif isinstance(document, Mapping):
        read = document
    elif isinstance(document, str) and ("\n" in document or ": " in document):
        read = parse(document.encode())
    elif not isinstance(document, str | os.PathLike):
        raise BadRequest(detail=f"it is a {type(document).__name__}, not a mapping, YAML text or a file", hint=BY_NAME)
    else:
        read, file = parse(_read(document)), os.path.abspath(document)
        directory = os.path.dirname(file)
    whole = with_local_starts(plain_document(with_wishes(read, wishes)))
    here = os.getcwd()
    directories = {name: here if name in wishes else directory for name in whole}
    if any(name in whole for name in FULL):
        return Prepared(_locate_full(whole, directory) if local else whole, Files())
    stays = bool(whole.pop(STAY, False))
    is_of_file = not any(name in wishes for name in NAMING)
    if "name" not in whole and (name := name_of(whole, file if is_of_file else "")):
        whole["name"] = name
    if not stays and "run" in whole and "image" not in whole:  # else it may be an argument of the image
        check_apart(whole["run"], directories["run"])
    return bring(whole, directories, stays=stays) if local else bring_far(whole, directories, stays=stays)


def bring(document: dict[str, Any], directories: Mapping[str, str], *, stays: bool) -> Prepared:
    """Make paths absolute, and add the files that the command names; for a service on the same file system."""
    files, located = Files(), locate(document, directories)
    if located.get("notebook") and located.get("parameters"):
        from sublet.client.notebook_parameters import check_parameters  # slow to load, and only needed here

        check_parameters(located)
    missing = "" if stays else check_programs(document, directories)
    if "workdir" in located:
        located["workdir"] = files.bring_folder(located["workdir"], directories["workdir"])
    data = _items(located.get("data", []))
    if isinstance(data, list):
        data = [item for item in (files.bring_data(item, directories["data"]) for item in data) if item is not None]
        for name in () if stays else COMMANDS:
            if name in document:
                named = find_named_files({name: document[name]}, directories[name])
                data += files.bring_named(named, directories[name])
        if data or "data" in located:
            located["data"] = data
    return Prepared(located, files, missing=missing, above=() if stays else _find_above(document, directories))


def bring_far(document: dict[str, Any], directories: Mapping[str, str], *, stays: bool) -> Prepared:
    """Mark the files that relative paths and the command name for upload; for a service on another machine."""
    for place in _places(document.get("image")):
        if looks_like_image_file(place):
            raise BadRequest(detail=f"image: {NOT_HERE}: {place}", hint=IMAGE_BY_ADDRESS)
    files, found = Files(), dict(document)
    if "workdir" in found:
        found["workdir"] = mark_here(files.bring_folder(found["workdir"], directories["workdir"]))
    data = _items(found.get("data", []))
    if isinstance(data, list):
        brought = [_bring_near(files, item, directories) for item in data]
        for name in () if stays else COMMANDS:
            if name in document:
                named = find_named_files({name: document[name]}, directories[name])
                brought += map(mark_here, files.bring_named(named, directories[name]))
        if brought or "data" in found:
            found["data"] = [item for item in brought if item is not None]
    return Prepared(found, files, above=() if stays else _find_above(document, directories))


def _find_above(document: Mapping[str, Any], directories: Mapping[str, str]) -> tuple[str, ...]:
    written = [name for name in COMMANDS if name in document]
    return tuple(path for name in written for path in find_named_above({name: document[name]}, directories[name]))


def _bring_near(files: Files, item: Any, directories: Mapping[str, str]) -> Any:
    """Mark a data item for upload if it is a local relative path; return addresses and absolute paths unchanged."""
    location = item.get("location") if isinstance(item, Mapping) else item
    if not isinstance(location, str) or os.path.isabs(location):
        return item
    if not os.path.exists(os.path.join(directories["data"], location)):
        return item
    brought = files.bring_data(item, directories["data"])
    return brought if brought is None else mark_here(brought)


def _places(image: Any) -> list[str]:
    """Return the locations of an image."""
    places = image.get("locations") if isinstance(image, Mapping) else [image]
    return [place for place in places if isinstance(place, str)] if isinstance(places, list) else []


def _items(data: Any) -> Any:
    return [data] if isinstance(data, str | Mapping) else data


def parse(text: bytes) -> Mapping[str, Any]:
    """Parse YAML or JSON text."""
    from sublet.kernel.document import parse_document  # loads PyYAML

    return parse_document(text)


def with_wishes(document: Mapping[str, Any], wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with parameters of the short form applied; raise BadRequest for a full document."""
    if wishes and any(name in document for name in FULL):
        words = ", ".join(wishes)
        raise BadRequest(
            detail=f"{words} can't be put over a full document",
            hint="Write them in the document, or use the short form.",
        )
    return {**document, **wishes}


def with_local_starts(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with its `start` in this machine's time zone made explicit."""
    if not document.get("start"):
        return document
    from sublet.booking.documents.local_starts import pin_starts
    from sublet.client.local_time import local_now  # time zones take long to load

    return pin_starts(document, local_now())


def locate(document: Mapping[str, Any], directories: Mapping[str, str]) -> dict[str, Any]:
    """Return the document with absolute paths for its notebook, image and bag's file, if those are local files."""
    located = dict(document)
    if isinstance(located.get("notebook"), str):
        located["notebook"] = _notebook(located["notebook"], directories["notebook"])
    if isinstance(image := located.get("image"), str):
        located["image"] = _image(image, directories["image"])
    elif isinstance(image, Mapping) and isinstance(image.get("locations"), list):
        located["image"] = {**image, "locations": [_image(place, directories["image"]) for place in image["locations"]]}
    if isinstance(bag := located.get("bag"), Mapping) and isinstance(bag.get("file"), str):
        located["bag"] = {**bag, "file": _absolute(bag["file"], directories["bag"])}
    return located


def _locate_full(document: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """Return a full document with absolute paths for its local data."""
    located = dict(document)
    if isinstance(located.get("data"), list):
        located["data"] = [_locate_data(item, directory) for item in located["data"]]
    return located


def _locate_data(item: Any, directory: str) -> Any:
    if isinstance(item, str):
        return _absolute(item, directory)
    if isinstance(item, Mapping) and isinstance(item.get("location"), str):
        return {**item, "location": _absolute(item["location"], directory)}
    return item


def _notebook(place: str, directory: str) -> str:
    """Return a local notebook's whole path, or its address; raise BadRequest for a file that doesn't exist."""
    path = _absolute(place, directory)
    if not os.path.isabs(path) and ":" not in path:
        raise refuse_missing_notebook(place, directory)
    return path


def _image(place: Any, directory: str) -> Any:
    """Return the file URL of an image that is a local file; other images, and absolute paths, are unchanged."""
    if not isinstance(place, str) or os.path.isabs(place) or "://" in place:
        return place
    path = os.path.normpath(os.path.join(directory, os.path.expanduser(place)))
    if os.path.isfile(path):
        return f"file://{quote(path)}"
    if looks_like_image_file(place):
        raise refuse_missing_image(place, directory)
    return place


def _absolute(place: str, directory: str) -> str:
    path = os.path.join(directory, os.path.expanduser(place))
    return path if "://" not in place and os.path.exists(path) else place


def _read(path: str | os.PathLike[str]) -> bytes:
    name = os.fspath(path)
    if instead := _how_to_run(name):
        raise BadRequest(detail=f"{name} is not a request in YAML", hint=f"Run it with: {instead}")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        detail = f"the file {name} can't be read: {error.strerror}"
        here = f"This is {os.getcwd()}; name a file that is here."
        is_request = name.endswith((".yaml", ".yml", ".json"))
        raise BadRequest(detail=detail, hint=here if is_request else f"{here} {BY_NAME}") from error


def _how_to_run(name: str) -> str:
    """Return the command for a program or notebook that was given in place of a request; empty if it is neither."""
    words = shlex.quote(name)
    program = {".py": "python3", ".sh": "sh", ".r": "Rscript", ".jl": "julia"}
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".ipynb":
        return f"sublet run --notebook {words}"
    return f"sublet run -- {program[suffix]} {words}" if suffix in program else ""
