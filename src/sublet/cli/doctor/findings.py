"""What `doctor` finds: one line for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that was looked at."""

    state: str  # ok, warn, bad
    what: str
    detail: str
    todo: str = ""
