"""Executes a notebook in a kernel on a server, cell by cell; after a crash it continues where it was."""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sublet.booking.model.kernels import BROUGHT
from sublet.booking.model.session import End, EndKind
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.jupyter import notebooks
from sublet.platforms.jupyter.channel import Disconnected, KernelChannel, KernelDied, open_channel
from sublet.platforms.jupyter.execution import SETUP, Execution
from sublet.platforms.jupyter.files import list_links, send_files
from sublet.platforms.jupyter.notebooks import Cell, NotANotebook
from sublet.platforms.jupyter.server import ServerApi
from sublet.platforms.jupyter.session import JupyterSession

EXECUTED = "executed.ipynb"
TRAILING = 4.0  # seconds after a reply in which its last messages must arrive
ASKED = {
    "process": "__import__('os').getpid()",
    "raised": "(lambda e: e and [type(e).__name__, str(e)])(getattr(__import__('sys'), 'last_value', None))",
}
DIED = "it died while {where} was running: it crashed, was killed or ran out of memory; the server can't say which"


class Over(Exception):
    """It has ended, and so."""

    def __init__(self, end: End) -> None:
        """Set how the session ended."""
        super().__init__(end.detail)
        self.end = end


class NotebookRun:
    """One notebook in one kernel."""

    def __init__(self, session: JupyterSession, api: ServerApi) -> None:
        """Set up; earlier progress is in the session's journal."""
        self._session, self._api = session, api
        self._job = session.read_job()
        self._execution = Execution()
        self._cells: list[Cell] = []

    async def run(self) -> End:
        """Execute the notebook, or the rest of it, and return how it ended."""
        try:
            await self._begin()
            return await self._execute()
        except NotANotebook as error:
            return End(EndKind.NOT_STARTED, detail=f"the notebook can't be executed: {error}")
        except Over as over:
            return over.end
        except KernelDied:
            return End(EndKind.KERNEL_DIED, detail=DIED.format(where=self._where()))
        except Disconnected as error:
            why = f"the connection to its kernel was lost: {error}"
            raise PlatformUnreachable(platform=self._session.platform, why=why) from error

    async def _begin(self) -> None:
        session = self._session
        self._execution = await asyncio.to_thread(session.read_journal)
        known = session.read_notebook()
        if known and self._execution.kernel:
            self._cells = notebooks.list_cells(known)
            if not await self._api.has_kernel(self._execution.kernel):
                why = f"the kernel is gone; {self._where()} was the last that it was given"
                raise Over(End(EndKind.KERNEL_DIED, detail=why))
            return
        specs = await self._api.list_kernelspecs()
        notebook, name, language = await asyncio.to_thread(self._prepare, specs.names)
        self._cells = notebooks.list_cells(notebook)
        kernel = specs.find(name, language)
        if not kernel:
            there = ", ".join(f"{each} ({spoken})" for each, spoken in sorted(specs.names.items())) or "none"
            raise NotANotebook(f"there is no kernel for {language}; there are: {there}")
        await send_files(session, self._api, leave=(BROUGHT,))
        path = f"{self._api.directory(session.key)}/work/{EXECUTED}"
        try:
            id = await self._api.have_kernel(path, kernel)
        except PlatformRefused as error:
            raise Over(End(EndKind.NOT_STARTED, detail=f"the kernel {kernel} did not start: {error.clause}")) from error
        entry = {"kind": "kernel", "id": id, "name": kernel, "language": language, "channel": uuid4().hex}
        session.record(self._execution, entry | {"at": time.time()})

    def _prepare(self, kernels: Mapping[str, str]) -> tuple[dict[str, Any], str, str]:
        """Make the notebook to execute from the one that was staged; return it, its kernel and its language."""
        folder = self._session.root / "data" / BROUGHT
        files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
        if not files:
            raise NotANotebook("it was not brought")
        notebook = notebooks.read_notebook(files[0].read_bytes())
        name, language = notebooks.find_language(notebook, kernels)
        notebook = notebooks.inject(notebook, self._job["parameters"], language)
        self._session.write("notebook.ipynb", notebooks.write(notebook))
        return notebook, name, language

    async def _execute(self) -> End:
        execution, session = self._execution, self._session
        async with open_channel(self._api, execution.kernel, execution.channel) as channel:
            if execution.is_pending:
                await self._wait(channel, await self._ask(channel))
            session.note_begin()
            if execution.cell is None:
                await self._set_up(channel)
            if execution.cell == SETUP and execution.raised:
                why = execution.raised.value or execution.raised.name
                self._note(why)
                return End(EndKind.EXITED, code=1, detail=why.splitlines()[-1])
            if end := self._judge():
                return end
            for cell in self._cells:
                if cell.index > (SETUP if execution.cell is None else execution.cell):
                    await self._run_cell(channel, cell)
                    if end := self._judge():
                        return end
        return End(EndKind.EXITED, code=0, detail=self._describe_withheld())

    async def _set_up(self, channel: KernelChannel) -> None:
        job, language = self._job, self._execution.language
        links = list_links(job)
        code = notebooks.write_preparation(language, job["environment"], job["requirements"], links)
        if code:
            await self._send(channel, SETUP, code, silent=True)
            await self._wait(channel)

    async def _run_cell(self, channel: KernelChannel, cell: Cell) -> None:
        number = [each.index for each in self._cells].index(cell.index) + 1
        self._session.note_condition(f"runs cell {number} of {len(self._cells)}")
        await self._send(channel, cell.index, cell.source, goes_on=cell.may_raise)
        await self._wait(channel)

    async def _send(
        self, channel: KernelChannel, cell: int, code: str, *, silent: bool = False, goes_on: bool = False
    ) -> None:
        """Record that a cell is sent, then send it: after a crash, the kernel is asked whether it arrived."""
        id = uuid4().hex
        self._session.record(self._execution, {"kind": "sent", "cell": cell, "id": id})
        ask = {"process": ASKED["process"]} if silent and self._execution.language == notebooks.PYTHON else None
        await channel.execute(code, id=id, silent=silent, goes_on=goes_on, ask=ask)

    async def _ask(self, channel: KernelChannel) -> str:
        """Ask the kernel about its state; it answers when it is done with everything before."""
        return await channel.execute("", silent=True, ask=ASKED if self._is_python else None)

    @property
    def _is_python(self) -> bool:
        return self._execution.language == notebooks.PYTHON

    async def _wait(self, channel: KernelChannel, question: str = "") -> None:
        """Process the kernel's messages about the last request until it is finished."""
        execution = self._execution
        while execution.is_pending:
            patience = TRAILING if execution.has_reply else None
            try:
                async with asyncio.timeout(patience):
                    message = await channel.receive()
            except TimeoutError:
                execution.is_idle = True
                return
            if message.parent == execution.request:
                entry = {"kind": "message", "type": message.kind, "parent": message.parent, "content": message.content}
                self._session.record(execution, entry)
            elif message.parent == question and message.kind == "execute_reply" and not execution.has_reply:
                if message.content.get("status") == "aborted":  # the request before it raised an exception
                    question = await self._ask(channel)
                    continue
                await self._catch_up(channel, message.content)
                question = ""

    async def _catch_up(self, channel: KernelChannel, answer: Mapping[str, Any]) -> None:
        """Find out whether a cell ran, and how it ended, after the kernel's answer was lost."""
        execution = self._execution
        cell = execution.cell
        count, process = answer.get("execution_count", 0), _read_value(answer, "process")
        if cell is None or (execution.process and str(process) != execution.process) or count < execution.sent - 1:
            raise KernelDied("it is another one now")
        if cell == SETUP:
            self._session.record(execution, {"kind": "lost", "cell": SETUP})
            await self._set_up(channel)
        elif count < execution.sent:
            again = next(each for each in self._cells if each.index == cell)
            await self._send(channel, again.index, again.source, goes_on=again.may_raise)
        elif self._is_python:
            self._session.record(execution, {"kind": "lost", "cell": cell, "raised": _read_value(answer, "raised")})
            self._note(f"some output of {self._where()} was lost when the service stopped")
        else:
            why = f"the service was stopped as {self._where()} ended, so nobody heard how"
            raise Over(End(EndKind.UNKNOWN, detail=why))

    def _judge(self) -> End | None:
        """Return how the notebook ended if the last cell raised an exception; None if it continues."""
        execution = self._execution
        raised = execution.raised
        cell = next((each for each in self._cells if each.index == execution.cell), None)
        if raised is None or cell is None or cell.may_raise:
            return None
        where = self._where()
        if raised.exit_code == 0:
            return End(EndKind.EXITED, code=0, detail=f"{where} ended it by SystemExit")
        words = f"{where} of the notebook raised an exception; {EXECUTED} has what was executed until then"
        self._note(f"{words}\n{raised.sentence}")
        return End(EndKind.EXITED, code=raised.exit_code, detail=f"{where} raised {raised.sentence}")

    def _describe_withheld(self) -> str:
        """Describe which output the server withheld, because it came faster than its settings allow."""
        indexes = [each.index for each in self._cells]
        numbers = [str(indexes.index(cell) + 1) for cell in self._execution.limited if cell in indexes]
        if not numbers:
            return ""
        which = f"cell{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        return f"some output of {which} is missing: it came faster than the server's settings let it pass"

    def _note(self, text: str) -> None:
        """Add a note for the person to the notebook's output."""
        self._session.record(self._execution, {"kind": "note", "text": text})

    def _where(self) -> str:
        """Return the number of the cell that was sent last, as people count."""
        indexes = [each.index for each in self._cells]
        cell = self._execution.cell
        return f"cell {indexes.index(cell) + 1}" if cell in indexes else "its preparation"


def _read_value(answer: Mapping[str, Any], name: str) -> Any:
    """Return the value of an expression that was evaluated with a request; None if it has none."""
    value = (answer.get("user_expressions") or {}).get(name) or {}
    try:
        return ast.literal_eval(value["data"]["text/plain"])
    except (KeyError, ValueError, SyntaxError):
        return None
