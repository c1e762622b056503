"""The asynchronous client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
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
from sublet.client.aio_annexes import AsyncAnnex
from sublet.client.aio_link import AsyncLink
from sublet.client.aio_sessions import AsyncOffer, AsyncOffers, AsyncSession
from sublet.client.aio_waiting import carry_out
from sublet.client.annex_facts import lease_ask
from sublet.client.call import Call
from sublet.client.choosing import find_taken, keep_open, take_offer
from sublet.client.documents import Document, document_of
from sublet.client.following import Steps, Timeout, read_timeout
from sublet.client.paging import SessionPages
from sublet.client.sweeps import sweep_document
from sublet.client.wishes import Filters, SweepWishes, Wishes, Word, show_words
from sublet.data.views.uploads import UploadView
from sublet.people.calls import factors, people, profiles, signing_in
from sublet.people.views.people import PersonView, TokenView, WhoView

T = TypeVar("T")


class AsyncClient:
    """A client of a service: the person's own, which is started on demand, or the one at a URL."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        """Use a URL and token, or a Unix socket; by default SUBLET_URL, `sublet login`'s, or one's own service."""
        self._link = AsyncLink(find_address(url, token, socket))

    async def __aenter__(self) -> AsyncClient:
        """Return the client, for `async with`."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._link.close()

    async def upload(self, *places: str | os.PathLike[str], name: str = "") -> UploadView:
        """Upload a folder or files to the service, which keeps them for a while; see `Client.upload`."""
        from sublet.client.uploading import UploadTally, drive_async, plan_upload, upload_steps

        plan = await asyncio.to_thread(plan_upload, places, name)
        return (await drive_async(upload_steps(plan, UploadTally()), self.do)).upload

    async def _prepare(self, document: Document | None, wishes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request's document; files that it names here are uploaded first if the service is elsewhere."""
        asked = await asyncio.to_thread(document_of, document, wishes, local=self._link.address.local)
        if self._link.address.local:
            return asked
        from sublet.client.sending import send_steps
        from sublet.client.uploading import UploadTally, drive_async

        return await drive_async(send_steps(asked, UploadTally()), self.do)

    @show_words(Wishes)
    async def ask(
        self,
        document: Document | None = None,
        /,
        *,
        keep_offers: bool = False,
        key: str | None = None,
        **wishes: Unpack[Wishes],
    ) -> AsyncOffers:
        """Ask for offers, by a document, a file, YAML text, or the short form's parameters; see `Client.ask`."""
        asked = await self._prepare(document, wishes)
        return AsyncOffers(self, await self.do(offers.ask(asked, keep_offers=keep_offers, key=key)))

    @show_words(Wishes)
    async def explain_ways(
        self, document: Document | None = None, /, **wishes: Unpack[Wishes]
    ) -> tuple[RunWayView, ...]:
        """List all ways to run a request, on all platforms; see `Client.explain_ways`."""
        return (await self.do(offers.explain_ways(await self._prepare(document, wishes)))).items

    @show_words(Wishes)
    async def run(
        self,
        document: Document | None = None,
        /,
        *,
        choose: Callable[[AsyncOffers], AsyncOffer] | None = None,
        wait: bool = True,
        key: str | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109 - as in the other client
        **wishes: Unpack[Wishes],
    ) -> AsyncSession:
        """Ask, accept the best offer (or the one that `choose` returns), and wait until the session has ended.

        It raises the same errors as `Client.run`, and offers that weren't accepted are released. A `key` of your own
        makes it idempotent: another call with the same key returns the same session.

            session = await client.run(run=["python", "sim.py"], cores=2, time="10m")
        """
        seconds = read_timeout(timeout)  # before anything is booked
        asked = await self._prepare(document, wishes)
        view = await self.do(offers.ask(asked, firm=True, key=key))
        if before := find_taken(view):
            session = await self.session(before.id)
        else:
            async with AsyncOffers(self, keep_open(view)) as offered:
                session = await take_offer(offered, asked, choose).accept()
        return await session.wait(seconds) if wait else session

    @show_words(SweepWishes)
    async def sweep(
        self,
        words: str | Sequence[Word],
        grid: Mapping[str, Iterable[Any]] | None = None,
        *,
        keep_offers: bool = False,
        key: str | None = None,
        **wishes: Unpack[SweepWishes],
    ) -> AsyncOffers:
        """Ask for offers to run a command with all combinations of values: `{a}` in it stands for each value of `a`.

        In addition to the parameters of `ask`: `table` (rows), `lines`, `zipped`, `retries`, `parallel`, `parts` and
        `at_most`.
        """
        return await self.ask(sweep_document(words, grid, wishes), keep_offers=keep_offers, key=key)

    async def offers(self, id: str) -> AsyncOffers:
        """Return an earlier answer, by the id of its offer set."""
        view = await self.do(offers.offerset(id))
        return AsyncOffers(self, view)

    async def open_offers(self) -> list[AsyncOffers]:
        """Return all answers whose offers can still be accepted, newest first."""
        page = await self.do(offers.open_offers())
        return [AsyncOffers(self, view) for view in page.items]

    async def reject_all(self) -> int:
        """Decline all open offers; return how many there were."""
        return (await self.do(offers.reject_all())).offers

    async def session(self, id: str) -> AsyncSession:
        """Return a session, by its id or a unique prefix of it."""
        return AsyncSession(self, await self.do(sessions.session(id)))

    @show_words(Filters)
    async def sessions(self, **filters: Unpack[Filters]) -> AsyncIterator[AsyncSession]:
        """Yield sessions, newest first; `phase`, `kind`, `platform`, `name` and `active=True` filter them."""
        pages = SessionPages(**filters)
        while call := pages.next_call():
            for view in pages.read_page(await self.do(call)):
                yield AsyncSession(self, view)

    async def events(self, session: str = "", after: int = 0) -> AsyncIterator[EventView]:
        """Yield the events so far, oldest first."""
        while page := (await self.do(events.events(session, after))).items:
            for event in page:
                yield event
            after = page[-1].id

    async def annexes(self) -> list[AsyncAnnex]:
        """Return the caller's annexes."""
        return [AsyncAnnex(self, view) for view in (await self.do(annexes.annexes())).items]

    async def annex(self, name: str) -> AsyncAnnex:
        """Return the annex of this name."""
        return AsyncAnnex(self, await self.do(annexes.annex(name)))

    async def plan_annex(self, name: str, *, template: str = "", like: str = "", **details: Any) -> PlanView:
        """Return the resource request that `create_annex` would send: each line, its source, and what it costs."""
        return await self.do(annexes.plan(lease_ask(name, template, like, details)))

    async def create_annex(
        self, name: str, *, template: str = "", like: str = "", key: str | None = None, **details: Any
    ) -> AsyncAnnex:
        """Lease nodes under a name, as in `system="expanse", nodes=2, lifetime="4h"`; requires an open login."""
        await self.do(annexes.create(lease_ask(name, template, like, details), key))
        return await self.annex(name)

    async def access(self) -> tuple[AccessView, ...]:
        """Return what the caller may use of a gateway, or why not, with their limits and this month's usage."""
        return (await self.do(access.access())).items

    async def platforms(self) -> tuple[PlatformView, ...]:
        """Return the platforms that the service asks."""
        return (await self.do(platforms.platforms())).items

    async def accounts(self) -> tuple[AccountView, ...]:
        """Return the community accounts, and how many of their places are taken."""
        return (await self.do(accounts.accounts())).items

    async def usage(self, **asked: str) -> UsageReport:
        """Return a report of usage: by `platform` and `person`, in a `quarter`, or from `since` to `until`."""
        return await self.do(usage.usage(**asked))

    async def ask_code(self, address: str) -> None:
        """Have a gateway mail a sign-in code to an address, if its owner may sign in."""
        await self.do(signing_in.ask(address))

    async def sign_in(self, address: str, code: str, client: str = "") -> TokenView:
        """Sign in to a gateway with a mailed code; later calls use the new token."""
        made = await self.do(signing_in.sign_in(address, code, client))
        self._link.address = replace(self._link.address, token=made.token)
        return made

    async def second(self, half: TokenView, code: str) -> TokenView:
        """Complete a sign-in with a code of the second factor, if `sign_in` returned only a partial token."""
        made = await self.do(factors.second(half.token, code))
        self._link.address = replace(self._link.address, token=made.token)
        return made

    async def sign_out(self) -> None:
        """Revoke the token that this client uses."""
        await self.do(signing_in.sign_out())

    async def people(self, role: str = "") -> AsyncIterator[PersonView]:
        """Yield a gateway's people, for operators; to change them, use `do` with `sublet.people.calls.profiles`."""
        after: str | None = ""
        while after is not None:
            page = await self.do(profiles.people(role, after=after))
            for person in page.items:
                yield person
            after = page.next

    async def whoami(self) -> WhoView:
        """Return the identity of the caller, as the service sees it."""
        return await self.do(people.whoami())

    async def health(self) -> HealthView:
        """Return the health of the service, and what it serves."""
        return await self.do(health.health())

    async def do(self, call: Call[T]) -> T:
        """Make any call, such as those of `sublet.people.calls`."""
        return await self._link.do(call)

    def stream(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Make any call, and yield the body of its answer as it arrives."""
        return self._link.stream(call)

    async def carry_out(self, steps: Steps[T]) -> T:
        """Carry out the steps one after another, and return their result."""
        return await carry_out(self.do, steps)
