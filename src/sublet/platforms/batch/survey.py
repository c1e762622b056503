"""What a site has: asked for at most once in a while, and kept for the time when nobody is signed in."""

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
    """The last survey, as the scheduler said it: read anew each time, so new versions read what old ones kept."""

    def __init__(self, failures: Failures, file: Path, fresh: timedelta, needed: Sequence[str], site: str = "") -> None:
        """Read what was kept of this site, if anything; another site may have had the platform's name before."""
        self._failures, self._file, self._fresh, self._site = failures, file, fresh, site
        self._needed = needed  # the answers without which it is no survey
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
        """What the site's own settings file says; empty if there is none."""
        return self._said.get("site", "")

    @property
    def said(self) -> Mapping[str, str]:
        """What the commands of the last survey printed, by their names."""
        return self._said

    @property
    def trouble(self) -> str:
        """Why the site can't be asked now, if so."""
        return self._trouble

    def describe(self, nodes: Sequence[SiteNode], *notes: str) -> Survey:
        """The survey of a site with these nodes, of which some may be away."""
        return Survey(
            as_of=self.as_of,
            nodes=tuple(node.node for node in nodes if node.here),
            pools=self.disk(),
            tools=self.tools(),
            trouble=self.trouble,
            notes=(*([self.trouble] if self.trouble else []), *notes),
        )

    def heed(self, fresh: timedelta) -> None:
        """Survey no more often than this."""
        self._fresh = fresh

    def expire(self) -> None:
        """Survey anew when it is next looked at, however new the last survey is."""
        self._expired = True

    async def look(self, reach: Reach, commands: dict[str, Command[Outcome]]) -> None:
        """Survey anew if the last one is too old; if that can't be done now, the last one must do.

        Whoever comes while a survey is under way doesn't wait for it, if there is one that was made before.
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
        """The site can't be asked: say so in the survey, if there is one; else raise the error itself."""
        if not self._said:
            raise error
        self._trouble = f"this was seen at {self._as_of:%Y-%m-%d %H:%M} UTC: {error.sentences}"

    def _keep(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"as_of": self._as_of.isoformat(), "site": self._site, "said": self._said}))
        part.replace(self._file)

    def disk(self) -> dict[str, int]:
        """The room that there is for sessions, as a pool, in bytes."""
        room = re.findall(r"\s(\d+)\s+\d+%", self._said.get("room", ""))
        return {"disk": int(room[-1]) * KIB} if room else {}

    def tools(self) -> dict[str, str]:
        """The tools that are there: name → path."""
        return dict(line.split(" ", 1) for line in self._said.get("tools", "").splitlines() if " " in line)
