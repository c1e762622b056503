"""People: who they are known as, what part they have, and how an address must be written to count as one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sublet.kernel.errors import BadAddress, BadIdentity, BadName

LONGEST_ADDRESS = 254  # of RFC 5321
LONGEST_VALUE = 500
# Mail allows more, but what a rule, a shell or a mail relay reads as something else than a letter is refused.
LOCAL = re.compile(r"[a-z0-9#&'+=_~-]+(\.[a-z0-9#&'+=_~-]+)*")
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SAME_MAILBOX = "same-mailbox"  # an identity that the service itself notes: another person has the same mailbox
KINDS = re.compile(r"email|oidc|uid|htcondor|system:[A-Za-z][A-Za-z0-9._-]*")
GROUP = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


class Role(StrEnum):
    """What part someone has."""

    PERSON = "person"  # asks, runs, and sees their own
    REVIEWER = "reviewer"  # also decides on apps
    OPERATOR = "operator"  # also decides on people, rules and accounts


@dataclass(frozen=True, slots=True)
class Known:
    """Someone who is known here, by the address under which they first came."""

    name: str
    role: Role
    created: datetime
    seen: datetime | None = None  # when they last signed in
    blocked: str | None = None  # why they may not come in; None: they may
    by: str = ""  # the operator who added them; empty: they came by themselves


@dataclass(frozen=True, slots=True)
class Identity:
    """One of the names that a person has somewhere."""

    kind: str  # email, oidc, uid, htcondor, or system:NAME for their user name there; same-mailbox: another person
    value: str
    person: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Group:
    """People under one name."""

    name: str
    created: datetime
    note: str = ""
    members: tuple[str, ...] = ()  # they need not have come yet


def check_address(text: str) -> str:
    """An e-mail address as it is kept: in small letters, its domain in ASCII; nothing that could end a header line."""
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
    """An identity's kind and value as they are kept."""
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
    """A group's name, if it can be one."""
    if not GROUP.fullmatch(name):
        raise BadName(name=_show_short(name), noun="a group")
    return name


def _ascii(domain: str) -> str:
    """A domain as mail servers know it; empty if it can't be one."""
    if domain.isascii():
        return domain.lower()
    try:
        return domain.encode("idna").decode().lower()
    except UnicodeError:
        return ""


def _show_short(text: str) -> str:
    """What was given, on one line and no longer than a line."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:100])
