"""Drives one session from its start to its end, on any server; another process can continue at any point."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sublet.booking.model.session import End, EndKind, Usage
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.texts import describe_duration
from sublet.platforms.jupyter.files import collect_files
from sublet.platforms.jupyter.removing import remove_directory
from sublet.platforms.jupyter.running import EXECUTED, NotebookRun, Over
from sublet.platforms.jupyter.server import ServerApi
from sublet.platforms.jupyter.servers import HubFull, Servers, ServerState
from sublet.platforms.jupyter.session import JupyterSession
from sublet.platforms.sessiondir import age

LOOK = 0.25  # seconds between two checks whether it must be stopped
SOON = 0.3  # seconds until a starting server is checked again
FULL = 5.0  # seconds until a hub that was full is asked again
ATTEND = 5.0  # seconds between two checks of an interactive server
MOST_STARTS = 3
GIVE_UP = 300.0  # seconds after which the end is recorded although its server can't be reached
GONE = ("absent", "stopping", "failed")  # a restarted hub checks its servers first: "starting"
PAGE = "executed.html"
CULLED = "its server was stopped at the hub: because it was idle, by its owner or by an administrator"
IDLE = "sublet, because nobody had used it for {0}"


@dataclass(frozen=True)
class Drive:
    """One session, and where its server comes from."""

    session: JupyterSession
    servers: Servers
    idle: timedelta | None = None  # a server is stopped after being unused for this long
    forget: Callable[[ServerApi, str], Awaitable[None]] | None = None  # remove files of earlier sessions

    @property
    def _person(self) -> str:
        return str(self.session.read_job().get("person", ""))

    async def run(self) -> None:
        """Drive the session to its end, and leave nothing there.

        Errors of reachability are raised, to be tried again.
        """
        if not self.session.ended:
            await self._finish(await self._work_until_stopped())
        await self.release()

    async def _work_until_stopped(self) -> End:
        tasks = [asyncio.create_task(work) for work in (self._work(), self._wait_for_stop())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not tasks[1].cancelled():
            return tasks[1].result()
        try:
            return tasks[0].result()
        except Over as over:
            return over.end

    async def _wait_for_stop(self) -> End:
        """Wait until someone cancels the session or its time is over; return how it ends then."""
        session = self.session
        while True:
            if (by := session.cancelled_by) is not None:
                return End(EndKind.CANCELLED, by=by)
            if (until := session.until) and datetime.now(UTC) >= until:
                return End(EndKind.TIMEOUT)
            await asyncio.sleep(LOOK)

    async def _work(self) -> End:
        state = await self._have_server()
        self.session.note_condition("")
        if self.session.read_job().get("connects"):
            self.session.note_begin(self.servers.locate(state))
            return await self._attend()
        api = self.servers.open(state)
        if self.forget:
            await self.forget(api, self._person)
        return await NotebookRun(self.session, api).run()

    async def _have_server(self) -> ServerState:
        """Return the session's server once it is ready: it is requested once, and found again after a crash."""
        session, key, starts = self.session, self.session.key, 0
        while True:
            state = await self.servers.look(key, self._person)
            if state.standing == "ready":
                session.note_server("ready")
                return state
            if state.standing in ("absent", "failed"):
                if session.server == "ready":
                    raise Over(End(EndKind.CULLED, detail=CULLED))
                if (state.standing == "failed" and session.server) or starts == MOST_STARTS:
                    raise Over(End(EndKind.NOT_STARTED, detail=state.words or "the hub started no server"))
                if full := await self._ask_for_server():
                    session.note_condition(f"waits for room at the hub: {full}")
                    await asyncio.sleep(FULL)
                    continue
                starts += 1
            session.note_condition("its server is being started")
            await asyncio.sleep(SOON)

    async def _ask_for_server(self) -> str:
        """Request the server; return the hub's words if it has no room for one now."""
        self.session.note_server("asked")
        try:
            await self.servers.start(self.session.key, self._person)
            return ""
        except HubFull as full:
            return str(full)
        except PlatformRefused as error:
            raise Over(End(EndKind.NOT_STARTED, detail=f"{error.clause}. {error.advice}".strip())) from error

    async def _attend(self) -> End:
        """Watch an interactive server until it is gone, or has been unused for long."""
        while True:
            state = await self.servers.look(self.session.key, self._person)
            if state.standing in GONE:
                return End(EndKind.CULLED, detail=CULLED)
            began = self.session.began or datetime.now(UTC)
            used = max(filter(None, (state.last_activity, began)))
            if self.idle and datetime.now(UTC) - used > self.idle:
                return End(EndKind.CANCELLED, by=IDLE.format(describe_duration(self.idle)))
            await asyncio.sleep(ATTEND)

    # Ending

    async def _finish(self, end: End) -> None:
        """Stop the session's kernels, fetch its results, and record how it ended."""
        session = self.session
        try:
            await self._collect(end)
        except PlatformUnreachable as error:
            if self._find_delay() < GIVE_UP:
                raise
            end = replace(end, detail=f"{end.detail} (its files could not be brought: {error.clause})".strip())
        await asyncio.to_thread(session.finish, replace(end, usage=Usage()))

    def _find_delay(self) -> float:
        """Return for how many seconds the session should have been stopped by now."""
        until = self.session.until
        late = (datetime.now(UTC) - until).total_seconds() if until else 0.0
        return max(late, age(self.session.root / "cancel"))

    async def _collect(self, end: End) -> None:
        session = self.session
        if session.read_job().get("connects"):
            return
        notebook = session.read_notebook()
        execution = await asyncio.to_thread(session.read_journal) if notebook else None
        if notebook and execution:
            filled = json.dumps(execution.fill(notebook), indent=1).encode()
            await asyncio.to_thread((session.work / EXECUTED).write_bytes, filled)
        state = await self.servers.look(session.key, self._person)
        if state.standing != "ready" or end.kind is EndKind.NOT_STARTED:
            return
        api = self.servers.open(state)
        await api.end_kernels(session.key)
        await collect_files(session, api)
        if execution and execution.kernel:
            (session.work / EXECUTED).write_bytes(filled)
            await self._make_page(api)

    async def _make_page(self, api: ServerApi) -> None:
        """Convert the executed notebook to an HTML page, if the server can, for people without Jupyter."""
        path = f"{api.directory(self.session.key)}/{EXECUTED}"
        with suppress(SubletError):
            await api.upload(self.session.work / EXECUTED, path)
            if page := await api.make_page(path):
                await asyncio.to_thread((self.session.work / PAGE).write_bytes, page)

    async def release(self) -> None:
        """Remove the session's files from the server, and stop its server."""
        session, person = self.session, self._person
        state = await self.servers.look(session.key, person)
        has_files = session.server == "ready" and not session.read_job().get("connects")
        if state.standing == "ready" and has_files:
            api = self.servers.open(state)
            await api.end_kernels(session.key)
            await remove_directory(api, session.key)
            has_files = False
        while session.server and not await self.servers.stop(session.key, person):  # noqa: ASYNC110 - at the hub
            await asyncio.sleep(SOON)
        session.release(person if has_files else None)
