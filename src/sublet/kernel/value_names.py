"""Values as texts, and texts as names of files."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from sublet.kernel.data_urls import find_name, is_data_url


def value_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def directory_name(name: str) -> str:
    """A resource's name as the name of its directory."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or "data"


def last_name(location: str) -> str:
    """What a location is called: the last part of its path, or the name of a file that it holds itself."""
    if is_data_url(location):
        location = find_name(location)
    plain = unquote(urlsplit(location).path if ":" in location else location).rstrip("/").rpartition("/")[2]
    return "".join(sign for sign in plain if sign.isprintable()).strip() if plain.strip(".") else ""
