"""Finds the line of each value in a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml

Path = tuple[str | int, ...]
Lines = dict[Path, int]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


class _Walk:
    """A walk through a document in its written order."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.twice = 0  # the line of the first repeated field
        self._at: list[str | int] = []  # the path; in an open list or map, its last step is that of the next item
        self._maps: list[bool] = []

    def name(self, name: str, line: int) -> None:
        """Enter a field of a map."""
        self._at[-1] = name
        self.twice = self.twice or (line if tuple(self._at) in self.lines else 0)
        self._put(line)

    def begin(self, line: int, *, mapping: bool) -> None:
        """Begin a map or list."""
        self._put(line)
        self._at.append(-1 if mapping else 0)
        self._maps.append(mapping)

    def end(self) -> None:
        """End the innermost map or list."""
        self._at.pop()
        self._maps.pop()
        self._next()

    def value(self, line: int) -> None:
        """Note a single value."""
        self._put(line)
        self._next()

    @property
    def in_map(self) -> bool:
        """Whether the innermost container is a map."""
        return bool(self._maps) and self._maps[-1]

    def _put(self, line: int) -> None:
        self.lines.setdefault(tuple(self._at), line)

    def _next(self) -> None:
        if self._maps and not self._maps[-1] and isinstance(self._at[-1], int):
            self._at[-1] += 1


def yaml_lines(text: str) -> Lines:
    """Return the lines of a valid YAML document."""
    walk, named = _Walk(), False
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent) and walk.in_map and not named:
            walk.name(event.value, line)
            named = True
            continue
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            walk.begin(line, mapping=isinstance(event, yaml.MappingStartEvent))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            walk.end()
        elif isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            walk.value(line)
        named = False
    return walk.lines


def json_lines(text: str) -> Lines:
    """Return the lines of a valid JSON document."""
    return _json(text).lines


def json_twice(text: str) -> int:
    """Return the line of the first repeated field in a JSON document; 0 if there is none."""
    return _json(text).twice


def _json(text: str) -> _Walk:
    walk, named = _Walk(), False
    for sign, line in _tokens(text):
        if sign in "{[":
            walk.begin(line, mapping=sign == "{")
            named = False
        elif sign in "}]":
            walk.end()
        elif sign == ":":
            named = True
        elif sign == ",":
            named = False
        elif walk.in_map and not named:
            walk.name(json.loads(sign), line)
        else:
            walk.value(line)
            named = False
    return walk


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield match[0], line
