"""Bags of many small tasks: a list, a grid or table of values, or a file of lines becomes commands to run.

This file travels with the job, so it uses the standard library only.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TASKS_AT_MOST = 1_000_000
RETRIES_AT_MOST = 100
PARALLEL_AT_MOST = 1024
PARTS_AT_MOST = 1000
PER_CORE = 50  # tasks per core that justify another part, if the request doesn't state the number of parts
FIELDS = ("tasks", "template", "grid", "table", "strict", "file", "retries", "parallel", "parts", "environment")
BRACES = re.compile(r"(\{\{|\}\}|\{(?![^{}]+\})|\}|[^{}]+)|\{([^{}]+)\}")  # text, or a name in braces
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclass(frozen=True)
class Task:
    """One task of a bag: its number from 0, its command, and its name or parameters if it has any."""

    number: int
    argv: tuple[str, ...]
    name: str = ""
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class BagProblem:
    """Something that is wrong with the fields of a bag."""

    field: str
    message: str
    wanted: str = ""
    limit: str = ""
    nearest: str = ""


def count(fields: Mapping[str, Any]) -> int | None:
    """Return how many tasks there are, or None if that depends on a file of lines."""
    if fields.get("file") is not None:
        return None
    if is_sweep(fields):
        rows = len(fields["table"]) if fields.get("table") is not None else 1
        return rows * math.prod(len(values) for values in (fields.get("grid") or {}).values())
    return len(fields["tasks"])


def is_sweep(fields: Mapping[str, Any]) -> bool:
    """Whether the tasks are one template with different values."""
    return fields.get("grid") is not None or fields.get("table") is not None


def parts(fields: Mapping[str, Any], cores: int) -> int:
    """Return how many parts of so many cores to split a bag into: at most its tasks, or what may run in parallel."""
    number = count(fields)
    wanted: int = fields.get("parts") or (1 if number is None else -(-number // (PER_CORE * cores)))
    return max(1, min(wanted, number or wanted, fields.get("parallel") or wanted))


def expand(fields: Mapping[str, Any], lines: Iterable[str] = ()) -> Iterator[Task]:
    """Yield the tasks in order: the last name of a grid changes fastest, and a grid faster than a table.

    Of a file, each line that isn't blank is a task.
    """
    if fields.get("file") is not None:
        return _from_lines(fields.get("template"), lines)
    if is_sweep(fields):
        return _from_values(fields)
    return (_read_task(number, task) for number, task in enumerate(fields["tasks"]))


def _read_task(number: int, task: Any) -> Task:
    if isinstance(task, Mapping):
        return Task(number, tuple(task["argv"]), str(task.get("name") or ""))
    return Task(number, tuple(task))


def _from_values(fields: Mapping[str, Any]) -> Iterator[Task]:
    grid, table = fields.get("grid") or {}, fields.get("table") or [{}]
    fill = _filler(fields["template"], [re.escape(name) for name in (*table[0], *grid)], strict=_is_strict(fields))
    number = itertools.count()
    for row in table:
        for values in itertools.product(*grid.values()):
            parameters = {**row, **dict(zip(grid, values, strict=True))}
            texts = {name: as_text(value) for name, value in parameters.items()}
            yield Task(next(number), fill(texts.__getitem__), parameters=parameters)


def _is_strict(fields: Mapping[str, Any]) -> bool:
    return bool(fields.get("strict"))


def _from_lines(template: Sequence[str] | None, lines: Iterable[str]) -> Iterator[Task]:
    fill = _filler(template, ["line", r"[1-9][0-9]?"]) if template is not None else None
    stripped = (line.rstrip("\r\n") for line in lines)
    for number, line in enumerate(text for text in stripped if text.strip()):
        yield Task(number, fill(_columns(line)) if fill else _words_of(line))


def _words_of(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return (line,)  # an unclosed quote: no program has this name, so the task fails and shows the line


def _columns(line: str) -> Callable[[str], str]:
    words = line.split()
    return lambda name: line if name == "line" else words[int(name) - 1] if int(name) <= len(words) else ""


def _filler(
    template: Sequence[str], names: Sequence[str], *, strict: bool = False
) -> Callable[[Callable[[str], str]], tuple[str, ...]]:
    """Return a function that puts values into a template's placeholders; braces inside a value mean nothing.

    Other braces stay as they are; in a strict template, `{{` and `}}` stand for single braces.
    """
    placeholder = re.compile(r"\{(" + "|".join(names) + r")\}")
    cut = [_cut_strictly(word) if strict else placeholder.split(word) for word in template]  # text, name, text, …

    def put(parts: list[str], value: Callable[[str], str]) -> str:
        if len(parts) == 1:
            return parts[0]
        whole = parts[:]
        whole[1::2] = [value(name) for name in parts[1::2]]
        return "".join(whole)

    def fill(value: Callable[[str], str]) -> tuple[str, ...]:
        return tuple([put(parts, value) for parts in cut])

    return fill


def _cut_strictly(word: str) -> list[str]:
    """Split a word into text and names by turns; `{{` and `}}` are text."""
    pieces = [""]
    for text, name in BRACES.findall(word):
        if name:
            pieces += [name, ""]
        else:
            pieces[-1] += {"{{": "{", "}}": "}"}.get(text, text)
    return pieces


def placeholders(word: str) -> list[str]:
    """Return the names in braces in a word of a strict template; a stray brace gives an empty name."""
    return [name if name else "" for text, name in BRACES.findall(word) if name or text in ("{", "}")]


def as_text(value: Any) -> str:
    """Return a value as text; booleans are `true` and `false`, as in a request."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def problems(fields: Mapping[str, Any]) -> list[BagProblem]:
    """Return what is wrong with the fields of a bag; other functions expect fields without problems."""
    wrong = _form(fields)
    if not wrong:
        wrong = (
            _check_file(fields)
            if "file" in fields
            else _check_sweep(fields)
            if is_sweep(fields)
            else _check_list(fields)
        )
    number = count(fields) if not wrong else None
    if number is not None and not 0 < number <= TASKS_AT_MOST:
        message = "the bag is empty." if not number else f"the bag has {number} tasks; the most is {TASKS_AT_MOST}."
        where = next(name for name in ("grid", "table", "tasks") if name in fields)
        nearest = "several bags" if number else "one task"
        wrong.append(BagProblem(where, message, str(number), str(TASKS_AT_MOST), nearest))
    wrong += _whole(fields, "retries", 0, RETRIES_AT_MOST) + _whole(fields, "parallel", 1, PARALLEL_AT_MOST)
    return wrong + _whole(fields, "parts", 1, PARTS_AT_MOST)


def _form(fields: Mapping[str, Any]) -> list[BagProblem]:
    given = [name for name in ("tasks", "grid", "table", "file") if fields.get(name) is not None]
    if len(given) != 1 and given != ["grid", "table"]:
        message = "a bag has one of tasks (a list), grid (names and values), table (rows) or file (a task a line)"
        return [
            BagProblem(given[1] if given else "tasks", message + (f", not {' and '.join(given)}." if given else "."))
        ]
    if fields.get("template") is not None:
        if given == ["tasks"]:
            return [BagProblem("template", "a list of tasks has its own words: a template goes with a grid or a file.")]
        return _words("template", fields["template"])
    needs = "a grid or a table needs a template: the words, with {name} where values go."
    return [BagProblem("template", needs)] if is_sweep(fields) else []


def _words(field: str, value: Any) -> list[BagProblem]:
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(word, str) for word in value):
        return [
            BagProblem(field, f"{field} must be a list of words, not empty.", str(value)[:200], "", '["sim", "{x}"]')
        ]
    if any("\0" in word for word in value) or not value[0]:
        return [BagProblem(field, f"the words of {field} can't contain NUL, and the first can't be empty.")]
    return []


def _check_list(fields: Mapping[str, Any]) -> list[BagProblem]:
    tasks = fields["tasks"]
    if not isinstance(tasks, (list, tuple)):
        return [BagProblem("tasks", "tasks must be a list.", str(tasks)[:200], "", '[["sim", "1"], ["sim", "2"]]')]
    if len(tasks) > TASKS_AT_MOST:
        return []  # `problems` reports it by the count
    for number, task in enumerate(tasks):
        named = isinstance(task, Mapping)
        if named and (extra := sorted(set(map(str, task)) - {"argv", "name"})):
            return [BagProblem(f"tasks[{number}]", f"a task has argv and name, not {', '.join(extra)}.")]
        if wrong := _words(f"tasks[{number}]", task.get("argv") if named else task):
            return wrong
    return []


def _check_sweep(fields: Mapping[str, Any]) -> list[BagProblem]:
    wrong = [] if fields.get("table") is None else _check_table(fields["table"])
    wrong += [] if fields.get("grid") is None else _check_grid(fields)
    if not wrong and fields.get("strict") is not None and not isinstance(fields["strict"], bool):
        wrong.append(BagProblem("strict", "strict must be true or false.", str(fields["strict"])[:200]))
    if not wrong and _is_strict(fields):
        wrong += _check_braces(fields)
    return wrong or _check_used(fields)


def _check_table(table: Any) -> list[BagProblem]:
    if not isinstance(table, (list, tuple)) or not table or not all(isinstance(row, Mapping) and row for row in table):
        return [BagProblem("table", "table must be a list of rows, each a map of names to values.", str(table)[:200])]
    for number, row in enumerate(table):
        if row.keys() != table[0].keys():
            return [BagProblem(f"table[{number}]", "each row of a table has the same names.", ", ".join(map(str, row)))]
        for name, value in row.items():
            if not isinstance(name, str) or not NAME.match(name):
                return [BagProblem("table", f"{name!r} can't be the name of a placeholder.", str(name)[:200], "", "x")]
            if not _is_value(value):
                return [BagProblem(f"table[{number}].{name}", f"the values of {name} must be words or numbers.")]
    return []


def _check_braces(fields: Mapping[str, Any]) -> list[BagProblem]:
    names = [*(fields.get("table") or [{}])[0], *(fields.get("grid") or {})]
    for word in fields["template"]:
        for name in placeholders(word):
            if name not in names:
                wrong = f"{{{name}}} is no parameter" if name else "a brace stands alone"
                message = f"{wrong} in {word!r}: there are {', '.join(names)}; write {{{{ and }}}} for braces."
                return [BagProblem("template", message, word[:200])]
    return []


def _is_value(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and "\0" not in str(value)


def _check_grid(fields: Mapping[str, Any]) -> list[BagProblem]:
    grid = fields["grid"]
    if not isinstance(grid, Mapping) or not grid:
        return [
            BagProblem("grid", "grid must be a map of names to lists of values.", str(grid)[:200], "", "{x: [1, 2]}")
        ]
    wrong = []
    taken = set((fields.get("table") or [{}])[0])
    for name, values in grid.items():
        if not isinstance(name, str) or not NAME.match(name):
            wrong.append(BagProblem("grid", f"{name!r} can't be the name of a placeholder.", str(name)[:200], "", "x"))
        elif name in taken:
            wrong.append(BagProblem("grid", f"the table has {name} too.", name))
        elif not isinstance(values, (list, tuple)) or not values:
            wrong.append(
                BagProblem(f"grid.{name}", f"the values of {name} must be a list, not empty.", str(values)[:200])
            )
        elif not all(map(_is_value, values)):
            wrong.append(BagProblem(f"grid.{name}", f"the values of {name} must be words or numbers."))
    return wrong


def _check_used(fields: Mapping[str, Any]) -> list[BagProblem]:
    """Return a problem for each name of the grid that the template never uses."""
    unused = [
        name for name in fields.get("grid") or {} if not any("{" + name + "}" in word for word in fields["template"])
    ]
    return [
        BagProblem("template", f"the template never uses {{{name}}}, which the grid varies.", name) for name in unused
    ]


def _check_file(fields: Mapping[str, Any]) -> list[BagProblem]:
    if not isinstance(fields["file"], str) or not fields["file"].strip():
        return [
            BagProblem("file", "file must be the location of a file with a task a line.", str(fields["file"])[:200])
        ]
    return []


def _whole(fields: Mapping[str, Any], name: str, least: int, most: int) -> list[BagProblem]:
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        return []
    message = f"{name} must be a whole number from {least} to {most}."
    nearest = str(min(max(value, least), most)) if isinstance(value, (int, float)) else str(least)
    return [BagProblem(name, message, str(value)[:200], str(most), nearest)]
