"""The survey of a site: made rarely, and saved for times when nobody is signed in."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sublet.kernel.errors import LoginNeeded, PlatformUnreachable
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.port import Survey
from sublet.reach.port import Command, Outcome, Reach

KIB = 1 << 10
NEVER = datetime.min.replace(tzinfo=UTC)


class Surveyor:
    """The last survey, saved as the scheduler's raw output, so that newer versions can read what older ones saved."""

    def __init__(self, failures: Failures, file: Path, fresh: timedelta, needed: Sequence[str], site: str = "") -> None:
        """Read the saved survey of this site, if any; another site may have had the platform's name before."""
        self._failures, self._file, self._fresh, self._site = failures, file, fresh, site
        self._needed = needed  # the answers without which there is no survey
        self._said: dict[str, str] = {}
        self._as_of, self._trouble = NEVER, ""
        self._expired = False
        self._lock = asyncio.Lock()
        try:
            known = json.loads(file.read_text())
            if known.get("site", site) != site:
                return
            self._said, self._as_of = known["said"], datetime.fromisoformat(known["as_of"])
        except (OSError, ValueError, KeyError):
            return

    @property
    def as_of(self) -> datetime:
        """When the last survey was made."""
        return self._as_of

    @property
    def site_file(self) -> str:
        """The content of the site's own settings file; empty if there is none."""
        return self._said.get("site", "")

    @property
    def said(self) -> Mapping[str, str]:
        """The output of the last survey's commands, by name."""
        return self._said

    @property
    def trouble(self) -> str:
        """Why the site can't be asked now; empty if it can."""
        return self._trouble

    def describe(self, nodes: Sequence[SiteNode], *notes: str) -> Survey:
        """Return the survey of a site with these nodes; those that are away are left out."""
        return Survey(
            as_of=self.as_of,
            nodes=tuple(node.node for node in nodes if node.here),
            pools=self.disk(),
            tools=self.tools(),
            trouble=self.trouble,
            notes=(*([self.trouble] if self.trouble else []), *notes),
        )

    def heed(self, fresh: timedelta) -> None:
        """Set how long a survey is good for."""
        self._fresh = fresh

    def expire(self) -> None:
        """Make a new survey at the next look, however recent the last one is."""
        self._expired = True

    async def look(self, reach: Reach, commands: dict[str, Command[Outcome]]) -> None:
        """Survey the site again if the last survey is too old; if that fails for now, keep the last one.

        While another survey is under way, return at once if there is an older one.
        """
        if self._lock.locked() and self._said:
            return
        async with self._lock:
            if abs(datetime.now(UTC) - self._as_of) <= self._fresh and not self._expired:
                return
            try:
                answers = dict(zip(commands, await reach.run_all(list(commands.values())), strict=True))
                for needed in self._needed:
                    if answers[needed].code:
                        raise self._failures.explain(answers[needed])
            except (LoginNeeded, PlatformUnreachable) as error:
                self.doubt(error)
                return
            self._said = {name: outcome.text for name, outcome in answers.items() if not outcome.code}
            self._as_of, self._trouble, self._expired = datetime.now(UTC), "", False
            await asyncio.to_thread(self._keep)

    def doubt(self, error: LoginNeeded | PlatformUnreachable) -> None:
        """Note in the survey that the site can't be asked; raise the error if there is no survey."""
        if not self._said:
            raise error
        self._trouble = f"this was seen at {self._as_of:%Y-%m-%d %H:%M} UTC: {error.sentences}"

    def _keep(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"as_of": self._as_of.isoformat(), "site": self._site, "said": self._said}))
        part.replace(self._file)

    def disk(self) -> dict[str, int]:
        """Return the disk space for sessions in bytes, as a pool."""
        room = re.findall(r"\s(\d+)\s+\d+%", self._said.get("room", ""))
        return {"disk": int(room[-1]) * KIB} if room else {}

    def tools(self) -> dict[str, str]:
        """Return the installed tools: name → path."""
        return dict(line.split(" ", 1) for line in self._said.get("tools", "").splitlines() if " " in line)
