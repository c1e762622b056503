"""This machine: real processes in their own directories, each under a shim that outlives the service.

How jobs are run, warned, stopped and recorded is described in `shim/__init__.py`. The platform's own directory contains

    sessions/KEY/   one session: work/ (its working directory), data/, tmp/, stdout, stderr and the shim's records
    running/KEY     a mark for each running job, with the cores and GPUs that it was given
    news/KEY.WHAT   that mark, moved here at the job's end; or a mark that the job has begun to listen
    kept/NAME/      remote data that many sessions read (cache_entry.py)
    trash/          what is being removed
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Node
from sublet.booking.model.session import CONTINUED, STOPPED, End, EndKind
from sublet.kernel import container_network
from sublet.kernel.descriptors import usual_limit
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms import cores, machine
from sublet.platforms.local import launch, places
from sublet.platforms.local.keeping import KeepsData
from sublet.platforms.local.os_errors import translate_os_errors
from sublet.platforms.local.pools import PoolSettings, make_storage, refuse_scratch, remove_storage, storage_path
from sublet.platforms.local.shim import clocks, scratch
from sublet.platforms.port import Duration, Memory, PoolName, Results, Survey
from sublet.platforms.sessiondir import SessionDir, age, remove_tree

GIB = 1 << 30
FRESH = 60.0  # seconds that a survey is good for
LOOK = 2.0  # seconds between checks that the shims are alive
SOONEST_LOSS = 1.0  # seconds that a starting shim may not be visible
FORGET = 600.0  # seconds after which every service process has seen a mark in news/
SLOWEST_PAUSE = 10.0  # seconds for a shim to obey
ABSENT = 300.0  # seconds without a call after which marks may have been missed


class Local(KeepsData):
    """This machine, by processes of its own."""

    kind: ClassVar[str] = "local"
    tells: ClassVar[bool] = True
    is_here: ClassVar[bool] = True
    has_places: ClassVar[bool] = True
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "booked"
    cores: int | None = Field(default=None, ge=1, description="How many cores to offer; default: all available.")
    memory: Memory | None = Field(
        default=None, ge=1 << 26, description="How much memory to offer, as `64GiB`; default: all but a small reserve."
    )
    gpus: int | None = Field(default=None, ge=0, description="How many GPUs to offer; default: those of NVIDIA found.")
    scratch: Memory | None = Field(
        default=None,
        ge=0,
        description="Storage, as `500GiB`; default: half of what is free.",
    )
    pools: Annotated[dict[PoolName, PoolSettings], AfterValidator(refuse_scratch)] = Field(
        default_factory=dict,
        max_length=20,
        description="Further storage pools, folders of other disks: name → `path` and `size`.",
    )
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    output_limit: Memory = Field(
        default=GIB, ge=1 << 10, description="How much of stdout, and of stderr, is kept of each session."
    )
    powercap: str = Field(default="/sys/class/powercap", description="Where the kernel counts energy (RAPL).")
    processes: int = Field(default=2048, ge=16, description="The most processes and threads of a session at a time.")
    cgroups: bool = Field(
        default=True, description="Hold each session's memory by a control group, where one can be made."
    )
    inherit: tuple[str, ...] = Field(
        default=("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "XDG_RUNTIME_DIR", "DOCKER_HOST"),
        description="Variables of the service's environment that sessions see; all others are hidden.",
    )
    contained_only: bool = Field(
        default=False, description="Run nothing that isn't in a container; HOME is then the session's own directory."
    )
    container_network: Literal["usual", "own", "host", "none"] = Field(
        default="usual",
        description="The network of containers: `usual` (Podman and Docker make one of their own, or give none; "
        "Apptainer and Charliecloud share the machine's), `own` (never the machine's), `host` (the machine's, with "
        "all that listens on its loopback) or `none`. Others than the service's own person never get the machine's.",
    )
    _home: Path = PrivateAttr()
    _survey: Survey | None = PrivateAttr(default=None)
    _surveyed: float = PrivateAttr(default=0.0)
    _notes: tuple[str, ...] = PrivateAttr(default=())
    _scratch: int = PrivateAttr(default=0)
    _seen: set[str] = PrivateAttr(default_factory=set)
    _heard: float | None = PrivateAttr(default=None)
    _looked: float = PrivateAttr(default=0.0)

    async def open(self, home: Path) -> None:
        """Create the directories, and settle jobs that ended without a record while no service was running."""
        await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        self._home = home.absolute()
        try:
            for name in ("sessions", "running", "news", "trash", "s"):
                (self._home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise PlatformUnreachable(platform=self.name, why=str(error)) from error
        for left in (self._home / "trash").iterdir():
            remove_tree(left)
        has_mounts, note = machine.describe_volumes()
        self._notes = (machine.memory_note(self.cgroups), note)
        self._open_data_cache(self._home, self._inherit(), has_mounts=has_mounts)
        self._scratch = machine.scratch(self._home) if self.scratch is None else self.scratch
        self._look()
        scratch.sweep(self._is_over)

    def _is_over(self, directory: str) -> bool:
        """Whether temporary files belong to a session of this platform that has ended."""
        root = Path(directory).parent
        return root.parent == self._home / "sessions" and self._session(root.name).ended

    async def survey(self) -> Survey:
        """Return what this machine has, as of at most a minute ago."""
        if self._survey is None or time.monotonic() - self._surveyed > FRESH:
            self._survey = await asyncio.to_thread(self._survey_now)
            self._surveyed = time.monotonic()
        return self._survey

    def choose_network_policy(self, is_for_stranger: bool) -> str:
        """Return the setting, except that a stranger's container never shares the network of this machine."""
        shares = self.container_network in (container_network.USUAL, container_network.HOST)
        return container_network.OWN if is_for_stranger and shares else self.container_network

    def lets_out(self, is_for_stranger: bool) -> bool | None:
        """Whether one of the container tools gives containers a network; None before the first survey."""
        if self._survey is None:
            return None
        policy = self.choose_network_policy(is_for_stranger)
        return any(not network.is_none for network in machine.find_networks(self._survey.tools, policy).values())

    def _survey_now(self) -> Survey:
        tools = machine.tools()
        node = Node(
            name=gethostname(),
            cores=self.cores or len(machine.cores()),
            memory=self.memory or machine.memory(),
            gpus=machine.gpus() if self.gpus is None else self.gpus,
            disk=self._scratch,
        )
        return Survey(
            as_of=datetime.fromtimestamp(clocks.wall(), UTC),
            nodes=(node,),
            pools={"scratch": self._scratch} | {name: pool.size for name, pool in self.pools.items()},
            tools=tools,
            notes=(*self._notes, *machine.network_notes(tools, self.container_network)),
            contained_only=self.contained_only,
        )

    def _session(self, key: str) -> SessionDir:
        return SessionDir(self.name, self._home, key)

    async def place(self, key: str) -> Path | None:
        """Return the session's directory, created if necessary."""
        session = self._session(key)
        with translate_os_errors(self.name):
            session.make()
        return session.root

    async def make_storage(self, key: str, name: str, pool: str) -> None:
        """Create a session's storage in a pool, linked in the session's directory; scratch needs none."""
        if pool in self.pools:
            with translate_os_errors(self.name):
                link = storage_path(self._session(key).root, name)
                await asyncio.to_thread(make_storage, self.pools[pool], key, link)

    async def find(self, key: str) -> str | None:
        """Return the key once a shim has claimed the job: before that, nothing ran and nothing will by itself."""
        return key if self._session(key).ran else None

    async def submit(self, job: Job, key: str) -> str:
        """Write the job's files and start its shim."""
        await asyncio.to_thread(self._submit, job, self._session(key))
        return key

    def _submit(self, job: Job, session: SessionDir) -> None:
        with translate_os_errors(self.name):
            session.make()
            if session.ran:
                return
            session.write_program(dict(job.program.files))
            volumes = session.volumes(job.mounts) + session.places(job.places)
            there = {"cores": machine.cores(), "gpus": list(range(machine.gpus() if self.gpus is None else self.gpus))}
            wanted = {"cores": job.amounts.shape.cores, "gpus": job.amounts.shape.gpus}
            try:
                with cores.lock(self._home / "lock"):
                    given = cores.allot(self._home / "running", session.key, wanted, there)
                session.write_job(self._spec(job, session, given, volumes))
                launch.start(session)
            except (OSError, PlatformRefused):
                if not session.ran:
                    session.running.unlink(missing_ok=True)
                raise

    def _inherit(self) -> dict[str, str]:
        """Return the variables of the service's environment that sessions see."""
        hidden = {"HOME"} if self.contained_only else set()
        return {name: os.environ[name] for name in self.inherit if name in os.environ and name not in hidden}

    def _spec(
        self, job: Job, session: SessionDir, given: dict[str, list[int]], volumes: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the job in the shim's format."""
        environment = launch.environment(job, session, given, self._inherit())
        socket = launch.socket_of(self._home, session.key) if job.program.connects else ""
        if socket:
            environment["SUBLET_SOCKET"] = socket
        return {
            "key": session.key,
            "argv": job.program.argv,
            "environment": environment,
            "work": str(session.work),
            "cores": given["cores"],
            "memory": job.amounts.shape.memory,
            "processes": self.processes,
            "files": usual_limit(),
            "cgroups": self.cgroups,
            "powercap": self.powercap,
            "until": job.until.timestamp(),
            "clock": clocks.offset(),
            "warn": job.warn.total_seconds(),
            "grace": self.grace.total_seconds(),
            "output_limit": self.output_limit,
            "mounts": volumes,
            "connects": job.program.connects,
            "socket": socket,
            "running": str(session.running),
            "news": str(session.news),
            "scratch": [session.make_scratch(), str(session.root / "tmp")],
        }

    async def open_place(self, path: str, scratch: str = "") -> str:
        """Return the full path of a shared directory of this machine."""
        with translate_os_errors(self.name):
            return await asyncio.to_thread(places.open_place, self.name, self._home, path, scratch)

    async def remove_scratch(self, path: str, scratch: str) -> None:
        """Remove someone's scratch directory."""
        with translate_os_errors(self.name):
            await asyncio.to_thread(places.remove_scratch, self.name, self._home, path, scratch)

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many jobs at once, by their files and processes."""
        with translate_os_errors(self.name):
            return await asyncio.to_thread(lambda: {job: self._state(self._session(job)) for job in ids})

    def _state(self, session: SessionDir) -> JobState:
        """Return the state by the session's files; if its shim is gone without a record, settle that first."""
        state = session.state()
        if state.state is not State.UNKNOWN or not session.ran:
            return state
        shim = session.shim
        if shim is None and (session.age("ran") < SOONEST_LOSS or launch.find_shim(session)):
            return JobState(State.RUNNING, condition="starting")
        if not (shim and shim.alive) and not session.ended:
            with translate_os_errors(self.name):
                launch.settle(session, shim)
        return session.state()

    def _look(self) -> None:
        """Check that every running job still has its shim."""
        for mark in (self._home / "running").iterdir():
            session = self._session(mark.name)
            if self._state(session).state is State.ENDED:
                with suppress(OSError):
                    mark.rename(session.news / f"{session.key}.ended")
            elif not session.ran and age(mark) > 2 * launch.SLOWEST_START:
                mark.unlink(missing_ok=True)  # a submit that died half-way: its cores are free

    async def news(self) -> Sequence[str] | None:
        """Return the jobs that ended or began to listen since the last call; None at first and after a long pause."""
        now = time.monotonic()
        missed = self._heard is None or now - self._heard > ABSENT
        self._heard = now
        if now - self._looked > LOOK:
            self._looked = now
            with translate_os_errors(self.name):
                await asyncio.to_thread(self._look)
                await asyncio.to_thread(self._forget)
        with translate_os_errors(self.name):
            names = set(os.listdir(self._home / "news"))
        fresh = names - self._seen
        self._seen = names
        return None if missed else sorted({name.rpartition(".")[0] for name in fresh})

    def _forget(self) -> None:
        for mark in (self._home / "news").iterdir():
            if age(mark) > FORGET:
                mark.unlink(missing_ok=True)

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have the shims stop these jobs: SIGTERM to all their processes, SIGKILL after the grace period."""
        for job in ids:
            await asyncio.to_thread(self._cancel, self._session(job), by or "someone")

    def _cancel(self, session: SessionDir, by: str) -> None:
        if not session.root.is_dir():
            launch.stop_lost(session)
            return
        if session.ended:
            return
        try:
            session.order("cancel", by)
            order = signal.SIGUSR1
        except OSError:
            order = signal.SIGUSR2  # a full disk: then without the name
        try:
            (session.root / "ran").mkdir()
        except FileExistsError:
            shim = session.shim
            if shim:
                launch.poke(shim, order)
        else:  # no shim has begun, and now none will
            now = clocks.wall()
            session.settle(End(EndKind.CANCELLED, by=by, detail="it had not started"), now, now)

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time, unless it has that end already or is over."""
        session = self._session(id)
        job = session.read("job.json")
        wanted = until.timestamp()
        if job is None or session.ended or wanted == (session.read("until") or job["until"]):
            return
        with translate_os_errors(self.name):
            session.order("until", repr(wanted))
        if shim := session.shim:
            launch.poke(shim, signal.SIGUSR1)

    async def pause(self, id: str) -> str:
        """Stop all processes of a job."""
        await asyncio.to_thread(self._order_pause, self._session(id), repr(time.time()))
        return STOPPED

    async def resume(self, id: str) -> str:
        """Continue all processes of a job."""
        await asyncio.to_thread(self._order_pause, self._session(id), "")
        return CONTINUED

    def _order_pause(self, session: SessionDir, order: str) -> None:
        """Leave the shim an order, and wait until it is obeyed."""
        deadline = time.monotonic() + SLOWEST_PAUSE
        with translate_os_errors(self.name):
            session.order("pause", order)
        while not session.has_obeyed(order):
            shim = session.shim
            if session.ended or not (shim and launch.poke(shim, signal.SIGUSR1)):
                raise PlatformRefused(platform=self.name, why="the job is over", hint="`sublet ps` shows what runs.")
            if time.monotonic() > deadline:
                raise PlatformUnreachable(platform=self.name, why="the job's processes could not be stopped")
            time.sleep(0.01)

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output."""
        with translate_os_errors(self.name):
            return self._session(key).output(stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return the size of a session's output."""
        with translate_os_errors(self.name):
            return self._session(key).output_size(stream)

    async def results(self, key: str) -> Results:
        """List the results in a session's working directory."""
        return await asyncio.to_thread(self._session(key).results)

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove the session's directory and marks; raise PlatformRefused if it still runs."""
        await asyncio.to_thread(self._clean, self._session(key))

    def _clean(self, session: SessionDir) -> None:
        if self._state(session).state is State.RUNNING:
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        with translate_os_errors(self.name):
            session.remove(self._home / "trash")
            remove_storage(self.pools.values(), session.key)
            if socket := launch.socket_of(self._home, session.key):
                Path(socket).unlink(missing_ok=True)
