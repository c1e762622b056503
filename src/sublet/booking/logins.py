"""SSH logins from the web page: the page shows what ssh asks, and the answer goes to ssh alone.

An attempt exists in this process only. An answer is passed to the waiting ssh and stored nowhere; an attempt whose
questions are not answered in time fails.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import structlog

from sublet.booking.model.marks import Mark
from sublet.booking.model.phases import ACTIVE
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NoOwnLogins, NotAsked, NotFound, OperatorsOnly, SubletError
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.reach.login import Login
from sublet.reach.prompts import Prompt
from sublet.reach.record import read_record
from sublet.store.store import Store
from sublet.store.tx import Tx

log = structlog.get_logger()
PATIENCE = 300.0  # seconds for all questions together
QUIET = 90.0  # seconds without use after which a login that isn't shared ends
MOST = 200  # sessions that are woken or listed
Stage = Literal["closed", "waiting", "asked", "visiting", "open", "refused"]


@dataclass(frozen=True, slots=True)
class LoginQuestion:
    """A question that ssh, or the centre, is asking now."""

    id: str  # an answer with another id is refused
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class LoginState:
    """The state of a login to a platform."""

    platform: str
    target: str  # user@host
    shared: bool
    stage: Stage
    question: LoginQuestion | None = None
    said: str = ""  # what ssh and the centre have printed so far
    failure: SubletError | None = None
    since: datetime | None = None
    waiting: tuple[Session, ...] = ()

    @property
    def version(self) -> str:
        """A text that changes whenever there is something new to show."""
        return f"{self.stage} {self.question.id if self.question else len(self.said)} {len(self.waiting)}"


@dataclass
class Signing:
    """One attempt to sign in."""

    login: Login
    person: Person
    question: LoginQuestion | None = None
    visiting: bool = False
    failure: SubletError | None = None
    task: asyncio.Task[None] | None = None
    _reply: asyncio.Future[str] | None = None

    @property
    def under_way(self) -> bool:
        """Whether the attempt, or the login that isn't shared, is still going on."""
        return self.task is not None and not self.task.done()

    async def ask(self, prompt: Prompt) -> str | None:
        """Show a question and wait for its answer; the login's own time limit ends the wait."""
        self._reply = asyncio.get_running_loop().create_future()
        self.question = LoginQuestion(secrets.token_urlsafe(12), prompt)
        try:
            return await self._reply
        finally:
            self.question = self._reply = None

    def answer(self, question: str, text: str) -> None:
        """Pass an answer to the waiting ssh; raise NotAsked if that question isn't open."""
        if self.question is None or self._reply is None or self._reply.done():
            raise NotAsked(why="nothing is being asked")
        if not secrets.compare_digest(self.question.id, question):
            raise NotAsked(why="another one has come since")
        self._reply.set_result(text)


@dataclass
class Logins:
    """Signing in to platforms and out of them, for the one person whose service this is."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    takes_answers: bool  # whether passwords and codes may be entered here: only on a personal service

    signing: dict[str, Signing] = field(default_factory=dict)  # platform → the last attempt
    patience: float = PATIENCE
    quiet: float = QUIET

    async def login_state(self, name: str, person: Person) -> LoginState:
        """Return the state of the login to a platform; questions are shown only to the person who began it."""
        login = self._login(name, person)
        signing = self.signing.get(name)
        is_open = await login.check()
        record = read_record(login.target.record) if is_open else None
        target = f"{login.target.user}@{login.target.host}" if login.target.user else login.target.host
        state = LoginState(
            name, target, login.shared, "open" if is_open else "closed", waiting=await self._waiting(name)
        )
        if signing and signing.under_way:
            return _under_way(state, signing, person)
        if signing and signing.failure and not is_open:
            return replace(state, stage="refused", failure=signing.failure)
        return replace(state, since=record.opened if record else None)

    async def sign_in(self, name: str, person: Person) -> None:
        """Start to sign in, unless an attempt is under way."""
        login = self._login(name, person)
        signing = self.signing.get(name)
        if not (signing and signing.under_way):
            signing = self.signing[name] = Signing(login, person)
            signing.task = asyncio.create_task(self._open(name, signing), name=f"login {name}")

    async def answer(self, name: str, person: Person, question: str, text: str) -> None:
        """Answer the question that ssh is asking; the answer goes nowhere else."""
        self._login(name, person)
        signing = self.signing.get(name)
        if signing is None or signing.person != person:
            raise NotAsked(why="nobody is signing in")
        signing.answer(question, text)

    async def give_up(self, name: str, person: Person) -> None:
        """Stop an attempt, or end a login that isn't shared."""
        self._login(name, person)
        signing = self.signing.pop(name, None)
        if signing and signing.task:
            signing.task.cancel()
            await asyncio.gather(signing.task, return_exceptions=True)

    async def sign_out(self, name: str, person: Person) -> None:
        """Close the login; jobs on the platform go on."""
        await self.give_up(name, person)
        await self._login(name, person).close()
        log.info("login.closed", platform=name)

    async def give_up_all(self) -> None:
        """Stop all attempts, because the service is stopping."""
        tasks = [signing.task for signing in self.signing.values() if signing.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def logins(self) -> set[str]:
        """Return the platforms that a person can sign in to on a page; none on a gateway."""
        if not self.takes_answers:
            return set()
        return {name for name, platform in self.platforms.by_name.items() if platform.login}

    def _login(self, name: str, person: Person) -> Login:
        platform = self.platforms.get(name)
        if not self.takes_answers:
            raise NoOwnLogins(platform=name)
        if not person.operator:
            raise OperatorsOnly
        if platform.login is None:
            raise NotFound(noun="login to", name=name, hint="No sign-in is needed there.")
        return platform.login

    async def _open(self, name: str, signing: Signing) -> None:
        try:
            if signing.login.shared:
                await signing.login.open(signing.ask, self.patience)
                await self._go_on(name)
                return
            async with signing.login.once(signing.ask, self.patience) as reach:
                signing.visiting = True
                await self._go_on(name)
                if reach.visit is not None:
                    await reach.visit.quiet(self.quiet)
        except SubletError as error:
            signing.failure = error
            log.info("login.failed", platform=name, code=error.code)

    async def _go_on(self, name: str) -> None:
        """Make all sessions of the platform due at once, because its login is open."""
        log.info("login.opened", platform=name)
        self.platforms.surveys.pop(name, None)
        self.platforms.refresh_survey(name)

        def wake(tx: Tx) -> None:
            now = read_recorded_now(tx, self.now())
            for session in tx.sessions.list(platform=name, active=True, limit=MOST).items:
                tx.sessions.change(session.id, when=tuple(ACTIVE), now=now, due=now)

        await self.store.write(wake)
        await self.signals.announce()

    async def _waiting(self, name: str) -> tuple[Session, ...]:
        """Return the sessions that wait for a login to the platform."""
        page = await self.store.read(lambda tx: tx.sessions.list(platform=name, active=True, limit=MOST))
        return tuple(session for session in page.items if needs_login(session))


def needs_login(session: Session) -> bool:
    """Whether the session waits for a person to sign in."""
    return session.phase in ACTIVE and Mark.LOGIN_NEEDED in session.marks


def _under_way(state: LoginState, signing: Signing, person: Person) -> LoginState:
    question = signing.question if signing.person == person else None
    stage: Stage = "visiting" if signing.visiting else "asked" if question else "waiting"
    return replace(state, stage=stage, question=question, said=signing.login.said)
