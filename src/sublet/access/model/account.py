"""A community account: one user name at a centre, under which a gateway runs its people's sessions."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from sublet.kernel.errors import BadAccount

MOST = 100_000  # the largest capacity
CAPACITY = 10  # default number of concurrent sessions at the site
CONNECTORS = {"SlurmConnector": "slurm", "SingularityConnector": "slurm", "BaseConnector": "slurm"}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%@+-]*")  # a host or user name, which ssh can't take for an option
_PLACE = re.compile(r"(\$[A-Z_]+(/|$)|/|[A-Za-z0-9._])[^\n\0]*")
_KEY_TYPE = re.compile(r"[a-z0-9@.-]+")


@dataclass(frozen=True)
class Account:
    """A community account; its private key is stored elsewhere, sealed."""

    name: str
    host: str
    user: str
    port: int = 22
    connector: str = "SlurmConnector"
    directory: str = ".sublet"  # where sessions are kept there
    description: str = ""
    queue: str = ""  # the partition; empty: any that fits
    project: str = ""  # the allocation that is charged
    qos: str = ""
    options: tuple[str, ...] = ()  # for sbatch
    modules: tuple[str, ...] = ()
    capacity: int = CAPACITY  # concurrent sessions at the site
    wckey: bool = False  # whether each job's wckey names the person
    globus: Mapping[str, str] = field(default_factory=dict)  # its endpoint there, as it was given
    host_keys: tuple[str, ...] = ()  # `ssh-ed25519 AAAA…`, confirmed by an operator
    certificate: str = ""  # of the key, if the centre signs keys
    public: str = ""  # the public key
    created: datetime | None = None
    changed: datetime | None = None
    by: str = ""  # who added it

    def __post_init__(self) -> None:
        """Raise BadAccount if a field is invalid, or could be taken for something else."""
        wrong = next((why for field, why in _WRONG if not _RIGHT[field](getattr(self, field))), "")
        if wrong:
            raise BadAccount(name=self.name, why=wrong)

    @property
    def platform(self) -> str:
        """The kind of platform that its connector stands for."""
        return CONNECTORS[self.connector]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its key."""
        return fingerprint(self.public) if self.public else ""


_RIGHT: dict[str, Any] = {
    "name": _NAME.fullmatch,
    "host": _WORD.fullmatch,
    "user": _WORD.fullmatch,
    "port": lambda port: 0 < port < 65536,
    "connector": CONNECTORS.__contains__,
    "directory": _PLACE.fullmatch,
    "capacity": lambda most: 0 < most <= MOST,
    "host_keys": lambda keys: all(map(host_key, keys)),
    "certificate": lambda text: "\n" not in text.strip(),
}
_WRONG = (
    ("name", "its name has small letters, digits, `.`, `_` and `-`, 40 at most"),
    ("host", "its address is no host name"),
    ("user", "its user is no user name"),
    ("port", "its port is a number from 1 to 65535"),
    ("connector", f"its connector is none of {', '.join(CONNECTORS)}"),
    ("directory", "its directory is a path: below the home, /full, or $SCRATCH/sublet"),
    ("capacity", "its capacity is a number from 1 to 100000"),
    ("host_keys", "a host key is a type and a key, as in `ssh-ed25519 AAAA…`"),
    ("certificate", "a certificate is one line"),
)


def host_key(line: str) -> str:
    """Extract `TYPE KEY` from a line of known_hosts or of a public key; empty if it has none."""
    words = line.split("#")[0].split()
    for kind, body in pairwise(words):
        if _KEY_TYPE.fullmatch(kind) and (blob := _blob(body)) and blob[4 : 4 + len(kind)] == kind.encode():
            return f"{kind} {body}"
    return ""


def fingerprint(line: str) -> str:
    """Return the fingerprint `SHA256:…`, as ssh shows it."""
    blob = _blob(host_key(line).partition(" ")[2])
    return f"SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}" if blob else ""


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
