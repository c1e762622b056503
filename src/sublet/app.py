"""Opens and closes a service: its store, its platforms and its loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.reconcile import Loop
from sublet.booking.loop.reservations import ReservationCare
from sublet.booking.loop.sweeping import Sweeper
from sublet.booking.ports import Caretaker
from sublet.kernel.clock import Clock, utc_now
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.kernel.memory import trim_often
from sublet.kernel.settings import Settings
from sublet.policies import has_owner
from sublet.service import Service
from sublet.store.guard import DatabaseGuard
from sublet.store.migrate import CopyBefore
from sublet.store.store import Store
from sublet.wiring import build_service


@contextlib.asynccontextmanager
async def open_service(settings: Settings, *, now: Clock = utc_now, loop: bool = True) -> AsyncIterator[Service]:
    """Open the store and the platforms, and start the loop; on exit, close them and leave sessions running."""
    settings = settings.model_copy()  # the service's own copy, which changes when settings are reloaded
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    guard = DatabaseGuard(settings)
    store = await _open_store(settings, guard)
    service = None
    try:
        service = build_service(settings, store, now)
        await service.people.directory.find_same_people()
        await service.access.pledge_changes.added.read()
        first = dict(service.platforms.by_name)
        for platform in first.values():
            await service.changes.open_platform(platform)
        await service.changes.look_at(first)
        await service.changes.refresh()
        async with _working(service, guard, loop=loop):
            yield service
    finally:
        if service:
            await _close(service)
        await asyncio.to_thread(guard.record, store)
        store.close()
        log.info("service.stopped")


async def _open_store(settings: Settings, guard: DatabaseGuard) -> Store:
    await asyncio.to_thread(guard.check_files)
    copies = CopyBefore(settings.home / "backups", settings.retention.backups)
    discreet = not has_owner(settings)
    store = await asyncio.to_thread(Store.open, settings.database_url, discreet=discreet, copies=copies)
    try:
        await asyncio.to_thread(guard.check_store, store)
        await _check_mode(settings, store)
    except SubletError:
        store.close()
        raise
    return store


async def _check_mode(settings: Settings, store: Store) -> None:
    """Raise BadSettings if the mode isn't set and the database is a gateway's: its settings may have been lost."""
    if settings.is_set("mode") or not await store.read(lambda tx: tx.people.list(limit=1)):
        return
    why = "it is not set, and the database has the people of a gateway"
    hint = 'Put the settings back (a backup has them), or say mode = "gateway", or mode = "personal" if that is meant.'
    raise settings.refuse(("mode",), why, hint)


def build_loop(service: Service) -> Loop:
    """Build the loop that advances this service's sessions and runs the periodic work of the other subjects."""
    annexes = service.annexes
    of_annexes = (annexes.access_points, annexes.splits, annexes.drains) if has_owner(service.settings) else ()
    caretakers: list[Caretaker] = [
        service.drains,
        service.access.pledge_changes.added,
        service.broker_outbox,
        *of_annexes,
        annexes.watch,
        annexes.inputs,
        annexes.naming,
        service.notices.telling,
        service.uploads.care,
        service.price_book,
    ]
    return Loop(build_context(service), service.changes.refresh, caretakers)


def build_context(service: Service) -> LoopContext:
    """Collect the objects that the loop's steps use."""
    return LoopContext(
        settings=service.settings,
        store=service.store,
        now=service.now,
        platforms=service.platforms,
        kinds=service.kinds,
        movers=service.movers,
        signals=service.signals,
        loop_state=service.loop_state,
        secrets=service.secrets,
        throttle=service.throttle,
        code=service.apps.approved,
        callbacks=service.annexes.pilot_plans,
        credentials=service.credentials,
        places=service.places,
        transfers=service.transfers,
        systems=service.annexes.systems,
        price_book=service.price_book,
        visits=service.visits,
        has_strangers=not has_owner(service.settings),
    )


@contextlib.asynccontextmanager
async def _working(service: Service, guard: DatabaseGuard, *, loop: bool) -> AsyncIterator[None]:
    """Run the loop and the other background tasks."""
    carrier = build_loop(service)
    sweeper = Sweeper(build_context(service), service.apps.catalogue, service.scratch)
    reservations = ReservationCare(service.store, service.platforms, service.now)
    workers = {"loop": carrier.run, "sweeper": sweeper.run, "reservations": reservations.run} if loop else {}
    workers |= {"database guard": partial(guard.run, service.store), "memory": trim_often}
    tasks = [asyncio.create_task(work(), name=name) for name, work in workers.items()]
    log.info("service.started", mode=service.mode_word, platforms=list(service.platforms.by_name))
    try:
        yield
    finally:
        await service.people.signing_in.give_up_all()
        await service.logins.give_up_all()
        await service.sendings.stop_all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.broker_outbox.stop()
        if loop:
            await carrier.stop()


async def _close(service: Service) -> None:
    await service.signals.feed.close()
    await service.platforms.survey_tasks.stop()
    for platform in list(service.platforms.by_name.values()):
        await platform.close()
    await service.access.account_platforms.end_agent()
