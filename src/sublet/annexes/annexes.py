"""A person's annexes: their names, guests and leases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sublet.annexes.model.annex import Annex, Lease, Named, check_name, choose_leases, parse_named
from sublet.booking.model.events import EventKind
from sublet.booking.signals import Signals
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NameTaken, NoLease, NotFound
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Annexes:
    """A person's own annexes, which no one else can see."""

    store: Store
    now: Clock
    signals: Signals
    authority: Authority

    async def annex(self, name: str, person: Person) -> Annex:
        """Return an annex by name."""
        self.authority.require_owner(person)
        return await self.store.read(lambda tx: annex_named(tx, parse_named(name), person))

    async def annexes(self, person: Person) -> Sequence[Annex]:
        """List the person's annexes, by name."""
        self.authority.require_owner(person)
        return await self.store.read(lambda tx: tx.annexes.list(person.name))

    async def leases(self, name: str, person: Person) -> tuple[Annex, Sequence[Lease]]:
        """Return the annex and the leases that a name means: all, `example#3`, or those of `example@2026-11-14`."""
        named = parse_named(name)
        annex = await self.annex(named.name, person)
        leases = choose_leases(named, await self.store.read(lambda tx: tx.leases.list(annex.id)))
        if not leases and named != Named(named.name):
            raise NotFound(noun="lease", name=name, hint=f"`sublet annex history {named.name}` lists its leases.")
        return annex, leases

    async def last_lease(self, name: str, person: Person) -> tuple[Annex, Lease]:
        """Return the newest of the leases that a name means."""
        annex, leases = await self.leases(name, person)
        if not leases:
            raise NoLease(name=name, wanted="was ever asked for")
        return annex, leases[-1]

    async def rename(self, name: str, new: str, person: Person) -> Annex:
        """Rename the annex; it keeps its jobs and leases."""
        check_name(new)

        def renamed(tx: Tx, annex: Annex) -> Annex:
            if new != annex.name and tx.annexes.find_named(person.name, new):
                raise NameTaken(name=new)
            return replace(annex, name=new)

        return await self._change(name, person, renamed)

    async def set_open(self, name: str, person: Person, *, wide: bool, sessions: bool = False) -> Annex:
        """Set whether the annex runs all its owner's jobs, only jobs that name it, or only sessions at booked times."""
        return await self._change(name, person, lambda tx, annex: replace(annex, open=wide, sessions=sessions))

    async def share(self, name: str, guest: str, person: Person) -> Annex:
        """Let someone run contained sessions on the annex, under its owner's account."""
        if not guest.strip() or not guest.isprintable() or guest == person.name:
            raise BadRequest(f"An annex can't be shared with {guest!r}.", hint="Name the person as Sublet knows them.")

        def shared(tx: Tx, annex: Annex) -> Annex:
            tx.events.add(self.now(), annex.id, person.name, EventKind.ANNEX_SHARED, f"with {guest}")
            return replace(annex, guests=tuple(sorted({*annex.guests, guest})))

        return await self._change(name, person, shared)

    async def remove_guest(self, name: str, guest: str, person: Person) -> Annex:
        """Stop sharing the annex with someone."""

        def unshared(tx: Tx, annex: Annex) -> Annex:
            if guest not in annex.guests:
                raise NotFound(noun="guest", name=guest, hint=f"`sublet annex status {name}` lists its guests.")
            tx.events.add(self.now(), annex.id, person.name, EventKind.ANNEX_UNSHARED, f"with {guest}")
            return replace(annex, guests=tuple(other for other in annex.guests if other != guest))

        return await self._change(name, person, unshared)

    async def _change(self, name: str, person: Person, change: Callable[[Tx, Annex], Annex]) -> Annex:
        self.authority.require_owner(person)
        named = whole(name)

        def changed(tx: Tx) -> Annex:
            new = change(tx, annex_named(tx, named, person))
            tx.annexes.change(new)
            return new

        new = await self.store.write(changed)
        await self.signals.announce()
        return new


def whole(name: str) -> Named:
    """Parse the name of an annex; raise BadRequest if it names a lease."""
    named = parse_named(name)
    if named != Named(named.name):
        raise BadRequest(f"{name} is a lease.", hint=f"This is done to an annex as a whole: {named.name}")
    return named


def annex_named(tx: Tx, named: Named, person: Person) -> Annex:
    """Return a person's annex of this name, or raise NotFound."""
    annex = tx.annexes.find_named(person.name, named.name)
    if annex is None:
        raise NotFound(noun="annex", name=named.name, hint="`sublet annex status` lists yours.")
    return annex
