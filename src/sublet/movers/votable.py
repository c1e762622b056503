"""Tables of addresses by IVOA standards: VOTables of DataLink, ObsCore and registries, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from sublet.movers.xml_answers import read_xml

ADDRESSES = ("access_url", "accessurl", "dataurl", "url")
SIZES = ("content_length", "size", "datasize")
THIS = "#this"


class TableUnreadable(Exception):
    """An answer is no table of addresses: the words say why."""


@dataclass(frozen=True)
class TableRow:
    """An address, and what the table says about it."""

    address: str
    is_links: bool = False  # leads to another DataLink table, not to the data
    size: int | None = None  # in bytes
    checksum: str = ""


def read_table(content: bytes, media_type: str) -> list[TableRow]:
    """Read the data's addresses from a VOTable or JSON; raise TableUnreadable if it is neither."""
    if "json" in media_type:
        return read_json(content)
    if "xml" in media_type or content.lstrip()[:1] == b"<":
        return read_votable(content)
    raise TableUnreadable(f"it is {media_type or 'something'}, and a VOTable or JSON was expected")


def read_votable(content: bytes) -> list[TableRow]:
    """Read the rows of the first table; of a DataLink table only those of the data itself."""
    try:
        root = read_xml(content)
    except ElementTree.ParseError as error:
        raise TableUnreadable(f"it is no VOTable: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    table = root.find(".//TABLE")
    if table is None:
        status = root.find(".//INFO[@value='ERROR']")
        words = " ".join((status.text or "").split())[:200] if status is not None else ""
        raise TableUnreadable(words or "there is no table in it")
    if table.find(".//TABLEDATA") is None and table.find("DATA") is not None:
        raise TableUnreadable("its rows are binary; ask for TABLEDATA")
    names = [(field.get("name") or "").lower() for field in table.findall("FIELD")]
    rows = [[(cell.text or "").strip() for cell in row.findall("TD")] for row in table.iter("TR")]
    return select_rows([dict(zip(names, row, strict=False)) for row in rows])


def read_json(content: bytes) -> list[TableRow]:
    """Read an object with an address, a list of them, or an object with a list of replicas."""
    try:
        answer = json.loads(content)
    except ValueError as error:
        raise TableUnreadable("it is no JSON") from error
    if isinstance(answer, Mapping) and isinstance(answer.get("replicas"), list):
        answer = answer["replicas"]
    rows = answer if isinstance(answer, list) else [answer]
    named = [{"access_url": row} if isinstance(row, str) else row for row in rows]
    return select_rows([{str(key).lower(): row[key] for key in row} for row in named if isinstance(row, Mapping)])


def select_rows(rows: Sequence[Mapping[str, Any]]) -> list[TableRow]:
    """Return the rows that have an address and are the data itself (DataLink's `#this`)."""
    this = [row for row in rows if str(row.get("semantics") or THIS).endswith(THIS) and not row.get("error_message")]
    return [read_row(row) for row in this if _first(row, ADDRESSES)]


def read_row(row: Mapping[str, Any]) -> TableRow:
    """Read an address with its size and checksum, where these are given in known units."""
    size = str(_first(row, SIZES))
    formats = f"{row.get('content_type', '')} {row.get('access_format', '')}"
    checksum = row.get("checksum")
    return TableRow(
        str(_first(row, ADDRESSES)),
        "datalink" in formats,
        int(size) if size.isdecimal() else None,
        checksum.lower() if isinstance(checksum, str) and ":" in checksum else "",
    )


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name)), "")
