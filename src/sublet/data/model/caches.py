"""The entries of a cache, and how people name them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORT = 12  # digits that tell entries apart


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One entry of a cache."""

    digest: str  # sha256:…, oci-sha256:… (an image made there), data:… (known by address and version)
    label: str  # its name and source, for people; empty: not known
    size: int
    used: datetime  # last use
    users: tuple[str, ...] = ()  # the sessions that need it now

    @property
    def short(self) -> str:
        """The first digits, by which the entry can be named."""
        return self.digest.rpartition(":")[2][:SHORT]

    @property
    def title(self) -> str:
        """The name to show to people."""
        return self.label or self.short

    def is_called(self, name: str) -> bool:
        """Whether the name means this entry: its digest, the digest's first digits, or its label."""
        digits = self.digest.rpartition(":")[2]
        by_digits = len(name) >= 4 and digits.startswith(name.lower())
        return name == self.digest or by_digits or name in (self.label, self.label.partition(" from ")[0])


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The contents of one platform's cache."""

    platform: str
    quota: int  # bytes; 0: no limit
    entries: Sequence[KeptEntry] = ()
    trouble: str = ""  # why it can't be listed now

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return sum(entry.size for entry in self.entries)


def match_entries(entries: Sequence[KeptEntry], names: Collection[str]) -> tuple[list[KeptEntry], list[str]]:
    """Return the entries that the names mean, and the names that match no entry."""
    meant = [entry for entry in entries if any(entry.is_called(name) for name in names)]
    unknown = [name for name in names if not any(entry.is_called(name) for entry in entries)]
    return meant, unknown


def choose_removable(entries: Sequence[KeptEntry], idle: timedelta, now: datetime) -> list[KeptEntry]:
    """Return the entries that no session needs now, and that haven't been used for this long."""
    return [entry for entry in entries if not entry.users and now - entry.used >= idle]
