"""Python's own values in a request: paths, dates, arrays and data frames, as the plain values that documents hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any


def plain_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same request with plain values; a program that is given as a path stays a path, also without a slash."""
    plain = {name: plain_value(value) for name, value in document.items()}
    run = document.get("run")
    if isinstance(run, os.PathLike):
        plain["run"] = [_program(run)]
    elif isinstance(run, list | tuple) and run and isinstance(run[0], os.PathLike):
        plain["run"][0] = _program(run[0])
    return plain


def plain_value(value: Any) -> Any:
    """Text for paths and dates, lists for tuples, ranges and arrays; datetimes and durations stay what they are."""
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
    """The rows of a table: mappings, or a data frame of pandas or Polars."""
    for method, arguments in (("to_dicts", ()), ("to_dict", ("records",))):
        if callable(convert := getattr(table, method, None)):
            table = convert(*arguments)
            break
    return [plain_value(dict(row)) for row in table]


def _program(path: os.PathLike[str]) -> str:
    text = os.fspath(path)
    return text if "/" in text else f"./{text}"
