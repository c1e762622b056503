"""Local files for a service on another machine: they are uploaded, and the request names the upload instead."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from sublet.client.files import HERE
from sublet.client.uploading import LocalFile, Steps, UploadPlan, UploadTally, list_files, upload_steps
from sublet.data.calls import uploads
from sublet.data.model.uploads import SCHEME

KEPT = timedelta(days=7)  # how long such an upload is kept, so that another request needn't send it again


def send_steps(document: Mapping[str, Any], tally: UploadTally) -> Steps[dict[str, Any]]:
    """Upload a request's local files, and return the document that names the upload."""
    items = [item for item in _list_items(document) if _is_here(item)]
    if not items:
        return dict(document)
    files = [_list_files(item, number) for number, item in enumerate(items)]
    every = tuple(file for some in files for file in some)
    plan = UploadPlan(f"run-{_digest(every)}", every)
    yield from upload_steps(plan, tally)
    yield uploads.keep(plan.name, KEPT)
    places = {item["location"]: _name(plan, item, number) for number, item in enumerate(items)}
    return _put_places(document, places)


def _list_items(document: Mapping[str, Any]) -> Iterator[Any]:
    yield document.get("workdir")
    data = document.get("data")
    yield from data if isinstance(data, list) else ()


def _is_here(item: Any) -> bool:
    return isinstance(item, Mapping) and str(item.get("location", "")).startswith(HERE)


def _list_files(item: Mapping[str, Any], number: int) -> list[LocalFile]:
    path = item["location"].removeprefix(HERE)
    return list(list_files(path, item.get("ignore", ()), prefix=f"{number}/"))


def _name(plan: UploadPlan, item: Mapping[str, Any], number: int) -> str:
    path = item["location"].removeprefix(HERE)
    file = "" if os.path.isdir(path) else os.path.basename(os.path.realpath(path))
    return f"{SCHEME}:{plan.name}/{number}/{file}"


def _put_places(document: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    def put(item: Any) -> Any:
        if not _is_here(item):
            return item
        rest = {name: value for name, value in item.items() if name not in ("ignore", "size")}
        return {**rest, "location": places[item["location"]]}

    sent = dict(document)
    if "workdir" in sent:
        sent["workdir"] = put(sent["workdir"])
    if isinstance(sent.get("data"), list):
        sent["data"] = [put(item) for item in sent["data"]]
    return sent


def _digest(files: tuple[LocalFile, ...]) -> str:
    """Return a digest of these files in their present version; other files or versions are another upload."""
    facts = repr([(file.source, file.path, file.size, file.modified, file.is_executable) for file in files])
    return hashlib.sha256(facts.encode(errors="surrogateescape")).hexdigest()[:16]
