"""The master key: a file outside SUBLET_HOME with which a service encrypts the secrets that it stores.

Each line is a key: its id and 32 random bytes. The first key encrypts; all of them decrypt, so that keys can be
rotated.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import stat
from dataclasses import dataclass, field

from sublet.kernel.errors import BadMasterKey

CREDENTIAL = "sublet-master-key"  # the name of systemd's credential
_LINE = re.compile(r"sublet-key ([0-9a-f]{8}) ([A-Za-z0-9+/]{43}=)")
_MOST = 1 << 16  # bytes read of a key file


@dataclass(frozen=True, slots=True)
class MasterKey:
    """One key of a key file."""

    id: str
    secret: bytes = field(repr=False)

    @property
    def line(self) -> str:
        """The key as a line of the file."""
        return f"sublet-key {self.id} {base64.b64encode(self.secret).decode()}\n"


def new_key() -> MasterKey:
    """Generate a random key."""
    return MasterKey(secrets.token_hex(4), secrets.token_bytes(32))


def make(file: str, *, more: bool = False) -> MasterKey:
    """Write a new key file with one key or, with `more`, add a new key in front of the file's keys."""
    key = new_key()
    before = "".join(old.line for old in _parse_key(file, _content(file, credential=False))) if more else ""
    part = f"{file}.{secrets.token_hex(4)}"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as written:
            written.write(key.line + before)
            written.flush()
            os.fsync(written.fileno())
        if more:
            os.rename(part, os.path.realpath(file))
        else:
            os.link(part, file)  # unlike a rename, it never replaces a key
    except FileExistsError as error:
        hint = f"Add a new key to it with `sublet account key --more {file}`, or name another file."
        raise BadMasterKey(file=file, why="it exists already", hint=hint) from error
    except OSError as error:
        raise BadMasterKey(file=file, why=error.strerror or str(error)) from error
    finally:
        if os.path.exists(part):
            os.unlink(part)
    return key


def find(setting: str) -> str:
    """Return the key file that the setting names, or else systemd's credential; empty if there is neither."""
    if setting:
        return setting
    directory = os.environ.get("CREDENTIALS_DIRECTORY", "")
    given = os.path.join(directory, CREDENTIAL) if directory else ""
    return given if given and os.path.exists(given) else ""


def read(file: str, home: str) -> tuple[MasterKey, ...]:
    """Return the keys of a file; raise BadMasterKey if it is in SUBLET_HOME, or if others can read or write it."""
    outside(file, home)
    directory = os.environ.get("CREDENTIALS_DIRECTORY", "")
    return _parse_key(file, _content(file, credential=bool(directory) and os.path.dirname(file) == directory))


def outside(file: str, home: str) -> None:
    """Raise BadMasterKey if the file is in SUBLET_HOME, after following links."""
    within = os.path.realpath(home)
    if os.path.commonpath([os.path.realpath(file), within]) == within:
        raise BadMasterKey(file=file, why=f"it lies in SUBLET_HOME, beside what it seals ({within})")


def _content(file: str, *, credential: bool) -> str:
    try:
        with open(file, encoding="ascii") as opened:
            _check(file, os.fstat(opened.fileno()), credential)
            return opened.read(_MOST)
    except OSError as error:
        raise BadMasterKey(file=file, why=error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise BadMasterKey(file=file, why="it is no key file") from error


def _check(file: str, status: os.stat_result, credential: bool) -> None:
    """Raise BadMasterKey unless only its owner can access the file.

    The group bits of systemd's credentials are the mask of their access list, so reading by the group is allowed there.
    """
    if not stat.S_ISREG(status.st_mode):
        raise BadMasterKey(file=file, why="it is no file")
    if status.st_uid not in (os.getuid(), 0):
        raise BadMasterKey(file=file, why="it belongs to someone else")
    if stat.S_IMODE(status.st_mode) & (0o037 if credential else 0o077):
        raise BadMasterKey(file=file, why="others than its owner may read or change it", hint=f"chmod 600 {file}")


def _parse_key(file: str, text: str) -> tuple[MasterKey, ...]:
    keys: list[MasterKey] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadMasterKey(file=file, why=f"line {number} is no key")
        try:
            keys.append(MasterKey(match[1], base64.b64decode(match[2], validate=True)))
        except binascii.Error as error:
            raise BadMasterKey(file=file, why=f"line {number} is no key") from error
    if not keys:
        raise BadMasterKey(file=file, why="there is no key in it")
    return tuple(keys)
