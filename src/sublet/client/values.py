"""Converts Python values in a request, such as paths, dates, arrays and data frames, to plain values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any


def plain_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with plain values; a program given as a path gets a slash, so that it stays a path."""
    plain = {name: plain_value(value) for name, value in document.items()}
    run = document.get("run")
    if isinstance(run, os.PathLike):
        plain["run"] = [_program(run)]
    elif isinstance(run, list | tuple) and run and isinstance(run[0], os.PathLike):
        plain["run"][0] = _program(run[0])
    return plain


def plain_value(value: Any) -> Any:
    """Return text for paths and dates, and lists for tuples, ranges and arrays; datetimes and durations are kept."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain_value(item) for item in value]
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    listed = getattr(value, "tolist", None)  # NumPy's arrays and numbers, pandas' columns
    return listed() if callable(listed) else value


def plain_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table: mappings, or a data frame of pandas or Polars."""
    for method, arguments in (("to_dicts", ()), ("to_dict", ("records",))):
        if callable(convert := getattr(table, method, None)):
            table = convert(*arguments)
            break
    return [plain_value(dict(row)) for row in table]


def _program(path: os.PathLike[str]) -> str:
    text = os.fspath(path)
    return text if "/" in text else f"./{text}"
