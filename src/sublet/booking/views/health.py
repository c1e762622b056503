"""View of the service's health."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """Whether the service works, and what it serves."""

    status: str  # "ok", or "failing" when sessions can't continue at present
    version: str
    mode: str
    platforms: tuple[str, ...] = ()
    database: str = ""  # its kind and address, for operators
    problem: str = ""  # why it is failing
    clock: str = ""  # when and by how much the machine's clock was set, for operators
