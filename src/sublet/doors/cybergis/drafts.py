"""Jobs as old clients make them: created, set, submitted, and then shown as their session."""

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
from sublet.notices.hooks import Hooks
from sublet.notices.model.hooks import MAILTO
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST_OPEN = 100  # unsubmitted drafts of one person
LARGEST = 100_000  # characters of a draft's fields
LONGEST_NAME = 200  # characters
LOG = 64 * 1024  # bytes of each stream that are shown

log = structlog.get_logger()


@dataclass
class Drafts:
    """Manages drafts, for the compatibility layer."""

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
        """Create a job that isn't submitted yet."""
        if fields.get("user") or fields.get("password"):
            raise NoOwnLogins(platform=str(fields.get("hpc") or "a centre"))
        kept = {name: str(fields[name]) for name in ("maintainer", "hpc") if fields.get(name)}
        now = self.now()
        draft = Draft(new_id(now), person.name, now, now, kept)
        await self.store.write(lambda tx: self._new_draft(tx, draft))
        return draft

    def _new_draft(self, tx: Tx, draft: Draft) -> None:
        if tx.drafts.count_open(draft.person) >= MOST_OPEN:
            raise TooManyDrafts(most=MOST_OPEN)
        tx.drafts.add(draft)

    async def set_draft(self, person: Person, id: str, fields: Mapping[str, Any]) -> Draft:
        """Set some of a job's fields; empty ones are ignored, as old clients expect."""
        draft = await self.draft(person, id)
        new = {name: fields[name] for name in SETTABLE if fields.get(name)}
        changed = replace(draft, fields={**draft.fields, **new}, changed=self.now())
        if len(str(changed.fields)) > LARGEST:
            raise BadRequest(detail=f"a job can't hold more than {LARGEST} characters.")
        if not await self.store.write(lambda tx: tx.drafts.set(changed)):
            raise AlreadySubmitted(job=id)
        return changed

    async def delete_draft(self, person: Person, id: str) -> None:
        """Remove a job that wasn't submitted, or whose session is over; the session itself stays."""
        draft = await self.draft(person, id)

        def work(tx: Tx) -> None:
            session = _session(tx, draft)
            if session and session.phase not in OVER:
                raise refuse_move(session.phase, "deleted", session.id)
            if not tx.drafts.delete(draft):
                raise AlreadySubmitted(job=id)

        await self.store.write(work)

    async def submit_draft(self, person: Person, id: str, host: str = "") -> tuple[Draft, Session]:
        """Submit a job, once: request the app, and accept the best offer."""
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
        # Of two concurrent submissions, one continues
        if not await self.store.write(lambda tx: tx.drafts.submit(id, offered, now)):
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
        """Return the request with the app's real name, as old clients write names differently."""
        names = [state.app.name for state in await self.catalogue.list_approved()]
        return replace(wish, app=find_same_name(wish.app, names) or wish.app) if wish.app else wish

    async def _find_mail_address(self, person: Person, draft: Draft) -> str:
        """Return the address to notify, which must be the submitter's own; empty if none is wanted."""
        to, _ = mail_of(draft)
        return await self.hooks.check_address(person, f"{MAILTO}{to}") if to else ""

    async def _tell_by_mail(self, person: Person, address: str, draft: Draft, session: Session) -> None:
        """Add the requested mail notification; the job runs even if its owner has too many webhooks."""
        try:
            await self.hooks.add_hook(person, address, session=session.id, events=mail_of(draft)[1])
        except TooManyHooks as error:
            log.info("hook.refused", session=session.id, person=person.name, why=error.message)

    async def name_folder(self, person: Person, id: str, name: str) -> Draft:
        """Rename the folder of a job, and thereby the job."""
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
        """Return a job; raise NotYours unless it is the person's own, or they are an operator."""
        draft = await self.store.read(lambda tx: tx.drafts.get(id))
        if draft is None:
            raise NotFound(noun="job", name=id, hint="GET …/user/job lists yours.")
        if draft.person != person.name and not person.operator:
            raise NotYours(noun="job")
        return draft

    async def drafts(self, person: Person) -> list[tuple[Draft, Session | None]]:
        """List a person's jobs, newest last as old clients expect, each with its session."""
        return await self.store.read(
            lambda tx: [(draft, _session(tx, draft)) for draft in reversed(tx.drafts.of(person.name))]
        )

    async def draft_session(self, person: Person, draft: Draft) -> Session | None:
        """Return the session that a job became, unless it was deleted."""
        session = await self.store.read(lambda tx: _session(tx, draft))
        return self.presenter.with_connectors(session) if session else None

    async def draft_events(self, draft: Draft) -> Sequence[Event]:
        """List the events of a job's session."""
        if not draft.session:
            return ()
        return await self.store.read(lambda tx: tx.events.after(0, session=draft.session))

    async def draft_logs(self, person: Person, session: Session) -> list[dict[str, Any]]:
        """Return the start of a session's output, for each stream."""
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
    """Return for how many seconds a session has run, or None if it hasn't started."""
    return ((session.ended or now) - session.started).total_seconds() if session and session.started else None


def results_page(presenter: Presenter, session: Session) -> str:
    """Return the page where a browser can download the results, as old clients themselves only use Globus."""
    return presenter.page(f"sessions/{session.id}/archive")
