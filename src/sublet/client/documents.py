"""From what a person gives to the document that is sent: files found, words put over it, paths made absolute."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sublet.errors import BadRequest

Document = Mapping[str, Any] | str | os.PathLike[str]
FULL = ("executable", "request")  # only the full form has one of these


def document_of(document: Document | None, wishes: Mapping[str, Any], *, local: bool) -> Mapping[str, Any]:
    """The document: a mapping, YAML text, or a file; `wishes` are put over its short form.

    A `start` in words is meant by the clock of this machine. Where the service sees the same files as the caller, a
    file that is named relative to here, or to the document's own directory, is made absolute.
    """
    directory = os.getcwd()
    if document is None:
        found: Mapping[str, Any] = {}
    elif isinstance(document, Mapping):
        found = document
    elif isinstance(document, str) and ("\n" in document or ": " in document):
        found = parse(document.encode())
    else:
        found = parse(_read(document))
        directory = os.path.dirname(os.path.abspath(document))
    full = with_local_starts(with_wishes(found, wishes))
    return located(full, directory) if local else full


def parse(text: bytes) -> Mapping[str, Any]:
    """The document in this YAML or JSON text."""
    from sublet.wire.document import parse_document  # loads PyYAML

    return parse_document(text)


def with_wishes(document: Mapping[str, Any], wishes: Mapping[str, Any]) -> dict[str, Any]:
    """The document with these words of the short form put over it."""
    if wishes and any(name in document for name in FULL):
        words = ", ".join(wishes)
        raise BadRequest(
            detail=f"{words} can't be put over a full document",
            hint="Write them in the document, or use the short form.",
        )
    return {**document, **wishes}


def with_local_starts(document: dict[str, Any]) -> dict[str, Any]:
    """The same, with a `start` that was written by the clock of this machine, so that the service reads it so."""
    if not document.get("start"):
        return document
    from sublet.client.local_time import local_now  # time zones take long to load
    from sublet.wire.local_starts import pin_starts

    return pin_starts(document, local_now())


def located(document: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """The same, with the files that are there by a relative path, in this directory, named by an absolute one."""
    found = dict(document)
    if isinstance(found.get("notebook"), str):
        found["notebook"] = _absolute(found["notebook"], directory)
    if isinstance(image := found.get("image"), str):
        found["image"] = _image(image, directory)
    elif isinstance(image, Mapping) and isinstance(image.get("locations"), list):
        found["image"] = {**image, "locations": [_image(place, directory) for place in image["locations"]]}
    if isinstance(found.get("data"), list):
        found["data"] = [_located_data(item, directory) for item in found["data"]]
    return found


def _located_data(item: Any, directory: str) -> Any:
    if isinstance(item, str):
        return _absolute(item, directory)
    if isinstance(item, Mapping) and isinstance(item.get("location"), str):
        return {**item, "location": _absolute(item["location"], directory)}
    return item


def _image(place: Any, directory: str) -> Any:
    """An image that is a file here is brought from here; an absolute path is one where it runs."""
    if not isinstance(place, str) or os.path.isabs(place) or "://" in place:
        return place
    path = os.path.normpath(os.path.join(directory, os.path.expanduser(place)))
    return f"file://{quote(path)}" if os.path.isfile(path) else place


def _absolute(place: str, directory: str) -> str:
    path = os.path.join(directory, os.path.expanduser(place))
    return path if "://" not in place and os.path.exists(path) else place


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BadRequest(detail=f"the file {os.fspath(path)} can't be read: {error.strerror}") from error
