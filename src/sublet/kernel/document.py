"""Parses a request's body, JSON or YAML, into plain values: within limits, without executing or guessing anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from sublet.booking.model.amounts import finite, quote_value
from sublet.kernel.errors import BadRequest, TooLarge, WrongType

MOST_BYTES = 1024 * 1024
MOST_VALUES = 100_000  # after aliases are expanded
MOST_DEPTH = 60
MOST_DIGITS = 300  # of an integer that is kept exactly

_JSON = re.compile(r"application/(.+\+)?json")
_YAML = re.compile(r"(application|text)/((.+\+)?yaml|yml|x-yaml|x-yml)")
_NUMERALS = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(\.[0-9]{{1,20}})?")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_CONSTANTS |= {"True": True, "TRUE": True, "False": False, "FALSE": False, "Null": None, "NULL": None}


def parse_document(body: bytes, content_type: str = "") -> Mapping[str, Any]:
    """Parse a request's body as the content type says, or as YAML if none is given."""
    if len(body) > MOST_BYTES:
        raise TooLarge(limit="1 MiB")
    form = _form(content_type)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadRequest(detail="the document is not text in UTF-8") from None
    if "\0" in text:
        raise BadRequest(detail="the document is binary, not text")
    value = _from_json(text) if form == "json" else _from_yaml(text)
    if not isinstance(value, dict):
        what = "empty" if value is None else f"{quote_value(value)}, not a map"
        raise BadRequest(detail=f"the document is {what}")
    return value


def _form(content_type: str) -> str:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise WrongType(type=quote_value(content_type), hint="Send it in UTF-8.")
    if not kind or kind == "*/*" or _YAML.fullmatch(kind):
        return "yaml"
    if _JSON.fullmatch(kind):
        return "json"
    raise WrongType(type=quote_value(content_type))


def _from_json(text: str) -> Any:
    try:
        value = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_not_json, parse_float=finite, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise BadRequest(detail=f"not JSON: {_describe_error(error)} {where}", line=error.lineno) from None
    except RecursionError:
        _too_deep()
    _check(value, 0)
    return value


def _whole(text: str) -> float:
    return int(text) if len(text) <= MOST_DIGITS else finite(text)


def _describe_error(error: json.JSONDecodeError) -> str:
    """Return what is wrong with JSON text, in words that help a person who wrote it by hand."""
    there = error.doc[error.pos : error.pos + 1]
    if there in ("/", "#"):
        return "it has no comments, and there is one"
    if there == "'":
        return "names and texts stand in double quotes, not in single ones,"
    if "trailing comma" in error.msg or (there in ("}", "]") and error.doc[: error.pos].rstrip().endswith(",")):
        return "there is a comma too many"
    if "',' delimiter" in error.msg:
        return "a comma is missing"
    return error.msg


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        _twice(twice)
    return value


def _check(value: Any, depth: int) -> None:
    """Raise BadRequest if a value is nested too deeply, or has text that can't be stored, such as lone surrogates."""
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        if depth > MOST_DEPTH:
            _too_deep()
        for name, item in value.items():
            _check_text(name)
            _check(item, depth + 1)
    elif isinstance(value, list):
        if depth > MOST_DEPTH:
            _too_deep()
        for item in value:
            _check(item, depth + 1)


def _check_text(text: str) -> None:
    if text.isascii() and "\0" not in text:
        return
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadRequest(detail=f"{quote_value(text)} has characters that text can't have")


def _from_yaml(text: str) -> Any:
    parser = yaml.CSafeLoader(text)
    try:
        return _Builder(parser).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        line = mark.line + 1 if mark else 0
        raise BadRequest(detail=f"not YAML: {error.problem or error.context}{where}", line=line) from None
    except yaml.YAMLError as error:
        raise BadRequest(detail=f"not YAML: {quote_value(' '.join(str(error).split()))}") from None
    finally:
        parser.dispose()


class _Builder:
    """Builds values from a YAML parser's events, by a schema in which nearly everything is text.

    Only true, false, null and plainly written numbers aren't text: `09:00`, `1.10`, `010`, `no` and `2026-12-01` stay
    as they are written, so that a word of a command is never changed. It works on events, because PyYAML's composer
    overruns the stack on a document that is nested deeply enough.
    """

    def __init__(self, parser: Any) -> None:
        self._next = parser.get_event
        self._left = MOST_VALUES
        self._anchors: dict[str, tuple[Any, int, int]] = {}  # anchor → its value, the number of values in it, its depth
        self._deepest = 0

    def document(self) -> Any:
        """Return the value of the only document, or None if the stream is empty."""
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        value = self._build(self._next(), 0)
        self._next()  # the document's end
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise BadRequest(detail="it has several documents", hint="Send one at a time.")
        return value

    def _build(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, depth)
        before, outer = self._left, self._deepest
        self._deepest = depth
        self._count(1, depth)
        if event.tag is not None and event.tag != "!":
            raise BadRequest(
                detail=f"the tag {quote_value(event.tag)} can't be used", hint="Write values without tags."
            )
        if isinstance(event, yaml.ScalarEvent):
            value = _plain(event.value) if event.implicit[0] else _check_whole(event.value)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._map(depth + 1)
        else:
            value = self._list(depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, before - self._left, self._deepest - depth)
        self._deepest = max(self._deepest, outer)
        return value

    def _map(self, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                line = event.start_mark.line + 1
                raise BadRequest(detail=f"line {line}: the name of a field must be text", line=line)
            name = _check_whole(event.value)
            if name in value:
                mark = event.start_mark
                _twice(name, mark.line + 1 if mark else 0)
            value[name] = self._build(self._next(), depth)
        return value

    def _list(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._build(event, depth))
        return items

    def _alias(self, name: str | None, depth: int) -> Any:
        """Return the anchor's value.

        Each alias adds the anchor's size to the count, because code that walks the document visits the value each time.
        """
        if name is None or name not in self._anchors:
            raise BadRequest(detail=f"the alias *{quote_value(name)} has nothing that it could stand for")
        value, size, height = self._anchors[name]
        self._count(size, depth + height)
        return value

    def _count(self, values: int, depth: int) -> None:
        self._left -= values
        self._deepest = max(self._deepest, depth)
        if self._left < 0:
            raise BadRequest(detail=f"it has more than {MOST_VALUES} values", hint="Don't repeat parts by aliases.")
        if depth > MOST_DEPTH:
            _too_deep()


def _plain(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NUMERALS.fullmatch(text):
        number = float(text) if "." in text else int(text)
        if str(number) == text:
            return number
    return _check_whole(text)


def _check_whole(text: str) -> str:
    _check_text(text)
    return text


def _not_json(name: str) -> NoReturn:
    raise BadRequest(detail=f"{name} is not a number")


def _twice(name: str, line: int = 0) -> NoReturn:
    where = f", at line {line}" if line else ""
    detail = f"the field {quote_value(name)} is there twice{where}"
    raise BadRequest(detail=detail, hint="Keep one of them.", line=line, repeated=name)


def _too_deep() -> NoReturn:
    raise BadRequest(detail=f"it is nested more than {MOST_DEPTH} deep")
