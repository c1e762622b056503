"""The loop: expire offers, hear news from platforms, and take every session that is due one step on.

Work is claimed in the database, with a token and a lease, so several processes can share it; whatever a step does is
applied only if the claim still holds. A turn costs what changed, not what exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from sublet.core.session import OVER, Session
from sublet.errors import LoginNeeded, PlatformUnreachable, SubletError
from sublet.service import metrics
from sublet.service.desk import Desk
from sublet.service.faults import point
from sublet.service.steps import STEPS, Step
from sublet.store.engine import Tx
from sublet.store.sessions import Claimed

log = structlog.get_logger()

AT_ONCE = 64  # sessions that are worked on at the same time
BATCH = 500
LISTEN = 0.1  # seconds between two looks at what platforms have to tell, while something runs
IDLE = 1.0  # seconds between two looks at the database: another process may have written there
SWEEP = timedelta(minutes=1)  # how often all running jobs are asked after, whatever the news say


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that claims work: host, pid and when it began, so that a dead one is known to be dead."""

    host: str
    pid: int
    began: str

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.began}"

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _began(os.getpid()))

    def lives(self) -> bool:
        """Whether it still runs, as far as can be known from this host."""
        return self.host != socket.gethostname() or _began(self.pid) == self.began


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


class Loop:
    """Runs until it is stopped; what it leaves unfinished another process, or the next one, takes up."""

    def __init__(self, desk: Desk) -> None:
        """Get ready to work for this desk."""
        self.desk = desk
        self.owner = Owner.here()
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.swept: dict[str, datetime] = {}
        self.renewed = desk.now()

    async def run(self) -> None:
        """Turn after turn."""
        await self._take_over()
        while True:
            self.desk.nudged.clear()
            try:
                with metrics.turn.time():
                    busy = await self.turn()
            except Exception:  # one turn of the loop is one of the two doors where anything may come through
                log.exception("turn.failed")
                metrics.turn_failures.inc()
                await asyncio.sleep(1)
                continue
            if not busy:
                await self._rest()

    async def stop(self) -> None:
        """Let go of what is being worked on; platforms go on running it."""
        for task in list(self.tasks.values()):
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        await self.desk.store.write(lambda tx: tx.sessions.release_claims(str(self.owner)))

    async def turn(self) -> bool:
        """One turn; whether there was anything to do."""
        now = self.desk.now()
        heard = await self._hear(now)
        await self._renew(now)
        await self._heed(now)
        room = AT_ONCE - len(self.tasks)
        names = tuple(self.desk.platforms_by_name)
        if not await self.desk.store.read(lambda tx: tx.sessions.any_due(now, names)):
            return heard
        expired, claimed = await self.desk.store.write(lambda tx: self._claim(tx, now, room, names))
        for work in claimed:
            task = asyncio.create_task(self._work(work), name=f"session {work.session.id}")
            self.tasks[work.session.id] = task
            task.add_done_callback(lambda _, id=work.session.id: self._done(id))
        if expired:
            await self.desk.tell()
        return heard or bool(expired) or bool(claimed)

    def _claim(self, tx: Tx, now: datetime, room: int, names: Sequence[str]) -> tuple[int, list[Claimed]]:
        expired = tx.sessions.expire(now, BATCH)
        for session in expired:
            tx.events.add(now, session.id, session.person, "session.expired", "", session.phase)
        lease = self.desk.settings.claim
        return len(expired), tx.sessions.claim(now, str(self.owner), lease, room, names) if room > 0 else []

    def _done(self, id: str) -> None:
        self.tasks.pop(id, None)
        self.desk.nudged.set()

    async def _work(self, work: Claimed) -> None:
        """Take a session as many steps on as can be taken now."""
        session: Session | None = work.session
        while session is not None:
            try:
                step = await STEPS[session.phase](self.desk, session)
            except (PlatformUnreachable, LoginNeeded) as error:
                metrics.platform_errors.labels(session.offer.platform, error.code).inc()
                words = f"{error.message} {error.advice}".strip()
                step = Step(due=self.desk.now() + timedelta(seconds=10), changes={"condition": words})
            except (SubletError, OSError) as error:
                log.warning("step.failed", session=session.id, phase=session.phase, why=str(error))
                step = Step(due=self.desk.now() + timedelta(seconds=10), changes={"condition": str(error)})
            session = await self._apply(session, work.token, step)

    async def _apply(self, old: Session, token: str, step: Step) -> Session | None:
        """Record a step, if the claim still holds; the session again if it can go on at once."""
        now = self.desk.now()
        more = step.due is not None and step.due <= now

        def record(tx: Tx) -> Session | None:
            new = tx.sessions.apply(
                old.id, step.to, when=(old.phase,), now=now, token=token, due=step.due, keep_claim=more, **step.changes
            )
            if new is None:
                return None
            if step.release and old.offer.terms.kind == "booked":
                tx.books.release(old.offer.platform, old.id)
            if step.event:
                tx.events.add(now, old.id, old.person, step.event, step.detail, new.phase)
            return new

        new = await self.desk.store.write(record)
        if new is None:
            log.warning("claim.lost", session=old.id)
            return None
        if step.to:
            metrics.moves.labels(step.to).inc()
            if step.to in OVER and new.end:
                metrics.ends.labels(new.end.kind).inc()
            point(f"{step.to.lower()}.after" if step.to not in OVER else "final.after")
        if step.event:
            log.info(step.event, session=old.id, phase=new.phase, platform=old.offer.platform, detail=step.detail)
            await self.desk.tell()
        return new if more else None

    async def _hear(self, now: datetime) -> bool:
        """What the platforms have to tell: those sessions are due at once."""
        heard = False
        for name, platform in self.desk.platforms_by_name.items():
            try:
                news = await platform.news()
            except SubletError as error:
                metrics.platform_errors.labels(name, error.code).inc()
                continue
            last = self.swept.get(name)
            every = self.desk.settings.poll if news is None else SWEEP
            if last is None or now - last >= every:
                self.swept[name] = now
                await self._sweep(name, now)
            if news:
                jobs = list(news)
                await self.desk.store.write(lambda tx, n=name, j=jobs: tx.sessions.due_by_job(n, j, now))  # type: ignore[misc]
                heard = True
        return heard

    async def _sweep(self, name: str, now: datetime) -> None:
        """Ask after every running job of a platform, in bulk, and wake those that have changed."""
        jobs = await self.desk.store.read(lambda tx: tx.sessions.running_jobs(name))
        for first in range(0, len(jobs), BATCH):
            some = jobs[first : first + BATCH]
            with contextlib.suppress(SubletError):
                states = await self.desk.platforms_by_name[name].ask(some)
                changed = [job for job in some if job not in states or states[job].state not in ("running", "queued")]
                if changed:
                    await self.desk.store.write(lambda tx, c=changed: tx.sessions.due_by_job(name, c, now))  # type: ignore[misc]

    async def _renew(self, now: datetime) -> None:
        lease = self.desk.settings.claim
        if self.tasks and now - self.renewed > lease / 3:
            self.renewed = now
            await self.desk.store.write(lambda tx: tx.sessions.renew(str(self.owner), now + lease))

    async def _heed(self, now: datetime) -> None:
        """Stop bringing data for what someone has cancelled meanwhile: its next step sees to the rest."""
        ids = list(self.tasks)
        if not ids:
            return
        for id in await self.desk.store.read(lambda tx: tx.sessions.cancelled_while_preparing(ids)):
            if task := self.tasks.get(id):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await self.desk.store.write(lambda tx, i=id: tx.sessions.give_back(i, str(self.owner), now))  # type: ignore[misc]

    async def _take_over(self) -> None:
        """What a process that died here had claimed is free at once."""
        owners = await self.desk.store.read(lambda tx: tx.sessions.claim_owners())
        for said in owners:
            host, pid, began = (said.split("/") + ["", ""])[:3]
            if pid.isdigit() and not Owner(host, int(pid), began).lives():
                await self.desk.store.write(lambda tx, s=said: tx.sessions.release_claims(s))  # type: ignore[misc]

    async def _rest(self) -> None:
        """Until there is something to do: a nudge, news, or a time that has come."""
        due = await self.desk.store.read(lambda tx: tx.sessions.next_due(tuple(self.desk.platforms_by_name)))
        wait = IDLE if due is None else min(IDLE, max(0.01, (due - self.desk.now()).total_seconds()))
        if await self.desk.store.read(lambda tx: tx.sessions.anything_runs()):
            wait = min(wait, LISTEN)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.desk.nudged.wait(), wait)

