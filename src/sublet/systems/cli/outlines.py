"""A request to a system, checked and printed for people: a line for each part, then the remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.cli.output import Output, table
from sublet.cli.texts import costs
from sublet.kernel.texts import count_text
from sublet.systems.model.outline import Outline
from sublet.systems.model.system import System, age
from sublet.systems.model.wish import Wish, wish_of

SIGNS = {"ok": "ok", "warning": "note", "error": "NO", "unknown": "?"}
SIZES = {"nodes", "cores", "memory", "gpus", "time"}
HEAD = ("", "WHAT", "WANTED", "FROM", "LIMIT", "CHANGED BY")


def today() -> date:
    """Return today's date, from which ages are counted."""
    return datetime.now(UTC).date()


def wish_in(document: Mapping[str, Any]) -> Wish:
    """Return what a request wants of a system; sizes that its short form leaves out are None."""
    from sublet.booking.documents.request import read_request
    from sublet.booking.documents.short import is_short

    request = read_request(document, datetime.now(UTC))
    asked = request.scheduler
    wish = replace(wish_of(request), queue=asked.queue, project=asked.project, constraint=asked.constraint)
    wish = replace(wish, options=tuple(f"--{name}={value}" if value else f"--{name}" for name, value in _rest(asked)))
    left_out: dict[str, Any] = dict.fromkeys(SIZES - document.keys() if is_short(document) else ())
    return replace(wish, **left_out)


def _rest(asked: SchedulerOptions) -> Iterator[tuple[str, str]]:
    """Return the scheduler options for which a system check has no part of its own."""
    return replace(asked, queue="", project="", constraint="").words()


def show_check(out: Output, system: System, outline: Outline) -> int:
    """Print an outline, and return the exit code: 1 if something would be refused."""
    data = {"system": system.name, "refused": outline.refused, "looked_at": system.looked_at}
    out.show(
        data | {"findings": outline.rows, "cost": outline.cost},
        lambda: _lines(system, outline),
        lambda: (f"{row.field}: {row.message}" for row in outline.rows if row.state == "error"),
    )
    return 1 if outline.refused else 0


def _lines(system: System, outline: Outline) -> list[str]:
    """Format a table of all parts, then a paragraph for each with a remark, then the cost."""
    rows = [(SIGNS[row.state], row.field, row.wanted, row.source, short(row.limit), row.flag) for row in outline.rows]
    lines = table(HEAD, rows)
    for row in outline.rows:
        if row.message:
            lines += ["", f"{SIGNS[row.state]}: {row.field}: {row.message}"]
            lines += [f"    possible: {row.nearest}"] if row.nearest else []
    unknown = sum(row.state == "unknown" for row in outline.rows)
    words = ["It would be refused." if outline.refused else "Nothing that is known speaks against it."]
    words += [f"{count_text(unknown, 'limit')} not known (?)."] if unknown else []
    lines += ["", " ".join(words)]
    if outline.cost:
        each = "each job costs" if (outline.wish.jobs or 1) > 1 else "it costs"
        lines += [f"For its whole time {each} {costs(outline.cost, outline.wish.project)}."]
    return [*lines, *_provenance(system, outline)]


def _provenance(system: System, outline: Outline) -> list[str]:
    """Describe the sources of the limits and their age."""
    if not system.looked_at:
        return []
    queue = outline.queue
    dates = {source.name: source.date for source in system.sources}
    sources = ", ".join(f"{name} of {dates[name]}" for name in (queue.sources if queue else ()))
    words = f"The limits of {queue.name} are from {sources}. " if queue and sources else ""
    return [f"{words}Looked at {age(system.looked_at, today())}."]


def short(limit: str) -> str:
    """Shorten a limit so that it fits into a column."""
    return limit if len(limit) <= 40 else f"{limit[:39].rstrip(', ')}…"
