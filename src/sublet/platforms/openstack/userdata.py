"""A session as user data: a program whose sealed content only its virtual machine's secret can open.

Nova shows user data to any process in the machine, and to administrators. The secret is passed as the machine's
password, which Nova doesn't store, and writes only to the config drive.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files

from sublet.booking.model.job import Job
from sublet.platforms.openstack.guest.sealed import seal
from sublet.platforms.told import tell_amounts

MOST = 65535  # characters of user data, in base64, that Nova accepts
FUTURE = "from __future__ import annotations"
INSIDE = ("button", "console", "door", "session")  # the modules that run a session in its machine
OWN_IMPORTS = re.compile(r"^from sublet\.\S+ import (\([^)]*\)|.*)\n", re.MULTILINE)
SESSION = "/var/lib/sublet/session"  # the session's directory in the machine


class UserDataTooLarge(Exception):
    """What a session is made of does not fit."""

    def __init__(self, size: int, room: int) -> None:
        """Set how large the files are, and how much would fit."""
        super().__init__(f"its files are {size} bytes packed, and user data has room for {room}")


@dataclass(frozen=True, slots=True)
class GuestTimes:
    """How long a session may go on in its machine when nobody stops it."""

    grace: timedelta  # between TERM and KILL
    spare: timedelta  # after the end of its time
    keep: timedelta  # for results that nobody fetches


@dataclass(frozen=True, slots=True)
class GuestDoor:
    """How the service gets into the machine, and for what; not at all without a key."""

    key: str = ""  # the public half
    port: int = 0
    awaits: bool = False  # whether the files are sent that way
    connects: bool = False  # whether people connect that way


NO_DOOR = GuestDoor()


def describe_job(job: Job, key: str, times: GuestTimes, now: datetime, door: GuestDoor = NO_DOOR) -> bytes:
    """Write the job for the machine, as JSON."""
    seconds = max(0.5, (job.until - now).total_seconds())
    described = {
        "session": key,
        "argv": list(job.program.argv),
        "environment": {
            **tell_amounts(job.amounts),
            "SUBLET_PART": "0",
            "SUBLET_PARTS": "1",
            **job.program.environment,
        },
        "links": [
            [mount.source, mount.target, mount.read_only] for mount in job.mounts if not mount.target.startswith("/")
        ],
        "seconds": seconds,
        "warn": min(job.warn.total_seconds(), seconds / 2),
        "grace": times.grace.total_seconds(),
        "spare": times.spare.total_seconds(),
        "keep": times.keep.total_seconds(),
        "door": {"key": door.key, "port": door.port} if door.key else None,
        "awaits": door.awaits,
        "connects": door.connects,
    }
    return json.dumps(described).encode()


def write_user_data(described: bytes, packed: bytes, secret: bytes) -> str:
    """Write user data, in base64; raise UserDataTooLarge if Nova doesn't accept as much."""
    content = len(described).to_bytes(4, "big") + described + packed
    sealed = base64.b85encode(seal(secret, "session", content)).decode()
    given = f"#!/usr/bin/env python3\n{FUTURE}\nCODE = {_pack_code()!r}\nSEALED = {sealed!r}\n"
    script = f"{given}{_read('sealed')}\n{_read('boot')}"
    data = base64.b64encode(script.encode()).decode()
    if len(data) > MOST:
        raise UserDataTooLarge(len(packed), len(packed) - (len(data) - MOST) * 3 * 4 // 4 // 5)
    return data


@cache
def _read(name: str) -> str:
    """Read one of the guest's modules, without its imports of the others."""
    text = files("sublet.platforms.openstack.guest").joinpath(f"{name}.py").read_text()
    text = OWN_IMPORTS.sub("", text)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(FUTURE))


@cache
def _pack_code() -> str:
    return base64.b85encode(zlib.compress("\n".join((FUTURE, *map(_read, INSIDE))).encode(), 9)).decode()
