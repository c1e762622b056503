"""HTCondor's IDTOKENs, minted from a signing key: an identity, its lifetime and its permissions."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.kernel.errors import BadToken

POOL = "POOL"  # the name of the key that a pool's own daemons trust
PILOTS = "AP"  # the name of the key for pilots' tokens; removing it revokes them all
PILOT_MAY = ("READ", "WRITE", "ADVERTISE_STARTD", "ADVERTISE_MASTER")
OWNER_MAY = ("READ", "WRITE")
_KEY_LENGTH = 64
_MASK = bytes((0xDE, 0xAD, 0xBE, 0xEF))  # HTCondor's mask for key files, which isn't encryption


@dataclass(frozen=True)
class Signer:
    """A signing key as stored in its file, its name, and the trust domain for which it signs."""

    key: bytes
    name: str
    issuer: str

    def mint(self, subject: str, lifetime: timedelta, now: datetime, may: Sequence[str] = ()) -> str:
        """Mint a token for `subject` (`researcher@ap.example`); `may` limits it to these permissions of HTCondor."""
        issued = int(now.timestamp())
        claims: dict[str, object] = {
            "exp": issued + int(lifetime.total_seconds()),
            "iat": issued,
            "iss": self.issuer,
            "jti": secrets.token_hex(16),
            "sub": subject,
        }
        if may:
            claims["scope"] = " ".join(f"condor:/{permission}" for permission in may)
        signed = f"{_encode_part({'alg': 'HS256', 'kid': self.name, 'typ': 'JWT'})}.{_encode_part(claims)}"
        return f"{signed}.{_text(hmac.digest(self._secret(), signed.encode(), hashlib.sha256))}"

    def _secret(self) -> bytes:
        raw = _mask_key(self.key)
        return _derive_key(raw + raw if self.name == POOL else raw)  # as HTCondor does, for older pools


def new_key() -> bytes:
    """Return a new signing key."""
    while not usable_key(key := secrets.token_bytes(_KEY_LENGTH)):
        pass
    return key


def usable_key(key: bytes) -> bool:
    """Whether HTCondor reads the whole key, which a zero byte, masked or not, would cut off."""
    return 0 not in key and 0 not in _mask_key(key)


def expiry(token: str) -> datetime:
    """Return when a token expires; the latest possible time if it doesn't."""
    until = _claims(token).get("exp")
    return datetime.fromtimestamp(until, UTC) if isinstance(until, int | float) else datetime.max.replace(tzinfo=UTC)


def issuer(token: str) -> str:
    """Return the trust domain that issued a token."""
    return str(_claims(token).get("iss", ""))


def identity(token: str) -> str:
    """Return the identity of a token: `researcher@ap.example`."""
    return str(_claims(token).get("sub", ""))


def _claims(token: str) -> dict[str, object]:
    try:
        middle = token.strip().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (IndexError, ValueError, binascii.Error):
        raise BadToken() from None
    if not isinstance(claims, dict):
        raise BadToken()
    return claims


def _mask_key(data: bytes) -> bytes:
    return bytes(byte ^ _MASK[place % len(_MASK)] for place, byte in enumerate(data))


def _derive_key(secret: bytes) -> bytes:
    """Derive a key by HKDF (RFC 5869) with SHA-256, one block."""
    return hmac.digest(hmac.digest(b"htcondor", secret, hashlib.sha256), b"master jwt\x01", hashlib.sha256)


def _encode_part(document: dict[str, object] | dict[str, str]) -> str:
    return _text(json.dumps(document, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
