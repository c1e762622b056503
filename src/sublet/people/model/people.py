"""People: their names, roles and identities, and which addresses are valid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sublet.kernel.errors import BadAddress, BadIdentity, BadName

LONGEST_ADDRESS = 254  # by RFC 5321
LONGEST_VALUE = 500
# Mail allows more, but characters that have a meaning in rules, shells or mail relays are refused.
LOCAL = re.compile(r"[a-z0-9#&'+=_~-]+(\.[a-z0-9#&'+=_~-]+)*")
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SAME_MAILBOX = "same-mailbox"  # an identity recorded by the service itself: another person has the same mailbox
KINDS = re.compile(r"email|oidc|uid|htcondor|system:[A-Za-z][A-Za-z0-9._-]*")
GROUP = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


class Role(StrEnum):
    """A person's role."""

    PERSON = "person"  # may make requests and run sessions, and sees their own
    REVIEWER = "reviewer"  # may also decide on apps
    OPERATOR = "operator"  # may also decide on people, rules and accounts


@dataclass(frozen=True, slots=True)
class Known:
    """A person known here, by the address with which they first signed in."""

    name: str
    role: Role
    created: datetime
    seen: datetime | None = None  # last sign-in
    blocked: str | None = None  # why they are blocked; None: they aren't
    by: str = ""  # the operator who added them; empty: they signed in by themselves


@dataclass(frozen=True, slots=True)
class Identity:
    """One of the names that a person has somewhere."""

    kind: str  # email, oidc, uid, htcondor, system:NAME (their user name there), or same-mailbox (another person)
    value: str
    person: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Group:
    """A group of people."""

    name: str
    created: datetime
    note: str = ""
    members: tuple[str, ...] = ()  # who may not have signed in yet


def check_address(text: str) -> str:
    """Return a valid e-mail address in lower case, with an ASCII domain; raise BadAddress if it isn't valid."""
    local, at, domain = text.strip(" ").rpartition("@")
    local = local.lower() if local.isascii() else ""
    domain = _ascii(domain)
    labels = domain.split(".")
    good = bool(at) and LOCAL.fullmatch(local) and len(local) <= 64
    if not good or len(labels) < 2 or not all(LABEL.fullmatch(label) for label in labels):
        raise BadAddress(address=_show_short(text))
    address = f"{local}@{domain}"
    if len(address) > LONGEST_ADDRESS:
        raise BadAddress(address=_show_short(text))
    return address


def check_identity(kind: str, value: str) -> tuple[str, str]:
    """Return an identity's kind and value as they are stored; raise BadIdentity if they aren't valid."""
    if not KINDS.fullmatch(kind):
        raise BadIdentity(kind=_show_short(kind))
    if kind == "email":
        return kind, check_address(value)
    value = value.strip()
    if not value or len(value) > LONGEST_VALUE or not value.isprintable():
        raise BadIdentity(f"{_show_short(value) or 'Nothing'} can't be an identity of kind {kind}.")
    if kind == "uid" and not (value.isascii() and value.isdigit()):
        raise BadIdentity(f"{_show_short(value)} is no uid.", hint="A uid is a number: `id -u` prints one's own.")
    return kind, value


def check_group(name: str) -> str:
    """Return a group's name; raise BadName if it isn't valid."""
    if not GROUP.fullmatch(name):
        raise BadName(name=_show_short(name), noun="a group")
    return name


def _ascii(domain: str) -> str:
    """Return a domain in ASCII; empty if it isn't valid."""
    if domain.isascii():
        return domain.lower()
    try:
        return domain.encode("idna").decode().lower()
    except UnicodeError:
        return ""


def _show_short(text: str) -> str:
    """Shorten a text to one printable line, for errors."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:100])
