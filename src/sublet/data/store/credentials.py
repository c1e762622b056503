"""People's credentials for storage."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.data.model.credentials import Credential, CredentialKind, SealedCredential
from sublet.data.store.tables import credentials
from sublet.kernel.db.sql import Row, Sql, bind, plain

C = credentials.c
ALL = select(C.id, C.person, C.created, C.place, C.kind, C.user, C.secret, C.endpoint, C.region)
ADD = insert(credentials)
OF = ALL.where(C.person == bind("of_person")).order_by(C.place)
REMOVE = delete(credentials).where(C.person == bind("of_person"), C.place == bind("of_place"))
REMOVE_ALL = delete(credentials).where(C.person == bind("of_person"))
SECRETS = select(C.id, C.secret)
SEAL = update(credentials).where(C.id == bind("of_id"), C.secret == bind("old")).values(secret=bind("new"))


class CredentialStore:
    """Credentials, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def put(self, new: SealedCredential) -> None:
        """Store a credential, replacing the one for the same address."""
        self.remove(new.person, new.credential.place)
        known = new.credential
        self._sql.change(
            ADD,
            {
                "id": new.id,
                "person": plain(new.person),
                "place": plain(known.place),
                "kind": known.kind.value,
                "user": plain(known.user),
                "secret": known.secret,
                "endpoint": plain(known.endpoint),
                "region": plain(known.region),
                "created": micros(new.created),
            },
        )

    def of(self, person: str) -> list[SealedCredential]:
        """Return a person's credentials, by address."""
        return [_read(row) for row in self._sql.rows(OF, {"of_person": plain(person)})]

    def remove(self, person: str, place: str) -> bool:
        """Remove a credential; return whether there was one."""
        return self._sql.change(REMOVE, {"of_person": plain(person), "of_place": plain(place)}) > 0

    def remove_all(self, person: str) -> None:
        """Remove all credentials of a person."""
        self._sql.change(REMOVE_ALL, {"of_person": plain(person)})

    def secrets(self) -> Mapping[str, str]:
        """Return the sealed secrets, by id."""
        return {row[0]: row[1] for row in self._sql.rows(SECRETS, {})}

    def seal(self, id: str, old: str, new: str) -> int:
        """Replace a sealed secret if it is still the old one; return how many rows changed."""
        return self._sql.change(SEAL, {"of_id": id, "old": old, "new": new})


def _read(row: Row) -> SealedCredential:
    id, person, created, place, kind, user, secret, endpoint, region = row
    return SealedCredential(
        id, person, moment(created), Credential(place, CredentialKind(kind), user, secret, endpoint, region)
    )
