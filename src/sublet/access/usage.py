"""Usage: recorded when sessions end, reported by quarter, platform and person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sublet.access.model.usage import Used, parse_quarter, quarter_of, report
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotYours
from sublet.people.model.person import Person
from sublet.store.store import Store


@dataclass(frozen=True, slots=True)
class UsageSums:
    """The usage in a period."""

    since: datetime
    until: datetime
    rows: Sequence[Used]


@dataclass
class UsageReports:
    """Reports usage; an operator sees everybody's, a person their own."""

    store: Store
    now: Clock

    async def usage(
        self,
        person: Person,
        *,
        of: str = "",
        platform: str = "",
        quarter: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> UsageSums:
        """Report the usage of a person, or of all, by default in the current quarter."""
        now = self.now()
        if of and of != person.name and not person.operator:
            raise NotYours(noun="usage", hint="Only an operator sees what others used.")
        if quarter and (since or until):
            raise BadRequest(detail="a quarter and a time are both given", hint="Give either.")
        first, last = parse_quarter(quarter or quarter_of(now))
        if since or until:
            first, last = since or first, until or max(now, since or now)
        if last <= first:
            raise BadRequest(detail="the period ends before it begins", hint="Give --since before --until.")
        who = of or ("" if person.operator else person.name)
        rows = await self.store.read(lambda tx: tx.uses.ran(first, last, person=who, platform=platform))
        return UsageSums(first, last, report(rows, first, last, now))
