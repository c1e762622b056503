"""Small files inside a request, as `content` or `content_base64`, converted to data URLs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.model.amounts import quote_value
from sublet.kernel.data_urls import MOST, MOST_URL, decode_base64, is_data_url, write_data_url
from sublet.kernel.document_fields import MISSING, a_text, decline, refuse

CONTENT = ("content", "content_base64")
LONGEST = 4096  # characters of any other address


def has_content(given: Mapping[str, Any]) -> bool:
    """Whether an item of data is a file in the request itself."""
    return not given.keys().isdisjoint(CONTENT)


def read_location(value: Any, path: str) -> str:
    """Read an address; a data URL, which holds a file, may be longer than others."""
    return a_text(value, path, MOST_URL if isinstance(value, str) and is_data_url(value) else LONGEST)


def locate_content(given: Mapping[str, Any], path: str) -> str:
    """Return a data URL with the content, under the name by which the session sees the file."""
    fields = [name for name in ("location", *CONTENT) if name in given]
    if len(fields) > 1:
        refuse(path, f"it has {' and '.join(fields)}", "Give one of them.")
    where = f"{path}.{fields[0]}"
    content = _read_content(given[fields[0]], where, is_packed=fields[0] == "content_base64")
    if len(content) > MOST:
        hint = "Send a larger file with `sublet upload`, or give its address."
        decline(where, f"it has {len(content)} bytes; at most {MOST} can be in a request", hint)
    name = str(given.get("path", "")).rstrip("/").rpartition("/")[2] or str(given.get("name", ""))
    if not name:
        decline(f"{path}.path", "it is missing", "Say where the file is seen: path: settings.json", MISSING)
    return write_data_url(name, content)


def _read_content(value: Any, path: str, *, is_packed: bool) -> bytes:
    if not isinstance(value, str):
        refuse(path, f"{quote_value(value)} is not text", "Put it in quotes, or write it as a block: content: |")
    if not is_packed:
        return value.encode("utf-8", "surrogatepass")
    try:
        return decode_base64(value)
    except ValueError:
        refuse(path, "it is no base64", "Write text as content, and other files as base64.")
