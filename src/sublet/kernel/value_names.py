"""Values as text, and text as file names."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from sublet.kernel.data_urls import find_name, is_data_url


def value_text(value: Any) -> str:
    """Return text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def directory_name(name: str) -> str:
    """Return a resource's name as a valid directory name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or "data"


def last_name(location: str) -> str:
    """Return the file name in a location: the last part of its path, or the name that a data URL gives."""
    if is_data_url(location):
        location = find_name(location)
    plain = unquote(urlsplit(location).path if ":" in location else location).rstrip("/").rpartition("/")[2]
    return "".join(sign for sign in plain if sign.isprintable()).strip() if plain.strip(".") else ""
