"""What the owner, the operators and other people may do in this service, before any access rule is checked."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.booking.model.session import Session
from sublet.kernel.errors import NotAGateway, NotFound, NotYours, OperatorsOnly, PersonalOnly
from sublet.kernel.quoting import SLASH
from sublet.kernel.settings import Settings
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.people import check_address
from sublet.people.model.person import Person


@dataclass
class Authority:
    """The checks of who may do what, which raise an error if a person isn't allowed to."""

    settings: Settings
    has_owner: bool  # a personal service; a gateway has operators instead

    def require_owner(self, person: Person | None = None) -> None:
        """Raise PersonalOnly on a gateway, and OperatorsOnly if the person is a guest of a personal service."""
        if not self.has_owner:
            raise PersonalOnly
        if person and person.guest:
            raise OperatorsOnly

    def require_gateway(self) -> None:
        """Raise NotAGateway on a personal service."""
        if self.has_owner:
            raise NotAGateway

    def require_operator(self, person: Person) -> None:
        """Raise OperatorsOnly unless the person is an operator of this gateway."""
        self.require_gateway()
        if not person.operator:
            raise OperatorsOnly

    def authorize(self, session: Session | None, person: Person, name: str, noun: str = "session") -> Session:
        """Return the session if the person may see it; raise NotFound or NotYours otherwise."""
        if session is None:
            raise NotFound(noun=noun, name=name.replace(SLASH, "/"))
        if session.person != person.name and not person.operator:
            raise NotYours(noun=noun)
        if person.session and session.id != person.session:
            raise NotYours(noun=noun, hint="This token is for one session only.")
        return session

    def can_read(self, owner: str, person: Person) -> bool:
        """Whether a person may read the code, output and results of the owner's sessions, and connect to them."""
        if owner == person.name:
            return True
        setting = self.settings.operators_read
        return person.operator and (self.has_owner if setting is None else setting)

    def check_address(self, text: str) -> str:
        """Validate an e-mail address and return it in the form by which this service identifies people."""
        return fold_address(check_address(text), self.settings.signing.subaddresses)
