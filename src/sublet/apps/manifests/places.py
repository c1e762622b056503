"""The places that a manifest names: `places` of `sublet.yaml`, `mount` of a `manifest.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.apps.manifests.lines import Path
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.model.manifest import AppPlace
from sublet.apps.model.needs import name_place
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.places import PLACE_NAME
from sublet.data.model.places import check_target

FIELDS = ("name", "path", "writable", "required")
MOST = 20


def read_places(page: ManifestPage) -> tuple[AppPlace, ...]:
    """Read `places: [compute_shared, {name: scratch, writable: true}]`."""
    said = page.value.get("places")
    items = said if isinstance(said, list) else [] if said is None else [said]
    if len(items) > MOST:
        page.error(("places",), f"there are more than {MOST} places.")
    found = [_read_place(page, ("places", number), item) for number, item in enumerate(items[:MOST])]
    return _once(page, "places", found)


def _read_place(page: ManifestPage, path: Path, value: Any) -> AppPlace:
    said = {"name": value} if isinstance(value, str) else page.a_map(path, value)
    page.note_unknown(path, said, FIELDS, page.error)
    name = page.a_text((*path, "name"), said.get("name"))
    target = page.a_text((*path, "path"), said.get("path"))
    _check(page, path, name, target)
    return AppPlace(
        name,
        target,
        writable=page.a_flag((*path, "writable"), said.get("writable")),
        required=page.a_flag((*path, "required"), said.get("required", True)),
    )


def read_mounts(page: ManifestPage) -> tuple[AppPlace, ...]:
    """Read `mount`, a list of paths or a map of the centre's paths to the container's, as places."""
    said = page.value.get("mount")
    pairs: list[tuple[str, str]]
    if isinstance(said, Mapping):
        pairs = [(str(source), str(target)) for source, target in said.items()]
    else:
        pairs = [(path, "") for path in page.texts(("mount",), said)]
    found = []
    for source, target in pairs[:MOST]:
        name = name_place(target or source)
        _check(page, ("mount",), name, target)
        found.append(AppPlace(name, target, writable=True))
    return _once(page, "mount", found)


def _check(page: ManifestPage, path: Path, name: str, target: str) -> None:
    if not PLACE_NAME.fullmatch(name):
        page.error(path, f"{quote_value(name)} can't be the name of a place; write one like compute_shared.")
    elif target and (why := check_target(target)):
        page.error(path, f"{why}.")


def _once(page: ManifestPage, field: str, places: list[AppPlace]) -> tuple[AppPlace, ...]:
    names = [place.name for place in places]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        page.error((field,), f"the place {twice} is named twice.")
    return tuple(places)
