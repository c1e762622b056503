"""Sweeps: one command with different values, sent as a bag of tasks."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sublet.booking.model.bag import TASKS_AT_MOST, Task, count, expand, problems
from sublet.client.values import plain_rows, plain_value
from sublet.client.wishes import Word, refuse_misspelt
from sublet.kernel.errors import BadRequest
from sublet.kernel.separated import read_rows

USUALLY_AT_MOST = 10_000  # tasks, unless the caller raises the limit
LARGEST = 900_000  # bytes of values: a document has room for 1 MiB
OF_THE_BAG = ("table", "lines", "zipped", "at_most", "retries", "parallel", "parts")
NOTHING_VARIES = "Give --grid NAME=VALUES, --each-line FILE or --table FILE; in Python a grid, `lines` or a `table`."
LINE = "line"  # the parameter for a line of a file


def make_bag(
    words: str | Sequence[Word],
    grid: Mapping[str, Iterable[Any]] | None = None,
    *,
    table: Any = None,
    lines: Iterable[str] | None = None,
    zipped: bool = False,
    at_most: int = USUALLY_AT_MOST,
    **more: int | None,
) -> dict[str, Any]:
    """Return the bag that runs a command with all combinations of values or, if `zipped`, with the values in parallel.

    Rows of a table, and lines, are combined with the grid, too. Raise BadRequest if the sweep is invalid.
    """
    template = shlex.split(words) if isinstance(words, str) else [str(plain_value(word)) for word in words]
    axes: dict[str, list[Any]] = {name: plain_value(list(values)) for name, values in (grid or {}).items()}
    table = None if table is None else plain_rows(table)
    if lines is not None:
        _check_free(LINE, axes)
        axes = {LINE: list(lines), **axes}
    if zipped and axes:
        table, axes = _beside(_zip(axes), table), {}
    bag: dict[str, Any] = {"template": template, "strict": True}
    bag |= {"grid": axes} if axes else {}
    bag |= {"table": list(table)} if table is not None else {}
    bag |= {name: value for name, value in more.items() if value is not None}
    check(bag, at_most)
    return bag


def sweep_document(
    words: str | Sequence[Word], grid: Mapping[str, Iterable[Any]] | None, wishes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request for a sweep; some of the wishes are for the bag, the others for the session."""
    refuse_misspelt(wishes, OF_THE_BAG)
    rest = {name: value for name, value in wishes.items() if name not in OF_THE_BAG}
    return {**rest, "bag": make_bag(words, grid, **{name: wishes[name] for name in OF_THE_BAG if name in wishes})}


def check(bag: Mapping[str, Any], at_most: int) -> None:
    """Raise BadRequest if a sweep is invalid, before anything is sent."""
    if not bag["template"]:
        raise BadRequest(detail="there is no command to sweep", hint="Write it after --: python3 sim.py {a}")
    if "grid" not in bag and "table" not in bag:
        raise BadRequest(detail="nothing varies", hint=NOTHING_VARIES)
    if wrong := problems(bag):
        raise BadRequest(
            detail=wrong[0].message.rstrip("."), hint=wrong[0].nearest and f"For example {wrong[0].nearest}."
        )
    number = count(bag) or 0
    if number > at_most:
        most = f"The most is {TASKS_AT_MOST}." if at_most >= TASKS_AT_MOST else f"If you mean it: --max-tasks {number}."
        raise BadRequest(detail=f"the sweep has {number} tasks, and {at_most} is the limit", hint=most)
    if (size := len(json.dumps(bag))) > LARGEST:
        hint = "Sweep over row numbers, and let the program read its row from a file that is brought."
        raise BadRequest(detail=f"the values of the sweep are {size} bytes, too many to send", hint=hint)


def first_tasks(bag: Mapping[str, Any], number: int) -> list[Task]:
    """Return the first tasks of a bag."""
    return [task for task, _ in zip(expand(bag), range(number), strict=False)]


def read_values(text: str) -> tuple[str, list[Any]]:
    """Parse a name and its values: `a=0.1,0.5`, `b=1:10:3` (first, last, step), or `c=["x", "y"]`."""
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise BadRequest(detail=f"{text!r} is not a name and its values", hint="Write a=0.1,0.5 or b=1:10:3.")
    if values.startswith("["):
        return name, _read_list(name, values)
    return name, list(_range(name, values)) if _is_range(values) else values.split(",")


def read_lines(file: str) -> list[str]:
    """Return the lines of a file that aren't blank; only line breaks separate them, not all that Unicode calls so."""
    lines = [line for line in _text(file).split("\n") if line.strip()]
    if not lines:
        raise BadRequest(detail=f"{file} has no lines", hint="Write a value on each line; blank lines don't count.")
    return lines


def read_table(file: str) -> list[dict[str, str]]:
    """Return the rows of a table whose first line names the columns, separated by commas, semicolons or tabs."""
    rows = [row for row in read_rows(_text(file), file) if row]
    if len(rows) < 2:
        raise BadRequest(detail=f"{file} has no rows", hint="Its first line names the columns, the others have values.")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) != len(names):
        raise BadRequest(detail=f"{file} has two columns of one name", hint="Each needs a different name.")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise BadRequest(detail=f"row {number} of {file} has {len(row)} values for {len(names)} columns")
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def _is_range(text: str) -> bool:
    parts = text.split(":")
    return len(parts) in (2, 3) and all(_number(part) is not None for part in parts)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _range(name: str, text: str) -> Iterator[str]:
    first, last, *rest = (Decimal(part) for part in text.split(":"))
    step = rest[0] if rest else Decimal(1)
    steps = int((last - first) / step) if step else -1
    if steps < 0 or steps > TASKS_AT_MOST:
        raise BadRequest(detail=f"{name}={text} has no values, or far too many", hint="Write FROM:TO:BY, as 1:10:3.")
    return (format(first + number * step, "f") for number in range(steps + 1))


def _read_list(name: str, text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise BadRequest(detail=f"the values of {name} are no JSON list: {error}", hint='Write ["x", "y"].') from error
    return list(values)


def _check_free(name: str, axes: Mapping[str, Any]) -> None:
    if name in axes:
        raise BadRequest(detail=f"{name} is what a line of the file is called", hint="Give the grid another name.")


def _zip(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    lengths = {name: len(values) for name, values in axes.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise BadRequest(detail=f"values that go together must be as many: {counts}")
    return [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]


def _beside(rows: list[dict[str, Any]], table: Sequence[Mapping[str, Any]] | None) -> Sequence[Mapping[str, Any]]:
    if table is None:
        return rows
    if len(table) != len(rows):
        raise BadRequest(detail=f"values that go together must be as many: {len(rows)}, and the table has {len(table)}")
    return [{**row, **other} for row, other in zip(table, rows, strict=True)]


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8-sig") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        from sublet.client.missing import refuse_unreadable  # only when something is wrong

        raise refuse_unreadable(os.fspath(file), error) from error
