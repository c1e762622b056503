"""Which addresses belong to one mailbox: `ada+lab@x.org` is read by whoever reads `ada@x.org`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

Folding = Literal["fold", "fold-dots", "keep"]
USUAL: Folding = "fold"
SEPARATOR = "+"
PATTERN_CHARACTERS = frozenset("*?[]")
KNOWN: dict[str, Folding] = {"gmail.com": "fold-dots", "googlemail.com": "fold-dots"}  # unless they are set otherwise
JOINED = {"googlemail.com": "gmail.com"}  # another name of the same mailboxes


def fold_address(address: str, by_domain: Mapping[str, Folding]) -> str:
    """The plain address of the mailbox that an address belongs to, by what is known of its domain.

    Without a plain part before the tag (`+lab@x.org`), or without a domain, it is what it is. A pattern for several
    people keeps its tag, and else is for the plain addresses too.
    """
    local, at, domain = address.rpartition("@")
    folding = choose_folding(domain, by_domain)
    if not at or folding == "keep":
        return address
    if domain in JOINED:
        return fold_address(f"{local}@{JOINED[domain]}", by_domain)
    plain = local if is_pattern(local) else local.partition(SEPARATOR)[0]
    if folding == "fold-dots":
        plain = plain.replace(".", "")
    return f"{plain or local}@{domain}"


def choose_folding(domain: str, by_domain: Mapping[str, Folding]) -> Folding:
    """What is set for a domain: by its own name, else what is known of it, else by the longest pattern, else the usual.

    What is set for a domain counts for its other name too.
    """
    names = {name.lower(): folding for name, folding in by_domain.items()}
    for own in (domain, JOINED.get(domain, domain)):
        if own in names:
            return names[own]
    if domain in KNOWN:
        return KNOWN[domain]
    patterns = sorted((name for name in names if fnmatchcase(domain, name)), key=len)
    return names[patterns[-1]] if patterns else USUAL


def is_pattern(text: str) -> bool:
    """Whether a rule would read this as a pattern for several people, not as one person's name."""
    return bool(PATTERN_CHARACTERS & set(text))
