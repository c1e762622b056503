"""Which addresses belong to one mailbox: `ada+lab@x.org` is read by whoever reads `ada@x.org`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

Folding = Literal["fold", "fold-dots", "keep"]
USUAL: Folding = "fold"
SEPARATOR = "+"
PATTERN_CHARACTERS = frozenset("*?[]")
# Defaults, which settings can override
KNOWN: dict[str, Folding] = {"gmail.com": "fold-dots", "googlemail.com": "fold-dots"}
JOINED = {"googlemail.com": "gmail.com"}  # other domains of the same mailboxes


def fold_address(address: str, by_domain: Mapping[str, Folding]) -> str:
    """Return the plain address of an address's mailbox, by what is known of its domain.

    An address without a plain part (`+lab@x.org`) or without a domain is unchanged. Patterns for several people keep
    their tag, but are otherwise normalized too.
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
    """Return how to fold a domain: by its own setting, by what is known, by the longest matching pattern, or as usual.

    A domain's setting also applies to its other name.
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
    """Whether a rule would take this for a pattern for several people instead of one person's name."""
    return bool(PATTERN_CHARACTERS & set(text))
