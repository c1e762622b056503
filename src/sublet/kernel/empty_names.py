"""Refuses names and ids that are empty, as an unset variable of a script: they must not mean everything."""

from __future__ import annotations

from sublet.kernel.errors import BadRequest


def refuse_empty(*names: str) -> None:
    """Raise BadRequest if a name or an id is empty."""
    if not all(name.strip() for name in names):
        raise BadRequest(
            "A name or an id is empty.", hint="Say which one is meant; in a script, a variable may be unset."
        )
