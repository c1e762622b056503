"""Jobs as old clients make them: created, set, submitted, and then seen as their session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from sublet.apps.catalogue import AppCatalogue
from sublet.apps.model.draft import Draft, new_id
from sublet.apps.model.parameters import as_typed
from sublet.apps.run_requests import AppWish
from sublet.apps.runs import AppRuns
from sublet.booking.best_offer import best_offer
from sublet.booking.direct import Direct
from sublet.booking.forgetting import SUBMITTED
from sublet.booking.model.events import Event
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.phases import OVER
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import Session
from sublet.booking.offers import Offers
from sublet.booking.output import SessionOutput
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.presenter import Presenter
from sublet.doors.cybergis.roadmap import read_seed
from sublet.doors.cybergis.wire import CODE, SETTABLE, find_same_name, log_of, mail_of, seed_of
from sublet.kernel.clock import Clock
from sublet.kernel.errors import (
    AlreadySubmitted,
    BadRequest,
    NoOwnLogins,
    NotFound,
    NotYours,
    SubletError,
    TooManyDrafts,
    TooManyHooks,
)
from sublet.kernel.settings import Settings
from sublet.notices.hooks import Hooks
from sublet.notices.model.hooks import MAILTO
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST_OPEN = 100  # drafts of one person that were not submitted
LARGEST = 100_000  # characters of what one holds
LONGEST_NAME = 200  # characters
LOG = 64 * 1024  # bytes of each stream that are shown

log = structlog.get_logger()


@dataclass
class Drafts:
    """Drafts, for the compatibility layer."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    presenter: Presenter
    output: SessionOutput
    catalogue: AppCatalogue
    app_runs: AppRuns
    offers: Offers
    hooks: Hooks
    direct: Direct

    async def new_draft(self, person: Person, fields: Mapping[str, Any]) -> Draft:
        """A job that is not yet submitted."""
        if fields.get("user") or fields.get("password"):
            raise NoOwnLogins(platform=str(fields.get("hpc") or "a centre"))
        kept = {name: str(fields[name]) for name in ("maintainer", "hpc") if fields.get(name)}
        now = self.now()
        draft = Draft(new_id(now), person.name, now, now, kept)
        await self.store.write(lambda tx: self._new_draft(tx, draft))
        return draft

    def _new_draft(self, tx: Tx, draft: Draft) -> None:
        tx.drafts.forget(draft.created - SUBMITTED, draft.created - self.settings.keep_drafts)
        if tx.drafts.count_open(draft.person) >= MOST_OPEN:
            raise TooManyDrafts(most=MOST_OPEN)
        tx.drafts.add(draft)

    async def set_draft(self, person: Person, id: str, fields: Mapping[str, Any]) -> Draft:
        """Set some of its fields; what is empty is left as it was, as old clients expect."""
        draft = await self.draft(person, id)
        new = {name: fields[name] for name in SETTABLE if fields.get(name)}
        changed = replace(draft, fields={**draft.fields, **new}, changed=self.now())
        if len(str(changed.fields)) > LARGEST:
            raise BadRequest(detail=f"a job can't hold more than {LARGEST} characters.")
        if not await self.store.write(lambda tx: tx.drafts.set(changed)):
            raise AlreadySubmitted(job=id)
        return changed

    async def delete_draft(self, person: Person, id: str) -> None:
        """Remove one that was not submitted, or whose session is over; the session itself stays."""
        draft = await self.draft(person, id)

        def work(tx: Tx) -> None:
            session = _session(tx, draft)
            if session and session.phase not in OVER:
                raise refuse_move(session.phase, "deleted", session.id)
            if not tx.drafts.delete(draft):
                raise AlreadySubmitted(job=id)

        await self.store.write(work)

    async def submit_draft(self, person: Person, id: str, host: str = "") -> tuple[Draft, Session]:
        """Ask for it and take the best offer; once."""
        draft = await self.draft(person, id)
        if draft.session:
            raise AlreadySubmitted(job=id)
        wish = await self._find_app(read_seed(seed_of(draft)))
        manifest = (await self.app_runs.runnable(person, wish)).as_manifest()
        mailto = await self._find_mail_address(person, draft)
        offerset = await self.app_runs.ask_app(
            person, replace(wish, set=as_typed(manifest, wish.set)), Precedence(firm=True)
        )
        if not offerset.offers:
            raise BadRequest(" ".join(reason.message for reason in offerset.reasons), hint=_nearest(offerset.reasons))
        offered = best_offer(offerset).id
        now = self.now()
        if not await self.store.write(lambda tx: tx.drafts.submit(id, offered, now)):  # of two at once, one goes on
            await self.offers.reject_set(offerset.id, person)
            raise AlreadySubmitted(job=id)
        try:
            session = await self.direct.accept_of(offerset, offered, person)
        except SubletError:
            await self.store.write(lambda tx: tx.drafts.reopen(id, offered))
            raise
        if mailto:
            await self._tell_by_mail(person, mailto, draft, session)
        return replace(draft, session=session.id, changed=now), session

    async def _find_app(self, wish: AppWish) -> AppWish:
        """The same wish for the app that is meant, as old clients write names."""
        names = [state.app.name for state in await self.catalogue.list_approved()]
        return replace(wish, app=find_same_name(wish.app, names) or wish.app) if wish.app else wish

    async def _find_mail_address(self, person: Person, draft: Draft) -> str:
        """To whom a letter is to be sent; nobody but who submits it."""
        to, _ = mail_of(draft)
        return await self.hooks.check_address(person, f"{MAILTO}{to}") if to else ""

    async def _tell_by_mail(self, person: Person, address: str, draft: Draft, session: Session) -> None:
        """Have the box ticked for a letter; the job runs though somebody has too many of them."""
        try:
            await self.hooks.add_hook(person, address, session=session.id, events=mail_of(draft)[1])
        except TooManyHooks as error:
            log.info("hook.refused", session=session.id, person=person.name, why=error.message)

    async def name_folder(self, person: Person, id: str, name: str) -> Draft:
        """Give the folder of a job another name, which is the job's."""
        draft_of_session = next(
            (draft for draft, _ in await self.drafts(person) if draft.session == id.removesuffix(CODE)), None
        )
        if draft_of_session is None:
            raise NotFound(noun="folder", name=id, hint="GET …/folder lists yours.")
        if not name or len(name) > LONGEST_NAME:
            raise BadRequest(detail=f"name has to be a text of up to {LONGEST_NAME} characters.")
        named = replace(draft_of_session, fields={**draft_of_session.fields, "name": name}, changed=self.now())
        if not id.endswith(CODE):
            await self.store.write(lambda tx: tx.drafts.keep(named))
        return named

    async def draft(self, person: Person, id: str) -> Draft:
        """One of a person's own."""
        draft = await self.store.read(lambda tx: tx.drafts.get(id))
        if draft is None:
            raise NotFound(noun="job", name=id, hint="GET …/user/job lists yours.")
        if draft.person != person.name and not person.operator:
            raise NotYours(noun="job")
        return draft

    async def drafts(self, person: Person) -> list[tuple[Draft, Session | None]]:
        """All of a person's, newest last as old clients expect, each with its session."""
        return await self.store.read(
            lambda tx: [(draft, _session(tx, draft)) for draft in reversed(tx.drafts.of(person.name))]
        )

    async def draft_session(self, person: Person, draft: Draft) -> Session | None:
        """The session that it became, unless that is forgotten."""
        session = await self.store.read(lambda tx: _session(tx, draft))
        return self.presenter.with_connectors(session) if session else None

    async def draft_events(self, draft: Draft) -> Sequence[Event]:
        """What happened to its session."""
        if not draft.session:
            return ()
        return await self.store.read(lambda tx: tx.events.after(0, session=draft.session))

    async def draft_logs(self, person: Person, session: Session) -> list[dict[str, Any]]:
        """What it printed so far, on each of its streams; the beginning, if it is long."""
        logs = [log_of(session, f"Results: {results_page(self.presenter, session)}", session.ended or session.modified)]
        logs = logs if session.phase in OVER else []
        for stream in ("stdout", "stderr"):
            text = (await self.output.output(session.id, person, stream, 0, LOG)).data.decode("utf-8", "replace")
            if text:
                logs.append(log_of(session, text, session.ended or session.modified))
        return logs


def _session(tx: Tx, draft: Draft) -> Session | None:
    return tx.sessions.get(draft.session) if draft.session else None


def _nearest(reasons: Sequence[Any]) -> str:
    return "; ".join(dict.fromkeys(reason.nearest for reason in reasons if reason.nearest))


def runtime_of(session: Session | None, now: datetime) -> float | None:
    """For how many seconds it has run."""
    return ((session.ended or now) - session.started).total_seconds() if session and session.started else None


def results_page(presenter: Presenter, session: Session) -> str:
    """The page where a browser downloads what a session left; old clients themselves can only ask Globus."""
    return presenter.page(f"sessions/{session.id}/archive")
