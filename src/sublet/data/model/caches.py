"""What is kept in a cache, and which of it is meant by a name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORT = 12  # digits that tell entries apart


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One entry of a cache."""

    digest: str  # sha256:…, oci-sha256:… (an image made there), data:… (known by address and version)
    label: str  # what people call it, and where it came from; empty: nobody said
    size: int
    used: datetime  # when it was last needed
    users: tuple[str, ...] = ()  # the sessions that need it now

    @property
    def short(self) -> str:
        """The digits by which it can be named."""
        return self.digest.rpartition(":")[2][:SHORT]

    @property
    def title(self) -> str:
        """What to call it."""
        return self.label or self.short

    def is_called(self, name: str) -> bool:
        """Whether a person means it by this: its digits, some of the first of them, or its name."""
        digits = self.digest.rpartition(":")[2]
        by_digits = len(name) >= 4 and digits.startswith(name.lower())
        return name == self.digest or by_digits or name in (self.label, self.label.partition(" from ")[0])


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What one system keeps."""

    platform: str
    quota: int  # bytes; 0: no limit
    entries: Sequence[KeptEntry] = ()
    trouble: str = ""  # why it can't be asked now

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(entry.size for entry in self.entries)


def match_entries(entries: Sequence[KeptEntry], names: Collection[str]) -> tuple[list[KeptEntry], list[str]]:
    """The entries that are meant by some names, and the names that mean none."""
    meant = [entry for entry in entries if any(entry.is_called(name) for name in names)]
    unknown = [name for name in names if not any(entry.is_called(name) for entry in entries)]
    return meant, unknown


def choose_removable(entries: Sequence[KeptEntry], idle: timedelta, now: datetime) -> list[KeptEntry]:
    """Those that no session needs, or has needed for so long."""
    return [entry for entry in entries if not entry.users and now - entry.used >= idle]
