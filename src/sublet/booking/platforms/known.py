"""The platforms that are known here now, and what each of them has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

import structlog

from sublet.booking.model.amounts import memory_text
from sublet.booking.model.pledged import AMOUNTS, STORAGE, Pledged, list_schedule_takes, pools_of_all
from sublet.booking.model.session import Session
from sublet.booking.platforms.known_pledges import KnownPledges
from sublet.booking.platforms.survey_tasks import LONGEST, SurveyTasks
from sublet.kernel.errors import NotFound, PlatformBroken, PlatformTimedOut, PlatformUnreachable, SubletError
from sublet.kernel.texts import describe_duration
from sublet.platforms.port import Platform, Survey
from sublet.store.store import Store

log = structlog.get_logger()
UNLOADED = "Mend its settings or its plug-in, then restart the service: sublet down."


@dataclass
class KnownPlatforms:
    """The known platforms by name, with the last survey of each; those of annexes, accounts and systems come and go."""

    store: Store
    now: Callable[[], datetime]
    answer_within: timedelta  # how long a platform may take to answer while someone waits for it
    by_name: dict[str, Platform]
    broken: dict[str, str] = field(default_factory=dict)  # plug-ins that could not be loaded → why
    names_all: bool = True  # whether an error may name other platforms; on a gateway it may not
    accounts: set[str] = field(default_factory=set)  # platforms that are reached through a community account
    surveys: dict[str, Survey] = field(default_factory=dict)
    survey_tasks: SurveyTasks = field(default_factory=SurveyTasks)
    pledges: KnownPledges = field(init=False)
    open_new: Callable[[], Awaitable[None]] | None = None  # opens platforms that were added since the loop last looked

    def __post_init__(self) -> None:
        """Create the pledges of these platforms."""
        self.pledges = KnownPledges(self.by_name)

    async def open_if_new(self, name: str) -> None:
        """Open a platform that someone added a moment ago, without waiting until the loop notices it."""
        if name and name not in self.by_name and self.open_new:
            await self.open_new()

    def get(self, name: str) -> Platform:
        """Return a platform by its name; raise NotFound if there is none now."""
        platform = self.by_name.get(name)
        if platform is None:
            named = f"There are: {', '.join(self.by_name) or 'none'}."
            listed = "`sublet platform list` lists the platforms that you may use."
            raise NotFound(noun="platform", name=name, hint=named if self.names_all else listed)
        return platform

    def of(self, session: Session) -> Platform:
        """Return the platform of a session; if it is missing, the error doesn't name other platforms."""
        platform = self.by_name.get(session.offer.platform)
        if platform is None:
            raise NotFound(noun="platform", name=session.offer.platform)
        return platform

    def noun_of(self, name: str) -> str:
        """Return what a platform is to the access rules: a `system`, or an `account`."""
        return "account" if name in self.accounts else "system"

    def pledges_of(self, name: str) -> dict[str, Pledged]:
        """Return the pledges of a platform, by name."""
        return self.pledges.of(name)

    async def survey(self, name: str) -> Survey:
        """Return the last survey of a platform while it is good, else a new one; changed nodes reach its calendar."""
        if fresh := self.find_fresh(name):
            return fresh
        platform = self.get(name)
        return await self.survey_tasks.join(platform, partial(self._survey_anew, platform))

    def find_fresh(self, name: str) -> Survey | None:
        """Return the last survey of a platform while it is good, else None."""
        old = self.surveys.get(name)
        if old is None or name in self.pledges.unrecorded:
            return None
        return old if abs(self.now() - old.as_of) < old.good_for else None

    async def survey_soon(self, name: str) -> Survey:
        """Return a platform's survey within `answer_within`, or raise PlatformTimedOut; the survey itself continues."""
        try:
            async with asyncio.timeout(self.answer_within.total_seconds()):
                return await self.survey(name)
        except TimeoutError as error:
            raise PlatformTimedOut(platform=name, limit=describe_duration(self.answer_within)) from error

    def refresh_survey(self, name: str) -> None:
        """Survey a platform again in the background, because what is known of it may have changed."""
        if platform := self.by_name.get(name):
            platform.expire_survey()
            self.survey_again(name)

    def survey_again(self, name: str) -> None:
        """Survey a platform again in the background, because its pledges have changed."""
        if platform := self.by_name.get(name):
            self.survey_tasks.start(platform, partial(self._survey_anew, platform))

    async def _survey_anew(self, platform: Platform) -> Survey:
        name, old = platform.name, self.surveys.get(platform.name)
        seen = await _survey_within(platform, LONGEST)
        has_new_pledges = name in self.pledges.unrecorded
        self.pledges.unrecorded.discard(name)
        pledges = self.pledges_of(name) if platform.terms == "booked" else {}
        new = _with_metrics(_note_shortage(seen, pledges), platform)
        new = replace(new, taken=(*new.taken, *list_schedule_takes(pledges, self.now())))
        if platform.terms == "booked" and (has_new_pledges or not old or _bookable(old) != _bookable(new)):
            pools = {**new.pools, **pools_of_all(pledges, _sum_up(new))}
            try:
                await self.store.write(lambda tx: tx.books.define(name, new.nodes, pools, new.taken))
            except BaseException:
                self.pledges.unrecorded.add(name)
                raise
        if self.by_name.get(name) is platform:  # else its settings have changed meanwhile
            self.surveys[name] = new
        return new


def require_loaded(platforms: KnownPlatforms, name: str) -> None:
    """Raise PlatformBroken if a platform or system of this name could not be loaded."""
    why = platforms.broken.get(name) or platforms.broken.get(f"system {name}")
    if why and name not in platforms.by_name and platforms.names_all:
        raise PlatformBroken(platform=name, why=why, hint=UNLOADED)


async def needs_login(platform: Platform) -> bool:
    """Whether a person must sign in to the platform before anything can start there."""
    return platform.login is not None and not await platform.login.check()


async def _survey_within(platform: Platform, seconds: float) -> Survey:
    """Survey a platform within a time limit; any failure of a plug-in becomes an error of this platform alone."""
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
        raise PlatformBroken(platform=platform.name, why="its description of itself can't be read")
    return survey


def _sum_up(survey: Survey) -> dict[str, int]:
    """Return the platform's total of each amount that can be pledged."""
    amounts = {name: sum(getattr(node, name) for node in survey.nodes) for name in AMOUNTS}
    return amounts | {STORAGE: sum(survey.pools.values())}


def _note_shortage(survey: Survey, pledges: Mapping[str, Pledged]) -> Survey:
    """Add a note to the survey for each amount that is pledged beyond what there is."""
    texts: list[str] = []
    for name, there in _sum_up(survey).items():
        wanted = sum(pledge.amount(name) or 0 for pledge in pledges.values())
        if wanted > there:
            is_size = name in ("memory", STORAGE)
            much, has = (memory_text(size) if is_size else str(size) for size in (wanted, there))
            what = f"{much} of {name} is" if is_size else f"{much} {'GPUs' if name == 'gpus' else name} are"
            is_there = f"there is {has}" if is_size else f"there are {has}"
            texts.append(f"{what} pledged, but {is_there} now: nothing is open, and they go to whoever asks first")
    return replace(survey, notes=(*survey.notes, *texts)) if texts else survey


def _with_metrics(survey: Survey, platform: Platform) -> Survey:
    """Add the metrics in a platform's settings to the survey; they override what the platform reports."""
    stated = platform.stated_metrics
    known = {quote.type for quote in stated}
    return replace(survey, metrics=(*stated, *(quote for quote in survey.metrics if quote.type not in known)))


def _bookable(survey: Survey) -> tuple[object, ...]:
    """Return the parts of a survey that the platform's calendar knows."""
    return survey.nodes, survey.pools, survey.taken
