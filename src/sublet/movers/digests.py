"""Checksums that web servers store with their files, common in physics and astronomy (RFC 3230: `Want-Digest`)."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress

import httpx2

KEEPING = ("xrootd", "dcache", "storm")  # servers that store checksums; asking others would be useless
WANTED = "adler32"  # all of them have it; some fail if several are requested
KINDS = {"md5": "md5", "sha-256": "sha256", "sha-512": "sha512"}


def keeps_digests(response: httpx2.Response) -> bool:
    """Whether the server that answered stores checksums."""
    return str(response.headers.get("server", "")).lower().startswith(KEEPING)


async def ask_digest(client: httpx2.AsyncClient, address: str) -> str:
    """Return the checksum that a server stores of a file, as `adler32:…`; empty if it has none."""
    with suppress(httpx2.HTTPError):
        answer = await client.head(address, headers={"Want-Digest": WANTED})  # XRootD 5 requires these capitals
        return read_digest(answer.headers.get("digest", "")) if answer.is_success else ""
    return ""


def read_digest(header: str) -> str:
    """Return the first checksum of a `Digest` header that can be checked here; empty if there is none."""
    for field in header.split(","):
        name, _, value = field.strip().partition("=")
        if name.lower() == "adler32" and re.fullmatch("[0-9a-fA-F]{1,8}", value):
            return f"adler32:{value.lower().zfill(8)}"
        if value and (kind := KINDS.get(name.lower())):
            with suppress(binascii.Error, ValueError):
                return f"{kind}:{base64.b64decode(value, validate=True).hex()}"
    return ""
