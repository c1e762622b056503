"""The places of a system that a request names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.shapes import PLACES
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.places import PLACE_NAME, PlaceWish
from sublet.kernel.document_fields import a_list, a_map, a_text, decline

MOST = 50
MOST_LINE = 1000
FIELDS = ("name", "path", "writable")


def read_places(value: Any) -> tuple[PlaceWish, ...]:
    """Read one place or a list of places; each is a name, or a map with a name and a path."""
    items = [value] if isinstance(value, str | Mapping) else a_list(value, PLACES)
    if len(items) > MOST:
        decline(PLACES, f"there are {len(items)} of them", f"At most {MOST} are read.")
    wishes = tuple(_read_place(item, f"{PLACES}[{number}]") for number, item in enumerate(items))
    names = [wish.name for wish in wishes]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        decline(PLACES, f"{quote_value(twice)} is named twice", "Name each place once.")
    return wishes


def _read_place(value: Any, where: str) -> PlaceWish:
    item = {"name": value} if isinstance(value, str) else a_map(value, where)
    for name in item:
        if name not in FIELDS:
            decline(f"{where}.{name}", "there is no such field", f"Write {', '.join(FIELDS)}.")
    if "name" not in item:
        decline(f"{where}.name", "it is missing", "Write the name of a place: sublet place list.")
    name = a_text(item["name"], f"{where}.name")
    if not PLACE_NAME.fullmatch(name):
        hint = "Write one like compute_shared: sublet place list."
        decline(f"{where}.name", f"{quote_value(name)} can't be the name of a place", hint)
    path = a_text(item["path"], f"{where}.path", MOST_LINE) if item.get("path") is not None else ""
    writable = item.get("writable", True)
    if not isinstance(writable, bool):
        decline(f"{where}.writable", f"{quote_value(writable)} is not true or false")
    return PlaceWish(name, path, read_only=not writable)
