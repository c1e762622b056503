"""Which addresses belong to one mailbox: `ada+lab@x.org` is read by whoever reads `ada@x.org`."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal, get_args

Folding = Literal["fold", "fold-dots", "keep"]
FOLDINGS = get_args(Folding)
USUAL: Folding = "fold"
SEPARATOR = "+"
PATTERN_CHARACTERS = frozenset("*?[]")


def fold_address(address: str, by_domain: Mapping[str, Folding]) -> str:
    """The plain address of the mailbox that an address belongs to, by what is known of its domain.

    Without a plain part before the tag (`+lab@x.org`), or without a domain, it is what it is.
    """
    local, at, domain = address.rpartition("@")
    folding = choose_folding(domain, by_domain)
    if not at or folding == "keep" or is_pattern(address):
        return address
    plain = local.partition(SEPARATOR)[0]
    if folding == "fold-dots":
        plain = plain.replace(".", "")
    return f"{plain or local}@{domain}"


def choose_folding(domain: str, by_domain: Mapping[str, Folding]) -> Folding:
    """What is set for a domain: by its own name, else by the longest pattern that it matches, else the usual."""
    names = {name.lower(): folding for name, folding in by_domain.items()}
    if domain in names:
        return names[domain]
    patterns = sorted((name for name in names if fnmatchcase(domain, name)), key=len)
    return names[patterns[-1]] if patterns else USUAL


def is_pattern(text: str) -> bool:
    """Whether a rule would read this as a pattern for several people, not as one person's name."""
    return bool(PATTERN_CHARACTERS & set(text))
