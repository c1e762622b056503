"""Kubernetes, through its API: for a person with a kubeconfig or a token, or a gateway's service account.

A session is a Job of one pod, or of one pod on each of several nodes, named by the session's key.
The platform's own directory here contains

    sessions/KEY/   one session (described in session.py): what is sent to its pod, and what came back
    s/              a Unix socket for each session that someone can connect to
    owner           the ID that marks this service's objects in the cluster
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import Connector, End, EndKind
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.batch.guest import own_name
from sublet.platforms.kubernetes.access import AccessSettings
from sublet.platforms.kubernetes.api import ObjectMissing
from sublet.platforms.kubernetes.choosing import TAKEN, NodeChoice
from sublet.platforms.kubernetes.connection import ClusterConnection
from sublet.platforms.kubernetes.jobs import SessionJobs
from sublet.platforms.kubernetes.manifests import PORT, SESSION, PodPlace
from sublet.platforms.kubernetes.names import label_of, name_of
from sublet.platforms.kubernetes.notes import describe_view
from sublet.platforms.kubernetes.offers import KubernetesOffers, describe_nothing, list_takes
from sublet.platforms.kubernetes.session import PodSession
from sublet.platforms.kubernetes.states import choose_pod, is_ready, runs
from sublet.platforms.kubernetes.survey import ClusterView, limit_nodes, look, share_quota
from sublet.platforms.local.launch import socket_of
from sublet.platforms.port import Duration, Memory, Platform, Results, Survey
from sublet.platforms.sessiondir import remove_tree

GIB = 1 << 30
AT_ONCE = 8  # sessions that are looked at, and whose results are fetched, at a time
FRESH = 20.0  # seconds that a survey of the cluster is good for
TOO_LONG = "no socket to it can be made: SUBLET_HOME is too long, and no shorter link to it can be made in /tmp"
OWN_TOOLS = {"sh": "/bin/sh", "kubernetes": "kubernetes"}


class Kubernetes(Platform):
    """A namespace of a Kubernetes cluster."""

    kind: ClassVar[str] = "kubernetes"
    tells: ClassVar[bool] = True
    starts_each_node: ClassVar[bool] = True
    terms: Literal["booked", "predicted"] = Field(  # type: ignore[misc]  # elsewhere fixed, here a setting
        default="predicted",
        description="`predicted`: others use the cluster too. `booked`: its nodes, or the namespace's quota, are for "
        "Sublet's sessions alone.",
    )
    kubeconfig: str = Field(
        default="",
        description="The kubeconfig file; empty: those of $KUBECONFIG, else ~/.kube/config, and in a pod its service "
        "account.",
    )
    context: str = Field(default="", description="The context of the kubeconfig; empty: its current one.")
    namespace: str = Field(default="", description="The namespace of all sessions; empty: that of the context.")
    server: str = Field(default="", description="Instead of a kubeconfig: the API server's https address.")
    authority: str = Field(default="", description="The file with the certificate that the API server is known by.")
    token_file: str = Field(default="", description="The file with its token, which only you can read.")
    image: str = Field(
        default="docker.io/library/python:3.12-slim", description="The image that commands and scripts run in."
    )
    tools: tuple[str, ...] = Field(
        default=("python3",), description="What that image has of what kinds need: python3, papermill, jupyter-lab."
    )
    helper: str = Field(
        default="docker.io/library/busybox:1.36-musl",
        description="The image, with a static BusyBox, that lays sessions out, keeps their time and their results.",
    )
    image_pull: Literal["IfNotPresent", "Always", "Never"] = Field(
        default="IfNotPresent", description="When nodes pull images."
    )
    pull_secrets: tuple[str, ...] = Field(default=(), description="Secrets of the namespace that images are pulled by.")
    user: int | None = Field(
        default=None,
        ge=1,
        description="The number of the user that pods run as, as restricted namespaces want it; unset: as images say.",
    )
    service_account: str = Field(default="", description="The service account of pods; they never see its token.")
    priority_class: str = Field(default="", description="The priority class of pods.")
    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels that a node must have.")
    gpu_resource: str = Field(default="nvidia.com/gpu", description="What a GPU is called in the cluster.")
    gpu_label: str = Field(
        default="nvidia.com/gpu.product", description="The label of a node that names the type of its GPUs."
    )
    licenses: dict[str, str] = Field(
        default_factory=dict, description="A licence → the extended resource of nodes as which it is counted."
    )
    claim: str = Field(
        default="",
        description="A PersistentVolumeClaim of the namespace, in which large files that sessions bring are kept.",
    )
    unused: Duration = Field(
        default=timedelta(days=30), ge=timedelta(days=1), description="How long unused files stay there."
    )
    cores: int | None = Field(default=None, ge=1, description="The most cores of a session, where nothing else says.")
    memory: Memory | None = Field(default=None, ge=1 << 26, description="The most memory of a session, likewise.")
    gpus: int = Field(default=0, ge=0, description="The most GPUs of a session, likewise.")
    longest: Duration | None = Field(default=None, description="The longest time of a session; unset: any.")
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    keep_results: Duration = Field(
        default=timedelta(days=1),
        description="How long a pod keeps what its session left while the service is not there to fetch it.",
    )
    patience: Duration = Field(
        default=timedelta(minutes=10), description="How long pulling an image, or sending files, may fail at first."
    )
    output_limit: Memory = Field(default=GIB, ge=1 << 10, description="How much of stdout, and of stderr, is shown.")
    _home: Path = PrivateAttr()
    _owner: str = PrivateAttr(default="")
    _link: ClusterConnection | None = PrivateAttr(default=None)
    _view: ClusterView | None = PrivateAttr(default=None)
    _viewed: float = PrivateAttr(default=float("-inf"))

    async def open(self, home: Path) -> None:
        """Create the directories; the API server is called when it is needed."""
        await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        self._home = home.absolute()
        try:
            for name in ("sessions", "running", "news", "trash", "s"):
                (self._home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owner = own_name(self._home)
        except OSError as error:
            raise PlatformUnreachable(platform=self.name, why=str(error)) from error
        asked = AccessSettings(
            self.kubeconfig, self.context, self.namespace, self.server, self.authority, self.token_file
        )
        self._link = ClusterConnection(self.name, asked, self._place)
        for left in (self._home / "trash").iterdir():
            remove_tree(left)

    async def close(self) -> None:
        """Close the connection; running sessions continue."""
        if self._link:
            await self._link.close()

    async def _connect(self) -> SessionJobs:
        if self._link is None:
            raise PlatformUnreachable(platform=self.name, why="it is not open")
        return await self._link.open()

    @property
    def _place(self) -> PodPlace:
        return PodPlace(
            owner=self._owner,
            image=self.image,
            helper=self.helper,
            pull=self.image_pull,
            pull_secrets=self.pull_secrets,
            user=self.user,
            account=self.service_account,
            priority=self.priority_class,
            gpu=self.gpu_resource,
            gpu_label=self.gpu_label,
            licenses=self.licenses,
            claim=self.claim,
            unused=self.unused,
            selector=self.node_selector,
            grace=self.grace,
            keep=self.keep_results,
            patience=self.patience,
        )

    # Survey

    @property
    def _offers(self) -> KubernetesOffers:
        choice = NodeChoice(self.name, self.gpu_label, self.licenses, self.terms == "booked")
        version = self._view.version if self._view else ""
        return KubernetesOffers(self.name, self._stated, self.longest, choice, version)

    @property
    def _stated(self) -> Shape | None:
        return Shape(self.cores, self.memory, self.gpus) if self.cores and self.memory else None

    async def _look(self, good_for: float = FRESH) -> ClusterView:
        jobs = await self._connect()
        if self._view is None or time.monotonic() - self._viewed > good_for:
            self._view = await look(jobs.api, self._owner, self.gpu_resource, self.node_selector)
            self._viewed = time.monotonic()
        return self._view

    def expire_survey(self) -> None:
        """Ask the cluster again at the next survey."""
        self._viewed = float("-inf")

    async def survey(self) -> Survey:
        """Return the visible nodes, within the quota; if none is visible, the quota as a node."""
        view = await self._look()
        nodes = tuple(limit_nodes(view, self._stated))
        if self.terms == "booked":
            nodes = tuple(share_quota(nodes, view.quota))
        if not nodes:
            raise PlatformRefused(platform=self.name, why=describe_nothing(view, self.name))
        is_booked = self.terms == "booked" and view.sees_nodes
        return Survey(
            view.as_of,
            nodes,
            tools=OWN_TOOLS | dict.fromkeys(self.tools, ""),
            notes=describe_view(view, self.gpu_label, self.licenses),
            taken=tuple(list_takes(view, nodes, view.as_of, of_others=True)) if is_booked else (),
            good_for=timedelta(seconds=FRESH),
        )

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why the request could never run here: by its number of nodes, labels, licences or ports."""
        closed = self._offers.find_closed_ports(self._view, request) if self._view else ()
        return [*self._offers.unfit(request), *closed]

    def can_take(self, option: str) -> bool:
        """Whether the option is supported: labels of nodes, the GPU type, and licences."""
        return option in TAKEN

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return when there is room for the request, by the quota and the running and waiting pods, or why not."""
        offers, view = self._offers, await self._look(1.0)
        return offers.choice.state_gpus(view, request, offers.answer(view, request, ways[0], now))

    # Sessions

    def _session(self, key: str) -> PodSession:
        return PodSession(self.name, self._home, key)

    async def place(self, key: str) -> Path | None:
        """Return the session's local directory; data staged in it is sent to its pod."""
        session = self._session(key)
        session.make()
        return session.root

    async def session_directory(self, key: str) -> str:
        """Return the session's directory in its own pod, which is the same for all."""
        return SESSION

    async def find(self, key: str) -> str | None:
        """Return the key if the session has a Job, by our note of it or by its name."""
        session = self._session(key)
        if session.ended or session.read_note("submitted"):
            return key
        job = await (await self._connect()).find(key)
        if job and session.root.is_dir():
            session.note("submitted", job["metadata"]["uid"])
        return key if job else None

    async def submit(self, job: Job, key: str) -> str:
        """Create the session's Job, once: its name derives from the key."""
        session = self._session(key)
        if await self.find(key):
            return key
        await asyncio.to_thread(session.lay_out, job, self.output_limit)
        if by := session.cancelled_by:
            now = time.time()
            session.settle(End(EndKind.CANCELLED, by=by, detail="it had not started"), now, now)
            return key
        await (await self._connect()).submit(job, session)
        return key

    def find_own_id(self, key: str) -> str:
        """Return the name of the session's Job, as `kubectl` shows it."""
        return name_of(key) if self._session(key).read_note("submitted") else ""

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many sessions at once, by the watches."""
        sessions = {id: self._session(id) for id in ids}
        states = {id: session.state() for id, session in sessions.items() if session.ended}
        there = {id: session for id, session in sessions.items() if id not in states and session.root.is_dir()}
        if there:
            jobs = await self._connect()
            await jobs.refresh()
            turns = asyncio.Semaphore(AT_ONCE)
            looks = (self._look_at(session, jobs, turns) for session in there.values())
            states |= dict(zip(there, await asyncio.gather(*looks), strict=True))
        return {id: states.get(id) or JobState(State.UNKNOWN) for id in ids}

    async def _look_at(self, session: PodSession, jobs: SessionJobs, turns: asyncio.Semaphore) -> JobState:
        async with turns:
            return await self._with_connector(session, await jobs.look(session), jobs)

    async def _with_connector(self, session: PodSession, state: JobState, jobs: SessionJobs) -> JobState:
        """Add the connector to the state of a session that listens, through a local socket."""
        connects = (session.read("job.json") or {}).get("connects")
        forwards = self._link.forwards if self._link else None
        if state.state is not State.RUNNING or not connects or forwards is None:
            return state
        pod = choose_pod(await jobs.see(session), session.read_note("pod"))
        path = socket_of(self._home, session.key)
        if pod is None or not is_ready(pod):
            return state
        if not path:
            return replace(state, condition=TOO_LONG)
        await forwards.open(Path(path), pod["metadata"]["name"], PORT)
        return replace(state, connector=Connector(connects, "AVAILABLE", "HTTP", f"unix:{path}"))

    async def news(self) -> Sequence[str] | None:
        """Return the sessions that the watches have reported on since the last call; None if they miss something."""
        jobs = await self._connect()
        changed = {label for label in jobs.changed if label}
        jobs.changed.difference_update(changed)
        keys = sorted(key for key in os.listdir(self._home / "sessions") if label_of(key) in changed)
        for key in keys:  # ended sessions whose removal was interrupted
            if self._session(key).ended and jobs.jobs.find(label_of(key)):
                await jobs.remove(key)
        has_told = self._link is not None and self._link.has_told_before()
        return keys if has_told and (keys or jobs.is_watching) else None

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop these sessions: the keeper of each pod stops all its processes; waiting ones are removed."""
        for id in ids:
            session = self._session(id)
            if session.ended:
                continue
            session.cancel(by or "someone")
            jobs = await self._connect()
            if session.root.is_dir():
                await jobs.stop(session)
            else:
                await jobs.remove(id)

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a session's time; its keeper is told as soon as possible."""
        session, wanted = self._session(id), str(round(until.timestamp()))
        if not session.root.is_dir() or session.ended or session.read_note("until") == wanted:
            return
        session.note("until", wanted)
        await (await self._connect()).look(session)

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output, which is streamed here while someone reads it."""
        session = self._session(key)
        await self._follow(session)
        return session.output(stream, offset, limit)

    async def _follow(self, session: PodSession) -> None:
        if session.ended or not session.root.is_dir():
            return
        with suppress(PlatformRefused, PlatformUnreachable, ObjectMissing):
            jobs = await self._connect()
            await jobs.refresh()
            await jobs.look(session)
            pod = choose_pod(await jobs.see(session), session.read_note("pod"))
            if pod and runs(pod, "main"):
                jobs.files.follow(session, pod["metadata"]["name"])

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return how much of a session's output has arrived here."""
        session = self._session(key)
        await self._follow(session)
        return session.output_size(stream)

    async def results(self, key: str) -> Results:
        """List a session's results; there are none before its end."""
        session = self._session(key)
        return await asyncio.to_thread(session.results) if session.ended else Results()

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove everything of a session, here and there; raise PlatformRefused if it still runs."""
        session = self._session(key)
        state = (await self.ask([key]))[key]
        if state.state in (State.RUNNING, State.QUEUED):
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        await (await self._connect()).remove(key)
        if self._link and self._link.forwards and (path := socket_of(self._home, key)):
            await self._link.forwards.close(Path(path))
        await asyncio.to_thread(session.remove, self._home / "trash")

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List this service's sessions that have objects in the cluster."""
        return await (await self._connect()).list_left(age)
