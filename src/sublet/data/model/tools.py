"""How a program that a system has (rsync, git, curl) brings data there by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sublet.data.model.links import LinkedFiles


@dataclass(frozen=True)
class ToolPlan:
    """What such a program is told, and what will have come."""

    tool: str  # the program; `platforms/batch/shell/TOOL.sh` says what it is told
    host: str  # the server that has the data
    facts: Sequence[tuple[str, str]] = field(repr=False)  # names and values; the one called `secret` opens the server
    named: LinkedFiles  # what names it in a cache
    files: LinkedFiles  # all files, if they are known beforehand; else none
    script: str = ""  # what says how the program is called, if that is not the script of its name
