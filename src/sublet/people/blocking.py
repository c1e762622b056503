"""What a blocked person sees: that they are blocked, and whom they can ask."""

from __future__ import annotations

from sublet.kernel.errors import Blocked
from sublet.people.model.people import Role
from sublet.store.tx import Tx

MOST_NAMED = 3  # operators whose addresses are shown


def explain_block(tx: Tx, person: str) -> Blocked:
    """Return the error for a blocked person who has proved who they are, without the operators' note."""
    operators = [known.name for known in tx.people.list(Role.OPERATOR) if known.blocked is None]
    names = " or ".join(operators[:MOST_NAMED])
    ask = f"Ask an operator to unblock you: {names}." if names else "Ask this service's operator to unblock you."
    return Blocked(person=person, ask=ask)
