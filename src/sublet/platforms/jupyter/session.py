"""One session's directory here: what is sent to its server, its kernel's messages, and what came back.

job.json           the job: notebook or server, whose, how long
notebook.ipynb     the notebook as it is executed, with its parameters
journal            what was sent to the kernel and what it answered, one entry per line
server             asked, then ready: the state of its server
uploaded.json      what was sent there, by path, with its modification time on the server
cancel, until      who cancelled it; the moved end of its time
condition          what hinders it, for people
end.json           how it ended
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import Connector, End
from sublet.platforms.distant_session import DistantSession
from sublet.platforms.jupyter.execution import Execution
from sublet.platforms.sessiondir import read_end


class JupyterSession(DistantSession):
    """A session's local directory, with what is known of its server and its kernel."""

    def __init__(self, platform: str, home: Path, key: str) -> None:
        """Compute the paths without creating anything."""
        super().__init__(platform, home, key)
        self.held = home / "held" / key  # exists until nothing of it is left on a server

    def hold(self, values: dict[str, Any]) -> None:
        """Record the job: from then on it will be started, once."""
        self.held.touch(0o600)
        self.running.touch(0o600)
        self.write_job(values)

    @property
    def server(self) -> str:
        """The state of its server: "", "asked" or "ready"."""
        return self._text("server")

    def note_server(self, word: str) -> None:
        """Record the state of its server."""
        if self.server != word:
            self.write("server", word.encode())

    @property
    def connector(self) -> str:
        """The URL at which a person opens the session."""
        return self._text("address")

    def note_begin(self, address: str = "") -> None:
        """Record that the session runs, and where it is opened."""
        if not (self.root / "began").exists():
            self.write("began", f"{datetime.now(UTC).timestamp()}".encode())
        if address:
            self.write("address", address.encode())
            (self.news / f"{self.key}.open").touch(0o600)

    def note_condition(self, words: str) -> None:
        """Record what hinders the session; an empty text means nothing."""
        if self._text("condition") != words:
            self.write("condition", words.encode())

    # The journal

    def read_journal(self) -> Execution:
        """Read the state of the notebook from the journal; the output files are written again."""
        execution, streams = Execution(), {"stdout": b"", "stderr": b""}
        try:
            lines = (self.root / "journal").read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # a crash cut it off
                continue
            stream, text = execution.apply(entry)
            if text:
                streams[stream] += text.encode()
        if lines:
            for name, content in streams.items():
                (self.root / name).write_bytes(content)
        return execution

    def record(self, execution: Execution, entry: dict[str, Any]) -> None:
        """Add an entry to the journal, and apply it."""
        line = json.dumps(entry).encode() + b"\n"
        with (self.root / "journal").open("ab") as file:
            file.write(line)
        stream, text = execution.apply(entry)
        if text:
            with (self.root / stream).open("ab") as file:
                file.write(text.encode())

    def read_notebook(self) -> dict[str, Any] | None:
        """Read the notebook that is being executed; None if there is none yet."""
        notebook = self.read("notebook.ipynb")
        return notebook if isinstance(notebook, dict) else None

    # State and end

    def state(self) -> JobState:
        """Return the state by the session's files."""
        if end := self.read("end.json"):
            return read_end(end)
        if not self.is_submitted:
            return JobState(State.UNKNOWN)
        words = self._text("condition")
        began = self.began
        if began is None:
            return JobState(State.QUEUED, condition=words)
        state = JobState(State.RUNNING, started=began, condition=words)
        if kind := self.read_job().get("connects"):
            place = Connector(kind, "AVAILABLE", "HTTP", f"see:{self.connector}") if self.connector else None
            return replace(state, connector=place)
        return state

    def finish(self, end: End) -> None:
        """Record how the session ended; the first record stands."""
        now = datetime.now(UTC)
        began = self.began or now
        wall = max(0.0, (now - began).total_seconds())
        usage = end.usage and replace(end.usage, wall=wall)
        self.settle(replace(end, usage=usage), began.timestamp(), now.timestamp())

    @property
    def is_released(self) -> bool:
        """Whether nothing of the session is left on a server."""
        return not self.held.exists()

    def release(self, left_with: str | None = None) -> None:
        """Record that nothing of the session is left there, or whose home has its files until a server runs again."""
        if left_with is not None:
            (self.held.parent.parent / "left" / self.key).write_text(left_with)
        self.held.unlink(missing_ok=True)
