"""That the service is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """That the service is there, and what it serves."""

    status: str  # "ok", or "failing" when sessions can't be carried on at present
    version: str
    mode: str
    platforms: tuple[str, ...] = ()
    database: str = ""  # what it keeps sessions in, for who may know it
    problem: str = ""  # why it is failing
    clock: str = ""  # when and by how much the machine's clock was set, for who may know it
