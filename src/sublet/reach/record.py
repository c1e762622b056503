"""Records of open logins: a login belongs to one host and one uid."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sublet.kernel.errors import LoginNeeded
from sublet.reach.target import Target


@dataclass(frozen=True)
class LoginRecord:
    """Who opened a login, where and when."""

    platform: str
    target: str  # user@host:port, as given
    host: str  # the machine on which it was opened
    uid: int
    user: str  # the user name there; empty: from the ssh configuration
    pid: int  # the process that holds it open
    opened: datetime

    @property
    def ours(self) -> bool:
        """Whether this process can use the login: it runs on the same machine with the same uid."""
        return self.host == socket.gethostname() and self.uid == os.getuid()

    def write(self, path: Path) -> None:
        """Write the record to a file that only its owner can read."""
        new = path.with_suffix(".new")
        text = json.dumps({**asdict(self), "opened": self.opened.isoformat()})
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        new.replace(path)


def new_record(target: Target, pid: int) -> LoginRecord:
    """Return the record of a login that was opened here and now."""
    where = f"{target.user}@{target.host}" if target.user else target.host
    return LoginRecord(
        platform=target.platform,
        target=f"{where}:{target.port}" if target.port else where,
        host=socket.gethostname(),
        uid=os.getuid(),
        user=target.user,
        pid=pid,
        opened=datetime.now(UTC),
    )


def read_record(path: Path) -> LoginRecord | None:
    """Read a record from a file; None if the file is missing or unreadable."""
    try:
        values = json.loads(path.read_text())
        return LoginRecord(**{**values, "opened": datetime.fromisoformat(values["opened"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def logins(control: Path) -> list[LoginRecord]:
    """List the logins recorded in a directory; `Login.check` says whether one is still open."""
    records = (read_record(path) for path in sorted(control.glob("*.json")))
    return [record for record in records if record is not None]


def elsewhere(target: Target) -> LoginNeeded | None:
    """Return the error for a login that another machine or user holds, or None if the login is ours."""
    record = read_record(target.record)
    if record is None or record.ours:
        return None
    return LoginNeeded(
        f"The login to {target.platform} is on {record.host}, by uid {record.uid}, and can be used only there.",
        hint=f"Run it there, or sign in from here too: sublet system login {target.platform}",
    )
