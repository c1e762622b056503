"""What every use case needs at hand: settings, the store, the platforms, kinds and movers, and the time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial

import structlog

from sublet.core.amounts import duration_text
from sublet.core.mailboxes import fold_address
from sublet.core.offer import Reason
from sublet.core.people import check_address
from sublet.core.pledge import pools_of
from sublet.core.request import Data, Executable
from sublet.core.session import ACTIVE, Phase, Session
from sublet.errors import (
    NotAGateway,
    NotFound,
    NotYours,
    OperatorsOnly,
    PersonalOnly,
    PlatformBroken,
    PlatformTimedOut,
    PlatformUnreachable,
    SubletError,
)
from sublet.kinds.port import Kind, Way
from sublet.movers.port import SIMPLE, Mover, kinds_of
from sublet.platforms.port import Platform, Survey
from sublet.platforms.shim import clocks
from sublet.service.drains_seen import DrainsSeen
from sublet.service.event_feed import EventFeed
from sublet.service.mail import Mail
from sublet.service.others import Others
from sublet.service.person import Person as Person  # also for the nouns
from sublet.service.secret_key import read_or_make_key
from sublet.service.survey_tasks import LONGEST, SurveyTasks
from sublet.service.throttle import Throttle
from sublet.service.vault import Vault
from sublet.settings import Settings
from sublet.store.clocks import ClockStep
from sublet.store.store import Store

log = structlog.get_logger()


_offset: ContextVar[float | None] = ContextVar("clock offset", default=None)


def utc_now() -> datetime:
    """The time, aware, in UTC."""
    offset = _offset.get()
    return datetime.fromtimestamp(clocks.wall() if offset is None else clocks.steady() + offset, UTC)


@contextlib.contextmanager
def fixed_clock(offset: float | None) -> Iterator[None]:
    """Let this task's clock be ahead of the steady one by this much, also if someone sets the machine's meanwhile."""
    token = _offset.set(offset)
    try:
        yield
    finally:
        _offset.reset(token)


def is_clock_set() -> bool:
    """Whether someone has set the machine's clock since this task fixed its own."""
    offset = _offset.get()
    return offset is not None and abs(clocks.offset() - offset) > 1


@dataclass
class Desk(Others):
    """The service's own things; the nouns' use cases are built upon it."""

    settings: Settings
    store: Store
    platforms_by_name: dict[str, Platform]
    kinds: Mapping[str, Kind]
    movers: Sequence[Mover]
    guest_movers: Sequence[Mover] = ()  # those for guests: none of them sees this machine's files
    own_movers: Sequence[Mover] = ()  # those with the service's own logins, for what was reviewed
    broken: Mapping[str, str] = field(default_factory=dict)  # plug-ins that could not be loaded → why
    now: Callable[[], datetime] = utc_now
    base_url: str = ""  # how the pages are reached, once TCP listens
    surveys: dict[str, Survey] = field(default_factory=dict)
    survey_tasks: SurveyTasks = field(default_factory=SurveyTasks)
    nudged: asyncio.Event = field(default_factory=asyncio.Event)  # there is work for the loop
    freed: set[str] = field(default_factory=set)  # platforms on which room came free, or something began to wait
    doing: dict[str, str] = field(default_factory=dict)  # what is being brought for a session, and how far it is
    fresh: set[str] = field(default_factory=set)  # sessions being prepared that nobody tried to submit yet
    trouble: str = ""  # why the loop can't carry sessions on at present
    turned: float | None = None  # when the loop began its last turn, by the monotonic clock; None: no loop runs here
    clock_step: ClockStep | None = None  # the last one of this machine's clock since it was started
    drains_seen: DrainsSeen = field(default_factory=DrainsSeen)
    standings: int = 0  # grows when what someone may do has changed
    happened: asyncio.Condition = field(default_factory=asyncio.Condition)  # something was written to the events
    feed: EventFeed = field(default_factory=EventFeed)  # who watches events

    @cached_property
    def vault(self) -> Vault:
        """Where secrets are sealed that have to be stored; a personal service's own key does for small ones."""
        return Vault(
            self.settings.home, self.settings.master_key, self._key if self.settings.mode == "personal" else None
        )

    @cached_property
    def throttle(self) -> Throttle:
        """Who tries what too often."""
        return Throttle(self.settings.throttle.limits)

    @property
    def mail(self) -> Mail:
        """The way to send mail."""
        return Mail(self.settings.mail)

    def page(self, path: str) -> str:
        """The address of a page, as a link in a letter."""
        return f"{(self.settings.url or self.base_url).rstrip('/')}/web/{path}"

    def there(self, name: str) -> Platform:
        """A platform that is there now; those of annexes, accounts and systems come and go while others wait."""
        platform = self.platforms_by_name.get(name)
        if platform is None:
            named = f"There are: {', '.join(self.platforms_by_name)}."
            listed = "`sublet platform list` lists those that you may use."  # a gateway tells nobody of others
            raise NotFound(noun="platform", name=name, hint=named if self.settings.mode == "personal" else listed)
        return platform

    def platform_of(self, session: Session) -> Platform:
        """The platform that a session is on; the names of others are not for whoever looks at a session."""
        platform = self.platforms_by_name.get(session.offer.platform)
        if platform is None:
            raise NotFound(noun="platform", name=session.offer.platform)
        return platform

    async def survey(self, name: str) -> Survey:
        """What a platform has, while its last survey is good; a change of its nodes reaches its calendar."""
        old = self.surveys.get(name)
        if old and abs(self.now() - old.as_of) < old.good_for:
            return old
        platform = self.there(name)
        return await self.survey_tasks.join(platform, partial(self._survey_anew, platform))

    async def survey_soon(self, name: str) -> Survey:
        """The same within the time that a platform has for an answer; else PlatformUnreachable, and it goes on."""
        limit = self.settings.answer_within
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await self.survey(name)
        except TimeoutError as error:
            raise PlatformTimedOut(platform=name, limit=duration_text(limit)) from error

    def refresh_survey(self, name: str) -> None:
        """Have a platform looked at anew, in the background: what is known of it may have changed."""
        platform = self.platforms_by_name.get(name)
        if platform:
            platform.expire_survey()
            self.survey_tasks.start(platform, partial(self._survey_anew, platform))

    async def _survey_anew(self, platform: Platform) -> Survey:
        name, old = platform.name, self.surveys.get(platform.name)
        new = _with_metrics(_noted(await _survey_within(platform, LONGEST), self.pledged(name)), platform)
        if platform.terms == "booked" and (not old or _has(old) != _has(new)):
            pledges = self.pledged(name)
            pools = {**new.pools, **pools_of(pledges, _cores(new))}
            await self.store.write(lambda tx: tx.books.define(name, new.nodes, pools, new.taken))
        if self.platforms_by_name.get(name) is platform:  # else its settings have changed while it was asked
            self.surveys[name] = new
        return new

    def pledged(self, platform: str) -> dict[str, int]:
        """The pledges of a platform, and the cores of each."""
        found = self.platforms_by_name.get(platform)
        return {name: one.cores for name, one in found.pledges.items()} if found else {}

    async def tell(self) -> None:
        """Wake the loop, and those who wait for events."""
        self.nudged.set()
        self.feed.wake()
        async with self.happened:
            self.happened.notify_all()

    async def wait_for_news(self, seconds: float) -> None:
        """Wait until something happens in this process, or for so long: another process may have done it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.happened:
                await self.happened.wait()

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> list[Way]:
        """The ways to run it with these tools; a gateway runs nothing uncontained."""
        kind = self.kinds.get(executable.kind)
        ways = kind.ways(executable, tools) if kind else ()
        return [way for way in ways if way.contained or self.settings.mode == "personal"]

    def brings(self, executable: Executable | None, data: Iterable[Data]) -> list[Data]:
        """All that must be there before the executable starts: the asker's data, and what the kind itself needs."""
        kind = self.kinds.get(executable.kind) if executable else None
        return [*data, *(kind.brings(executable) if kind and executable else ())]

    def mover_for(
        self, data: Data, *, guest: bool = False, asked: bool = False, reviewed: bool = False
    ) -> Mover | Reason:
        """Who can bring it; or why nobody can. What is asked for can't be what only kinds bring."""
        movers = self.guest_movers if guest else self.own_movers if reviewed else self.movers
        if asked:
            movers = [mover for mover in movers if SIMPLE in kinds_of(mover)]
        field_name = f"data[{data.name}]"
        if not any(data.kind in kinds_of(mover) for mover in movers):
            known = (
                "simple-data-resource with a file: or http(s): location, and S3 or ivoa data with an http(s): address"
            )
            return Reason(
                "urn:not-supported",
                f"{field_name}.kind",
                f"Data of kind {data.kind} can't be brought here; only {known}.",
                wanted=data.kind,
                limit="simple-data-resource",
                nearest=known,
            )
        scheme = data.location.partition(":")[0].lower() if ":" in data.location else "file"
        for mover in movers:
            if scheme in mover.schemes and data.kind in kinds_of(mover):
                return mover
        schemes = ", ".join(f"{s}:" for mover in movers if data.kind in kinds_of(mover) for s in mover.schemes)
        return Reason(
            "urn:not-supported",
            f"{field_name}.location",
            f"Nothing here can bring data from {scheme}: addresses; these can be used: {schemes}.",
            wanted=f"{scheme}:",
            limit=schemes,
            nearest="an https: address of the same data",
        )

    def personal(self, person: Person | None = None) -> None:
        """Refuse what is only for the person whose service this is: a gateway has none, and guests are others."""
        if self.settings.mode != "personal":
            raise PersonalOnly
        if person and person.guest:
            raise OperatorsOnly

    def gateway(self) -> None:
        """Refuse what only a gateway has."""
        if self.settings.mode == "personal":
            raise NotAGateway

    def operated(self, person: Person) -> None:
        """Refuse what only a gateway's operators may."""
        self.gateway()
        if not person.operator:
            raise OperatorsOnly

    def check_address(self, text: str) -> str:
        """The plain address of the mailbox that someone named, as people are known here by it."""
        return fold_address(check_address(text), self.settings.signing.subaddresses)

    def mine(self, session: Session | None, person: Person, name: str, noun: str = "session") -> Session:
        """The session, if it exists and this person may see it."""
        if session is None:
            raise NotFound(noun=noun, name=name)
        if session.person != person.name and not person.operator:
            raise NotYours(noun=noun)
        if person.session and session.id != person.session:
            raise NotYours(noun=noun, hint="This token is for one session only.")
        return session

    def can_read(self, owner: str, person: Person) -> bool:
        """Whether a person may read what the owner's sessions run, print and leave, and connect to them."""
        if owner == person.name:
            return True
        said = self.settings.operators_read
        return person.operator and (self.settings.mode == "personal" if said is None else said)

    def shown(self, session: Session, viewer: Person | None = None) -> Session:
        """A session as its owner or another viewer sees it: with the ways in that they may use, and our own trouble."""
        if viewer and not self.can_read(session.person, viewer):
            session = replace(session, connectors=())
        if session.connectors:
            base = self.settings.sessions_url.replace("{session}", session.id) or self.base_url
            scheme = (base.partition(":")[0] or "http").upper()
            secret = f"?token={self.secret(session.id)}"
            ways = tuple(
                replace(
                    way,
                    protocol=scheme,
                    location=f"{base}{way.location}{secret if way.status == 'AVAILABLE' else ''}",
                )
                for way in session.connectors
            )
            session = replace(session, connectors=ways)
        if session.id in self.doing and session.phase is Phase.PREPARING:
            session = replace(session, condition=self.doing[session.id])
        if session.phase in ACTIVE and session.offer.platform not in self.platforms_by_name:
            words = (
                "is not here at present, and it goes on when it is again; `sublet platform list` shows what there is"
            )
            session = replace(session, condition=f"its platform {session.offer.platform} {words}")
        if self.trouble and session.phase in ACTIVE:
            session = replace(session, condition=f"the service can't carry it on at present: {self.trouble}")
        return session

    def secret(self, session: str) -> str:
        """The session's own secret: the same in every process that shares this home, and never stored."""
        return hmac.new(self._key(), session.encode(), hashlib.sha256).hexdigest()[:40]

    def _key(self) -> bytes:
        return read_or_make_key(self.settings.home / "key")


async def _survey_within(platform: Platform, seconds: float) -> Survey:
    """What a platform has; whatever goes wrong in a plug-in is an error of this platform alone."""
    try:
        async with asyncio.timeout(seconds):
            survey = await platform.survey()
    except SubletError:
        raise
    except TimeoutError as error:
        raise PlatformUnreachable(platform=platform.name, why=f"no answer within {seconds:.0f} s") from error
    except Exception as error:  # a plug-in may fail in any way
        log.exception("platform.broken", platform=platform.name)
        raise PlatformBroken(platform=platform.name, why=f"{type(error).__name__}: {error}") from error
    if not isinstance(survey, Survey) or survey.as_of.tzinfo is None:
        raise PlatformBroken(platform=platform.name, why="what it tells of itself can't be read")
    return survey


async def needs_login(platform: Platform) -> bool:
    """Whether a person must sign in to it before anything can start there."""
    return platform.login is not None and not await platform.login.check()


def _cores(survey: Survey) -> int:
    return sum(node.cores for node in survey.nodes)


def _noted(survey: Survey, pledges: Mapping[str, int]) -> Survey:
    """The same; if it has less than is pledged of it, it says so."""
    wanted, there = sum(pledges.values()), _cores(survey)
    if wanted <= there:
        return survey
    note = f"{wanted} cores are pledged, and there are {there} now: nothing is open, and who comes first gets them"
    return replace(survey, notes=(*survey.notes, note))


def _with_metrics(survey: Survey, platform: Platform) -> Survey:
    """The same; what its settings state that it performs counts more than what it says itself."""
    stated = platform.stated_metrics
    known = {quote.type for quote in stated}
    return replace(survey, metrics=(*stated, *(quote for quote in survey.metrics if quote.type not in known)))


def _has(survey: Survey) -> tuple[object, ...]:
    """What of a survey its calendar knows."""
    return survey.nodes, survey.pools, survey.taken
