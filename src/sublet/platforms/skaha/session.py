"""One session's directory here: what is asked of Skaha, which session it is there, what it printed, how it ended.

job.json   what it is;  asked: before it is launched, its name there;  id: which it is there
stdout     its logs, as far as they were read;  cancel, until: who wants it stopped; the moved end of its time
judged     how it ended, before it is removed there;  end.json: the same, when it is
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.distant_session import DistantSession


class SkahaSessionDir(DistantSession):
    """A session's directory, with what is known of it at Skaha."""

    @property
    def id(self) -> str:
        """Which session it is there."""
        return self._text("id")

    @property
    def is_asked(self) -> bool:
        """Whether it may have been launched."""
        return (self.root / "asked").exists()

    def note_begin(self, at: datetime) -> None:
        """Write down when it began to run."""
        if not self.began:
            self.write("began", str(at.timestamp()).encode())

    def keep_output(self, content: bytes) -> None:
        """Keep what it printed; logs that were cut off in between don't make it shorter."""
        if len(content) > self.output_size("stdout"):
            self.write("stdout", content)

    @property
    def verdict(self) -> End | None:
        """How it ended, if that was told before it was to be removed there."""
        record = self.read("judged")
        return End(EndKind(record["kind"]), record["code"], None, record["by"], record["detail"]) if record else None

    def judge(self, end: End) -> None:
        """Write down how it ended: once it is removed there, nobody can be asked."""
        record = {"kind": end.kind.value, "code": end.code, "by": end.by, "detail": end.detail}
        self.write("judged", json.dumps(record).encode())

    def finish(self, end: End) -> None:
        """Write down how it ended; the first record stands."""
        now = datetime.now(UTC)
        began = self.began or now
        usage = Usage(wall=max(0.0, (now - began).total_seconds()))
        full = End(end.kind, end.code, None, end.by, end.detail, usage)
        self.settle(full, began.timestamp(), now.timestamp())
