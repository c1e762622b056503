"""The names of sessions on servers: a hub accepts at most thirty letters, digits and hyphens."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import string

NAME = re.compile(r"[a-z2-7]{16}")


def make_owner() -> str:
    """Return a random tag that tells one service's sessions from another's on the same server."""
    letters = string.ascii_lowercase + string.digits
    return "".join(secrets.choice(letters) for _ in range(6))


def name_session(key: str) -> str:
    """Return a session's short name, which is always the same for a key; a short name is returned unchanged."""
    if NAME.fullmatch(key):
        return key
    return base64.b32encode(hashlib.sha256(key.encode()).digest()[:10]).decode().lower()
