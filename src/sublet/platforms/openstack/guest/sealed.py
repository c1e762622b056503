"""Sealed pieces: what a service and a session's virtual machine say to each other where others can read along.

Both ends have one secret, used for one virtual machine. Each piece has a label of its own, which is never used for
another content: the label and the secret make the bytes that hide it (SHAKE-256), and a keyed digest (HMAC-SHA-256)
shows that it is whole and whose it is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

MARK = "#sublet"  # begins a line on a console that has a piece
TAG = 16  # bytes of the digest


def seal(secret: bytes, label: str, content: bytes) -> bytes:
    """A content that nobody can read or change without the secret."""
    hidden = _mix(secret, label, content)
    return _sign(secret, label, hidden) + hidden


def unseal(secret: bytes, label: str, piece: bytes) -> bytes:
    """The content of a piece; ValueError if it is not whole, or not ours."""
    tag, hidden = piece[:TAG], piece[TAG:]
    if not hmac.compare_digest(tag, _sign(secret, label, hidden)):
        raise ValueError("this piece was sealed with another secret, or was changed")
    return _mix(secret, label, hidden)


def write_line(secret: bytes, label: str, content: bytes) -> bytes:
    """A piece as a line of a console, on which others may print too."""
    piece = base64.b64encode(seal(secret, label, content)).decode()
    return f"\n{MARK} {label} {piece}\n".encode()


def read_lines(secret: bytes, text: str) -> list[tuple[str, bytes]]:
    """The labels and contents of all pieces on a console; whatever else is there is passed over."""
    pieces = []
    for line in text.splitlines():
        words = line.strip().split(" ")
        if len(words) == 3 and words[0] == MARK:
            try:
                pieces.append((words[1], unseal(secret, words[1], base64.b64decode(words[2], validate=True))))
            except ValueError:  # cut off, or something printed into it
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
