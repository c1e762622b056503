"""The request form of CyberGIS' roadmap: `maintainer`, `hpc`, `file`, `data_file`, `app`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.apps.run_requests import AppWish
from sublet.doors.cybergis.wire import read_options, read_wanted
from sublet.kernel.document_fields import a_map, a_text, refuse_unknown_fields
from sublet.kernel.errors import BadRequest, NoOwnLogins

SEED = ("maintainer", "hpc", "file", "data_file", "app", "slurm", "name", "version", "user", "password")


def read_seed(document: Any) -> AppWish:
    """Read the roadmap's form: `maintainer`, `hpc`, `file: github://owner/repo`, `data_file`, `app`."""
    given = {name: value for name, value in a_map(document, "").items() if value is not None}
    refuse_unknown_fields(given, SEED, "")
    hpc = a_text(given["hpc"], "hpc") if given.get("hpc") else ""
    if given.get("user") or given.get("password"):
        raise NoOwnLogins(platform=hpc or "a centre")
    file = str(given.get("file") or "")
    name = file if file and "://" not in file else "" if file else str(given.get("maintainer") or "")
    if not file and not name:
        raise BadRequest(detail="file: it is missing.", hint="Write github://owner/repository, or an app's name.")
    slurm = given.get("slurm") or {}
    return AppWish(
        app=name,
        repository=file if "://" in file else "",
        maintainer=str(given.get("maintainer") or "") if file else "",
        version=str(given.get("version") or ""),
        hpc=hpc,
        name=str(given.get("name") or ""),
        set=a_map(given.get("app", {}), "app"),
        data={str(key): a_text(value, f"data_file.{key}", 4096) for key, value in _data(given).items()},
        resources=read_wanted(slurm),
        scheduler=read_options(slurm),
    )


def _data(given: Mapping[str, Any]) -> Mapping[str, Any]:
    value = given.get("data_file") or {}
    return {"": value} if isinstance(value, str) else a_map(value, "data_file")
