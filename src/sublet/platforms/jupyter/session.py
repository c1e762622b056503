"""One session's directory here: what is sent to its server, what its kernel said, and what came back.

job.json           what it is: notebook or server, whose, how long
notebook.ipynb     the notebook as it is executed, with its parameters
journal            what was sent to the kernel and what it answered, one entry in each line
server             asked, then ready: how far its server is
uploaded.json      what was sent there, by path, and when the server says that it was modified
cancel, until      who wants it stopped; the moved end of its time
condition          what hinders it, in words
end.json           how it ended;  released: nothing of it is left there
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
    """A session's directory, with what is known of its server and its kernel."""

    def __init__(self, platform: str, home: Path, key: str) -> None:
        """Know where it is; nothing is made yet."""
        super().__init__(platform, home, key)
        self.held = home / "held" / key  # there, until nothing of it is left on a server

    def hold(self, values: dict[str, Any]) -> None:
        """Write down what it is to be: from then on it will be started, once."""
        self.held.touch(0o600)
        self.running.touch(0o600)
        self.write_job(values)

    @property
    def server(self) -> str:
        """How far its server is: "", "asked" or "ready"."""
        return self._text("server")

    def note_server(self, word: str) -> None:
        """Write down how far its server is."""
        if self.server != word:
            self.write("server", word.encode())

    @property
    def connector(self) -> str:
        """Where a person opens it."""
        return self._text("address")

    def note_begin(self, address: str = "") -> None:
        """Write down that it runs, and where it is opened."""
        if not (self.root / "began").exists():
            self.write("began", f"{datetime.now(UTC).timestamp()}".encode())
        if address:
            self.write("address", address.encode())
            (self.news / f"{self.key}.open").touch(0o600)

    def note_condition(self, words: str) -> None:
        """Write down what hinders it; nothing does, if there are no words."""
        if self._text("condition") != words:
            self.write("condition", words.encode())

    # The journal

    def read_journal(self) -> Execution:
        """How far its notebook is; what it printed is written out anew."""
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
        """The notebook that is being executed."""
        notebook = self.read("notebook.ipynb")
        return notebook if isinstance(notebook, dict) else None

    # How it is

    def state(self) -> JobState:
        """What its files say."""
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
        """Write down how it ended; the first record stands."""
        now = datetime.now(UTC)
        began = self.began or now
        wall = max(0.0, (now - began).total_seconds())
        usage = end.usage and replace(end.usage, wall=wall)
        self.settle(replace(end, usage=usage), began.timestamp(), now.timestamp())

    @property
    def is_released(self) -> bool:
        """Whether nothing of it is left there."""
        return not self.held.exists()

    def release(self, left_with: str | None = None) -> None:
        """Write down that nothing of it is left there; or with whom its files stay until a server is there again."""
        if left_with is not None:
            (self.held.parent.parent / "left" / self.key).write_text(left_with)
        self.held.unlink(missing_ok=True)
