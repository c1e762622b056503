"""Reads host keys from a known_hosts file, or from a line of one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from sublet.access.model.account import host_key

REVOKED = "@revoked"
_KEY_ALONE = re.compile(r"(ssh|ecdsa|sk)-")


def read_host_keys(text: str, host: str, port: int = 22) -> tuple[str, ...]:
    """Return `TYPE KEY` of each line about this host, in whatever case; a line without hosts counts for any.

    A key that another line revokes for this host is left out.
    """
    name = (host if port == 22 else f"[{host}]:{port}").lower()  # ssh compares and hashes names in lower case
    lines = [line.strip() for line in text.splitlines()]
    revoked = [line.removeprefix(REVOKED).strip() for line in lines if line.startswith(REVOKED)]
    keys = _find_keys(lines, name)
    return tuple(key for key in keys if key not in _find_keys(revoked, name))


def _find_keys(lines: Iterable[str], name: str) -> dict[str, None]:
    return dict.fromkeys(key for line in lines if _is_about(line, name) and (key := host_key(line)))


def _is_about(line: str, name: str) -> bool:
    if not line or line.startswith(("#", "@")):  # revoked keys and certificate authorities aren't host keys
        return False
    first = line.split()[0]
    if _KEY_ALONE.match(first):
        return True
    if first.startswith("|1|"):
        return _match_hashed_host(first, name)
    patterns = first.lower().split(",")
    refused = any(fnmatchcase(name, pattern[1:].replace("[", "[[]")) for pattern in patterns if pattern.startswith("!"))
    return not refused and any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)


def _match_hashed_host(field: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in field[3:].split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
