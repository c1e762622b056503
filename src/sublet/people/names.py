"""People's names: a person is known by a name, and by every confirmed address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sublet.kernel.authority import Authority
from sublet.people.model.person import Person
from sublet.people.same_mailbox import names_in
from sublet.store.store import Store


@dataclass
class PeopleNames:
    """Resolves names of people, for booking."""

    store: Store
    authority: Authority
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    async def find_name(self, name: str) -> str:
        """Return the name of the person with this address, or the normalized address if nobody has it yet."""
        if not self.knows_people or "@" not in name:
            return name
        address = self.authority.check_address(name)
        known = await self.store.read(lambda tx: tx.people.find("email", address))
        return known.name if known else address

    async def names_of(self, person: Person) -> Iterable[str]:
        """Return a person's name, and every confirmed address of theirs."""
        if not self.knows_people:
            return (person.name,)
        return await self.store.read(lambda tx: names_in(tx, person.name))
