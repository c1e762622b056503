"""Groups of people, for rules to refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AlreadyThere, NotFound
from sublet.people.model.people import Group, check_group
from sublet.people.model.person import Person
from sublet.people.people import LONGEST_NOTE
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Groups:
    """Manages groups and their members."""

    store: Store
    now: Clock
    authority: Authority

    async def groups(self, person: Person) -> Sequence[Group]:
        """List all groups, by name."""
        self.authority.require_operator(person)
        return await self.store.read(lambda tx: tx.groups.list())

    async def group(self, person: Person, name: str) -> Group:
        """Return one group."""
        self.authority.require_operator(person)
        return await self.store.read(lambda tx: _group(tx, name))

    async def add_group(self, person: Person, name: str, note: str = "", host: str = "") -> Group:
        """Add an empty group."""
        self.authority.require_operator(person)
        made = Group(check_group(name), self.now(), " ".join(note.split())[:LONGEST_NOTE])

        def work(tx: Tx) -> Group:
            if tx.groups.get(name):
                raise AlreadyThere(noun="group", name=name)
            tx.groups.add(made)
            tx.audit.add(AuditEntry(made.created, person.name, "group.add", "group", name, {"note": made.note}, host))
            return made

        return await self.store.write(work)

    async def remove_group(self, person: Person, name: str, host: str = "") -> None:
        """Remove a group."""
        self.authority.require_operator(person)
        now = self.now()

        def work(tx: Tx) -> None:
            members = _group(tx, name).members
            tx.groups.remove(name)
            tx.audit.add(AuditEntry(now, person.name, "group.remove", "group", name, {"members": list(members)}, host))

        await self.store.write(work)

    async def join_group(self, person: Person, name: str, member: str, host: str = "") -> Group:
        """Add someone to a group; they needn't have signed in yet."""
        return await self._move_member(person, name, member, "group.join", host)

    async def leave_group(self, person: Person, name: str, member: str, host: str = "") -> Group:
        """Remove someone from a group."""
        return await self._move_member(person, name, member, "group.leave", host)

    async def _move_member(self, person: Person, name: str, member: str, action: str, host: str) -> Group:
        self.authority.require_operator(person)
        address, now = self.authority.check_address(member), self.now()

        def work(tx: Tx) -> Group:
            _group(tx, name)
            known = tx.people.find("email", address)
            who = known.name if known else address
            change = tx.groups.join if action == "group.join" else tx.groups.leave
            if change(name, who):
                tx.audit.add(AuditEntry(now, person.name, action, "group", name, {"person": who}, host))
            return _group(tx, name)

        return await self.store.write(work)


def _group(tx: Tx, name: str) -> Group:
    group = tx.groups.get(name)
    if group is None:
        raise NotFound(noun="group", name=name, hint="`sublet group list` lists the groups.")
    return group
