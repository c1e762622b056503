"""Reads what a service says while it sends results: lines of JSON, each a file that is there, or how far one is."""

from __future__ import annotations

import json

from sublet.booking.views.results import SendProgressView, SentFileView
from sublet.kernel.errors import DataNotSent
from sublet.kernel.views import read


class SentLines:
    """The answer as far as it has come."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.files: list[SentFileView] = []
        self.doing: SendProgressView | None = None  # the last that was said of how far it is
        self._rest = b""

    def saw(self, piece: bytes) -> SentLines:
        """More of the answer; DataNotSent if it says that a file could not be sent."""
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
