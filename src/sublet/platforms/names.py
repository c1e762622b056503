"""What sessions are called on servers: a hub takes no more than thirty letters, digits and hyphens."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import string

NAME = re.compile(r"[a-z2-7]{16}")


def make_owner() -> str:
    """What tells one service's sessions from another's on the same server."""
    letters = string.ascii_lowercase + string.digits
    return "".join(secrets.choice(letters) for _ in range(6))


def name_session(key: str) -> str:
    """A session by a short name, which is always the same; such a name stands for itself."""
    if NAME.fullmatch(key):
        return key
    return base64.b32encode(hashlib.sha256(key.encode()).digest()[:10]).decode().lower()
