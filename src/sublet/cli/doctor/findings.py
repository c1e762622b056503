"""The findings of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DoctorFinding:
    """The result of one check."""

    state: str  # ok, warn, bad
    what: str
    detail: str
    todo: str = ""
