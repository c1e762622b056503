"""A wish to run an app, in our words or in those of CyberGIS' roadmap, and the document that it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sublet.errors import BadRequest, NoOwnLogins
from sublet.wire.cybergis import wanted_of
from sublet.wire.fields import a_map, a_text, known_only
from sublet.wire.short import full_document

SEED = ("maintainer", "hpc", "file", "data_file", "app", "slurm", "name", "version", "user", "password")
WHOLE = "data"  # what an app's whole data folder is called, where no name was given


@dataclass(frozen=True, kw_only=True)
class AppWish:
    """Which app, where, with which values, data and resources."""

    app: str = ""
    repository: str = ""  # instead of its name
    maintainer: str = ""  # whose generic image the repository was approved for, if that matters
    version: str = ""
    hpc: str = ""
    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)  # parameters, as they are
    words: Mapping[str, str] = field(default_factory=dict)  # parameters as text, to be typed by the app's schema
    data: Mapping[str, str] = field(default_factory=dict)  # the name of an input → where it is
    resources: Mapping[str, Any] = field(default_factory=dict)


def read_seed(document: Any) -> AppWish:
    """The roadmap's form: `maintainer`, `hpc`, `file: github://owner/repo`, `data_file`, `app`."""
    given = {name: value for name, value in a_map(document, "").items() if value is not None}
    known_only(given, SEED, "")
    hpc = a_text(given["hpc"], "hpc") if given.get("hpc") else ""
    if given.get("user") or given.get("password"):
        raise NoOwnLogins(platform=hpc or "a centre")
    file = str(given.get("file") or "")
    name = file if file and "://" not in file else "" if file else str(given.get("maintainer") or "")
    if not file and not name:
        raise BadRequest(detail="file: it is missing.", hint="Write github://owner/repository, or an app's name.")
    return AppWish(
        app=name,
        repository=file if "://" in file else "",
        maintainer=str(given.get("maintainer") or "") if file else "",
        version=str(given.get("version") or ""),
        hpc=hpc,
        name=str(given.get("name") or ""),
        set=a_map(given.get("app", {}), "app"),
        data={str(key): a_text(value, f"data_file.{key}", 4096) for key, value in _data(given).items()},
        resources=wanted_of(given.get("slurm") or {}),
    )


def _data(given: Mapping[str, Any]) -> Mapping[str, Any]:
    said = given.get("data_file") or {}
    return {"": said} if isinstance(said, str) else a_map(said, "data_file")


def document_of(wish: AppWish, app: str, version: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The document that asks for it."""
    data = [{"name": name.strip("/") or WHOLE, "location": place} for name, place in wish.data.items()]
    short: dict[str, Any] = {"app": app, "version": version, "parameters": dict(parameters), "name": wish.name or app}
    if wish.hpc:
        short["platform"] = wish.hpc
    full = full_document({**short, "data": data} if data else short)
    if wish.resources:
        full["executable"]["resources"] = dict(wish.resources)
    return full
