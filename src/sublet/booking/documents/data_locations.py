"""Where data is, by the fields of its kind: a location, an object of a public S3 service, or IVOA's access URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sublet.kernel.document_fields import MISSING, a_map, a_text, decline

NOT_SUPPORTED = "urn:not-supported"
MOST_LINE = 4096


def locate_data(found: Mapping[str, Any], kind: str, path: str) -> str:
    """The address of data of any kind; empty where its kind has none that could be read here."""
    if kind == "S3-data-resource":
        return _object_address(found, path)
    if kind == "ivoa-data-resource":
        return _access_url(found, path)
    location = found.get("location")
    if location is None and kind == "simple-data-resource":
        hint = "Write where the data is: https://… or file:///…."
        decline(f"{path}.location", "it is missing", hint, MISSING)
    return "" if location is None else a_text(location, f"{path}.location", MOST_LINE)


def _object_address(found: Mapping[str, Any], path: str) -> str:
    """An object's address by the template of its service; it must be public, for nobody's keys are known here."""
    values = {}
    for name in ("endpoint", "template", "bucket", "object"):
        if found.get(name) is None:
            hint = "A whole bucket can't be brought: name an object." if name == "object" else ""
            decline(f"{path}.{name}", "it is missing", hint, MISSING)
        values[name] = a_text(found[name], f"{path}.{name}", MOST_LINE)
    address = values["template"]
    for name in ("endpoint", "bucket", "object"):
        text = values[name].rstrip("/") if name == "endpoint" else quote(values[name])
        address = address.replace(f"{{{name}}}", text)
    if not address.startswith(("http://", "https://")) or "{" in address:
        hint = "Write one like https://s3.example.org/{bucket}/{object}."
        decline(f"{path}.template", "it does not make an http(s): address", hint, wanted=values["template"])
    return address


def _access_url(found: Mapping[str, Any], path: str) -> str:
    """The access URL in the ObsCore or DataLink metadata; what is known by its IVOID alone nobody here looks up."""
    block = a_map(found.get("ivoa", {}), f"{path}.ivoa")
    if block.get("ivoid") is None:
        decline(f"{path}.ivoa.ivoid", "it is missing", "Write the data's IVOID.", MISSING)
    for name, column in (("datalink", "content_type"), ("obscore", "access_format")):
        where = f"{path}.ivoa.{name}"
        row = a_map(block[name], where) if block.get(name) is not None else {}
        is_links = "datalink" in str(row.get(column, ""))  # a table of links is not the data
        if row.get("access_url") is not None and not is_links:
            return a_text(row["access_url"], f"{where}.access_url", MOST_LINE)
    hint = "Give its address as ivoa.obscore.access_url, or as a simple-data-resource."
    decline(
        f"{path}.ivoa", "data can't be brought by its IVOID alone: nothing here asks registries", hint, NOT_SUPPORTED
    )
