"""Checksums that web servers keep of their files, as those of physics and astronomy do (RFC 3230: `Want-Digest`)."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress

import httpx2

KEEPING = ("xrootd", "dcache", "storm")  # servers that keep checksums; others would only be asked in vain
WANTED = "adler32"  # what they all have; some fail where several are named
KINDS = {"md5": "md5", "sha-256": "sha256", "sha-512": "sha512"}


def keeps_digests(response: httpx2.Response) -> bool:
    """Whether the server that answered is one that keeps checksums."""
    return str(response.headers.get("server", "")).lower().startswith(KEEPING)


async def ask_digest(client: httpx2.AsyncClient, address: str) -> str:
    """The checksum that a server keeps of a file, as `adler32:…`; empty if it tells none."""
    with suppress(httpx2.HTTPError):
        answer = await client.head(address, headers={"Want-Digest": WANTED})  # XRootD 5 knows it by its capitals
        return read_digest(answer.headers.get("digest", "")) if answer.is_success else ""
    return ""


def read_digest(header: str) -> str:
    """The first checksum in a header `Digest` that can be checked here; empty: there is none."""
    for field in header.split(","):
        name, _, value = field.strip().partition("=")
        if name.lower() == "adler32" and re.fullmatch("[0-9a-fA-F]{1,8}", value):
            return f"adler32:{value.lower().zfill(8)}"
        if value and (kind := KINDS.get(name.lower())):
            with suppress(binascii.Error, ValueError):
                return f"{kind}:{base64.b64decode(value, validate=True).hex()}"
    return ""
