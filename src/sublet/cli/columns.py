"""Tables that fit a terminal: cells are folded, the least columns left out, and the widest put below their row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from sublet.cli.screen import longest_piece, pad, paint_phase, width_of, wrap

GAP = "  "
BELOW = "    "  # before what is put below a row
COMFORTABLE = 20  # columns below which a folded cell takes so many lines that other columns are rather left out
READABLE = 10  # columns below which it is hard to read


@dataclass(frozen=True)
class Manner:
    """How a table becomes narrower: nothing is cut, and the first column, which is typed elsewhere, isn't folded."""

    keep: Collection[str] = ()  # columns that are not folded either
    least: Sequence[str] = ()  # columns that are left out if others would be unreadable, the least important first


@dataclass
class Columns:
    """Headings and rows, and the columns that are put below each row because there is no room beside the others."""

    head: list[str]
    rows: list[list[str]]
    manner: Manner = field(default_factory=Manner)
    below: list[int] = field(default_factory=list)
    widths: list[int] = field(init=False)
    words: list[int] = field(init=False)  # the width of the longest word of each column

    def __post_init__(self) -> None:
        """Measure each column once."""
        columns = list(zip(self.head, *self.rows, strict=True))
        self.widths = [max(map(width_of, column)) for column in columns]
        self.words = [max(map(longest_piece, column)) for column in columns]

    def fit(self, width: int | None) -> list[str]:
        """The lines, within so many columns if that can be."""
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
                return  # what is left is in one piece, whatever the width
            self.below = sorted([*self.below, max(movable, key=lambda index: self.widths[index])])

    def _has_room(self, width: int, least: int) -> bool:
        level = self._level(width)
        return level is None or level >= least

    def _level(self, width: int) -> int | None:
        """How wide columns may be that can be folded, so that all of it fits; None if it does as it is."""
        room = width - len(GAP) * (len(self._beside()) - 1)
        if self._takes(None) <= room:
            return None
        return next((level for level in range(room, 0, -1) if self._takes(level) <= room), 0)

    def _takes(self, level: int | None) -> int:
        limits = self._limits(level)
        return sum(limits[index] for index in self._beside())

    def _limits(self, level: int | None) -> list[int]:
        """The width of each column at a level; none is narrower than its longest word."""
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
