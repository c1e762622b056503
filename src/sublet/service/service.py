"""The service: every use case in one object, and the loop that carries sessions on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from importlib import metadata
from importlib.metadata import entry_points

from pydantic import ValidationError

from sublet.errors import BadSettings, SubletError
from sublet.kinds.registry import survey_kinds
from sublet.movers.registry import survey_movers
from sublet.platforms.port import Platform
from sublet.service import metrics
from sublet.service.desk import log, utc_now
from sublet.service.platforms import Platforms
from sublet.service.reconcile import Loop
from sublet.settings import Settings
from sublet.store.store import Store


class Service(Platforms):
    """Ask, accept, run, look: what the HTTP interface and the pages call."""

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, now: Callable[[], datetime] = utc_now, loop: bool = True
    ) -> AsyncIterator[Service]:
        """Open the store and the platforms, start the loop; on leaving, let go: what runs goes on."""
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = await asyncio.to_thread(Store.open, settings.database_url)
        kinds = survey_kinds()
        platforms, bad = load_platforms(settings)
        roots = settings.file_roots if settings.mode == "personal" or settings.file_roots else ()
        movers = survey_movers(roots, public_only=settings.mode == "gateway" and not settings.private_data)
        broken = {f"kind {name}": why for name, why in kinds.broken.items()}
        broken |= {f"mover {name}": why for name, why in movers.broken.items()} | bad
        service = cls(settings, store, platforms, kinds.by_name, movers.found, broken, now)
        try:
            for name, platform in platforms.items():
                home = settings.home / "platforms" / name
                home.mkdir(parents=True, exist_ok=True, mode=0o700)
                await platform.open(home)
                with contextlib.suppress(SubletError):  # an unreachable one is tried again when it is asked
                    await service.survey(name)
            carrier = Loop(service)
            task = asyncio.create_task(carrier.run(), name="loop") if loop else None
            log.info("service.started", mode=settings.mode, platforms=list(platforms))
            try:
                yield service
            finally:
                if task:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    await carrier.stop()
        finally:
            for platform in platforms.values():
                await platform.close()
            store.close()
            log.info("service.stopped")

    @property
    def mode(self) -> str:
        """`personal` or `gateway`."""
        return self.settings.mode

    @property
    def version(self) -> str:
        """Sublet's own."""
        return metadata.version("sublet")

    async def scrape(self) -> bytes:
        """The metrics page."""
        counts = await self.store.read(lambda tx: tx.sessions.count_by_phase())
        for phase, count in counts.items():
            metrics.sessions.labels(phase).set(count)
        return metrics.page()


def load_platforms(settings: Settings) -> tuple[dict[str, Platform], dict[str, str]]:
    """The platforms that the settings name; a plug-in that can't be loaded is shown as broken, not absent."""
    found = {entry.name: entry for entry in entry_points(group="sublet.platforms")}
    platforms: dict[str, Platform] = {}
    broken: dict[str, str] = {}
    for name, values in settings.platforms.items():
        rest = dict(values)
        kind = rest.pop("kind", name)
        if kind not in found:
            known = ", ".join(sorted(found))
            raise BadSettings(file="settings", detail=f"platforms.{name}.kind: there is no {kind}; there are: {known}")
        try:
            cls: type[Platform] = found[kind].load()
        except Exception as error:  # the other door: a plug-in may fail in any way
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        try:
            platforms[name] = cls(name=name, **rest)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(["platforms", name, *(str(part) for part in first["loc"])])
            raise BadSettings(file="settings", detail=f"{where}: {first['msg']}") from error
    return platforms, broken
