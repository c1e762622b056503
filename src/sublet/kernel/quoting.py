"""Percent-encoding for URLs and file names, without the standard library's urllib, which is slow to import."""

from __future__ import annotations

SLASH = "%2F"  # stands for a slash in a session's name, since servers take an encoded one for the end of a segment
SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quote(text: str, safe: frozenset[int] = SAFE) -> str:
    """Percent-encode text for use in a URL."""
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))
