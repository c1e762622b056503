"""Tables as text: CSV with commas, semicolons or tabs, with or without a byte order mark."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

SUFFIXES = (".csv", ".tsv")
SEPARATORS = ",;\t|"  # in this order where none prevails
LONGEST_HEAD = 1 << 16  # characters in which the first line is looked for


def is_table(path: str) -> bool:
    """Whether a file is a table by its name."""
    return path.lower().endswith(SUFFIXES)


def decode_text(data: bytes) -> str:
    """Return a file's beginning as text, without the byte order mark that spreadsheets write."""
    return data.decode("utf-8-sig", errors="replace")


def find_separator(lines: Sequence[str], path: str = "") -> str:
    """Return what separates the columns of a table: a comma if its first line has one, else what occurs most there."""
    if path.lower().endswith(".tsv"):
        return "\t"
    head = next((line for line in lines if line.strip()), "")
    return "," if "," in head else max(SEPARATORS, key=head.count)


def read_rows(text: str, path: str = "") -> Iterator[list[str]]:
    """Yield the rows of a table; a quoted value keeps its line breaks. Raises csv.Error where it can't be read."""
    import csv  # only for those who have a table

    separator = find_separator(text[:LONGEST_HEAD].splitlines(), path)
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator)
