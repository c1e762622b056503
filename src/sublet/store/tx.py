"""One transaction, with a store for each noun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from sublet.access.store.access_requests import AccessRequests
from sublet.access.store.accounts import AccountStore
from sublet.access.store.budgets import BudgetStore
from sublet.access.store.rules import Rules
from sublet.access.store.uses import Uses
from sublet.annexes.store.annexes import AnnexStore
from sublet.annexes.store.leases import LeaseStore
from sublet.annexes.store.pilots import PilotStore
from sublet.annexes.store.templates import TemplateStore
from sublet.apps.store.apps import AppStore
from sublet.apps.store.drafts import DraftStore
from sublet.archive.store.habits import HabitStore
from sublet.archive.store.records import ArchiveStore
from sublet.booking.store.bookings import Books, Memory
from sublet.booking.store.broker_calls import BrokerCalls
from sublet.booking.store.brokers import BrokerStore
from sublet.booking.store.clocks import Clocks
from sublet.booking.store.dependencies import Dependencies
from sublet.booking.store.drains import DrainStore
from sublet.booking.store.events import EventStore
from sublet.booking.store.fair_share import Turns
from sublet.booking.store.handovers import HandOverStore
from sublet.booking.store.holds import Holds
from sublet.booking.store.keys import Keys
from sublet.booking.store.offersets import OfferSets
from sublet.booking.store.pledges import PledgeStore
from sublet.booking.store.series import SeriesStore
from sublet.booking.store.sessions import SessionStore
from sublet.booking.store.starts import Starts
from sublet.booking.store.visits import VisitStore
from sublet.data.store.credentials import CredentialStore
from sublet.data.store.places import PlaceStore
from sublet.data.store.transfers import TransferStore
from sublet.data.store.uploads import UploadStore
from sublet.kernel.db.audit import Audit
from sublet.kernel.db.space import Space
from sublet.kernel.db.sql import Sql
from sublet.notices.store.hooks import HookStore
from sublet.people.store.assertions import AssertionStore
from sublet.people.store.codes import Codes
from sublet.people.store.factors import FactorStore
from sublet.people.store.groups import GroupStore
from sublet.people.store.people import PeopleStore
from sublet.people.store.tokens import TokenStore
from sublet.store.retention import Retention


class Tx:
    """A transaction: everything that is stored, to read and (in a write) to change."""

    access_requests: AccessRequests
    accounts: AccountStore
    annexes: AnnexStore
    apps: AppStore
    archive: ArchiveStore
    assertions: AssertionStore
    broker_calls: BrokerCalls
    brokers: BrokerStore
    budgets: BudgetStore
    clocks: Clocks
    codes: Codes
    credentials: CredentialStore
    dependencies: Dependencies
    drafts: DraftStore
    drains: DrainStore
    factors: FactorStore
    groups: GroupStore
    habits: HabitStore
    handovers: HandOverStore
    holds: Holds
    hooks: HookStore
    keys: Keys
    leases: LeaseStore
    offersets: OfferSets
    people: PeopleStore
    pilots: PilotStore
    places: PlaceStore
    pledges: PledgeStore
    rules: Rules
    retention: Retention
    series: SeriesStore
    space: Space
    starts: Starts
    templates: TemplateStore
    tokens: TokenStore
    transfers: TransferStore
    uses: Uses
    turns: Turns
    uploads: UploadStore
    visits: VisitStore

    def __init__(self, sql: Sql, memory: Memory, *, locking: bool) -> None:
        """Use the connection's transaction; `memory` holds the calendars that earlier transactions cached."""
        self._sql = sql
        self.books = Books(sql, memory, locking)
        self.events = EventStore(sql)
        self.audit = Audit(sql)
        self.sessions = SessionStore(sql, self.books)

    def __getattr__(self, name: str) -> Any:
        """Return the store of another noun, made on first use: most functions need only one or two of them."""
        if name not in NOUNS:
            raise AttributeError(name)
        noun = self.__dict__[name] = NOUNS[name](self._sql)
        return noun

    def settle(self) -> None:
        """Keep the changes of the function that has just succeeded."""
        self.books.settle()
        self.events.settle()
        self.audit.settle()

    def revert(self) -> None:
        """Undo those changes of a failed function that the database can't roll back by itself."""
        self.books.revert()
        self.events.revert()
        self.audit.revert()

    def flush(self) -> None:
        """Write the collected changes."""
        self.books.flush()
        self.events.flush()
        self.audit.flush()


NOUNS: dict[str, Callable[[Sql], Any]] = get_type_hints(Tx)
