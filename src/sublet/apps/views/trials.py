"""The views of trials of apps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TrialView:
    """An app that can be requested by this name, though nobody has approved it."""

    name: str
    manifest: dict[str, Any] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
