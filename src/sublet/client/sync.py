"""The client that waits for its answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar, Unpack

from sublet.access.calls import access, accounts, usage
from sublet.access.views.access import AccessView
from sublet.access.views.accounts import AccountView
from sublet.access.views.usage import UsageReport
from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import PlanView
from sublet.booking.calls import events, health, offers, platforms, sessions
from sublet.booking.views.events import EventView
from sublet.booking.views.health import HealthView
from sublet.booking.views.platforms import PlatformView
from sublet.client.address import find_address
from sublet.client.annex_facts import lease_ask
from sublet.client.annexes import Annex
from sublet.client.call import Call
from sublet.client.choosing import find_taken, keep_open, take_offer
from sublet.client.documents import Document, document_of
from sublet.client.following import Timeout
from sublet.client.link import Link
from sublet.client.paging import SessionPages
from sublet.client.sweeps import sweep_document
from sublet.client.sync_sessions import Offer, Offers, Session
from sublet.client.wishes import Filters, SweepWishes, Wishes, Word, show_words
from sublet.data.views.uploads import UploadView
from sublet.people.calls import factors, people, profiles, signing_in
from sublet.people.views.people import PersonView, TokenView, WhoView

T = TypeVar("T")


class Client:
    """A service: one's own (which starts by itself), or the one at a URL."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        """A URL with a token, or a Unix socket; else SUBLET_URL; else where `sublet login` led, or one's own."""
        self.link = Link(find_address(url, token, socket))

    def __enter__(self) -> Client:
        """For `with Client() as client:`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go of the service; what was accepted goes on."""
        self.close()

    def __repr__(self) -> str:
        """Short, for a person at a prompt."""
        return f"<Client of {self.link.address.text}>"

    def close(self) -> None:
        """Let go of the service: each later call says that the client was closed."""
        self.link.close()

    def upload(self, *places: str | os.PathLike[str], name: str = "") -> UploadView:
        """Send a folder or files to the service, where they are kept for a while; `address` of what comes back is data.

        Called again, only what is missing or has changed is sent, on from where it was broken off.

            client.run(run="ls in", data=[{"location": client.upload("forcing/").address, "path": "in"}])
        """
        from sublet.client.uploading import UploadTally, drive, plan_upload, upload_steps

        return drive(upload_steps(plan_upload(places, name), UploadTally()), self.do).upload

    def _prepare(self, document: Document | None, wishes: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document; what it brings from here to a service elsewhere is sent before."""
        asked = document_of(document, wishes, local=self.link.address.local)
        if self.link.address.local:
            return asked
        from sublet.client.sending import send_steps
        from sublet.client.uploading import UploadTally, drive

        return drive(send_steps(asked, UploadTally()), self.do)

    @show_words(Wishes)
    def ask(
        self,
        document: Document | None = None,
        /,
        *,
        keep_offers: bool = False,
        key: str | None = None,
        **wishes: Unpack[Wishes],
    ) -> Offers:
        """When and where can this run? A document, a file, YAML text, or the words of the short form.

        Earlier offers that were not accepted give way where they leave no room for these, unless `keep_offers`.
        The same under the same `key`, a text of your own, is the same answer: see `run`.

            offers = client.ask(run=["python", "sim.py"], cores=2, memory="4GiB", time="10m")
            session = offers[0].accept()
        """
        asked = self._prepare(document, wishes)
        return Offers(self, self.do(offers.ask(asked, keep_offers=keep_offers, key=key)))

    @show_words(Wishes)
    def run(
        self,
        document: Document | None = None,
        /,
        *,
        choose: Callable[[Offers], Offer] | None = None,
        wait: bool = True,
        key: str | None = None,
        timeout: Timeout | None = None,
        **wishes: Unpack[Wishes],
    ) -> Session:
        """Ask, accept the best offer (or the one that `choose` returns), and wait until the session is over.

        NoOffers, with the reasons, if the answer is NO; CostsMoney if it has a price, and neither `max_cost` nor
        `choose` was given; NotOverYet, which is a TimeoutError, after `timeout` seconds: the session goes on then.
        Whatever happens, no offer that was not accepted stays held. How the program ended is in `exit_code` and `end`.
        With a `key`, a text of your own, it is started once: run again, it is the session that it became then.

            session = client.run(run=["python", "sim.py"], cores=2, time="10m")
            print(session.exit_code, session.result('out.csv').text())
        """
        asked = self._prepare(document, wishes)
        view = self.do(offers.ask(asked, firm=True, key=key))
        if before := find_taken(view):
            session = self.session(before.id)
        else:
            with Offers(self, keep_open(view)) as offered:
                session = take_offer(offered, asked, choose).accept()
        return session.wait(timeout) if wait else session

    @show_words(SweepWishes)
    def sweep(
        self,
        words: str | Sequence[Word],
        grid: Mapping[str, Iterable[Any]] | None = None,
        *,
        keep_offers: bool = False,
        key: str | None = None,
        **wishes: Unpack[SweepWishes],
    ) -> Offers:
        """Run words with all combinations of the values: `{a}` in them stands for each value of `a`.

        Beside what `ask` takes: `table` (rows), `lines`, `zipped`, `retries`, `parallel`, `parts` and `at_most`.
        """
        return self.ask(sweep_document(words, grid, wishes), keep_offers=keep_offers, key=key)

    def offers(self, id: str) -> Offers:
        """The offers that were made before, by the id of their set."""
        view = self.do(offers.offerset(id))
        return Offers(self, view)

    def open_offers(self) -> list[Offers]:
        """All offers that can still be accepted, by the answer that they came in, the newest first."""
        page = self.do(offers.open_offers())
        return [Offers(self, view) for view in page.items]

    def reject_all(self) -> int:
        """Decline all of them, and say how many those were."""
        return (self.do(offers.reject_all())).offers

    def session(self, id: str) -> Session:
        """One session, by its id or the beginning of it."""
        return Session(self, self.do(sessions.session(id)))

    @show_words(Filters)
    def sessions(self, **filters: Unpack[Filters]) -> Iterator[Session]:
        """Sessions, newest first: all, or those with this `phase`, `kind`, `platform`, `name`, `app`, or `active=True`.

        Operators can name a `person`, or `person="everyone"`.
        """
        pages = SessionPages(**filters)
        while call := pages.next_call():
            yield from (Session(self, view) for view in pages.read_page(self.do(call)))

    def events(self, session: str = "", after: int = 0) -> Iterator[EventView]:
        """What has happened so far, oldest first."""
        while page := self.do(events.events(session, after)).items:
            yield from page
            after = page[-1].id

    def annexes(self) -> list[Annex]:
        """The caller's annexes."""
        return [Annex(self, view) for view in (self.do(annexes.annexes())).items]

    def annex(self, name: str) -> Annex:
        """One of them."""
        return Annex(self, self.do(annexes.annex(name)))

    def plan_annex(self, name: str, *, template: str = "", like: str = "", **details: Any) -> PlanView:
        """The resource request that `create_annex` would send: each line, its source, and what it costs."""
        return self.do(annexes.plan(lease_ask(name, template, like, details)))

    def create_annex(
        self, name: str, *, template: str = "", like: str = "", key: str | None = None, **details: Any
    ) -> Annex:
        """Lease nodes under a name: `system="expanse", nodes=2, lifetime="4h"`; a login must be open."""
        self.do(annexes.create(lease_ask(name, template, like, details), key))
        return self.annex(name)

    def access(self) -> tuple[AccessView, ...]:
        """What the caller may use of a gateway and why not, their limits, and what they have of it this month."""
        return self.do(access.access()).items

    def platforms(self) -> tuple[PlatformView, ...]:
        """The platforms that the service asks."""
        return self.do(platforms.platforms()).items

    def accounts(self) -> tuple[AccountView, ...]:
        """The community accounts, and how many of their places are taken."""
        return self.do(accounts.accounts()).items

    def usage(self, **asked: str) -> UsageReport:
        """What was used: of a `platform` and a `person`, in a `quarter`, or from `since` to `until`."""
        return self.do(usage.usage(**asked))

    def ask_code(self, address: str) -> None:
        """Have a gateway send a code to an address, if its owner may sign in."""
        self.do(signing_in.ask(address))

    def sign_in(self, address: str, code: str, client: str = "") -> TokenView:
        """Sign in to a gateway with that code; later calls show the token that comes of it."""
        made = self.do(signing_in.sign_in(address, code, client))
        self.link.address = replace(self.link.address, token=made.token)
        return made

    def second(self, half: TokenView, code: str) -> TokenView:
        """Sign in all the way with a code of one's second factor, where `sign_in` gave half a token."""
        made = self.do(factors.second(half.token, code))
        self.link.address = replace(self.link.address, token=made.token)
        return made

    def sign_out(self) -> None:
        """Make the token worthless that this client shows."""
        self.do(signing_in.sign_out())

    def people(self, role: str = "") -> Iterator[PersonView]:
        """A gateway's people, for its operators; `do` with `sublet.people.calls.profiles` changes them."""
        after: str | None = ""
        while after is not None:
            page = self.do(profiles.people(role, after=after))
            yield from page.items
            after = page.next

    def whoami(self) -> WhoView:
        """Who the service takes the caller for."""
        return self.do(people.whoami())

    def health(self) -> HealthView:
        """That the service is there, and what it serves."""
        return self.do(health.health())

    def do(self, call: Call[T]) -> T:
        """Any call of `sublet.client.calls`."""
        return self.link.do(call)

    def stream(self, call: Call[Any]) -> Iterator[bytes]:
        """Any call, with the body of its answer as it comes."""
        return self.link.stream(call)
