"""The local directory of a session that runs at another service, which the loop asks about the session.

job.json   the job, with its duration in seconds
began      when it began to run there;  until: the moved end of its time
cancel     who cancelled it
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sublet.platforms.sessiondir import SessionDir, moment


class DistantSession(SessionDir):
    """The local directory of a session that runs elsewhere: its job and its progress."""

    @property
    def is_submitted(self) -> bool:
        """Whether the session was submitted."""
        return self.read("job.json") is not None

    def read_job(self) -> dict[str, Any]:
        """Read the job; empty if the session wasn't submitted."""
        return dict(self.read("job.json") or {})

    @property
    def began(self) -> datetime | None:
        """When the session began to run there; None if it hasn't."""
        text = self._text("began")
        return moment(float(text)) if text else None

    @property
    def until(self) -> datetime | None:
        """The end of the session's time, which is counted from its start; None if it hasn't begun."""
        if text := self._text("until"):
            return moment(float(text))
        return self.began and self.began + timedelta(seconds=self.read_job()["seconds"])

    @property
    def cancelled_by(self) -> str | None:
        """Who cancelled the session; None if nobody did."""
        return self._text("cancel") if (self.root / "cancel").exists() else None

    def cancel(self, by: str) -> None:
        """Record who cancelled the session; the first record stands."""
        with suppress(FileExistsError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by or "someone")
