"""Expiry of the certificates that ssh would offer."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

from sublet.reach.asking import ask_ssh, configuration
from sublet.reach.target import Target

_ENDS = re.compile(r"Valid: from \S+ to (\S+)")  # from ssh-keygen; without expiry it prints "Valid: forever"
_USUAL = re.compile(r"/\.ssh/id_(rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss)$")


async def expires(target: Target, *, named: bool = False) -> datetime | None:
    """Return when the last certificate expires, or None if no certificate expires.

    With `named`, keys in the usual places are skipped, because their certificates may be for another host.
    """
    settings = await configuration(target)
    keys = [key for key in settings.get("identityfile", []) if not (named and _USUAL.search(key.strip('"')))]
    ends: list[datetime] = []
    for name in settings.get("certificatefile", []) + [f"{key}-cert.pub" for key in keys]:
        path = os.path.expanduser(name.strip('"'))  # noqa: ASYNC240 - a look at the environment
        _, answer = await ask_ssh(("env", "TZ=UTC", "ssh-keygen", "-L", "-f", path))
        ends += [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in _ENDS.findall(answer)]
    return max(ends, default=None)


async def find_expired(target: Target, *, named: bool = False) -> datetime | None:
    """Return when the last certificate expired, or None if a certificate is still valid or none expires."""
    end = await expires(target, named=named)
    return end if end is not None and end <= datetime.now(UTC) else None
