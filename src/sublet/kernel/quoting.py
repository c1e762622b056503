"""Text as a part of an address or of a file's name, without the standard library's slow module for addresses."""

from __future__ import annotations

SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quote(text: str, safe: frozenset[int] = SAFE) -> str:
    """Text as part of an address."""
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))
