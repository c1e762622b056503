"""Reviews: exactly what was reviewed is approved, and an approval can be revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sublet.apps.catalogue import HINT, AppCatalogue, AppState, decides, detail_of, read_archive
from sublet.apps.model.app import Change, Version, VersionState, changes, manifest_diff
from sublet.apps.model.tree import TreeFile, files_of
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import ACTIVE, ENDING, Phase
from sublet.booking.model.session import Session
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_endings import SessionEndings
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotAsReviewed, NotDecidable, NotFound, NotYours, OwnProposal, ReviewersOnly
from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

LONGEST_WHY = 2000
ENOUGH = 16  # digits of a tree's hash that identify it
P = VersionState
WAIT = (Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING)


@dataclass(frozen=True, slots=True)
class Revoked:
    """A revoked version, and the sessions that were notified."""

    version: Version
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that a reviewer of a version has to see."""

    version: Version
    files: Sequence[TreeFile]
    base: Version | None  # the last version that was approved before
    changes: Sequence[Change]
    manifest_diff: str


@dataclass
class Reviewing:
    """Decides on versions of apps."""

    settings: Settings
    store: Store
    now: Clock
    signals: Signals
    mail: Mail
    catalogue: AppCatalogue
    endings: SessionEndings
    is_own_reviewer: bool  # whether people may approve their own proposals, whatever the settings are

    async def review(self, ref: str, person: Person, against: int | None = None) -> Review:
        """Return a version's files, and what is new in them since the last approved version, or another."""
        version = await self.catalogue.version_of(ref, person)
        state = await self.catalogue.app(version.app, person)
        self._may_read(version, person, state)
        base = _base(state, version, against)
        files = await self._files(version)
        old = await self._files(base) if base else ()
        told = manifest_diff(base.manifest, version.manifest) if base else ""
        return Review(version, files, base, await asyncio.to_thread(changes, old, files) if base else (), told)

    def _may_read(self, version: Version, person: Person, state: AppState) -> None:
        """Raise NotYours unless the person is a reviewer, proposer or owner, or the version is approved."""
        own = decides(person) or person.name in (version.proposed_by, state.app.person)
        if not own and version.state is not P.APPROVED:
            raise NotYours(noun="version")

    async def _files(self, version: Version) -> Sequence[TreeFile]:
        """Read a version's files from its archive; raise NotDecidable if the archive is missing or altered."""
        return await asyncio.to_thread(self._read, version)

    def _read(self, version: Version) -> Sequence[TreeFile]:
        archive = read_archive(self.catalogue.archives, version.tree)
        if archive is None:
            why = "its code is no longer kept, or is not what was proposed"
            raise NotDecidable(version=version.name, state=version.state, wanted="read", why=why)
        return files_of(archive)

    async def approve(self, ref: str, person: Person, tree: str, why: str = "", host: str = "") -> Version:
        """Approve a version, if it is still what the reviewer saw."""
        version = await self._deciding(ref, person, why)
        if version.proposed_by == person.name and not self._own_review(person):
            raise OwnProposal(version=version.name)
        if len(tree) < ENOUGH or not version.tree.startswith(tree.lower()):
            raise NotAsReviewed(version=version.name, tree=version.tree)
        if not version.digest:
            told = "it is not known which image it runs in"
            raise NotDecidable(version=version.name, state=version.state, wanted="approved", why=told)
        if await asyncio.to_thread(read_archive, self.catalogue.archives, version.tree) is None:
            told = "its code is no longer kept, or is not what was proposed"
            raise NotDecidable(version=version.name, state=version.state, wanted="approved", why=told)
        return await self._record_decision(version, P.APPROVED, (P.PROPOSED,), person, why, host)

    def _own_review(self, person: Person) -> bool:
        return self.settings.apps.own_review or self.is_own_reviewer

    async def refuse(self, ref: str, person: Person, why: str, host: str = "") -> Version:
        """Refuse a version, and tell its proposer why."""
        version = await self._deciding(ref, person, why, needed=True)
        return await self._record_decision(version, P.REFUSED, (P.PROPOSED,), person, why, host)

    async def revoke(self, ref: str, person: Person, why: str, *, cancel: bool = False, host: str = "") -> Revoked:
        """Revoke an approved version; its sessions are notified, and cancelled if requested."""
        version = await self._deciding(ref, person, why, needed=True, state=P.APPROVED)
        sessions = await self.store.write(lambda tx: self._revoke(tx, version, person, why, cancel, host))
        log.info("app.revoked", app=version.name, person=person.name, sessions=len(sessions))
        await self.signals.announce()
        await self._tell_proposer(version, P.REVOKED, person, why)
        await self._tell_owners(version, sessions, why, cancel)
        return Revoked(await self.catalogue.version_of(version.name, person), tuple(session.id for session in sessions))

    async def sessions_of_version(self, ref: str, person: Person) -> list[Session]:
        """List the active sessions of a version, for reviewers."""
        if not decides(person):
            raise ReviewersOnly
        version = await self.catalogue.version_of(ref, person)

        def work(tx: Tx) -> list[Session]:
            found = [tx.sessions.get(id) for id in tx.apps.sessions([version.id])]
            return [one for one in found if one and one.phase in ACTIVE]

        return await self.store.read(work)

    async def _deciding(
        self, ref: str, person: Person, why: str, *, needed: bool = False, state: VersionState | None = None
    ) -> Version:
        """Return the version to decide on; raise ReviewersOnly if the person may not."""
        if not decides(person):
            raise ReviewersOnly
        if (needed and not why.strip()) or len(why) > LONGEST_WHY:
            raise BadRequest(detail=f"say why, in up to {LONGEST_WHY} characters", hint="--reason 'it reads /etc'")
        if state and "@" not in ref:
            current = (await self.catalogue.app(ref, person)).current
            if current is None:
                raise NotFound(noun="approved version of", name=ref, hint=f"`sublet app show {ref}` lists them.")
            return current
        return await self.catalogue.version_of(ref, person)

    async def _record_decision(
        self, version: Version, to: VersionState, when: tuple[VersionState, ...], person: Person, why: str, host: str
    ) -> Version:
        await self.store.write(lambda tx: self._decide(tx, version, to, when, person, why, host))
        log.info(f"app.{to}", app=version.name, person=person.name, tree=version.tree)
        await self._tell_proposer(version, to, person, why)
        return await self.catalogue.version_of(version.name, person)

    def _decide(
        self,
        tx: Tx,
        version: Version,
        to: VersionState,
        when: tuple[VersionState, ...],
        person: Person,
        why: str,
        host: str,
    ) -> None:
        now = self.now()
        if not tx.apps.decide(version.id, to, when, now=now, by=person.name, why=why.strip()):
            found = tx.apps.version(version.id)
            told = f"only what is {' or '.join(when)} can be"
            raise NotDecidable(version=version.name, state=found.state if found else "gone", wanted=to, why=told)
        detail = {**detail_of(version), **({"why": why.strip()} if why.strip() else {})}
        tx.audit.add(AuditEntry(now, person.name, f"app.{VERBS[to]}", "app", version.name, detail, host))

    def _revoke(self, tx: Tx, version: Version, person: Person, why: str, cancel: bool, host: str) -> list[Session]:
        self._decide(tx, version, P.REVOKED, (P.APPROVED,), person, why, host)
        told = []
        for id in tx.apps.sessions([version.id]):
            session = tx.sessions.get(id)
            if session and session.phase in ACTIVE:
                self._take_back(tx, session, version, person, why, cancel)
                told.append(session)
        return told

    def _take_back(self, tx: Tx, session: Session, version: Version, person: Person, why: str, cancel: bool) -> None:
        """Handle a session whose app was revoked: cancel it if it hasn't started or if requested, or else notify it."""
        now, words = read_recorded_now(tx, self.now()), describe_revocation(version.name, why)
        tx.events.add(now, session.id, session.person, EventKind.APP_REVOKED, words, session.phase)
        if session.phase in WAIT or (cancel and session.phase not in ENDING):
            self.endings.cancel(tx, session.id, person, words)
        else:
            tx.sessions.change(session.id, now=now, condition=words, due=now)

    async def _tell_proposer(self, version: Version, to: VersionState, person: Person, why: str) -> None:
        said = f"\n\n{why.strip()}" if why.strip() else ""
        text = f"{version.name} was {to} by {person.name}.{said}\n\n{self.catalogue.app_link(version)}\n"
        await self.mail.send_each([version.proposed_by], f"{version.name} was {to}", text)

    async def _tell_owners(self, version: Version, sessions: Sequence[Session], why: str, cancel: bool) -> None:
        """Mail the owners of affected sessions."""
        what = "are being ended too" if cancel else "continue"
        for owner in dict.fromkeys(session.person for session in sessions):
            ids = ", ".join(session.id[:8] for session in sessions if session.person == owner)
            text = (
                f"{version.name} was revoked and can't be run any more: {why.strip()}\n\n"
                f"Your sessions of it: {ids}. Sessions that had not started have ended; running ones {what}.\n"
            )
            await self.mail.send_each([owner], f"{version.name}, which you run, was revoked", text)


VERBS = {P.APPROVED: "approve", P.REFUSED: "refuse", P.REVOKED: "revoke"}


def describe_revocation(name: str, why: str) -> str:
    """Return the condition of a session whose app was revoked."""
    return f"its app {name} was revoked: {why.strip()}"


def _base(state: AppState, version: Version, against: int | None) -> Version | None:
    """Return the version to compare with."""
    if against is not None:
        found = [version for version in state.versions if version.number == against]
        if not found:
            raise NotFound(noun="version", name=f"{version.app}@{against}", hint=HINT)
        return found[0]
    once = [one for one in state.versions if one.number < version.number and one.state in (P.APPROVED, P.REVOKED)]
    return once[0] if once else None
