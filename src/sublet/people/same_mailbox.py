"""People who exist twice because two of their addresses belong to one mailbox; one block and one quota count for both.

New ones can't appear, as addresses are normalized at every sign-in. Older ones, and those whose domain wasn't folded at
first, are recorded when the service starts, as identities of kind `same-mailbox`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from sublet.kernel.db.audit import AuditEntry
from sublet.people.model.mailboxes import Folding, fold_address
from sublet.people.model.people import SAME_MAILBOX, Identity, Known
from sublet.store.tx import Tx

STEP = 1000  # people per read


def same_people(tx: Tx, person: str) -> list[str]:
    """Return the names under which someone is known: their own, and those of the same mailbox."""
    name = find_first(tx, person)
    return _all_names(person, name, tx.people.identities(name))


def identities_of_all(tx: Tx, person: str) -> dict[str, list[Identity]]:
    """Return the names under which someone is known, and the identities of each, read only once."""
    name = find_first(tx, person)
    identities = {name: tx.people.identities(name)}
    names = _all_names(person, name, identities[name])
    return {name: identities[name] if name in identities else tx.people.identities(name) for name in names}


def _all_names(person: str, first: str, identities: list[Identity]) -> list[str]:
    others = [identity.value for identity in identities if identity.kind == SAME_MAILBOX]
    return list(dict.fromkeys((person, first, *others)))


def find_first(tx: Tx, person: str) -> str:
    """Return the name of whoever came first, under which the others are recorded."""
    first = tx.people.find(SAME_MAILBOX, person)
    return first.name if first else person


def is_blocked(tx: Tx, known: Known) -> bool:
    """Whether someone is blocked, under this name or another of the same mailbox."""
    if known.blocked is not None:
        return True
    others = (tx.people.get(name) for name in same_people(tx, known.name) if name != known.name)
    return any(other.blocked is not None for other in others if other)


def note_same_people(tx: Tx, by_domain: Mapping[str, Folding], now: datetime) -> list[tuple[str, str]]:
    """Add normalized addresses to people, and record who exists twice; return the later name and the first of each.

    Someone whose only address has a tag can then sign in by the plain address, as the same person.
    """
    fold_members(tx, by_domain)
    first: dict[str, str] = {}
    noted: list[tuple[str, str]] = []
    for known in sorted(list_people(tx), key=lambda each: (each.created, each.name)):
        addresses = [identity.value for identity in tx.people.identities(known.name) if identity.kind == "email"]
        for address in dict.fromkeys(fold_address(address, by_domain) for address in addresses):
            owner = tx.people.find("email", address)
            if owner is None:
                add_name(tx, Identity("email", address, known.name, now))
            other = first.setdefault(address, known.name)
            if other != known.name and known.name not in same_people(tx, other):
                tx.people.add_identity(Identity(SAME_MAILBOX, known.name, find_first(tx, other), now))
                detail = {"person": other, "mailbox": address}
                tx.audit.add(AuditEntry(now, "", "person.same-mailbox", "person", known.name, detail))
                noted.append((known.name, other))
    return noted


def add_name(tx: Tx, identity: Identity) -> None:
    """Add an identity to a person; memberships of groups under this address move to the person."""
    tx.people.add_identity(identity)
    if identity.kind == "email":
        for group in tx.groups.of(identity.value):
            tx.groups.leave(group, identity.value)
            tx.groups.join(group, identity.person)


def fold_members(tx: Tx, by_domain: Mapping[str, Folding]) -> None:
    """Normalize the addresses of group members who haven't signed in yet."""
    for group in tx.groups.list():
        for member in group.members:
            plain = fold_address(member, by_domain)
            if plain != member and tx.people.get(member) is None:
                owner = tx.people.find("email", plain)
                tx.groups.leave(group.name, member)
                tx.groups.join(group.name, owner.name if owner else plain)


def list_people(tx: Tx) -> Iterator[Known]:
    """Yield all known people."""
    after = ""
    while people := tx.people.list(after=after, limit=STEP):
        yield from people
        after = people[-1].name


def names_in(tx: Tx, person: str) -> frozenset[str]:
    """Return all names by which rules know someone, including every confirmed address."""
    return rule_names(identities_of_all(tx, person))


def rule_names(identities: Mapping[str, Iterable[Identity]]) -> frozenset[str]:
    """Return all names by which rules know someone, from their names and the identities of each."""
    addresses = (identity.value for some in identities.values() for identity in some if identity.kind == "email")
    return frozenset((*identities, *addresses))
