"""What someone may do right now: whether they are blocked, an operator or a reviewer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.people.same_mailbox import is_blocked
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Standing:
    """Looks up a person's role at each request, as a token or cookie only says who they are."""

    settings: Settings
    store: Store
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    async def as_now(self, person: Person) -> Person | None:
        """Return the person with their current role, or None if they are blocked.

        A role that requires a second factor counts only with one.
        """
        if not self.knows_people:
            return person
        known, blocked, has_factor = await self.store.glance(lambda tx: _look_up(tx, person.name))
        if known is None:  # the owner of the Unix socket, and people they made tokens for
            return person
        if blocked:
            return None
        if known.role.value in self.settings.signing.second_factor and not has_factor:
            return replace(person, operator=False, reviewer=False, pending_role=known.role.value)
        return replace(person, operator=known.role is Role.OPERATOR, reviewer=known.role is Role.REVIEWER)


def _look_up(tx: Tx, name: str) -> tuple[Known | None, bool, bool]:
    """Return a person, whether they are blocked, and whether they have a second factor."""
    known = tx.people.get(name)
    if known is None or is_blocked(tx, known):
        return known, known is not None, False
    return known, False, known.role is not Role.PERSON and tx.factors.on(name)
