"""Who opened a login, where and when: a login belongs to one host and one uid."""

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
    """One login, as it was opened."""

    platform: str
    target: str  # user@host:port, as they were given
    host: str  # the machine it was opened on
    uid: int
    user: str  # the user name there; empty: the ssh configuration's
    pid: int  # of the process that holds it open
    opened: datetime

    @property
    def ours(self) -> bool:
        """Whether this process may use it: the same machine, the same uid."""
        return self.host == socket.gethostname() and self.uid == os.getuid()

    def write(self, path: Path) -> None:
        """Keep it, readable by its owner only."""
        new = path.with_suffix(".new")
        text = json.dumps({**asdict(self), "opened": self.opened.isoformat()})
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        new.replace(path)


def new_record(target: Target, pid: int) -> LoginRecord:
    """The record of a login that was opened here and now."""
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
    """The record in a file; None if there is none that can be read."""
    try:
        values = json.loads(path.read_text())
        return LoginRecord(**{**values, "opened": datetime.fromisoformat(values["opened"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def logins(control: Path) -> list[LoginRecord]:
    """The logins that were opened under a directory and not closed; a Login's `check` tells whether one still holds."""
    records = (read_record(path) for path in sorted(control.glob("*.json")))
    return [record for record in records if record is not None]


def elsewhere(target: Target) -> LoginNeeded | None:
    """What to say of a login that another machine or user holds; None if it isn't so."""
    record = read_record(target.record)
    if record is None or record.ours:
        return None
    return LoginNeeded(
        f"The login to {target.platform} is on {record.host}, by uid {record.uid}, and can be used only there.",
        hint=f"Run it there, or sign in from here too: sublet system login {target.platform}",
    )
