"""On which line of a document each of its values is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml

Path = tuple[str | int, ...]
Lines = dict[Path, int]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


class _Walk:
    """A walk through a document in the order in which it is written."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.twice = 0  # the line of the first field that is there once more
        self._at: list[str | int] = []  # the path; of an open list or map the last step is the next one's
        self._maps: list[bool] = []

    def name(self, name: str, line: int) -> None:
        """A field's name inside a map."""
        self._at[-1] = name
        self.twice = self.twice or (line if tuple(self._at) in self.lines else 0)
        self._put(line)

    def begin(self, line: int, *, mapping: bool) -> None:
        """A map or list begins."""
        self._put(line)
        self._at.append(-1 if mapping else 0)
        self._maps.append(mapping)

    def end(self) -> None:
        """The innermost map or list ends."""
        self._at.pop()
        self._maps.pop()
        self._next()

    def value(self, line: int) -> None:
        """A single value."""
        self._put(line)
        self._next()

    @property
    def in_map(self) -> bool:
        """Whether the innermost is a map."""
        return bool(self._maps) and self._maps[-1]

    def _put(self, line: int) -> None:
        self.lines.setdefault(tuple(self._at), line)

    def _next(self) -> None:
        if self._maps and not self._maps[-1] and isinstance(self._at[-1], int):
            self._at[-1] += 1


def yaml_lines(text: str) -> Lines:
    """The lines of a YAML document that is known to be one."""
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
    """The lines of a JSON document that is known to be one."""
    return _json(text).lines


def json_twice(text: str) -> int:
    """The line on which a field of a JSON document is there for the second time; 0 if none is."""
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
