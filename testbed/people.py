"""The known users and secrets of a site, and the codes of the second factor."""

import base64
import hashlib
import hmac
import struct
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    """Somebody with an account on the site."""

    name: str
    uid: int
    factors: str  # what sshd asks for


USERS = (
    User("researcher", 20001, "password+code"),
    User("keyholder", 20002, "key+code"),
    User("service", 20003, "key"),
    User("pusher", 20004, "password+push"),
)
AP_USERS = {"researcher": 20101, "rival": 20102}  # on `ap`: the one who works there, and somebody else
PASSWORD = "correct-horse"  # of a site that nobody outside this machine reaches
PASSWORD_HASH = (  # openssl passwd -6 -salt testbed correct-horse
    "$6$testbed$hYLaM4/tcp.Xx6gSBXP3KJOEJrHF5VV8pveJX/dH0ssXSYHnM4yVZ9I3T8cDDrp6kW9BUnYuzfB3YOWOTod3k1"
)
CODE_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEH"
PERIOD = 30


def code(secret: str = CODE_SECRET, at: float | None = None) -> str:
    """The six digits (RFC 6238) that an authenticator shows at a moment, now by default."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    counter = struct.pack(">Q", int(time.time() if at is None else at) // PERIOD)
    digest = hmac.new(key, counter, hashlib.sha1).digest()
    start = digest[-1] & 15
    number: int = struct.unpack(">I", digest[start : start + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"
