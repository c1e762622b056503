"""Tables that fit a terminal: long cells are folded, minor columns dropped, and wide ones moved below their row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from sublet.cli.screen import longest_piece, pad, paint_phase, width_of, wrap

GAP = "  "
BELOW = "    "  # indentation of cells below a row
COMFORTABLE = 20  # width below which folded cells get so tall that minor columns are dropped instead
READABLE = 10  # width below which a folded cell is hard to read


@dataclass(frozen=True)
class Manner:
    """How a table is made narrower; nothing is truncated, and the first column, which people type, isn't folded."""

    keep: Collection[str] = ()  # further columns that aren't folded
    least: Sequence[str] = ()  # columns that may be dropped, the least important first


@dataclass
class Columns:
    """A table's headings and rows, and the columns that are moved below each row."""

    head: list[str]
    rows: list[list[str]]
    manner: Manner = field(default_factory=Manner)
    below: list[int] = field(default_factory=list)
    widths: list[int] = field(init=False)
    words: list[int] = field(init=False)  # of the longest word in each column

    def __post_init__(self) -> None:
        """Measure each column once."""
        columns = list(zip(self.head, *self.rows, strict=True))
        self.widths = [max(map(width_of, column)) for column in columns]
        self.words = [max(map(longest_piece, column)) for column in columns]

    def fit(self, width: int | None) -> list[str]:
        """Return the table's lines, within this width if possible."""
        if width is not None:
            self._make_room(width)
        limits = self._limits(None if width is None else self._level(width))
        return [line for row in (self.head, *self.rows) for line in self._lines(row, limits, width)]

    def _make_room(self, width: int) -> None:
        for name in self.manner.least:
            if self._has_room(width, COMFORTABLE):
                return
            if name in self.head:
                self._drop(self.head.index(name))
        while not self._has_room(width, READABLE):
            movable = [index for index in self._beside() if self._can_fold(index)]
            if not movable:
                return  # the remaining columns can't be folded
            self.below = sorted([*self.below, max(movable, key=lambda index: self.widths[index])])

    def _has_room(self, width: int, least: int) -> bool:
        level = self._level(width)
        return level is None or level >= least

    def _level(self, width: int) -> int | None:
        """Return the widest limit for foldable columns with which the table fits; None if it fits without folding."""
        room = width - len(GAP) * (len(self._beside()) - 1)
        if self._takes(None) <= room:
            return None
        return next((level for level in range(room, 0, -1) if self._takes(level) <= room), 0)

    def _takes(self, level: int | None) -> int:
        limits = self._limits(level)
        return sum(limits[index] for index in self._beside())

    def _limits(self, level: int | None) -> list[int]:
        """Return the width of each column at a level; no column is narrower than its longest word."""
        if level is None:
            return self.widths
        return [
            min(has, max(level, word)) if self._can_fold(index) else has
            for index, (has, word) in enumerate(zip(self.widths, self.words, strict=True))
        ]

    def _beside(self) -> list[int]:
        return [index for index in range(len(self.head)) if index not in self.below]

    def _can_fold(self, index: int) -> bool:
        return index > 0 and self.head[index] not in self.manner.keep

    def _drop(self, index: int) -> None:
        for texts in (self.head, *self.rows):
            del texts[index]
        del self.widths[index], self.words[index]

    def _lines(self, row: Sequence[str], limits: Sequence[int], width: int | None) -> Iterator[str]:
        beside = self._beside()
        folded = [wrap(row[index], limits[index]) if self._can_fold(index) else [row[index]] for index in beside]
        for number in range(max(map(len, folded), default=0)):
            cells = [lines[number] if number < len(lines) else "" for lines in folded]
            yield self._line(cells, beside, limits)
        if row is not self.head:
            for index in self.below:
                yield from self._line_below(self.head[index], row[index], width)

    def _line(self, cells: Sequence[str], beside: Sequence[int], limits: Sequence[int]) -> str:
        drawn = [
            paint_phase(pad(cell, limits[index])) if self.head[index] == "PHASE" else pad(cell, limits[index])
            for cell, index in zip(cells, beside, strict=True)
        ]
        return GAP.join(drawn).rstrip()

    def _line_below(self, name: str, cell: str, width: int | None) -> list[str]:
        if cell in ("", "-"):
            return []
        return wrap(f"{BELOW}{name.lower()}: {cell}" if name else f"{BELOW}{cell}", width, BELOW)
