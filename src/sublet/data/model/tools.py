"""Plans for having a system fetch data with one of its own programs (rsync, git, curl)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sublet.data.model.links import LinkedFiles


@dataclass(frozen=True)
class ToolPlan:
    """What to tell such a program, and which files it will fetch."""

    tool: str  # the program, run by `platforms/batch/shell/TOOL.sh`
    host: str  # the server that has the data
    facts: Sequence[tuple[str, str]] = field(repr=False)  # names and values; `secret` is the credential for the server
    named: LinkedFiles  # what the cache entry is named by
    files: LinkedFiles  # all files, if they are known beforehand; otherwise none
    script: str = ""  # the script that calls the program, if not the one of its name
