"""What people are called: a person is known by a name, and by every address that was confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sublet.kernel.authority import Authority
from sublet.people.model.person import Person
from sublet.people.same_mailbox import names_in
from sublet.store.store import Store


@dataclass
class PeopleNames:
    """Answers booking's question of who is meant."""

    store: Store
    authority: Authority
    knows_people: bool  # people sign in here; else there is its owner, and who was given a token

    async def find_name(self, name: str) -> str:
        """The name of whoever has this address, or would have, were they known."""
        if not self.knows_people or "@" not in name:
            return name
        address = self.authority.check_address(name)
        known = await self.store.read(lambda tx: tx.people.find("email", address))
        return known.name if known else address

    async def names_of(self, person: Person) -> Iterable[str]:
        """Their name, and every address of theirs that was confirmed."""
        if not self.knows_people:
            return (person.name,)
        return await self.store.read(lambda tx: names_in(tx, person.name))
