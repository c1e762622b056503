"""The audit log: search and export; operators see all of it, others their own actions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sublet.kernel.db.audit import AuditEntry as Entry  # also imported from here by code that shows entries
from sublet.kernel.errors import OperatorsOnly
from sublet.people.model.person import Person
from sublet.store.store import Store

STEP = 500  # entries per read
COLUMNS = ("id", "time", "person", "action", "noun", "name", "host", "detail")
LIVE = ("=", "+", "-", "@", "\t", "\r", "\n")  # what spreadsheets take for the start of a formula


@dataclass(frozen=True, slots=True)
class Sought:
    """A search of the audit log; empty fields match anything."""

    person: str = ""
    action: str = ""  # or a prefix, such as `rule.`
    noun: str = ""
    name: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass
class AuditLog:
    """Reads the audit log, for those who may see it."""

    store: Store

    async def audit(
        self, person: Person, sought: Sought, *, after: int = 0, before: int | None = None, limit: int = 100
    ) -> Sequence[Entry]:
        """List entries in order, after a given one; with `before`, backwards."""
        whose = sought.person if person.operator else sought.person or person.name
        if whose != person.name and not person.operator:
            raise OperatorsOnly
        return await self.store.read(
            lambda tx: tx.audit.list(
                person=whose,
                action=sought.action,
                noun=sought.noun,
                name=sought.name,
                since=sought.since,
                until=sought.until,
                after=after,
                before=before,
                limit=limit,
            )
        )

    async def export_audit(self, person: Person, sought: Sought, form: str) -> AsyncIterator[bytes]:
        """Yield all matching entries, piece by piece, as JSON lines or CSV."""
        line = FORMS[form]
        after, page = 0, await self.audit(person, sought, limit=STEP)
        yield HEADS[form]
        while page:
            yield "".join(line(entry) for entry in page).encode()
            after = page[-1].id
            page = await self.audit(person, sought, after=after, limit=STEP)


def facts(entry: Entry) -> dict[str, Any]:
    """Return an entry as a JSON object."""
    return {
        "id": entry.id,
        "time": entry.time.isoformat().replace("+00:00", "Z"),
        "person": entry.person,
        "action": entry.action,
        "noun": entry.noun,
        "name": entry.name,
        "host": entry.host,
        "detail": dict(entry.detail),
    }


def _json_line(entry: Entry) -> str:
    return json.dumps(facts(entry), ensure_ascii=False) + "\n"


def _csv_line(entry: Entry) -> str:
    values = facts(entry)
    values["detail"] = json.dumps(values["detail"], ensure_ascii=False) if values["detail"] else ""
    return csv_line([values[column] for column in COLUMNS])


def csv_line(cells: Sequence[object]) -> str:
    """Return a line of CSV in which spreadsheets take no cell for a formula."""
    out = io.StringIO()
    csv.writer(out).writerow(
        [f"'{cell}" if isinstance(cell, str) and cell.startswith(LIVE) else cell for cell in cells]
    )
    return out.getvalue()


FORMS: Mapping[str, Callable[[Entry], str]] = {"jsonl": _json_line, "csv": _csv_line}
HEADS: Mapping[str, bytes] = {"jsonl": b"", "csv": csv_line(COLUMNS).encode()}
