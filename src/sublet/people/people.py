"""People: who is known here, their identities, groups and roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock, utc_now
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AlreadyThere, BadRequest, NotAllowed, NotFound, OperatorsOnly
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.people import Identity, Known, Role, check_address, check_identity
from sublet.people.model.person import Person
from sublet.people.same_mailbox import add_name, note_same_people
from sublet.people.standings import Standings
from sublet.store.store import Store
from sublet.store.tx import Tx

T = TypeVar("T")
LONGEST_NOTE = 500


@dataclass(frozen=True, slots=True)
class Profile:
    """A person, with their identities and groups."""

    known: Known
    identities: tuple[Identity, ...]
    groups: tuple[str, ...]
    has_factor: bool = False  # whether a second factor is on


@dataclass
class People:
    """Manages the people who are known here, their identities, groups and roles."""

    settings: Settings
    store: Store
    now: Clock
    standings: Standings
    authority: Authority
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    async def find_same_people(self) -> None:
        """Find people who exist twice by addresses of one mailbox, and report them in the log and the audit log."""
        if not self.knows_people:
            return
        folding, now = self.settings.signing.subaddresses, self.now()
        for name, first in await self.store.write(lambda tx: note_same_people(tx, folding, now)):
            log.warning("person.same-mailbox", person=name, first=first)

    async def people(
        self, person: Person, role: str = "", *, blocked: bool = False, after: str = "", limit: int = 1000
    ) -> Sequence[Profile]:
        """List the known people, by name."""
        self.authority.require_operator(person)
        wanted = role_of(role) if role else None
        return await self.store.read(
            lambda tx: [
                _profile(tx, known, self.now())
                for known in tx.people.list(wanted, blocked=blocked, after=after, limit=limit)
            ]
        )

    async def profile(self, person: Person, name: str) -> Profile:
        """Return a person's profile by any of their addresses; people may see their own."""
        self.authority.require_gateway()
        profile = await self.store.read(lambda tx: self._find_profile(tx, name))
        if not person.operator and (profile is None or profile.known.name != person.name):
            raise OperatorsOnly
        if profile is None:
            raise _unknown(name)
        return profile

    async def add_person(self, person: Person, address: str, role: str = "person", host: str = "") -> Profile:
        """Add someone before they sign in; they may sign in whatever the allowed patterns are."""
        self.authority.require_operator(person)
        now, by, plain = self.now(), person.name, self.authority.check_address(address)
        return await self.store.write(lambda tx: add_person(tx, now, by, plain, role, host))

    async def set_role(self, person: Person, name: str, role: str, host: str = "") -> Profile:
        """Change someone's role, with immediate effect."""
        new = role_of(role)

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            if new is not Role.OPERATOR:
                _refuse_oneself(person, known, "take your own part away")
            tx.people.set_role(known.name, new)
            return {"role": new.value, "was": known.role.value}

        return await self._change_person(person, name, "person.role", change, host)

    async def block(self, person: Person, name: str, why: str = "", host: str = "") -> Profile:
        """Block someone: their tokens and browser sessions stop working at once."""
        reason = " ".join(why.split())[:LONGEST_NOTE]

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            _refuse_oneself(person, known, "block yourself")
            tx.people.set_blocked(known.name, reason)
            return {"why": reason}

        return await self._change_person(person, name, "person.block", change, host)

    async def unblock(self, person: Person, name: str, host: str = "") -> Profile:
        """Unblock someone."""

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            tx.people.set_blocked(known.name, None)
            return {}

        return await self._change_person(person, name, "person.unblock", change, host)

    async def remove_person(self, person: Person, name: str, host: str = "") -> None:
        """Remove someone, with identities, tokens, credentials and uploads; their sessions stay under their name."""

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            _refuse_oneself(person, known, "remove yourself")
            tx.people.remove(known.name)
            tx.credentials.remove_all(known.name)
            tx.uploads.remove_all(known.name)
            tx.places.end_all(known.name, self.now())
            return {"role": known.role.value}

        await self._change_person(person, name, "person.remove", change, host)

    async def add_identity(self, person: Person, name: str, kind: str, value: str, host: str = "") -> Profile:
        """Add an identity to a person."""
        kind, value = self._check_identity(kind, value)

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            if tx.people.find(kind, value):
                raise AlreadyThere(noun=f"{kind} identity", name=value)
            add_name(tx, Identity(kind, value, known.name, self.now()))
            return {"kind": kind, "value": value}

        return await self._change_person(person, name, "identity.add", change, host)

    async def remove_identity(self, person: Person, name: str, kind: str, value: str, host: str = "") -> Profile:
        """Remove an identity of a person; the address that is their name can't be removed."""
        kind, value = check_identity(kind, value)

        def change(tx: Tx, known: Known) -> dict[str, Any]:
            if (kind, value) == ("email", known.name):
                raise BadRequest(f"{value} is the name of this person.", hint="`sublet person remove` forgets them.")
            if not tx.people.remove_identity(known.name, kind, value):
                raise NotFound(noun=f"{kind} identity", name=value, hint=f"`sublet person show {name}` lists them.")
            return {"kind": kind, "value": value}

        return await self._change_person(person, name, "identity.remove", change, host)

    async def _change_person(
        self, person: Person, name: str, action: str, change: Callable[[Tx, Known], dict[str, Any]], host: str
    ) -> Profile:
        """Change a person, and record it in the audit log."""
        self.authority.require_operator(person)
        now = self.now()

        def work(tx: Tx) -> Profile:
            profile = self._find_profile(tx, name)
            if profile is None:
                raise _unknown(name)
            detail = change(tx, profile.known)
            tx.audit.add(AuditEntry(now, person.name, action, "person", profile.known.name, detail, host))
            return self._find_profile(tx, profile.known.name) or profile

        done = await self.store.write(work)
        self.standings.bump()
        return done

    def _find_profile(self, tx: Tx, name: str) -> Profile | None:
        known = tx.people.get(name) or tx.people.find("email", self.authority.check_address(name))
        return _profile(tx, known, self.now()) if known else None

    def _check_identity(self, kind: str, value: str) -> tuple[str, str]:
        return (kind, self.authority.check_address(value)) if kind == "email" else check_identity(kind, value)


def add_person(tx: Tx, now: datetime, by: str, address: str, role: str, host: str = "") -> Profile:
    """Add a person by a normalized address, in this transaction."""
    part = role_of(role)
    if tx.people.find("email", address):
        raise AlreadyThere(
            noun="person", name=address, hint=f"`sublet person role {address} {part}` changes their role."
        )
    tx.people.add(Known(address, part, now, by=by))
    tx.audit.add(AuditEntry(now, by, "person.add", "person", address, {"role": part.value}, host))
    return _profile(tx, Known(address, part, now, by=by), now)


def add_offline(settings: Settings, by: str, address: str, role: str) -> Profile:
    """Add a person directly to a gateway's database, whether it runs or not."""
    plain = fold_address(check_address(address), settings.signing.subaddresses)
    store = Store.open(settings.database_url)
    try:
        return store.write_sync(lambda tx: add_person(tx, utc_now(), by, plain, role))
    finally:
        store.close()


def role_of(word: str) -> Role:
    """Return the role of this name; raise BadRequest if there is none."""
    try:
        return Role(word)
    except ValueError:
        raise BadRequest(f"{word} is not a role.", hint=f"The roles are {', '.join(Role)}.") from None


def _profile(tx: Tx, known: Known, now: datetime) -> Profile:
    groups = tx.groups.everywhere(known.name, now)
    return Profile(known, tuple(tx.people.identities(known.name)), groups, tx.factors.on(known.name))


def _refuse_oneself(person: Person, known: Known, act: str) -> None:
    """Raise NotAllowed if the person would change themselves, so that nobody locks themselves out by mistake."""
    if person.name == known.name:
        raise NotAllowed(why=f"You can't {act}.", how="Another operator can.")


def _unknown(name: str) -> NotFound:
    return NotFound(noun="person", name=name, hint="`sublet person list` lists those who are known.")
