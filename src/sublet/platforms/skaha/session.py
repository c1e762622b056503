"""One session's directory here: what is asked of Skaha, its ID there, its output, and how it ended.

job.json   the job;  asked: marks that it may have been launched;  id: its ID there
stdout     its logs, as far as they were read;  cancel, until: who cancelled it; the moved end of its time
judged     how it ended, before it is removed there;  end.json: the same, once it is removed
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.distant_session import DistantSession


class SkahaSessionDir(DistantSession):
    """A session's local directory, with what is known of it at Skaha."""

    @property
    def id(self) -> str:
        """The session's ID there."""
        return self._text("id")

    @property
    def is_asked(self) -> bool:
        """Whether the session may have been launched."""
        return (self.root / "asked").exists()

    def note_begin(self, at: datetime) -> None:
        """Record when the session began to run."""
        if not self.began:
            self.write("began", str(at.timestamp()).encode())

    def keep_output(self, content: bytes) -> None:
        """Save the session's output, unless more of it has been saved before."""
        if len(content) > self.output_size("stdout"):
            self.write("stdout", content)

    @property
    def verdict(self) -> End | None:
        """How the session ended, if that was recorded before it was removed there."""
        record = self.read("judged")
        return End(EndKind(record["kind"]), record["code"], None, record["by"], record["detail"]) if record else None

    def judge(self, end: End) -> None:
        """Record how the session ended, as nobody can be asked once it is removed there."""
        record = {"kind": end.kind.value, "code": end.code, "by": end.by, "detail": end.detail}
        self.write("judged", json.dumps(record).encode())

    def finish(self, end: End) -> None:
        """Record how the session ended; the first record stands."""
        now = datetime.now(UTC)
        began = self.began or now
        usage = Usage(wall=max(0.0, (now - began).total_seconds()))
        full = End(end.kind, end.code, None, end.by, end.detail, usage)
        self.settle(full, began.timestamp(), now.timestamp())
