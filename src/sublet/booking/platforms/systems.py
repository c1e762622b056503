"""A person's own systems as platforms: each file in SUBLET_HOME/systems, as soon as it is there."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sublet.kernel.errors import SubletError
from sublet.kernel.plugins import list_platform_kinds
from sublet.kernel.settings import Settings
from sublet.platforms.port import Platform
from sublet.systems.door import door_of
from sublet.systems.model.system import System
from sublet.systems.own import Systems

USUAL_SCHEDULER = "slurm"  # for a system whose file names none
Stamp = tuple[tuple[str, int, int], ...]  # of each file: its name, time of change and size


def directory_of(settings: Settings) -> Path:
    """Return the directory of a person's own systems."""
    return settings.home / "systems"


def stamp_of(directory: Path) -> Stamp:
    """Return a stamp that changes when a system is added, changed or removed; it only reads one directory."""
    stamps = []
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                stamps.append((entry.name, status.st_mtime_ns, status.st_size))
    return tuple(sorted(stamps))


def systems_of(settings: Settings) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return platform settings for each system that can be one, and what is wrong with the others."""
    platforms: dict[str, dict[str, Any]] = {}
    broken: dict[str, str] = {}
    systems = Systems(str(directory_of(settings)))
    for name in systems.own_names():
        try:
            system = systems.find(name)
        except SubletError as error:
            broken[name] = error.sentences
            continue
        if _kind_of(system) in list_platform_kinds() and (system.hosts or system.settings):
            platforms[name] = platform_of(system)
        else:
            known = ", ".join(sorted(list_platform_kinds()))
            broken[name] = f"Its scheduler is {system.scheduler or 'not known'}; the platforms that there are: {known}."
    return platforms, broken


@dataclass
class OwnSystems:
    """Finds the platforms that are a person's own systems."""

    settings: Settings

    noun = "system"
    _stamp: Stamp = ()

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """Return the platforms' settings, and what is wrong with others; None if the files haven't changed."""
        stamp = stamp_of(directory_of(self.settings))
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return await asyncio.to_thread(systems_of, self.settings)

    def look_again(self, *, changed: bool = False) -> None:
        """If something `changed`, read the files again at the next call."""
        if changed:
            self._stamp = ()

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Do nothing: a system needs no preparation."""


def find_system(settings: Settings, name: str) -> System:
    """Return the facts of one of the person's own systems; empty for a platform that is set up by hand."""
    systems = Systems(str(directory_of(settings)))
    return systems.find(name) if name in systems.own_names() else System(name)


def _kind_of(system: System) -> str:
    """Return the kind of a system's platform: that of its scheduler."""
    return system.scheduler or USUAL_SCHEDULER


def platform_of(system: System) -> dict[str, Any]:
    """Return a system's facts as platform settings; a system without login hosts has platform settings of its own."""
    if not system.hosts and system.settings:
        return {"kind": _kind_of(system), **system.settings}
    door = door_of(system)
    values: dict[str, Any] = {"kind": _kind_of(system), "project": system.project, "constraint": system.constraint}
    values |= {"queue": system.queue, "queues": {queue.name: queue.words for queue in system.queues if queue.options}}
    values |= {
        "key": system.key,
        "ssh": door.pop("options"),
        "refuses": tuple(option.lstrip("-") for option in system.refuses),
    }
    values["tool_modules"] = {tool.name: tool.module for tool in system.tools if tool.module}
    kept = ("directory", "scratch", "modules", "path", "options", "pilot", "site_file", "poll", "look", "mounts")
    return (
        values | {name: getattr(system, name) for name in kept if getattr(system, name)} | door | dict(system.settings)
    )
