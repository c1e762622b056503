"""What someone who is blocked is told: that they are, and whom they can ask."""

from __future__ import annotations

from sublet.kernel.errors import Blocked
from sublet.people.model.people import Role
from sublet.store.tx import Tx

MOST_NAMED = 3  # operators whose addresses are given


def explain_block(tx: Tx, person: str) -> Blocked:
    """The error for someone who showed who they are, and is blocked; the operators' note stays with the operators."""
    operators = [known.name for known in tx.people.list(Role.OPERATOR) if known.blocked is None]
    names = " or ".join(operators[:MOST_NAMED])
    ask = f"Ask an operator to unblock you: {names}." if names else "Ask this service's operator to unblock you."
    return Blocked(person=person, ask=ask)
