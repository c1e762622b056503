"""Carries out one part of a plan: clients and faults side by side, then quiet, then the evidence."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.chaos.clients import do_work
from tests.chaos.evidence import Evidence, Record, Told
from tests.chaos.faults import inject
from tests.chaos.faults.damage import try_damaged
from tests.chaos.gathering import (
    find_directories,
    find_leftovers,
    find_orphans,
    list_sessions,
    read_booked,
    read_ends,
    read_failed_turns,
    read_records,
    undo_clock,
)
from tests.chaos.plan import Part
from tests.chaos.program import read_witnesses
from tests.chaos.sampling import HealthSampler
from tests.chaos.slurm_site import SlurmSite
from tests.chaos.stage import set_stage
from tests.chaos.world import World, wait_for

AT_ONCE = 24  # clients
QUIET = 60.0  # seconds in which all must be over, and given back, after the last fault
QUIET_SITE = 150.0  # where Slurm may have forgotten jobs: those are given up when `lost_after`, or their time, is over
OPEN = frozenset({"OFFERED", "ACCEPTED", "WAITING", "PREPARING", "AVAILABLE", "RUNNING", "RELEASING"})
Say = Callable[[str], None]


def carry_out(part: Part, seed: int, cluster: SlurmSite | None, say: Say, keep: Path | None = None) -> Evidence:
    """Do all that is planned, and gather what came of it."""
    with set_stage(part, cluster) as world:
        for service in world.services:
            service.launch()
        world.revive()
        world.began = time.monotonic()
        samplers = [HealthSampler(service) for service in world.services]
        for sampler in samplers:
            sampler.start()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            clients = _storm(world, pool, say)
            world.revive()
            say(f"{world.elapsed:6.1f}  quiet")
            quiet = QUIET_SITE if world.cluster else QUIET
            is_quiet = wait_for(lambda: _is_over(world, clients), quiet, 0.5)
            say(f"{world.elapsed:6.1f}  {'all is over' if is_quiet else 'not all is over'}")
            unfinished = tuple(_find_open(world))
            world.over.set()
            told = [_ask_client(world, client) for client in clients]
        for sampler in samplers:
            sampler.stop()
        evidence = _gather(world, told, samplers, unfinished)
        if keep:
            shutil.copytree(world.base, keep / part.name, symlinks=True, ignore=_name_special)
        notes = () if world.postgres else tuple(try_damaged(world, seed))
        return replace(evidence, notes=(*evidence.notes, *notes))


def _storm(world: World, pool: ThreadPoolExecutor, say: Say) -> list[Future[Told]]:
    """Clients work in threads of their own, while faults come one after the other."""
    clients: list[Future[Told]] = []
    sending = threading.Thread(target=_send_clients, args=(world, pool, clients))
    sending.start()
    for fault in world.part.faults:
        world.wait_until(fault.begins)
        if world.elapsed > world.part.seconds:
            break
        say(f"{world.elapsed:6.1f}  {fault.describe()}")
        inject(world, fault)
    world.wait_until(world.part.seconds)
    sending.join()
    return clients


def _send_clients(world: World, pool: ThreadPoolExecutor, clients: list[Future[Told]]) -> None:
    for work in sorted(world.part.work, key=lambda work: work.begins):
        world.wait_until(work.begins)
        clients.append(pool.submit(do_work, world, work))


def _is_over(world: World, clients: list[Future[Told]]) -> bool:
    if world.cluster:
        world.cluster.mend_node()
    return _are_done(clients) and not _find_open(world)


def _are_done(clients: list[Future[Told]]) -> bool:
    return all(client.done() for client in clients)


def _ask_client(world: World, client: Future[Told]) -> Told:
    """What it was told; a client that broke is noted."""
    try:
        return client.result()
    except Exception as error:
        world.notes.append(f"a client broke: {error!r}")
        return Told("")


def _find_open(world: World) -> list[str]:
    """Sessions and offers that are not over, bookings that are not given back, claims, processes."""
    records = read_records(world.database)
    found = [f"{record.name} ({record.id[:8]}) is {record.phase}" for record in records if record.phase in OPEN]
    found += [f"{record.id[:8]} is claimed" for record in records if record.is_claimed]
    found += [f"{key} is booked" for key in read_booked(world.database)]
    found += world.cluster.find_work() if world.cluster and not found else []
    return found or [f"{pid}: {words}" for pid, words in find_orphans(world.base).items()]


def _gather(world: World, told: list[Told], samplers: list[HealthSampler], unfinished: tuple[str, ...]) -> Evidence:
    listed = list_sessions(world.services[0].socket, world.base / "client")
    for service in world.services:
        if not service.stop():
            world.notes.append(f"service {service.number} did not stop when asked")
    records = tuple(_with_true_times(record, world) for record in read_records(world.database))
    ids = frozenset(record.id for record in records)
    cluster = world.cluster
    return Evidence(
        work=world.part.work,
        told=tuple(told),
        cancels=cluster.find_cancels() if cluster else frozenset(),
        cancelled_there=cluster.find_cancelled() if cluster else frozenset(),
        witnesses=read_witnesses([*_read_lines(world.witness), *(cluster.read_witness() if cluster else ())]),
        records=records,
        faults=tuple(world.injected),
        health=tuple(look for sampler in samplers for look in sampler.looks),
        failed_turns=tuple(turn for service in world.services for turn in read_failed_turns(service)),
        outages=tuple(world.outages),
        starts=tuple((service.number, time) for service in world.services for time in service.starts),
        unfinished=unfinished,
        booked=read_booked(world.database),
        processes=(*find_orphans(world.base).values(), *(cluster.find_work() if cluster else ())),
        leftovers=tuple(find_leftovers(world.home, ids)),
        directories=frozenset(_name_directories(world)),
        ends=read_ends(world.home),
        listed=listed,
        log_bytes=sum(service.log.stat().st_size for service in world.services),
        seconds=world.elapsed * len(world.services),
        notes=tuple(world.notes),
    )


def _with_true_times(record: Record, world: World) -> Record:
    first, last = time.time() - world.elapsed, time.time()
    ended = undo_clock(record.ended, first, last) if record.ended is not None else None
    return replace(record, created=undo_clock(record.created, first, last), ended=ended)


def _name_directories(world: World) -> Iterator[str]:
    yield from (directory.name for directory in find_directories(world.home))
    yield from world.cluster.name_directories() if world.cluster else ()


def _read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _name_special(folder: str, names: list[str]) -> list[str]:
    """What can't be copied: sockets and the like."""
    paths = ((name, Path(folder, name)) for name in names)
    return [name for name, path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]
