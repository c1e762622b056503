"""A pilot's signing key, which is derived and so stored only in the pilot itself."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from itertools import count

from sublet.annexes.pilots.bundle import owner_of, pilot_name, trust_domain
from sublet.annexes.pilots.tokens import POOL, Signer, usable_key

ORDER_LIFE = timedelta(minutes=5)


def pilot_key(secret: bytes, lease: str, number: int) -> bytes:
    """Derive the key of one pilot, always the same from the same secret."""
    name = f"pilot key {pilot_name(lease, number)}"
    keys = (hmac.digest(secret, f"{name} {turn}".encode(), hashlib.sha512) for turn in count())
    return next(filter(usable_key, keys))


def order_token(secret: bytes, lease: str, number: int, now: datetime) -> str:
    """Return a token for orders to one pilot, valid for a few minutes."""
    signer = Signer(pilot_key(secret, lease, number), POOL, trust_domain(lease, number))
    return signer.mint(owner_of(lease, number), ORDER_LIFE, now)
