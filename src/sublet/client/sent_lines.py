"""Parses the stream of a service that sends results: lines of JSON, each a finished file or a progress report."""

from __future__ import annotations

import json

from sublet.booking.views.results import SendProgressView, SentFileView
from sublet.kernel.errors import DataNotSent
from sublet.kernel.views import read


class SentLines:
    """The stream's content so far."""

    def __init__(self) -> None:
        """Start empty."""
        self.files: list[SentFileView] = []
        self.doing: SendProgressView | None = None  # the latest progress report
        self._rest = b""

    def saw(self, piece: bytes) -> SentLines:
        """Parse the next piece of the stream; raise DataNotSent if it reports a failure."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._read(json.loads(line))
        return self

    def _read(self, line: dict[str, object]) -> None:
        if "error" in line:
            raise DataNotSent(str(line["error"]), hint=str(line["hint"]))
        if "doing" in line:
            self.doing = read(SendProgressView, line)
        else:
            self.files.append(read(SentFileView, line))
