"""Where data is, by the fields of its kind: a location, an S3 object, an access URL, or a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sublet.booking.documents.inline import read_location
from sublet.kernel.document_fields import MISSING, a_map, a_text, decline

MOST_LINE = 4096
RUCIO_SCHEMES = {"https": "rucio", "http": "rucio+http"}


def locate_data(document: Mapping[str, Any], kind: str, path: str) -> str:
    """Return the address of data of any kind; empty if its kind has no address that can be read here."""
    if kind == "S3-data-resource":
        return _object_address(document, path)
    if kind == "ivoa-data-resource":
        return _access_url(document, path)
    if kind == "rucio-data-resource":
        return _rucio_name(document, path)
    if kind == "skao-data-resource":
        return _skao_name(document, path)
    location = document.get("location")
    if location is None and kind == "simple-data-resource":
        hint = "Write where the data is: https://… or file:///…."
        decline(f"{path}.location", "it is missing", hint, MISSING)
    return "" if location is None else read_location(location, f"{path}.location")


def _object_address(document: Mapping[str, Any], path: str) -> str:
    """Return the address of an S3 object, by the template of its service.

    With S3's own template, keys can open the object, and without an object the address is the whole bucket's; with any
    other template the object must be public.
    """
    values = {}
    for name in ("endpoint", "template", "bucket"):
        if document.get(name) is None:
            decline(f"{path}.{name}", "it is missing", "", MISSING)
        values[name] = a_text(document[name], f"{path}.{name}", MOST_LINE)
    values["object"] = a_text(document["object"], f"{path}.object", MOST_LINE) if document.get("object") else ""
    endpoint = values["endpoint"].rstrip("/")
    if values["template"].replace("{endpoint}", endpoint) == f"{endpoint}/{{bucket}}/{{object}}" and _is_server(
        endpoint
    ):
        return f"s3+{endpoint}/{quote(values['bucket'])}/{quote(values['object'])}"
    if not values["object"]:
        hint = "Name an object; a whole bucket is brought by the template {endpoint}/{bucket}/{object}."
        decline(f"{path}.object", "it is missing", hint, MISSING)
    return _fill_template(values, endpoint, path)


def _is_server(endpoint: str) -> bool:
    return bool(re.fullmatch(r"https?://[^/?#]+", endpoint))


def _fill_template(values: Mapping[str, str], endpoint: str, path: str) -> str:
    address = values["template"].replace("{endpoint}", endpoint)
    for name in ("bucket", "object"):
        address = address.replace(f"{{{name}}}", quote(values[name]))
    if not address.startswith(("http://", "https://")) or "{" in address:
        hint = "Write one like https://s3.example.org/{bucket}/{object}."
        decline(f"{path}.template", "it does not make an http(s): address", hint, wanted=values["template"])
    return address


def _access_url(document: Mapping[str, Any], path: str) -> str:
    """Return the access URL in DataLink or ObsCore metadata, of the data or of a table of links; else its IVOID."""
    block = a_map(document.get("ivoa", {}), f"{path}.ivoa")
    if block.get("ivoid") is None:
        decline(f"{path}.ivoa.ivoid", "it is missing", "Write the data's IVOID.", MISSING)
    links = ""
    for name, column in (("datalink", "content_type"), ("obscore", "access_format")):
        where = f"{path}.ivoa.{name}"
        row = a_map(block[name], where) if block.get(name) is not None else {}
        if row.get("access_url") is None:
            continue
        address = a_text(row["access_url"], f"{where}.access_url", MOST_LINE)
        if "datalink" not in str(row.get(column, "")):
            return address
        links = links or f"datalink+{address}"
    return links or a_text(block["ivoid"], f"{path}.ivoa.ivoid", MOST_LINE)


def _rucio_name(found: Mapping[str, Any], path: str) -> str:
    """Return the address of data that Rucio knows, with its server if the document names one."""
    block = a_map(found.get("rucio", {}), f"{path}.rucio")
    values = {}
    for name in ("scope", "object"):
        if block.get(name) is None:
            decline(f"{path}.rucio.{name}", "it is missing", "", MISSING)
        values[name] = quote(a_text(block[name], f"{path}.rucio.{name}", MOST_LINE))
    named = f"{values['scope']}:{values['object']}"
    if block.get("endpoint") is None:
        return f"rucio:{named}"
    endpoint = a_text(block["endpoint"], f"{path}.rucio.endpoint", MOST_LINE).rstrip("/")
    scheme, _, server = endpoint.partition("://")
    if scheme not in RUCIO_SCHEMES or not server:
        hint = "Write one like https://rucio.example.org."
        decline(f"{path}.rucio.endpoint", "it is not the address of a server", hint, wanted=endpoint)
    return f"{RUCIO_SCHEMES[scheme]}://{server}/{named}"


def _skao_name(found: Mapping[str, Any], path: str) -> str:
    """Return the address of data by the name that the SKAO, and its Rucio, has for it."""
    block = a_map(found.get("skao", {}), f"{path}.skao")
    names = [
        quote(a_text(block[name], f"{path}.skao.{name}", MOST_LINE)) if block.get(name) else ""
        for name in ("namespace", "objectname")
    ]
    return f"skao:{':'.join(names)}"
