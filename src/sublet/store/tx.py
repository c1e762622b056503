"""One transaction, by its nouns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from sublet.store.access_requests import AccessRequests
from sublet.store.accounts import Accounts
from sublet.store.annexes import Annexes
from sublet.store.apps import Apps
from sublet.store.audit import Audit
from sublet.store.bookings import Books, Memory
from sublet.store.clocks import Clocks
from sublet.store.codes import Codes
from sublet.store.dependencies import Dependencies
from sublet.store.drafts import Drafts
from sublet.store.drains import Drains
from sublet.store.events import Events
from sublet.store.factors import Factors
from sublet.store.groups import Groups
from sublet.store.holds import Holds
from sublet.store.hooks import Hooks
from sublet.store.keys import Keys
from sublet.store.leases import Leases
from sublet.store.offersets import OfferSets
from sublet.store.people import People
from sublet.store.pilots import Pilots
from sublet.store.retention import Retention
from sublet.store.rules import Rules
from sublet.store.sessions import Sessions
from sublet.store.space import Space
from sublet.store.sql import Sql
from sublet.store.starts import Starts
from sublet.store.templates import Templates
from sublet.store.tokens import Tokens
from sublet.store.turns import Turns
from sublet.store.uses import Uses


class Tx:
    """What a work is given: everything that is stored, as of now, to read and (in a write) to change."""

    access_requests: AccessRequests
    accounts: Accounts
    annexes: Annexes
    apps: Apps
    audit: Audit
    clocks: Clocks
    codes: Codes
    dependencies: Dependencies
    drafts: Drafts
    drains: Drains
    factors: Factors
    groups: Groups
    holds: Holds
    hooks: Hooks
    keys: Keys
    leases: Leases
    offersets: OfferSets
    people: People
    pilots: Pilots
    rules: Rules
    retention: Retention
    space: Space
    starts: Starts
    templates: Templates
    tokens: Tokens
    uses: Uses
    turns: Turns

    def __init__(self, sql: Sql, memory: Memory, *, locking: bool) -> None:
        """`memory` holds the calendars that earlier transactions left."""
        self._sql = sql
        self.books = Books(sql, memory, locking)
        self.events = Events(sql)
        self.sessions = Sessions(sql, self.books)

    def __getattr__(self, name: str) -> Any:
        """The other nouns are made when they are first asked for: most works need one or two of them."""
        if name not in NOUNS:
            raise AttributeError(name)
        noun = self.__dict__[name] = NOUNS[name](self._sql)
        return noun

    def settle(self) -> None:
        """What one work did is to stay."""
        self.books.settle()
        self.events.settle()

    def revert(self) -> None:
        """Undo what one work did and the database can't undo by itself."""
        self.books.revert()
        self.events.revert()

    def flush(self) -> None:
        """Write what was gathered."""
        self.books.flush()
        self.events.flush()


NOUNS: dict[str, Callable[[Sql], Any]] = get_type_hints(Tx)
