"""Data, storage and volumes of the short form, expanded to the full form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.inline import CONTENT, has_content, locate_content, read_location
from sublet.booking.documents.kinds import SIMPLE_DATA, SIMPLE_STORAGE, SIMPLE_VOLUME
from sublet.booking.documents.shapes import Document, without_nulls
from sublet.booking.documents.short_sizes import read_sizes, write_amount
from sublet.booking.model.amounts import quote_value
from sublet.kernel.document_fields import a_list, a_map, a_name, a_text, at, refuse, refuse_unknown_fields
from sublet.kernel.value_names import directory_name, last_name

_OF_DATA = ("checksum", "size", "storage", "ignore", "unpack", "write_back")
_DATA = ("name", "location", "from", *CONTENT, "path", "writable", *_OF_DATA)
_FOLDER = ("location", "ignore", "size")
_STORAGE = ("name", "size", "pool", "path", "writable")
_VOLUME = ("path", "resource", "writable")


def expand_folder(short: Document, kind: str, volumes: list[Document]) -> list[Document]:
    """Expand the folder whose content is brought into the working directory, and add its volume."""
    if "workdir" not in short:
        return []
    if kind == "app":
        refuse("workdir", "an app has a working directory of its own", "Bring its inputs with data.")
    value = short["workdir"]
    given = {"location": value} if isinstance(value, str) else without_nulls(a_map(value, "workdir"))
    refuse_unknown_fields(given, _FOLDER, "workdir")
    location = a_text(given.get("location"), "workdir.location", 4096)
    volumes.append({"kind": SIMPLE_VOLUME, "path": ".", "mode": "READWRITE", "resource": "workdir"})
    document = {"kind": SIMPLE_DATA, "meta": {"name": "workdir"}, "location": location}
    return [document | {name: given[name] for name in ("ignore", "size") if name in given}]


def expand_data(value: Any, inside: str, volumes: list[Document], *, is_app: bool) -> list[Document]:
    """Expand data: it goes to its own path, else below `data/` if it has a name, else into the working directory."""
    documents = []
    taken: set[str] = {"workdir"}
    for i, item in enumerate(a_list([value] if isinstance(value, str | Mapping) else value, "data")):
        path = f"data[{i}]"
        given = {"location": item} if isinstance(item, str) else without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _DATA, path)
        if has_content(given):
            given = {"writable": True} | given | {"location": locate_content(given, path)}
        if "from" in given:
            given = given | {"location": _locate_results(given, path)}
        location = read_location(given.get("location"), f"{path}.location")
        name = a_name(given["name"], f"{path}.name") if "name" in given else _name_of(location, taken)
        taken.add(name)
        extras = {key: given[key] for key in _OF_DATA if key in given}
        given = ({"writable": True} if given.get("write_back") else {}) | given
        documents.append({"kind": SIMPLE_DATA, "meta": {"name": name}, "location": location} | extras)
        if is_app or not {"name", "path", "storage"}.isdisjoint(given):
            volumes.append(_volume(given, f"{inside}data/{directory_name(name)}", name, path))
        else:
            own_name = name if given.get("unpack") is True else last_name(location) or name
            volumes.append(_volume({"writable": True} | given, own_name, name, path))
        _check_apart(volumes, path)
    return documents


def _locate_results(given: Document, path: str) -> str:
    """Return the address of results of a session, which are written as `from: SESSION/PATH`."""
    if "location" in given:
        refuse(path, "it has from and location", "Write one of them.")
    return f"session:{a_text(given['from'], f'{path}.from', 4096).removeprefix('session:')}"


def _check_apart(volumes: list[Document], path: str) -> None:
    """Refuse the last volume if another one has the same path."""
    where = str(volumes[-1]["path"]).rstrip("/")
    for other in volumes[:-1]:
        if str(other["path"]).rstrip("/") == where:
            hint = "Say where each goes: {location: …, path: …}, or --data WHERE:PATH."
            refuse(path, f"it would be at {where}, where {other['resource']} is already", hint)


def _name_of(location: str, taken: set[str]) -> str:
    """Return an unused name for data: `https://…/cube.tar.gz` is called cube."""
    stem = directory_name(last_name(location).lstrip(".").partition(".")[0])
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def expand_storage(value: Any, inside: str, volumes: list[Document]) -> list[Document]:
    """Expand storage; each appears as a writable directory of its name."""
    items = [value] if isinstance(value, str | Mapping) else a_list(value, "storage")
    documents = []
    for i, item in enumerate(items):
        path = f"storage[{i}]"
        given = {"size": item} if isinstance(item, str) else without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _STORAGE, path)
        name = a_name(given["name"], f"{path}.name") if "name" in given else f"storage-{i + 1}"
        if "size" not in given:
            refuse(f"{path}.size", "it is missing", "Write how much room there should be: 10GiB.")
        sizes = at(f"{path}.size", read_sizes, given["size"])
        bounds = {"min": write_amount(sizes.min), "max": write_amount(sizes.max)}
        pool = {"pool": given["pool"]} if "pool" in given else {}
        documents.append({"kind": SIMPLE_STORAGE, "meta": {"name": name}, "size": bounds, **pool})
        volumes.append(_volume({"writable": True} | given, f"{inside}{directory_name(name)}", name, path))
    return documents


def expand_volumes(value: Any) -> list[Document]:
    """Expand volumes, which say at which path a named resource appears."""
    documents = []
    for i, item in enumerate(a_list(value, "volumes")):
        path = f"volumes[{i}]"
        given = without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _VOLUME, path)
        if "resource" not in given or "path" not in given:
            refuse(path, "a volume needs resource and path", "Write {resource: cube, path: input}.")
        documents.append(_volume(given, "", given["resource"], path))
    return documents


def _volume(given: Document, otherwise: str, resource: str, path: str) -> Document:
    writable = given.get("writable", False)
    if not isinstance(writable, bool):
        refuse(f"{path}.writable", f"{quote_value(writable)} is not true or false")
    mode = "READWRITE" if writable else "READONLY"
    return {"kind": SIMPLE_VOLUME, "path": given.get("path", otherwise), "mode": mode, "resource": resource}
