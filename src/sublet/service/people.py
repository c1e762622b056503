"""People: who is known here, by which identities, in which groups, and what part they have."""

from __future__ import annotations

from sublet.service.inputs import Inputs


class People(Inputs):
    """People: who is known here, by which identities, in which groups, and what part they have."""
