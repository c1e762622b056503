"""What a Slurm site has: asked for at most once in a while, and kept for the time when nobody is signed in."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sublet.kernel.errors import LoginNeeded, PlatformUnreachable
from sublet.platforms.port import Survey
from sublet.platforms.slurm import commands as to
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.offers import Site, notes
from sublet.platforms.slurm.pace import Limiter, read_limiter
from sublet.reach.port import Command, Outcome, Reach

KIB = 1 << 10
NEVER = datetime.min.replace(tzinfo=UTC)


class Surveyor:
    """The last survey, as Slurm said it: read anew each time, so that a newer version reads what an older one kept."""

    def __init__(self, platform: str, file: Path, fresh: timedelta, site: str = "") -> None:
        """Read what was kept of this site, if anything; another site may have had the platform's name before."""
        self._platform, self._file, self._fresh, self._site = platform, file, fresh, site
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
    def limiter(self) -> Limiter | None:
        """Slurm's own limit on calls, where the site has it on."""
        return read_limiter(read.read_config(self._said.get("config", "")))

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
                for needed in ("nodes", "queues"):
                    if answers[needed].code:
                        raise to.trouble(self._platform, answers[needed])
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
        self._trouble = f"this was seen at {self._as_of:%Y-%m-%d %H:%M} UTC: {error.message} {error.advice}".strip()

    def _keep(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"as_of": self._as_of.isoformat(), "site": self._site, "said": self._said}))
        part.replace(self._file)

    def site(self) -> Site:
        """The site as it was then."""
        said = self._said
        return Site(
            as_of=self._as_of,
            nodes=read.read_nodes(said.get("nodes", "")),
            queues=read.read_queues(said.get("queues", "")),
            reservations=read.read_reservations(said.get("reservations", "")),
            accounts=read.read_accounts(said.get("accounts", "")),
            submits=read.read_submits(said.get("accounts", "")),
            qos_submits=read.read_submits(said.get("qos", "")),
            largest_array=read.read_largest_array(read.read_config(said.get("config", ""))),
        )

    def survey(self, site: Site, queues: set[str], reservation: str) -> Survey:
        """The same for the service: the nodes of these queues, and of the reservation if there is one."""
        kept = {node for one in site.reservations if one.name == reservation for node in one.nodes}
        nodes = [
            one.node
            for one in site.nodes
            if one.here and set(one.queues) & queues and (not reservation or one.node.name in kept)
        ]
        config = read.read_config(self._said.get("config", ""))
        room = re.findall(r"\s(\d+)\s+\d+%", self._said.get("room", ""))
        return Survey(
            as_of=self._as_of,
            nodes=tuple(nodes),
            pools={"disk": int(room[-1]) * KIB} if room else {},
            tools=read.read_words(self._said.get("tools", "")),
            trouble=self._trouble,
            notes=(*([self._trouble] if self._trouble else []), *notes(site, config, datetime.now(UTC))),
        )
