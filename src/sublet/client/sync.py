"""The synchronous client."""

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
from sublet.booking.views.offers import RunWayView
from sublet.booking.views.platforms import PlatformView
from sublet.client.address import find_address
from sublet.client.annex_facts import lease_ask
from sublet.client.annexes import Annex
from sublet.client.call import Call
from sublet.client.choosing import find_taken, keep_open, take_offer
from sublet.client.documents import Document, document_of
from sublet.client.following import Timeout, read_timeout
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
    """A client of a service: the person's own, which is started on demand, or the one at a URL."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        """Use a URL and token, or a Unix socket; by default SUBLET_URL, `sublet login`'s, or one's own service."""
        self.link = Link(find_address(url, token, socket))

    def __enter__(self) -> Client:
        """Return the client, for `with Client() as client:`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client; accepted sessions continue."""
        self.close()

    def __repr__(self) -> str:
        """Return a short description for interactive use."""
        return f"<Client of {self.link.address.text}>"

    def close(self) -> None:
        """Close the client; later calls raise ClientClosed."""
        self.link.close()

    def upload(self, *places: str | os.PathLike[str], name: str = "") -> UploadView:
        """Upload a folder or files to the service, which keeps them for a while; use the result's `address` as data.

        Another call sends only what is missing or has changed, and resumes interrupted files.

            client.run(run="ls in", data=[{"location": client.upload("forcing/").address, "path": "in"}])
        """
        from sublet.client.uploading import UploadTally, drive, plan_upload, upload_steps

        return drive(upload_steps(plan_upload(places, name), UploadTally()), self.do).upload

    def _prepare(self, document: Document | None, wishes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request's document; files that it names here are uploaded first if the service is elsewhere."""
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
        """Ask when and where something can run, by a document, a file, YAML text, or the short form's parameters.

        Earlier offers of yours that weren't accepted are withdrawn if they take up the room, unless `keep_offers`. The
        same request with the same `key`, a text of your own, gets the same answer: see `run`.

            offers = client.ask(run=["python", "sim.py"], cores=2, memory="4GiB", time="10m")
            session = offers[0].accept()
        """
        asked = self._prepare(document, wishes)
        return Offers(self, self.do(offers.ask(asked, keep_offers=keep_offers, key=key)))

    @show_words(Wishes)
    def explain_ways(self, document: Document | None = None, /, **wishes: Unpack[Wishes]) -> tuple[RunWayView, ...]:
        """List all ways to run a request, on all platforms: which are possible, and why others are not.

        Nothing is booked or held. It takes the same parameters as `ask`.

            for way in client.explain_ways(notebook="analysis.ipynb"):
                print(way.platform, way.way, way.possible, way.why)
        """
        return (self.do(offers.explain_ways(self._prepare(document, wishes)))).items

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
        """Ask, accept the best offer (or the one that `choose` returns), and wait until the session has ended.

        Raise NoOffers, with the reasons, if the answer is NO; CostsMoney if the offer has a price and neither
        `max_cost` nor `choose` was given; NotOverYet, which is a TimeoutError, after `timeout` seconds, while the
        session continues. In any case, offers that weren't accepted are released. How the program ended is in
        `exit_code` and `end`.

        A `key` of your own makes it idempotent: another call with the same key returns the same session.

            session = client.run(run=["python", "sim.py"], cores=2, time="10m")
            print(session.exit_code, session.result('out.csv').text())
        """
        seconds = read_timeout(timeout)  # before anything is booked
        asked = self._prepare(document, wishes)
        view = self.do(offers.ask(asked, firm=True, key=key))
        if before := find_taken(view):
            session = self.session(before.id)
        else:
            with Offers(self, keep_open(view)) as offered:
                session = take_offer(offered, asked, choose).accept()
        return session.wait(seconds) if wait else session

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
        """Ask for offers to run a command with all combinations of values: `{a}` in it stands for each value of `a`.

        In addition to the parameters of `ask`: `table` (rows), `lines`, `zipped`, `retries`, `parallel`, `parts` and
        `at_most`.
        """
        return self.ask(sweep_document(words, grid, wishes), keep_offers=keep_offers, key=key)

    def offers(self, id: str) -> Offers:
        """Return an earlier answer, by the id of its offer set."""
        view = self.do(offers.offerset(id))
        return Offers(self, view)

    def open_offers(self) -> list[Offers]:
        """Return all answers whose offers can still be accepted, newest first."""
        page = self.do(offers.open_offers())
        return [Offers(self, view) for view in page.items]

    def reject_all(self) -> int:
        """Decline all open offers; return how many there were."""
        return (self.do(offers.reject_all())).offers

    def session(self, id: str) -> Session:
        """Return a session, by its id or a unique prefix of it."""
        return Session(self, self.do(sessions.session(id)))

    @show_words(Filters)
    def sessions(self, **filters: Unpack[Filters]) -> Iterator[Session]:
        """Yield sessions, newest first; `phase`, `kind`, `platform`, `name`, `app` and `active=True` filter them.

        Operators can name a `person`, or `person="everyone"`.
        """
        pages = SessionPages(**filters)
        while call := pages.next_call():
            yield from (Session(self, view) for view in pages.read_page(self.do(call)))

    def events(self, session: str = "", after: int = 0) -> Iterator[EventView]:
        """Yield the events so far, oldest first."""
        while page := self.do(events.events(session, after)).items:
            yield from page
            after = page[-1].id

    def annexes(self) -> list[Annex]:
        """Return the caller's annexes."""
        return [Annex(self, view) for view in (self.do(annexes.annexes())).items]

    def annex(self, name: str) -> Annex:
        """Return the annex of this name."""
        return Annex(self, self.do(annexes.annex(name)))

    def plan_annex(self, name: str, *, template: str = "", like: str = "", **details: Any) -> PlanView:
        """Return the resource request that `create_annex` would send: each line, its source, and what it costs."""
        return self.do(annexes.plan(lease_ask(name, template, like, details)))

    def create_annex(
        self, name: str, *, template: str = "", like: str = "", key: str | None = None, **details: Any
    ) -> Annex:
        """Lease nodes under a name, as in `system="expanse", nodes=2, lifetime="4h"`; requires an open login."""
        self.do(annexes.create(lease_ask(name, template, like, details), key))
        return self.annex(name)

    def access(self) -> tuple[AccessView, ...]:
        """Return what the caller may use of a gateway, or why not, with their limits and this month's usage."""
        return self.do(access.access()).items

    def platforms(self) -> tuple[PlatformView, ...]:
        """Return the platforms that the service asks."""
        return self.do(platforms.platforms()).items

    def accounts(self) -> tuple[AccountView, ...]:
        """Return the community accounts, and how many of their places are taken."""
        return self.do(accounts.accounts()).items

    def usage(self, **asked: str) -> UsageReport:
        """Return a report of usage: by `platform` and `person`, in a `quarter`, or from `since` to `until`."""
        return self.do(usage.usage(**asked))

    def ask_code(self, address: str) -> None:
        """Have a gateway mail a sign-in code to an address, if its owner may sign in."""
        self.do(signing_in.ask(address))

    def sign_in(self, address: str, code: str, client: str = "") -> TokenView:
        """Sign in to a gateway with a mailed code; later calls use the new token."""
        made = self.do(signing_in.sign_in(address, code, client))
        self.link.address = replace(self.link.address, token=made.token)
        return made

    def second(self, half: TokenView, code: str) -> TokenView:
        """Complete a sign-in with a code of the second factor, if `sign_in` returned only a partial token."""
        made = self.do(factors.second(half.token, code))
        self.link.address = replace(self.link.address, token=made.token)
        return made

    def sign_out(self) -> None:
        """Revoke the token that this client uses."""
        self.do(signing_in.sign_out())

    def people(self, role: str = "") -> Iterator[PersonView]:
        """Yield a gateway's people, for operators; to change them, use `do` with `sublet.people.calls.profiles`."""
        after: str | None = ""
        while after is not None:
            page = self.do(profiles.people(role, after=after))
            yield from page.items
            after = page.next

    def whoami(self) -> WhoView:
        """Return the identity of the caller, as the service sees it."""
        return self.do(people.whoami())

    def health(self) -> HealthView:
        """Return the health of the service, and what it serves."""
        return self.do(health.health())

    def do(self, call: Call[T]) -> T:
        """Make any call, such as those of `sublet.people.calls`."""
        return self.link.do(call)

    def stream(self, call: Call[Any]) -> Iterator[bytes]:
        """Make any call, and yield the body of its answer as it arrives."""
        return self.link.stream(call)
