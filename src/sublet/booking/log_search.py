"""A search for lines that contain some words, in a long text that is read piece by piece to save memory."""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_LINE = 300  # bytes of a line that are shown
KEPT = 64 * 1024  # the most bytes of an unfinished line that are kept until the next piece


@dataclass(frozen=True, slots=True)
class Match:
    """A line that contains the words, and the byte at which it begins."""

    offset: int
    text: bytes


@dataclass
class LineSearch:
    """A case-insensitive search through pieces of text as they arrive."""

    words: str
    most: int
    at: int = 0  # the byte at which the unfinished line begins
    matches: list[Match] = field(default_factory=list)
    _rest: bytes = b""

    @property
    def is_full(self) -> bool:
        """Whether as many lines were found as are wanted."""
        return len(self.matches) >= self.most

    def feed(self, piece: bytes) -> None:
        """Search the piece that follows the last one."""
        *lines, rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._look(line)
            self.at += len(line) + 1
            if self.is_full:
                self._rest = b""
                return
        self._rest = rest
        if len(rest) > KEPT:
            self._look(rest)
            self.at, self._rest = self.at + len(rest), b""

    def finish(self) -> None:
        """Search the last line, because the text has ended."""
        if self._rest and not self.is_full:
            self._look(self._rest)
        self.at, self._rest = self.at + len(self._rest), b""

    def _look(self, line: bytes) -> None:
        place = line.decode(errors="replace").casefold().find(self.words.casefold())
        if place < 0:
            return
        begin = max(0, place - LONGEST_LINE // 2) if len(line) > LONGEST_LINE else 0
        self.matches.append(Match(self.at, line[begin : begin + LONGEST_LINE]))
