"""Sealed pieces: messages between a service and a session's virtual machine that others can see but not read.

Both ends share a secret, used for one virtual machine. Each piece has its own label, never reused for other content:
label and secret make the bytes that hide it (SHAKE-256), and a keyed digest (HMAC-SHA-256) proves that it is complete
and genuine.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

MARK = "#sublet"  # begins a line on a console that has a piece
TAG = 16  # bytes of the digest


def seal(secret: bytes, label: str, content: bytes) -> bytes:
    """Encrypt and sign a content."""
    hidden = _mix(secret, label, content)
    return _sign(secret, label, hidden) + hidden


def unseal(secret: bytes, label: str, piece: bytes) -> bytes:
    """Return the content of a piece; raise ValueError if it isn't complete or genuine."""
    tag, hidden = piece[:TAG], piece[TAG:]
    if not hmac.compare_digest(tag, _sign(secret, label, hidden)):
        raise ValueError("this piece was sealed with another secret, or was changed")
    return _mix(secret, label, hidden)


def write_line(secret: bytes, label: str, content: bytes) -> bytes:
    """Write a piece as a line of a console, where others may print too."""
    piece = base64.b64encode(seal(secret, label, content)).decode()
    return f"\n{MARK} {label} {piece}\n".encode()


def read_lines(secret: bytes, text: str) -> list[tuple[str, bytes]]:
    """Return the labels and contents of all pieces on a console; other lines are skipped."""
    pieces = []
    for line in text.splitlines():
        words = line.strip().split(" ")
        if len(words) == 3 and words[0] == MARK:
            try:
                pieces.append((words[1], unseal(secret, words[1], base64.b64decode(words[2], validate=True))))
            except ValueError:  # cut off, or interrupted by other output
                continue
    return pieces


def _mix(secret: bytes, label: str, content: bytes) -> bytes:
    stream = hashlib.shake_256(_derive(secret, b"hide") + label.encode()).digest(len(content))
    number = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
    return number.to_bytes(len(content), "big")


def _sign(secret: bytes, label: str, hidden: bytes) -> bytes:
    digest = hmac.new(_derive(secret, b"sign"), label.encode() + b"\0" + hidden, hashlib.sha256)
    return digest.digest()[:TAG]


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return hmac.new(secret, b"sublet " + purpose, hashlib.sha256).digest()
