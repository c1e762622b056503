"""Copies the inputs that jobs on an annex share to its systems once, by content, over the open login.

Jobs are examined while they wait, whether they were submitted before or after their annex was created. Each is told
which leases have its shared inputs, and uses the copy there. Inputs that can't be copied are sent with each job, as
HTCondor does by itself. A job uses a copy only if its file was seen to have that content since the job began to wait,
and less than a minute ago.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tarfile import TarError

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.input_files import Fingerprint, InputFiles, read_fingerprint
from sublet.annexes.input_trees import NotShareable, pack_tree
from sublet.annexes.job_images import JobImages, KeptImage, name_archive
from sublet.annexes.kept_inputs import Brought, KeptInputs
from sublet.annexes.lease_systems import LeaseOnSystem, LeaseSystems
from sublet.annexes.model.inputs import InputCopies, NamedInput, choose_shared, combine_digests, rewritten
from sublet.annexes.model.lease_state import PENDING
from sublet.annexes.pilots import inputs
from sublet.annexes.pilots.queue import to_vacate
from sublet.annexes.queue_watch import QueueWatch
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.kinds.images import ArchiveFile
from sublet.platforms.htcondor.commands import ids, to_edit
from sublet.platforms.port import Platform
from sublet.reach.local import LocalReach
from sublet.store.store import Store

OFTEN, SELDOM = timedelta(seconds=2), timedelta(seconds=10)  # between checks, with leases and without
SOON = timedelta(minutes=1)  # how long removal of unneeded copies is attempted at every check
PACKING = "packing"  # below SUBLET_HOME: archives of directories that are being sent to a system
AGAIN = timedelta(seconds=30)  # after a failed attempt to copy an input
AGAIN_IMAGE = timedelta(minutes=10)  # after a failed attempt to copy an image of a registry
HaveImage = Callable[[Platform, str, str, Session], Awaitable[KeptImage]]  # gets an image onto a system, for a lease


@dataclass
class Inputs:
    """Examines waiting jobs, copies their shared inputs, and removes copies that no lease needs any more."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    systems: LeaseSystems
    access_points: AccessPoints
    images: JobImages

    _inputs: KeptInputs = field(default_factory=KeptInputs)
    _input_files: InputFiles = field(default_factory=InputFiles)
    _inputs_looked: datetime | None = None
    _inputs_every: timedelta = OFTEN
    _queue_watch: QueueWatch = field(default_factory=QueueWatch)
    _nothing_waits: bool = False
    _looking: asyncio.Task[None] | None = None

    async def look_after(self, now: datetime) -> None:
        """Examine waiting jobs in the background, at intervals."""
        if self.access_points.point is None or (
            self._inputs_looked and abs(now - self._inputs_looked) < self._inputs_every
        ):
            return
        if self._nothing_waits and not self._queue_watch.is_due(self.access_points.point, now):
            return
        if self._looking is None or self._looking.done():
            if self._inputs_looked is None:
                shutil.rmtree(self.settings.home / PACKING, ignore_errors=True)  # left by a service that was killed
                self._inputs.load(self.settings.home / "pilots")
            self._inputs_looked = now
            self._looking = asyncio.create_task(self._look_at_inputs(), name="inputs")

    async def _look_at_inputs(self) -> None:
        try:
            point = self.access_points.point
            looked = int(self.now().timestamp())
            waiting = await LocalReach("access point").run(inputs.to_waiting(point.tools, looked)) if point else []
            leases = await self.systems.list_leases()
            self._nothing_waits = not self._inputs.brought and all(job.seen == inputs.NONE for job in waiting)
            self._inputs_every = OFTEN if leases or self._inputs.brought else SELDOM
            for jobs in _alike(waiting):
                await self._provide(jobs, leases)
            await self._confirm(waiting, looked)
            self._input_files.forget_all_but({job.named.path(name) for job in waiting for name in job.named.candidates})
            self.images.forget_all_but({job.named.address for job in waiting})
            await self._let_go(leases)
        except (SubletError, OSError) as error:
            log.warning("inputs.failed", why=str(error))

    async def _confirm(self, waiting: Sequence[inputs.WaitingJob], looked: int) -> None:
        """Tell waiting jobs that their files are unchanged; without a recent confirmation they don't use copies."""
        due = any(job.seen != inputs.NONE and inputs.needs_look(job, looked) for job in waiting)
        if self.access_points.point and due:
            await LocalReach("access point").run(inputs.to_confirm(self.access_points.point.tools, looked))

    async def _provide(self, jobs: Sequence[inputs.WaitingJob], leases: Sequence[LeaseOnSystem]) -> None:
        """For jobs with the same inputs: determine what is shared, have it copied, and tell the jobs where it is."""
        first = jobs[0]
        if first.seen == inputs.NONE:
            return
        seen = await asyncio.to_thread(_fingerprints, first.named, self._input_files)
        since = max(job.since for job in jobs)
        digests = self._digests(first.named, seen, await self._find_owner(first), since)
        if first.is_running:
            await self._restart_stale(jobs, seen, digests)
        elif digests is None:
            if first.content:
                await self._tell_jobs(jobs, inputs.forget_copies(first.named, self._until(first.named)))
        elif digests:
            trees = frozenset(name for name in digests if name in seen and seen[name].tree)
            there = [there for there in leases if there.lease.annex == first.annex]
            await self._tell_copies(jobs, digests, trees, there)
        elif not first.seen:
            await self._tell_jobs(jobs, inputs.mark_looked_at(first.named, self._explain_pull(first.named, {}, [])))
        elif first.waits:
            await self._tell_jobs(jobs, inputs.send_files(first.named, self._explain_pull(first.named, {}, [])))

    async def _tell_copies(
        self,
        jobs: Sequence[inputs.WaitingJob],
        digests: Mapping[str, str],
        trees: frozenset[str],
        leases: Sequence[LeaseOnSystem],
    ) -> None:
        """Tell jobs where the copies of their shared inputs are, whenever the copies or the content have changed."""
        sample, content = jobs[0], combine_digests(digests)
        is_new = sample.content != content
        before = "" if is_new else sample.ready
        by_lease = {there.lease.id: self._copies(there, sample.named, digests, trees) for there in leases}
        copies = [
            InputCopies((lease,), paths, trees & set(paths)) for lease, paths in by_lease.items() if paths is not None
        ]
        ready = ",".join(sorted(lease for copy in copies for lease in copy.leases))
        lost = [lease for lease, paths in by_lease.items() if paths is None and lease in before]
        if (is_new or ready != before) and not lost:  # lost ones are being checked again: still true
            until = self._until(sample.named)
            first = {} if sample.seen else inputs.first_told(sample.named, until)
            again = inputs.forget_copies(sample.named, until) if sample.content and is_new else {}
            changes = inputs.change_ready(rewritten(sample.named, copies), ready, content)
            why = inputs.say_pulled(sample.named, self._explain_pull(sample.named, digests, leases))
            await self._tell_jobs(jobs, {**first, **again, **changes, **why})

    def _explain_pull(self, named: NamedInput, digests: Mapping[str, str], leases: Sequence[LeaseOnSystem]) -> str:
        """Return why the job's node has to pull its image, or an empty string."""
        if named.address not in digests:
            return self.images.find_why(named.address)
        known = (self._inputs.find(there.platform.name, digests[named.address]) for there in leases)
        return next((brought.why for brought in known if brought.why), "")

    async def _restart_stale(
        self, jobs: Sequence[inputs.WaitingJob], seen: Mapping[str, Fingerprint], digests: Mapping[str, str] | None
    ) -> None:
        """Stop jobs that started with copies of files that had just changed, so that they wait again."""
        if (
            not digests
            or not jobs[0].content
            or combine_digests(digests) == jobs[0].content
            or self.access_points.point is None
        ):
            return
        files = [seen[name].changed_at for name in digests if name in seen]
        changed = max([*files, self.images.find_move(jobs[0].named.address)])
        stale = [job.id for job in jobs if job.started >= int(changed)]
        for clause in ids(stale):
            log.info("jobs.taken-back", jobs=len(stale), first=stale[0])
            await LocalReach("access point").run(to_vacate(self.access_points.point.tools, clause))

    async def _find_owner(self, job: inputs.WaitingJob) -> str:
        """Return the owner of the annex that a job with a registry image names."""
        annex = await self.store.read(lambda tx: tx.annexes.get(job.annex)) if job.named.address else None
        return annex.person if annex else ""

    def _digests(
        self, named: NamedInput, seen: Mapping[str, Fingerprint], owner: str, since: int
    ) -> dict[str, str] | None:
        """Return the digests of a job's shared inputs; None while a file or a registry is still being read."""
        sizes = {name: fingerprint.size for name, fingerprint in seen.items()}
        wanted = choose_shared(named, sizes, [name for name in seen if seen[name].tree])
        digests: dict[str, str] = {}
        for name in wanted:
            if (digest := self._input_files.digest(named.path(name), seen[name])) is not None:
                digests[name] = digest
        image = self.images.find_digest(named.address, owner, since) if named.address and not named.is_session else ""
        if named.is_session and named.address:
            image = name_archive(named.address)  # a session names an image by digest, which never changes
        if image:
            digests[named.address] = image
        return None if image is None or len(digests) < len(wanted) else digests

    def _until(self, named: NamedInput) -> int:
        """Return the time until which a job waits for copies."""
        return round(self.now().timestamp()) + named.patience

    def _copies(
        self, there: LeaseOnSystem, named: NamedInput, digests: Mapping[str, str], trees: frozenset[str]
    ) -> dict[str, str] | None:
        """Return the paths of a job's available copies on a lease's system; None while some are being copied."""
        paths, waits = {}, False
        for name, digest in digests.items():
            brought = self._inputs.find(there.platform.name, digest)
            if brought.path and there.lease.id in brought.leases:
                paths[name] = brought.path
            elif brought.bringing is None and not self._lately(
                brought, AGAIN_IMAGE if name == named.address else AGAIN
            ):
                brought.former.add(there.lease.id)  # saved before anything is sent
                if name == named.address:
                    have = self.images.stream if named.is_session else self.images.bring
                    brought.bringing = asyncio.create_task(self._bring_image(there, name, digest, brought, have))
                else:
                    bring = self._bring_tree if name in trees else self._bring_input
                    bring = self._bring_session_image if named.is_session else bring
                    brought.bringing = asyncio.create_task(bring(there, named.path(name), digest, brought))
                self._inputs.save()
                waits = True
            else:
                waits = waits or brought.bringing is not None or there.session.phase in PENDING
        return None if waits else paths

    def _lately(self, brought: Brought, again: timedelta) -> bool:
        return brought.failed is not None and abs(self.now() - brought.failed) < again

    async def _bring_image(
        self,
        there: LeaseOnSystem,
        address: str,
        digest: str,
        brought: Brought,
        have: HaveImage,
    ) -> None:
        """Have a system keep a registry image for as long as the lease lasts."""
        name = there.platform.name
        try:
            image = await have(there.platform, address, digest, there.session)
            for each in (self._inputs.find(name, image.digest), brought):  # an archive is kept under its own digest
                each.path, each.failed, each.why = image.path, None, ""
                each.leases.add(there.lease.id)
            log.info("image.kept", lease=there.lease.id, platform=name, image=address, digest=image.digest)
        except (SubletError, OSError, ValueError) as error:
            brought.failed, brought.why = self.now(), str(error)
            log.warning("image.not-kept", lease=there.lease.id, platform=name, image=address, why=str(error))
        finally:
            brought.bringing = None

    async def _bring_tree(self, there: LeaseOnSystem, path: str, digest: str, brought: Brought) -> None:
        """Have a system keep a directory, as one archive."""
        archive = self.settings.home / PACKING / f"{there.platform.name}-{digest.rpartition(':')[2]}.tar"
        try:
            archive.parent.mkdir(mode=0o700, exist_ok=True)
            await asyncio.to_thread(pack_tree, path, archive)
            await self._bring_input(there, str(archive), digest, brought)
        except (OSError, NotShareable, TarError) as error:
            brought.failed = self.now()
            log.warning("input.not-kept", lease=there.lease.id, file=os.path.basename(path), why=str(error))
        finally:
            brought.bringing = None
            archive.unlink(missing_ok=True)

    async def _bring_session_image(self, there: LeaseOnSystem, path: str, digest: str, brought: Brought) -> None:
        """Have a system keep a session's image, and convert it to the form that its nodes run."""
        await self._bring_input(there, path, digest, brought, is_image=True)

    async def _bring_input(
        self, there: LeaseOnSystem, path: str, digest: str, brought: Brought, *, is_image: bool = False
    ) -> None:
        """Have a system keep a file for as long as the lease lasts."""
        file = Path(path)
        try:
            content = await there.platform.keep(file, digest, there.session.id)
            if is_image:
                await self.images.make(there.platform, content, ArchiveFile(path), there.session.id)
            brought.path = content
            brought.leases.add(there.lease.id)
            brought.failed = None
            log.info("input.kept", lease=there.lease.id, platform=there.platform.name, file=file.name, digest=digest)
        except (SubletError, OSError) as error:
            brought.failed = self.now()
            log.warning("input.not-kept", lease=there.lease.id, file=file.name, why=str(error))
        finally:
            brought.bringing = None

    async def _tell_jobs(self, jobs: Sequence[inputs.WaitingJob], changes: Mapping[str, str]) -> None:
        if self.access_points.point:
            for clause in ids([job.id for job in jobs]):
                waiting = f"{inputs.WAITING} && ({clause})"  # not jobs that have started since
                await LocalReach("access point").run(to_edit(self.access_points.point.tools, waiting, changes))

    async def _let_go(self, leases: Sequence[LeaseOnSystem]) -> None:
        """Remove copies that no lease needs any more; retried while there is no login, also after a crash."""
        live, now = {there.lease.id for there in leases}, self.now()
        for (system, digest), brought in list(self._inputs.brought.items()):
            is_needed = bool((brought.leases | brought.former) & live or brought.bringing)
            brought.leases &= live
            if is_needed:
                brought.unneeded = brought.tried = None
            elif brought.tried is None or now - brought.tried >= AGAIN:
                platform = self.platforms.by_name.get(system)
                if not platform or not brought.may_be_there or await self._remove(platform, digest):
                    del self._inputs.brought[system, digest]
                brought.unneeded = brought.unneeded or now
                brought.tried = now if now - brought.unneeded >= SOON else None  # at first at every check
        self._inputs.save()

    async def _remove(self, platform: Platform, digest: str) -> bool:
        """Remove a copy from a system; return whether it is gone. It stays while a session needs it."""
        try:
            gone = digest in await platform.let_go(digest)
            if gone:
                log.info("input.let-go", platform=platform.name, digest=digest)
            return gone or digest not in {kept.digest for kept in await platform.list_kept()}
        except SubletError:
            return False


def _alike(waiting: Sequence[inputs.WaitingJob]) -> list[list[inputs.WaitingJob]]:
    """Group jobs with the same inputs and the same state."""
    groups: dict[tuple[object, ...], list[inputs.WaitingJob]] = {}
    for job in waiting:
        alike = (job.annex, job.named, job.seen, job.ready, job.waits, job.content, job.is_running)
        groups.setdefault(alike, []).append(job)
    return list(groups.values())


def _fingerprints(named: NamedInput, files: InputFiles) -> dict[str, Fingerprint]:
    """Return the fingerprints of a job's files and directories that can be shared."""
    seen = {name: read_fingerprint(named.path(name)) for name in named.candidates}
    return {
        name: fingerprint
        for name, fingerprint in seen.items()
        if fingerprint and not files.is_restless(named.path(name), fingerprint)
    }
