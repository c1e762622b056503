"""Tables that fit a terminal: the widest columns are cut or folded first, and the least important ones left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from sublet.cli.screen import fit, pad, paint_phase, width_of, wrap

GAP = "  "
READABLE = 10  # columns below which a cut cell tells nothing
NARROWEST = 4


@dataclass(frozen=True)
class Manner:
    """How a table becomes narrower; nothing is cut in its first column, which has what is typed elsewhere."""

    keep: Collection[str] = ()  # columns that are not cut either
    least: Sequence[str] = ()  # columns that are left out if others would be unreadable, the least important first
    fold: bool = False  # long cells go on in the next line, rather than being cut


@dataclass
class Columns:
    """Headings and rows, the widths that they have, and those that they are given."""

    head: list[str]
    rows: list[list[str]]
    manner: Manner = field(default_factory=Manner)

    def fit(self, width: int | None) -> list[str]:
        """The lines, within so many columns if that can be."""
        widths = self._widths()
        if width is not None:
            widths = self._narrow(width)
        return [line for row in (self.head, *self.rows) for line in self._lines(row, widths)]

    def _widths(self) -> list[int]:
        return [max(map(width_of, column)) for column in zip(self.head, *self.rows, strict=True)]

    def _narrow(self, width: int) -> list[int]:
        level = self._level(width)
        for name in self.manner.least:
            if level is None or level >= READABLE:
                break
            if name in self.head:
                self._drop(self.head.index(name))
                level = self._level(width)
        widths = self._widths()
        if level is None:
            return widths
        level = max(level, NARROWEST)
        return [min(has, level) if self._can_cut(i) else has for i, has in enumerate(widths)]

    def _level(self, width: int) -> int | None:
        """How wide those columns may be that can be cut, so that all of it fits; None if it does as it is."""
        widths = self._widths()
        left = width - len(GAP) * (len(widths) - 1)
        if sum(widths) <= left:
            return None
        cut = sorted(has for i, has in enumerate(widths) if self._can_cut(i))
        left -= sum(has for i, has in enumerate(widths) if not self._can_cut(i))
        for count in range(len(cut), 0, -1):
            share = left // count
            if cut[len(cut) - count] > share:
                return share
            left -= cut[len(cut) - count]
        return 0

    def _can_cut(self, index: int) -> bool:
        return index > 0 and self.head[index] not in self.manner.keep

    def _drop(self, index: int) -> None:
        del self.head[index]
        for row in self.rows:
            del row[index]

    def _lines(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        if not self.manner.fold:
            return [
                self._line([fit(cell, w) if self._can_cut(i) else cell for i, (cell, w) in _each(row, widths)], widths)
            ]
        folded = [wrap(cell, w) if self._can_cut(i) else [cell] for i, (cell, w) in _each(row, widths)]
        most = max(map(len, folded), default=0)
        return [self._line([lines[n] if n < len(lines) else "" for lines in folded], widths) for n in range(most)]

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = [pad(cell, width) for cell, width in zip(cells, widths, strict=True)]
        padded[-1:] = [cell.rstrip() for cell in padded[-1:]]
        drawn = [paint_phase(cell) if name == "PHASE" else cell for name, cell in zip(self.head, padded, strict=True)]
        return GAP.join(drawn).rstrip()


def _each(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[int, tuple[str, int]]]:
    return enumerate(zip(row, widths, strict=True))
