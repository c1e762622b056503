"""The Jobs of sessions: created once, watched, stopped, settled when they have ended, and removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from weakref import WeakValueDictionary

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.session import End, EndKind
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.platforms.kubernetes.api import ApiServer, Object, ObjectExists, ObjectMissing
from sublet.platforms.kubernetes.bounds import find_bounds
from sublet.platforms.kubernetes.groups import PodGroups
from sublet.platforms.kubernetes.manifests import INDEXED, PodPlace, make_job, make_secret, write_program
from sublet.platforms.kubernetes.names import KEEPER, KEY, OWNER, SESSION, STAGE, label_of, name_of, select
from sublet.platforms.kubernetes.pods import PodFiles
from sublet.platforms.kubernetes.session import SMALL, PodSession
from sublet.platforms.kubernetes.states import (
    BY_OTHERS,
    ELSEWHERE,
    FETCHING,
    FORCED,
    UNCOLLECTED,
    Left,
    Sight,
    choose_pod,
    describe_deletion,
    describe_end,
    has_begun,
    judge,
    read_time,
    runs,
)
from sublet.platforms.kubernetes.watch import WatchedObjects
from sublet.platforms.sessiondir import age

UNNUMBERED = "its server gives the pods of a Job no numbers, so that a session can't have several: that came with 1.22"
GONE = {"propagationPolicy": "Background"}
ASKED = 1.0  # seconds between two queries why a Job has no pod


@dataclass
class SessionJobs:
    """The sessions of one service in one namespace, while connected to its API server."""

    api: ApiServer
    place: PodPlace
    changed: set[str] = field(default_factory=set)  # labels of sessions that have changed

    def __post_init__(self) -> None:
        """Set up without watching yet."""
        self.files = PodFiles(self.api)
        self.pods = WatchedObjects(self.api, "pods", self.place.owner, self.changed.add)
        self.jobs = WatchedObjects(self.api, "jobs", self.place.owner, self.changed.add)
        self.groups = PodGroups(self.api, self.place, self.files, self._serve)
        self._watches: list[asyncio.Task[None]] = []
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._warnings: dict[str, tuple[float, str]] = {}  # sessions without a pod → when that was last asked, and why
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def start(self) -> None:
        """Start watching."""
        self._watches = [asyncio.create_task(watched.run()) for watched in (self.pods, self.jobs)]

    async def close(self) -> None:
        """Close the connections; running sessions continue."""
        tasks = [*self._watches, *self._sending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.files.close()
        await self.api.close()

    # Submitting

    async def find(self, key: str) -> Object | None:
        """Ask for a session's Job now; raise PlatformRefused if it belongs to another service."""
        try:
            job = await self.api.get(self.api.path_of("jobs", name_of(key)))
        except ObjectMissing:
            return None
        if job["metadata"].get("labels", {}).get(OWNER) != self.place.owner:
            why = f"there is a Job {name_of(key)} in {self.api.access.namespace} that is not this service's"
            raise PlatformRefused(platform=self.api.platform, why=why)
        return job

    async def submit(self, job: Job, session: PodSession) -> None:
        """Create a session's Secret and Job; an existing Job is taken as the session's."""
        length = job.until - datetime.now(UTC)
        if job.nodes == (self.api.access.namespace,):  # part of the quota was booked, on whichever node
            job = replace(job, nodes=())
        try:
            program = write_program(job, session.key, length, self.place.patience)
            manifest = make_job(job, session.key, self.place, length, await find_bounds(self.api))
        except ValueError as error:
            raise PlatformRefused(platform=self.api.platform, why=str(error)) from error
        packed = await asyncio.to_thread(session.pack, SMALL)
        session.note("packed", "" if packed is None else str(len(packed)))
        await self._put_secret(make_secret(job, session.key, self.place, program, packed))
        try:
            made = await self.api.create(self.api.path_of("jobs"), manifest)
        except ObjectExists:
            made = await self.find(session.key) or {}
        except PlatformRefused:
            await self.api.delete(self.api.path_of("secrets", name_of(session.key)))
            raise
        if session.nodes > 1 and made and made["spec"].get("completionMode") != INDEXED:
            await self.remove(session.key)
            raise PlatformRefused(platform=self.api.platform, why=UNNUMBERED)
        if made:
            self.jobs.put(made)
            session.note("submitted", made["metadata"]["uid"])

    async def _put_secret(self, secret: Object) -> None:
        """Create a session's Secret; an interrupted try may have left another."""
        path = self.api.path_of("secrets")
        try:
            await self.api.create(path, secret)
        except ObjectExists:
            await self.api.replace(f"{path}/{secret['metadata']['name']}", secret)

    # Looking

    @property
    def is_watching(self) -> bool:
        """Whether the watches report everything that happens now."""
        return self.pods.is_live and self.jobs.is_live

    async def refresh(self) -> None:
        """List the objects whose watch isn't live at the moment."""
        for watched in (self.jobs, self.pods):
            if not watched.is_live:
                await watched.refresh()

    async def see(self, session: PodSession) -> Sight:
        """Return a session as the cluster shows it; a Job that seems to be gone is asked for by name."""
        label = label_of(session.key)
        jobs, pods = self.jobs.find(label), self.pods.find(label)
        if not jobs and (job := await self.find(session.key)):
            self.jobs.put(job)
            jobs = [job]
        warning = await self._warn(session.key, jobs[0]) if jobs and not pods else ""
        return Sight(jobs[0] if jobs else None, pods, warning)

    async def _warn(self, key: str, job: Object) -> str:
        """Return why a session's Job has no pod, asked at most once a second."""
        now = time.monotonic()
        when, warning = self._warnings.get(key, (float("-inf"), ""))
        if now - when > ASKED:
            warning = await self._find_warning(job)
            self._warnings[key] = (now, warning)
        return warning

    async def _find_warning(self, job: Object) -> str:
        """Return why a Job has no pod, in the words of its controller."""
        query = {"fieldSelector": f"involvedObject.uid={job['metadata']['uid']}"}
        try:
            events = (await self.api.list(self.api.path_of("events"), **query)).get("items") or []
        except PlatformRefused:
            return ""
        warnings = [event for event in events if event.get("type") == "Warning"]
        last = max(warnings, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
        return f"{last.get('reason', '')}: {last.get('message', '')}" if last else ""

    async def look(self, session: PodSession) -> JobState:
        """Return a session's state now, after doing what it needs."""
        async with self._locks.setdefault(session.key, asyncio.Lock()):
            if session.ended:
                return session.state()
            sight, uid = await self.see(session), session.read_note("pod")
            if session.nodes > 1 and sight.pods:
                state = await self.groups.look(session, sight)
                return await self._settle(session, state) if state.state is State.ENDED else state
            pod = choose_pod(sight, uid)
            if pod is None:
                return await self._look_at_nothing(session, sight, uid)
            if has_begun(pod) and not uid:
                await self._note_begin(session, pod)
            await self._serve(session, pod)
            state = judge(pod, datetime.now(UTC), self.place.patience)
            return await self._finish(session, sight, pod, state) if state.state is State.ENDED else state

    async def _look_at_nothing(self, session: PodSession, sight: Sight, uid: str) -> JobState:
        """Return the state without a pod: it is still to come, it was lost, or everything was removed."""
        by = session.cancelled_by
        if await self._find_hidden(session.key, uid):
            return JobState(State.RUNNING, condition="its pod is being looked for")
        if uid and not by:
            return await self._settle(session, JobState(State.ENDED, describe_deletion(sight)))
        if sight.job is None and (by or session.read_note("submitted")):
            detail = "it had not started" if not uid else ""
            end = End(EndKind.CANCELLED, by=by or ELSEWHERE, detail=detail if by else f"its Job was deleted; {detail}")
            return await self._settle(session, JobState(State.ENDED, end))
        if sight.job is None:
            return JobState(State.UNKNOWN)
        return JobState(State.QUEUED, condition=sight.warning or "its Job has no pod yet")

    async def _find_hidden(self, key: str, uid: str) -> bool:
        """Whether a session's pod exists after all, so that it doesn't count as lost because a watch is behind."""
        if not uid:
            return False
        query = {"labelSelector": f"{select(self.place.owner)},{SESSION}={label_of(key)}"}
        pods = (await self.api.list(self.api.path_of("pods"), **query)).get("items") or []
        hidden = [pod for pod in pods if pod["metadata"]["uid"] == uid]
        for pod in hidden:
            self.pods.put(pod)
        return bool(hidden)

    async def _note_begin(self, session: PodSession, pod: Object) -> None:
        """Record the session's pod, and delete the Secret, so that no replacement of the pod can start."""
        session.note("pod", pod["metadata"]["uid"])
        await self.api.delete(self.api.path_of("secrets", name_of(session.key)))

    async def _serve(self, session: PodSession, pod: Object) -> None:
        """Send a session's files if its pod waits for them, and orders that couldn't be sent before."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        is_sent = bool(session.read_note(_name_sent(uid)))
        if runs(pod, STAGE) and uid not in self._sending and not (is_sent or session.read_note("packed")):
            task = asyncio.create_task(self._send(session, pod))
            self._sending[uid] = task
            task.add_done_callback(lambda done: self._sending.pop(uid, None))
        until = session.read_note("until")
        if until and until != session.read_note("until.sent") and has_begun(pod) and runs(pod, KEEPER):
            try:
                await self.files.order(name, "until", until)
            except (SubletError, ObjectMissing) as error:  # it is tried again at the next look
                log.warning("kubernetes.unordered", platform=self.api.platform, session=session.key, why=str(error))
            else:
                session.note("until.sent", until)

    async def _send(self, session: PodSession, pod: Object) -> None:
        try:
            days = max(1, self.place.unused.days) if self.place.claim else 0
            carried = await self.files.send(session, pod["metadata"]["name"], days)
            session.note("carried", str(carried))
            session.note(_name_sent(pod["metadata"]["uid"]), "whole")
        except (SubletError, ObjectMissing, OSError) as error:  # it is tried again at the next look
            log.warning("kubernetes.unsent", platform=self.api.platform, session=session.key, why=str(error))

    # Ending

    async def _finish(self, session: PodSession, sight: Sight, pod: Object, state: JobState) -> JobState:
        """Fetch a session's results, record how it ended, and remove it from the cluster."""
        left, why = Left(), ""
        if runs(pod, KEEPER):
            try:
                left = await self.files.collect(session, pod["metadata"]["name"])
            except PlatformUnreachable as error:
                if datetime.now(UTC) - (state.ended or datetime.now(UTC)) < self.place.patience:
                    return JobState(State.RUNNING, started=state.started, condition=FETCHING.format(why=error.message))
                why = UNCOLLECTED.format(why=error.message)
            except (PlatformRefused, ObjectMissing) as error:
                why = UNCOLLECTED.format(why=error)
        elif has_begun(pod):
            why = UNCOLLECTED.format(why="its pod has ended")
        over = state
        if has_begun(pod) or session.cancelled_by:
            over = describe_end(pod, left, session.cancelled_by)
        if over.end and over.end.kind in BY_OTHERS and pod["metadata"].get("deletionTimestamp"):
            over = replace(over, end=replace(describe_deletion(sight), usage=over.end.usage))
        if why and over.end:
            over = replace(over, end=replace(over.end, detail="; ".join(filter(None, (over.end.detail, why)))))
        return await self._settle(session, over)

    async def _settle(self, session: PodSession, state: JobState) -> JobState:
        end = state.end or End(EndKind.UNKNOWN)
        ended = (state.ended or datetime.now(UTC)).timestamp()
        started = state.started.timestamp() if state.started else ended
        await asyncio.to_thread(session.settle, end, started, ended)
        await self.remove(session.key)
        return session.state()

    async def stop(self, session: PodSession) -> None:
        """Have a session's keeper stop it, so that its results can be fetched; without a keeper, remove the Job."""
        sight = await self.see(session)
        pod = choose_pod(sight, session.read_note("pod"))
        is_patient = age(session.root / "cancel") < self.place.grace.total_seconds() + FORCED
        if session.nodes > 1 and is_patient and await self.groups.stop(session, sight):
            return
        if session.nodes == 1 and pod and has_begun(pod) and runs(pod, KEEPER) and is_patient:
            try:
                await self.files.order(pod["metadata"]["name"], "cancel", session.cancelled_by)
            except (PlatformRefused, PlatformUnreachable, ObjectMissing) as error:
                log.warning("kubernetes.unstopped", platform=self.api.platform, session=session.key, why=str(error))
            else:
                return
        await self.remove(session.key)

    async def remove(self, key: str) -> None:
        """Remove all objects of a session from the cluster."""
        jobs = self.jobs.find(label_of(key))
        await self.api.delete(self.api.path_of("jobs", name_of(key)), GONE)
        await self.api.delete(self.api.path_of("secrets", name_of(key)))
        for job in jobs:
            self.jobs.drop(job["metadata"]["uid"])
        self._warnings.pop(key, None)
        self.groups.forget(key)

    async def list_left(self, older_than: timedelta) -> Sequence[str]:
        """List the keys of sessions that have had objects here for at least this long."""
        now, keys = datetime.now(UTC), []
        for kind in ("jobs", "secrets", "pods"):
            for each in (await self.api.list(self.api.path_of(kind), labelSelector=select(self.place.owner)))["items"]:
                made = read_time(each["metadata"].get("creationTimestamp")) or now
                if now - made >= older_than and (key := (each["metadata"].get("annotations") or {}).get(KEY)):
                    keys.append(key)
        return list(dict.fromkeys(keys))


def _name_sent(uid: str) -> str:
    """Return the name of the note that a pod has its files."""
    return f"sent.{uid}"
