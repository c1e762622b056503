"""The client for programs that await."""

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
from sublet.client.following import Steps, Timeout
from sublet.client.paging import SessionPages
from sublet.client.sweeps import sweep_document
from sublet.client.wishes import Filters, SweepWishes, Wishes, Word, show_words
from sublet.data.views.uploads import UploadView
from sublet.people.calls import factors, people, profiles, signing_in
from sublet.people.views.people import PersonView, TokenView, WhoView

T = TypeVar("T")


class AsyncClient:
    """A service: one's own (which starts by itself), or the one at a URL."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        """A URL with a token, or a Unix socket; else SUBLET_URL; else where `sublet login` led, or one's own."""
        self._link = AsyncLink(find_address(url, token, socket))

    async def __aenter__(self) -> AsyncClient:
        """For `async with`."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go of the connections."""
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._link.close()

    async def upload(self, *places: str | os.PathLike[str], name: str = "") -> UploadView:
        """Send a folder or files to the service, where they are kept for a while; see `Client.upload`."""
        from sublet.client.uploading import UploadTally, drive_async, plan_upload, upload_steps

        plan = await asyncio.to_thread(plan_upload, places, name)
        return (await drive_async(upload_steps(plan, UploadTally()), self.do)).upload

    async def _prepare(self, document: Document | None, wishes: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document; what it brings from here to a service elsewhere is sent before."""
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
        """When and where can this run? A document, a file, YAML text, or the words of the short form; see `Client`."""
        asked = await self._prepare(document, wishes)
        return AsyncOffers(self, await self.do(offers.ask(asked, keep_offers=keep_offers, key=key)))

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
        """Ask, accept the best offer (or the one that `choose` returns), and wait until the session is over.

        What it raises is as in `Client.run`; no offer that was not accepted stays held. With a `key`, a text of your
        own, it is started once: run again, it is the session that it became then.

            session = await client.run(run=["python", "sim.py"], cores=2, time="10m")
        """
        asked = await self._prepare(document, wishes)
        view = await self.do(offers.ask(asked, firm=True, key=key))
        if before := find_taken(view):
            session = await self.session(before.id)
        else:
            async with AsyncOffers(self, keep_open(view)) as offered:
                session = await take_offer(offered, asked, choose).accept()
        return await session.wait(timeout) if wait else session

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
        """Run words with all combinations of the values: `{a}` in them stands for each value of `a`.

        Beside what `ask` takes: `table` (rows), `lines`, `zipped`, `retries`, `parallel`, `parts` and `at_most`.
        """
        return await self.ask(sweep_document(words, grid, wishes), keep_offers=keep_offers, key=key)

    async def offers(self, id: str) -> AsyncOffers:
        """The offers that were made before, by the id of their set."""
        view = await self.do(offers.offerset(id))
        return AsyncOffers(self, view)

    async def open_offers(self) -> list[AsyncOffers]:
        """All offers that can still be accepted, by the answer that they came in, the newest first."""
        page = await self.do(offers.open_offers())
        return [AsyncOffers(self, view) for view in page.items]

    async def reject_all(self) -> int:
        """Decline all of them, and say how many those were."""
        return (await self.do(offers.reject_all())).offers

    async def session(self, id: str) -> AsyncSession:
        """One session, by its id or the beginning of it."""
        return AsyncSession(self, await self.do(sessions.session(id)))

    @show_words(Filters)
    async def sessions(self, **filters: Unpack[Filters]) -> AsyncIterator[AsyncSession]:
        """Sessions, newest first: all, or those with this `phase`, `kind`, `platform`, `name`, or `active=True`."""
        pages = SessionPages(**filters)
        while call := pages.next_call():
            for view in pages.read_page(await self.do(call)):
                yield AsyncSession(self, view)

    async def events(self, session: str = "", after: int = 0) -> AsyncIterator[EventView]:
        """What has happened so far, oldest first."""
        while page := (await self.do(events.events(session, after))).items:
            for event in page:
                yield event
            after = page[-1].id

    async def annexes(self) -> list[AsyncAnnex]:
        """The caller's annexes."""
        return [AsyncAnnex(self, view) for view in (await self.do(annexes.annexes())).items]

    async def annex(self, name: str) -> AsyncAnnex:
        """One of them."""
        return AsyncAnnex(self, await self.do(annexes.annex(name)))

    async def plan_annex(self, name: str, *, template: str = "", like: str = "", **details: Any) -> PlanView:
        """The resource request that `create_annex` would send: each line, its source, and what it costs."""
        return await self.do(annexes.plan(lease_ask(name, template, like, details)))

    async def create_annex(
        self, name: str, *, template: str = "", like: str = "", key: str | None = None, **details: Any
    ) -> AsyncAnnex:
        """Lease nodes under a name: `system="expanse", nodes=2, lifetime="4h"`; a login must be open."""
        await self.do(annexes.create(lease_ask(name, template, like, details), key))
        return await self.annex(name)

    async def access(self) -> tuple[AccessView, ...]:
        """What the caller may use of a gateway and why not, their limits, and what they have of it this month."""
        return (await self.do(access.access())).items

    async def platforms(self) -> tuple[PlatformView, ...]:
        """The platforms that the service asks."""
        return (await self.do(platforms.platforms())).items

    async def accounts(self) -> tuple[AccountView, ...]:
        """The community accounts, and how many of their places are taken."""
        return (await self.do(accounts.accounts())).items

    async def usage(self, **asked: str) -> UsageReport:
        """What was used: of a `platform` and a `person`, in a `quarter`, or from `since` to `until`."""
        return await self.do(usage.usage(**asked))

    async def ask_code(self, address: str) -> None:
        """Have a gateway send a code to an address, if its owner may sign in."""
        await self.do(signing_in.ask(address))

    async def sign_in(self, address: str, code: str, client: str = "") -> TokenView:
        """Sign in to a gateway with that code; later calls show the token that comes of it."""
        made = await self.do(signing_in.sign_in(address, code, client))
        self._link.address = replace(self._link.address, token=made.token)
        return made

    async def second(self, half: TokenView, code: str) -> TokenView:
        """Sign in all the way with a code of one's second factor, where `sign_in` gave half a token."""
        made = await self.do(factors.second(half.token, code))
        self._link.address = replace(self._link.address, token=made.token)
        return made

    async def sign_out(self) -> None:
        """Make the token worthless that this client shows."""
        await self.do(signing_in.sign_out())

    async def people(self, role: str = "") -> AsyncIterator[PersonView]:
        """A gateway's people, for its operators; `do` with `sublet.people.calls.profiles` changes them."""
        after: str | None = ""
        while after is not None:
            page = await self.do(profiles.people(role, after=after))
            for person in page.items:
                yield person
            after = page.next

    async def whoami(self) -> WhoView:
        """Who the service takes the caller for."""
        return await self.do(people.whoami())

    async def health(self) -> HealthView:
        """That the service is there, and what it serves."""
        return await self.do(health.health())

    async def do(self, call: Call[T]) -> T:
        """Any call of `sublet.client.calls`."""
        return await self._link.do(call)

    def stream(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Any call, with the body of its answer as it comes."""
        return self._link.stream(call)

    async def carry_out(self, steps: Steps[T]) -> T:
        """Do one step after the other, and return what they lead to."""
        return await carry_out(self.do, steps)
