"""People: who is known here, by which identities, in which groups, and what part they have."""

from __future__ import annotations

from sublet.service.inputs import Inputs
from sublet.service.mail import Mail


class People(Inputs):
    """People: who is known here, by which identities, in which groups, and what part they have."""

    @property
    def mail(self) -> Mail:
        """The way to send mail."""
        return Mail(self.settings.mail)
