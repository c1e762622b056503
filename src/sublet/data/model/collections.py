"""How Globus collections are named in addresses and on the pages of Globus' web app."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlsplit

COLLECTION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WEB_APP = ("app.globus.org", "www.globus.org")


def read_web_app(location: str) -> str:
    """Return the globus: address that a page of Globus' web app shows; empty if it is no such page."""
    address = urlsplit(location)
    if address.hostname not in WEB_APP or not address.path.startswith("/file-manager"):
        return ""
    asked = parse_qs(address.query)
    collection, path = asked.get("origin_id", [""])[0].lower(), asked.get("origin_path", ["/~/"])[0]
    return f"globus://{collection}{quote(path)}" if COLLECTION.fullmatch(collection) else ""
