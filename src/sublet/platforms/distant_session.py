"""The directory here of a session that runs at another service, which the loop asks about it.

job.json   what it is, with its time in seconds
began      when it began to run there;  until: the moved end of its time
cancel     who wants it stopped
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sublet.platforms.sessiondir import SessionDir, moment


class DistantSession(SessionDir):
    """A session's directory, with what was asked for and how far it is."""

    @property
    def is_submitted(self) -> bool:
        """Whether it was submitted."""
        return self.read("job.json") is not None

    def read_job(self) -> dict[str, Any]:
        """What it is."""
        return dict(self.read("job.json") or {})

    @property
    def began(self) -> datetime | None:
        """When it began to run there."""
        text = self._text("began")
        return moment(float(text)) if text else None

    @property
    def until(self) -> datetime | None:
        """The end of its time, which begins when it does; None: it has not begun."""
        if text := self._text("until"):
            return moment(float(text))
        return self.began and self.began + timedelta(seconds=self.read_job()["seconds"])

    @property
    def cancelled_by(self) -> str | None:
        """Who wants it stopped; None: nobody."""
        return self._text("cancel") if (self.root / "cancel").exists() else None

    def cancel(self, by: str) -> None:
        """Write down who wants it stopped; the first stands."""
        with suppress(FileExistsError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by or "someone")
