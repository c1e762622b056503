"""Registry images on this machine: which of them its tools have, and pulling one before a session needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.log import log
from sublet.platforms.recent import RecentKeys

STORES = ("podman", "docker")  # tools that keep images in their own store
SIF = ("apptainer", "singularity")
FETCHING = 1800  # seconds for a tool to pull an image
LOOKING = 5  # seconds for a tool to say whether it has an image
FRESH = 60.0  # seconds for which it is remembered that an image exists
PREFIX = "docker://"


@dataclass
class LocalImages:
    """Asks the container tools of this machine about images, with the environment that sessions have."""

    environment: Mapping[str, str]
    _seen: RecentKeys = field(default_factory=lambda: RecentKeys(FRESH))  # images that were there

    async def find(self, tools: Mapping[str, str], locations: Collection[str]) -> list[str]:
        """Return the images that one of the tools already has."""
        return [location for location in locations if await self._has(tools, location)]

    async def _has(self, tools: Mapping[str, str], location: str) -> bool:
        if location in self._seen:
            return True
        for tool in STORES:
            words = (tools.get(tool, ""), "image", "inspect", location.removeprefix(PREFIX))
            if words[0] and await self.run(words, LOOKING):
                self._seen.note(location)
                return True
        return False

    async def fetch(self, tools: Mapping[str, str], location: str, tool: str, target: Path) -> bool:
        """Have a tool pull an image, into its own store or as a file at `target`; return whether it is there now."""
        path, reference = tools.get(tool, ""), location.removeprefix(PREFIX)
        if tool in STORES:
            has_image = bool(path) and await self.run((path, "image", "inspect", reference), LOOKING)
            return has_image or await self.run((path, "pull", "--quiet", reference), FETCHING)
        if tool in SIF:
            target.parent.mkdir(parents=True, exist_ok=True)
            return await self.run((path, "--silent", "pull", "--force", str(target), location), FETCHING)
        if tool == "charliecloud" and "ch-image" in tools:
            return await self.run((tools["ch-image"], "pull", reference), FETCHING)
        return False

    async def run(self, words: tuple[str, ...], seconds: float) -> bool:
        """Run a tool, and return whether it succeeded."""
        quiet = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=quiet, stdout=quiet, stderr=asyncio.subprocess.PIPE, env=dict(self.environment)
            )
        except OSError:
            return False
        try:
            async with asyncio.timeout(seconds):
                _, complaint = await process.communicate()
        except TimeoutError:
            return False
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode and seconds == FETCHING:
            log.info("image.not-fetched", words=words, why=complaint.decode(errors="replace")[-300:].strip())
        return process.returncode == 0
