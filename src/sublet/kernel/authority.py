"""Who may do what in this service, before any access rule is read: its owner, operators, and people with their own."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.booking.model.session import Session
from sublet.kernel.errors import NotAGateway, NotFound, NotYours, OperatorsOnly, PersonalOnly
from sublet.kernel.settings import Settings
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.people import check_address
from sublet.people.model.person import Person


@dataclass
class Authority:
    """Refuses what someone may not do here."""

    settings: Settings
    has_owner: bool  # it is one person's own service; a gateway is everybody's

    def require_owner(self, person: Person | None = None) -> None:
        """Refuse what is only for the person whose service this is: a gateway has none, and guests are others."""
        if not self.has_owner:
            raise PersonalOnly
        if person and person.guest:
            raise OperatorsOnly

    def require_gateway(self) -> None:
        """Refuse what only a gateway has."""
        if self.has_owner:
            raise NotAGateway

    def require_operator(self, person: Person) -> None:
        """Refuse what only a gateway's operators may do."""
        self.require_gateway()
        if not person.operator:
            raise OperatorsOnly

    def authorize(self, session: Session | None, person: Person, name: str, noun: str = "session") -> Session:
        """The session, if it exists and this person may see it."""
        if session is None:
            raise NotFound(noun=noun, name=name)
        if session.person != person.name and not person.operator:
            raise NotYours(noun=noun)
        if person.session and session.id != person.session:
            raise NotYours(noun=noun, hint="This token is for one session only.")
        return session

    def can_read(self, owner: str, person: Person) -> bool:
        """Whether a person may read what the owner's sessions run, print and leave, and connect to them."""
        if owner == person.name:
            return True
        setting = self.settings.operators_read
        return person.operator and (self.has_owner if setting is None else setting)

    def check_address(self, text: str) -> str:
        """The plain address of the mailbox that someone named, as people are known here by it."""
        return fold_address(check_address(text), self.settings.signing.subaddresses)
