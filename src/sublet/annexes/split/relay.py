"""The relay of one lease, a process beside the access point, between near halves and the agent's channel.

Its directory has `relay.json`, its settings; `relay.sock` for near halves; `probe.out` for the bridge's startd;
`state.json` with its state; and what a restart must know in `attempts/`, `nodes/` and `fenced/`. It outlives the
service.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sublet.annexes.pilots.keeping import keep
from sublet.annexes.split.asking import Endpoint, Refused
from sublet.annexes.split.bridges import Bridges
from sublet.annexes.split.channel import AgentChannel
from sublet.annexes.split.homecoming import Homecoming
from sublet.annexes.split.kept import RelayMemory
from sublet.annexes.split.ledger import OPEN, AttemptStage, Ledger, LedgerLink, LedgerNode, OpenAttempt
from sublet.annexes.split.printed import facts_of, show, show_all
from sublet.annexes.split.relay_plan import RelayOrders
from sublet.annexes.split.sending import Sending

RETRY = 2.0
NAME = re.compile(r"[\w.-]{1,200}")


class Relay:
    """Transfers attempts and results, and reports which nodes are alive."""

    def __init__(self, directory: Path, plan: RelayOrders) -> None:
        """Load the state that an earlier relay left."""
        self.directory, self.plan = directory, plan
        now = time.monotonic()
        self.ledger = Ledger(plan.nodes, plan.dead, plan.grace, LedgerLink(False, now, now))
        self.kept = RelayMemory(directory, self.ledger)
        self.bridges = Bridges(directory, plan, self.ledger, self._end_node)
        self.endpoint = Endpoint(plan.urls, plan.certificate, plan.lease)
        self.channel = AgentChannel(plan.channel, directory / "channel.err", plan.silent)
        self.sending = Sending(self.channel.turn, plan.spool, plan.room, self._give_up, self._take_gone)
        self.homecoming = Homecoming(
            self.kept, plan.keep_results, self._order, self._deliver_result, self._record_failure
        )
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.asking: dict[str, asyncio.Task[None]] = {}
        self.trouble = "it has not connected yet"
        self.cleaning = False
        self.cleaned = asyncio.Event()
        self.hears: dict[str, Callable[[dict[str, Any], bytes], Awaitable[None]]] = {
            "tick": self._tick,
            "stored": self._take_stored,
            "unstored": self._take_unstored,
            "live": self._live,
            "out": self._out,
            "ask": self._ask,
            "cleaned": self._was_cleaned,
        }

    # Near halves

    async def near(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one question and one answer, which may take as long as a job does."""
        answers = {"submit": self._submit, "remove": self._remove, "stop": self._stop, "clean": self._clean}
        with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
            message = json.loads(await reader.readline())
            parting = asyncio.create_task(self._watch(reader, message))
            try:
                answer = await answers[message["op"]](message)
            finally:
                parting.cancel()
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _watch(self, reader: asyncio.StreamReader, message: dict[str, Any]) -> None:
        """Stop a job that takes its time to end when its starter no longer waits for it."""
        with contextlib.suppress(OSError):
            await reader.read()
        if message["op"] == "submit" and self.ledger.list_ending(str(message["id"])):
            self._revoke(str(message["id"]))

    async def _submit(self, message: dict[str, Any]) -> dict[str, Any]:
        name, job_ad = str(message["attempt"]), str(message["job_ad"])
        if not NAME.fullmatch(name):
            return {"failed": "this is no name of an attempt"}
        sandbox = str(message["sandbox"])
        job, streams = await asyncio.to_thread(facts_of, job_ad, sandbox)
        known = name in self.ledger.attempts
        given = OpenAttempt(name, str(message["id"]), int(message["node"]), job_ad, sandbox, str(message["scratch"]))
        attempt = self.ledger.submit(replace(given, job=job, streams=streams))
        if attempt.stage is not AttemptStage.DONE:
            if not known:
                self._keep_first(attempt)
                self._put(attempt)
            self.waiting[name] = asyncio.get_running_loop().create_future()
            answer = await self.waiting[name]
        else:
            answer = {"done": True}
        if attempt.stage is AttemptStage.DONE:
            self.kept.forget(name)
        return answer

    def _keep_first(self, attempt: OpenAttempt) -> None:
        """Save an attempt before it is sent, so that a restart knows it; without room, its near half asks again."""
        try:
            self.kept.keep(attempt)
        except OSError:
            self.kept.forget(attempt.name)
            raise

    async def _remove(self, message: dict[str, Any]) -> dict[str, Any]:
        """Have a job asked to end; stop it if it has been asked already, or may not take its time."""
        id, now = str(message["id"]), time.monotonic()
        asked = [] if message.get("fast") or self.cleaning else self.ledger.ask_to_end(id, now)
        for attempt in asked:
            self._order({"op": "kill", "attempt": attempt.name, "node": attempt.node, "gently": True})
        if not asked:
            self._revoke(id)
        return {}

    def _revoke(self, id: str) -> None:
        for attempt in self.ledger.revoke(id):
            self.kept.note(attempt)
            self.sending.forget(attempt.name)
            self._answer(attempt.name, {"gone": True})
            self._order({"op": "kill", "attempt": attempt.name, "node": attempt.node})
        self.bridges.tell()

    async def _stop(self, message: dict[str, Any]) -> dict[str, Any]:
        """Order all nodes to end."""
        for number in range(self.plan.nodes):
            self._end_node(number)
        return {}

    async def _clean(self, message: dict[str, Any]) -> dict[str, Any]:
        """Have the spool removed, since the lease is over; return whether it is gone, and why not."""
        self.cleaning = True
        await self.bridges.stop()
        self._order({"op": "clean"})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(float(message.get("seconds", 20))):
                await self.cleaned.wait()
        return {"cleaned": self.cleaned.is_set(), "trouble": self.trouble}

    def _answer(self, name: str, answer: dict[str, Any]) -> None:
        future = self.waiting.pop(name, None)
        if future and not future.done():
            future.set_result(answer)

    # The channel

    async def carry(self) -> None:
        """Keep the channel open, reconnecting when it breaks, until the spool is gone."""
        while not self.cleaned.is_set():
            try:
                await self.channel.open({"spool": self.plan.spool, "poll": self.plan.poll}, self._begin, self._hear)
            except (OSError, ValueError) as error:
                self.trouble = str(error) or type(error).__name__
            finally:
                self.ledger.cut(time.monotonic())
                self.sending.stop()
                await self.homecoming.stop()
            await asyncio.sleep(RETRY)

    def _begin(self) -> None:
        self.trouble = ""
        self.ledger.note_connected(time.monotonic())
        for order in [*self.ledger.orders, *([{"op": "clean"}] if self.cleaning else [])]:
            self._order(order)
        for attempt in self.ledger.list_queued():
            self._put(attempt)

    def _order(self, order: dict[str, Any]) -> None:
        if self.ledger.link.up:
            self.channel.say(order)

    def _put(self, attempt: OpenAttempt) -> None:
        if self.ledger.link.up:
            self.sending.put(attempt)

    async def _hear(self, header: dict[str, Any], body: bytes) -> None:
        self.ledger.note_heard(time.monotonic())
        hear = self.hears.get(header["op"])
        if hear:
            await hear(header, body)

    async def _tick(self, header: dict[str, Any], body: bytes) -> None:
        for number, beat in header["beats"].items():
            if number.isdigit() and int(number) < self.plan.nodes:
                self.ledger.beat(int(number), json.loads(beat), time.monotonic())
                self.kept.keep_node(int(number))

        for number in header["pulses"]:
            self.ledger.pulse(int(number), time.monotonic())

    async def _take_stored(self, header: dict[str, Any], body: bytes) -> None:
        self.sending.forget(header["attempt"])
        if self.ledger.note_stored(header["attempt"]):
            self.kept.note(self.ledger.attempts[header["attempt"]])

    async def _take_unstored(self, header: dict[str, Any], body: bytes) -> None:
        attempt = self.ledger.attempts.get(header["attempt"])
        if attempt and attempt.stage is AttemptStage.QUEUED:
            self.sending.note_unstored(attempt, header["why"])

    def _give_up(self, name: str, why: str) -> None:
        """Fail an attempt whose files can't be sent."""
        self._record_failure(name, why, why)

    def _take_gone(self, name: str) -> None:
        """Forget an attempt whose job has vanished without notice."""
        self._answer(name, {"gone": True})
        self._order({"op": "ack", "attempt": name})
        self.kept.forget(name)

    async def _live(self, header: dict[str, Any], body: bytes) -> None:
        attempt = self.ledger.attempts.get(header["attempt"])
        if attempt and attempt.stage in OPEN and header["stream"] in attempt.streams:
            await asyncio.to_thread(show, attempt.streams[header["stream"]], int(header["offset"]), body)

    async def _out(self, header: dict[str, Any], body: bytes) -> None:
        if header["end"] == "off":
            self._off(header["attempt"])
        else:
            await self.homecoming.hear(header, body)

    def _off(self, name: str) -> None:
        """Handle an attempt that was stopped there, and left nothing."""
        attempt = self.ledger.attempts.get(name)
        if attempt and attempt.is_ending:
            self._answer(name, {"gone": True})
            self.kept.forget(name)
        elif self.ledger.is_given_up(name):
            self.kept.forget(name)
        elif attempt:
            self._record_failure(name, "it was stopped there")
        self._order({"op": "ack", "attempt": name})

    async def _deliver_result(self, attempt: OpenAttempt) -> None:
        await asyncio.to_thread(show_all, attempt)
        self.kept.note(attempt)
        self._answer(attempt.name, {"done": True})

    def _record_failure(self, name: str, why: str, unsent: str = "") -> None:
        """Record a failure; the job is tried elsewhere, unless it failed too often or its files can't be sent."""
        attempt = self.ledger.note_failed(name)
        if attempt:
            self.kept.note(attempt)
            if unsent:
                self._answer(name, {"failed": unsent})
            elif self.ledger.gives_up(attempt):
                self._answer(name, {"failed": f"it could not be started on its node: {why}"})
            self.bridges.tell()

    async def _ask(self, header: dict[str, Any], body: bytes) -> None:
        node = header["node"]
        if node.isdigit() and int(node) < self.plan.nodes and node not in self.asking:
            self.asking[node] = asyncio.create_task(self._pass_on(node, header["asked"]))

    async def _pass_on(self, node: str, asked: str) -> None:
        """Forward a node's question to the service, which may be away for a while."""
        try:
            while True:
                try:
                    answer = await asyncio.to_thread(self.endpoint.claim, int(node), asked)
                    break
                except Refused as error:
                    answer = f"refused: {error}\n".encode()
                    break
                except OSError as error:
                    self.trouble = f"the service does not answer: {error}"
                    await asyncio.sleep(RETRY)
            if self.ledger.link.up:
                self.channel.say({"op": "answer", "node": node}, answer)
        finally:
            del self.asking[node]

    async def _was_cleaned(self, header: dict[str, Any], body: bytes) -> None:
        self.cleaned.set()

    # Reports

    async def tell(self) -> None:
        """Give up dead nodes, and write the relay's state every second, until the spool is gone."""
        while not self.cleaned.is_set():
            now = time.monotonic()
            for node in self.ledger.bury(now):
                self._bury(node)
            for name in self.ledger.list_settled():
                self._order({"op": "ack", "attempt": name})  # so that the spool forgets the order to stop it
                self.kept.forget(name)
            for name in self.ledger.list_vanished():
                self._record_failure(name, "its node no longer has it")
            self.kept.note_rest()
            with contextlib.suppress(OSError):  # if there is no room it is done later
                if not self.cleaning:
                    self.bridges.tend(now)
                keep(self.directory / "state.json", json.dumps(self._state(now)).encode())
            self.bridges.tell(now)  # nodes reported as dead must have been given up before
            await asyncio.sleep(1)

    def _end_node(self, number: int) -> None:
        order = {"op": "stop", "node": number}
        self.ledger.orders.append(order)
        self._order(order)

    def _bury(self, node: LedgerNode) -> None:
        self.kept.keep_fenced(node.epoch)
        self._order({"op": "fence", "epoch": node.epoch})
        for attempt in self.ledger.attempts.values():
            if attempt.stage is AttemptStage.LOST:
                self.kept.note(attempt)

    def _state(self, now: float) -> dict[str, Any]:
        stages = [attempt.stage.value for attempt in self.ledger.attempts.values()]
        nodes = {
            number: {
                "node": node.name,
                "runs": node.runs,
                "ending": node.ending,
                "alive": self.ledger.alive(number, now),
                "over": self.bridges.over(number),
            }
            for number, node in self.ledger.seen.items()
        }
        return {
            "time": time.time(),
            "link": self.ledger.link.up,
            "links": self.ledger.link.times,
            "trouble": self.trouble,
            "nodes": nodes,
            "waits": [words for words in (self.sending.words(), self.homecoming.words()) if words],
            "attempts": {stage: stages.count(stage) for stage in sorted(set(stages))},
            "refused": dict(self.ledger.refused),
        }

    async def run(self) -> None:
        """Run until the lease's spool is gone, or SIGTERM."""
        socket = self.directory / "relay.sock"
        socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self.near, "relay.sock", limit=1 << 20)  # a short path
        socket.chmod(0o600)
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        works = [asyncio.create_task(work) for work in (self.carry(), self.tell(), self.cleaned.wait(), stopped.wait())]
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await asyncio.sleep(0)
        finally:
            for task in works:
                task.cancel()
            await asyncio.gather(*works, return_exceptions=True)
            server.close()


def main() -> int:
    """Run `python -m sublet.annexes.split.relay DIRECTORY`."""
    os.umask(0o077)
    directory = Path(sys.argv[1])
    os.chdir(directory)
    lock = os.open("relay.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another relay is running
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    asyncio.run(Relay(directory, RelayOrders.read(directory)).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
