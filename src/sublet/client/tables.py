"""The results of a sweep's tasks beside their parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

RECORD, PRINTED = "tasks.jsonl", "tasks.out"
TAIL = 1 << 16  # bytes that are read from the end of a task's output
Read = Callable[[int, int], bytes]  # reads from all tasks' output, by offset and length


def join_table(record: Iterable[bytes], read: Read) -> list[dict[str, Any]]:
    """Return a row for each finished task: `task`, its parameters, `exit_code`, `seconds`, and its result.

    A task's result is the JSON object on the last line of its output, or else that line, as `output`. What is called
    as another column is called `result.NAME`.
    """
    last: dict[int, dict[str, Any]] = {}
    for raw in record:
        line = _parse(raw)
        if line and not (line["task"] in last and last[line["task"]]["code"] == 0):
            last[line["task"]] = line
    return [_row(last[number], read) for number in sorted(last)]


def columns_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of all columns, in the order in which they first occur."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None  # truncated by a crash
    return line if isinstance(line, dict) and "task" in line and "code" in line else None


def _row(line: dict[str, Any], read: Read) -> dict[str, Any]:
    row = {"task": line["task"]}
    if line.get("name"):
        row["name"] = line["name"]
    row |= {name: _number(value) for name, value in (line.get("parameters") or {}).items()}
    code = line["code"] if line["code"] is not None else 128 + (line.get("signal") or 0)
    measured = {"exit_code": code, "seconds": line.get("seconds")}
    for name, value in [*measured.items(), *_read_row(line, read).items()]:
        row[_free_name(name, row)] = value
    return row


def _free_name(name: str, row: dict[str, Any]) -> str:
    """Return a column's name, which hides no other column of the row."""
    while name in row:
        name = f"result.{name}"
    return name


def _read_row(line: dict[str, Any], read: Read) -> dict[str, Any]:
    if not line.get("stdout"):
        return {}
    offset, length = line["stdout"]
    size = min(length, TAIL)
    lines = read(offset + length - size, size).decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return {}
    try:
        row = json.loads(lines[-1])
    except ValueError:
        row = None
    return row if isinstance(row, dict) else {"output": lines[-1].strip()}


def _number(value: Any) -> Any:
    """Return a parameter that was written as a number as a number, and any other unchanged."""
    if not isinstance(value, str):
        return value
    try:
        number = json.loads(value)
    except ValueError:
        return value
    return number if isinstance(number, int | float) and not isinstance(number, bool) else value
