"""The archive: lists, exports and erases records of ended sessions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sublet.archive.model.records import COLUMNS, Calibration, Erased, NamedRecord, facts_of
from sublet.archive.store.records import cursor_of
from sublet.booking.model.estimate import RECENT
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

STEP = 500  # records per page of an export
LIVE = ("=", "+", "-", "@", "\t", "\r", "\n")  # what a spreadsheet takes for the start of a formula
EXPORTED = (*COLUMNS, "person", "name")


@dataclass(frozen=True, slots=True)
class ArchiveFilter:
    """Which records to return; empty fields match all."""

    person: str = ""
    platform: str = ""
    since: datetime | None = None  # requested at or after this time
    until: datetime | None = None


@dataclass
class SessionArchive:
    """Access to the records: a person sees their own, an operator everybody's."""

    store: Store
    now: Clock

    async def page(
        self, person: Person, wanted: ArchiveFilter, *, after: str = "", limit: int = 100
    ) -> tuple[Sequence[NamedRecord], str | None]:
        """Return a page of records, oldest first, and the cursor of the next page."""
        whose = self._require_theirs(person, wanted.person)
        _check_cursor(after)
        chosen = {"platform": wanted.platform, "since": wanted.since, "until": wanted.until}
        records = await self.store.read(
            lambda tx: tx.archive.page(person=whose, after=after, limit=limit + 1, **chosen)  # type: ignore[arg-type]
        )
        items = records[:limit]
        return items, cursor_of(items[-1]) if len(records) > limit else None

    async def export(self, person: Person, wanted: ArchiveFilter, form: str) -> AsyncIterator[bytes]:
        """Yield all matching records in pieces, as lines of JSON or as CSV."""
        line = FORMS[form]
        yield HEADS[form]
        after: str | None = ""
        while after is not None:
            records, after = await self.page(person, wanted, after=after, limit=STEP)
            yield "".join(line(record) for record in records).encode()

    async def calibrate(self, person: Person, since: datetime | None = None) -> Sequence[Calibration]:
        """Return how often predictions came true, by platform and queue; operators see everyone's sessions."""
        whose = "" if person.operator else person.name
        return await self.store.read(lambda tx: tx.archive.calibrate(since or self.now() - RECENT, whose))

    async def request(self, person: Person, session: str) -> tuple[str, str]:
        """Return the request of the person's archived session, as it was received, and its media type."""
        document = await self.store.read(lambda tx: tx.archive.document_of(session, person.name))
        if document is None:
            raise NotFound(noun="archived session", name=session, hint="`sublet archive list` has the whole ids.")
        return document

    async def erase(self, person: Person, of: str = "", *, records: bool = False) -> Erased:
        """Erase whose records these are, and what the person typed; operators may do so for others."""
        whose = of or person.name
        if whose != person.name and not person.operator:
            raise OperatorsOnly("Only an operator can have others forgotten.", hint="Leave the name out: your own.")

        def work(tx: Tx) -> Erased:
            erased = tx.archive.erase(whose, records=records)
            detail = {"records": erased.records, "details": erased.details}
            tx.audit.add(AuditEntry(self.now(), person.name, "archive.forget", "archive", "", detail))
            return erased

        return await self.store.write(work)

    @staticmethod
    def _require_theirs(person: Person, of: str) -> str:
        """Return whose records someone may see, empty for everybody's; raise OperatorsOnly for others' records."""
        if person.operator:
            return of
        if of and of != person.name:
            raise OperatorsOnly(
                "Only an operator can see other people's records.", hint="Leave out --person: your own."
            )
        return person.name


def _check_cursor(after: str) -> None:
    asked, _, last = after.partition(".")
    if after and (not asked.isdecimal() or len(asked) > 18 or not last):
        raise BadRequest(detail=f"{after!r} is not a cursor of this list", hint="Send back `next` as it came.")


def list_facts(named: NamedRecord) -> dict[str, Any]:
    """Return a record as JSON values, with its person and name."""
    return {**facts_of(named.record), "person": named.person, "name": named.name}


def _json_line(named: NamedRecord) -> str:
    return json.dumps(list_facts(named), ensure_ascii=False) + "\n"


def _csv_line(named: NamedRecord) -> str:
    facts = list_facts(named)
    return csv_line([facts[column] for column in EXPORTED])


def csv_line(cells: Sequence[object]) -> str:
    """Return a line of CSV in which a spreadsheet evaluates no cell as a formula."""
    out = io.StringIO()
    safe = [f"'{cell}" if isinstance(cell, str) and cell.startswith(LIVE) else cell for cell in cells]
    csv.writer(out, lineterminator="\n").writerow(safe)
    return out.getvalue()


FORMS: Mapping[str, Callable[[NamedRecord], str]] = {"jsonl": _json_line, "csv": _csv_line}
HEADS: Mapping[str, bytes] = {"jsonl": b"", "csv": csv_line(EXPORTED).encode()}
