"""The service: every use case in one object, and the loop that carries sessions on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sublet.errors import SubletError
from sublet.kinds.registry import survey_kinds
from sublet.movers.logins import Login
from sublet.movers.registry import survey_movers
from sublet.platforms.registry import load_platforms
from sublet.service import metrics
from sublet.service.access import Access
from sublet.service.access_point import AccessPoints
from sublet.service.account_platforms import AccountPlatforms
from sublet.service.accounts import Accounts
from sublet.service.again import Again
from sublet.service.annex_drains import AnnexDrains
from sublet.service.annex_platforms import AnnexPlatforms
from sublet.service.annex_status import AnnexStatus
from sublet.service.annexes import Annexes
from sublet.service.app_catalogue import AppCatalogue
from sublet.service.app_runs import AppRuns
from sublet.service.apps import Apps
from sublet.service.asking import Asking
from sublet.service.audit import AuditLog
from sublet.service.candidates import Candidates
from sublet.service.connect import Connect
from sublet.service.contents import Contents
from sublet.service.dag_moves import DagMoves
from sublet.service.dags import Dags
from sublet.service.database_guard import DatabaseGuard
from sublet.service.desk import log, utc_now
from sublet.service.drafts import Drafts
from sublet.service.drains import Drains
from sublet.service.events import Events
from sublet.service.explain import Explain
from sublet.service.factors import Factors
from sublet.service.groups import Groups
from sublet.service.hooks import Hooks
from sublet.service.inputs import Inputs
from sublet.service.invitations import Invitations
from sublet.service.jobs import Jobs
from sublet.service.lease_plans import LeasePlans
from sublet.service.lease_watch import LeaseWatch
from sublet.service.leases import Leases
from sublet.service.logins import Logins
from sublet.service.maintainers import Maintainers
from sublet.service.naming import Naming
from sublet.service.node_releases import NodeReleases
from sublet.service.offers import Offers
from sublet.service.oidc import Oidc
from sublet.service.output import Output
from sublet.service.pausing import Pausing
from sublet.service.people import People
from sublet.service.people_work import PeopleWork
from sublet.service.pilots import Pilots
from sublet.service.platform_changes import PlatformChanges, admitted
from sublet.service.platforms import Platforms
from sublet.service.pledges import Pledges
from sublet.service.probing import Probing
from sublet.service.proposing import Proposing
from sublet.service.quotas import Quotas
from sublet.service.reconcile import Loop
from sublet.service.reviewing import Reviewing
from sublet.service.rules import AccessRules
from sublet.service.sessions import Sessions
from sublet.service.shrinking import Shrinking
from sublet.service.signing_in import SigningIn
from sublet.service.splits import Splits
from sublet.service.sweeping import Sweeper
from sublet.service.telling import Telling
from sublet.service.templates import Templates
from sublet.service.tokens import Tokens
from sublet.service.trials import Trials
from sublet.service.usage import Usage
from sublet.settings import Settings
from sublet.store.migrate import Copies
from sublet.store.store import Store
from sublet.version import VERSION


@dataclass
class Service(
    # what old clients do in steps
    Drafts,
    # who is told what
    Hooks,
    Telling,
    Events,
    Explain,
    # apps: proposed, reviewed, and run by name
    AppRuns,
    Apps,
    Reviewing,
    Trials,
    Maintainers,
    Proposing,
    AppCatalogue,
    # platforms, and which there are
    PlatformChanges,
    Accounts,
    AccountPlatforms,
    AnnexPlatforms,
    Logins,
    Probing,
    Pledges,
    Platforms,
    # who may use what, and who did
    Access,
    AccessRules,
    Quotas,
    AuditLog,
    Usage,
    # who comes, and how
    Oidc,
    Factors,
    SigningIn,
    Groups,
    PeopleWork,
    People,
    Tokens,
    # annexes, and jobs on them
    Naming,
    DagMoves,
    Dags,
    Jobs,
    Inputs,
    LeaseWatch,
    AnnexStatus,
    AnnexDrains,
    Shrinking,
    Leases,
    LeasePlans,
    Annexes,
    Templates,
    # what an annex is made of
    Invitations,
    Splits,
    Pilots,
    NodeReleases,
    AccessPoints,
    # sessions: asked for, accepted, looked at
    Again,
    Connect,
    Pausing,
    Drains,
    Output,
    Contents,
    Sessions,
    Offers,
    Asking,
    Candidates,
):
    """Ask, accept, run, look: what the HTTP interface and the pages call.

    A noun stands before those that it is built upon, and before those whose answers it adds to.
    """

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, now: Callable[[], datetime] = utc_now, loop: bool = True
    ) -> AsyncIterator[Service]:
        """Open the store and the platforms, start the loop; on leaving, let go: what runs goes on."""
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        discreet = settings.mode == "gateway"
        guard = DatabaseGuard(settings)
        await asyncio.to_thread(guard.check_files)
        copies = Copies(settings.home / "backups", settings.retention.backups)
        store = await asyncio.to_thread(Store.open, settings.database_url, discreet=discreet, copies=copies)
        try:
            await asyncio.to_thread(guard.check_store, store)
        except SubletError:
            store.close()
            raise
        kinds = survey_kinds()
        platforms, bad = admitted(*load_platforms(settings.platforms, settings.refuse), settings.mode)
        roots = settings.file_roots if settings.mode == "personal" or settings.file_roots else ()
        public_only = settings.mode == "gateway" and not settings.private_data
        largest = settings.largest_data if settings.mode == "gateway" else 0
        whole = partial(survey_movers, roots, public_only=public_only, home=settings.home, largest=largest)
        own = whole(logins=[Login(below, **dict(login)) for below, login in settings.registries.items()])
        movers = own if settings.mode == "personal" else whole()
        strangers = survey_movers((), public_only=not settings.private_data, largest=settings.largest_data)
        broken = {f"kind {name}": why for name, why in kinds.broken.items()}
        broken |= {f"mover {name}": why for name, why in movers.broken.items()} | bad
        brought = (movers.found, strangers.found, own.found)
        service = cls(settings, store, platforms, kinds.by_name, *brought, broken, now)
        try:
            await service.find_same_people()
            for platform in list(platforms.values()):
                await service.open_platform(platform)
            await service.look_at(platforms)
            await service.refresh()
            carrier = Loop(service)
            workers = {"loop": carrier.run, "sweeper": Sweeper(service).run} if loop else {}
            workers |= {"database guard": partial(guard.run, store)}
            tasks = [asyncio.create_task(work(), name=name) for name, work in workers.items()]
            log.info("service.started", mode=settings.mode, platforms=list(platforms))
            try:
                yield service
            finally:
                await service.give_up_all()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if loop:
                    await carrier.stop()
        finally:
            await service.feed.close()
            await service.survey_tasks.stop()
            for platform in list(service.platforms_by_name.values()):
                await platform.close()
            await service.end_agent()
            await asyncio.to_thread(guard.record, store)
            store.close()
            log.info("service.stopped")

    @property
    def mode(self) -> str:
        """`personal` or `gateway`."""
        return self.settings.mode

    @property
    def version(self) -> str:
        """Sublet's own."""
        return VERSION

    async def scrape(self, whole: bool) -> bytes:
        """The metrics page: the whole of it, or without what names platforms."""
        counts = await self.store.read(lambda tx: tx.sessions.count_by_phase())
        for phase, count in counts.items():
            metrics.sessions.labels(phase).set(count)
        return metrics.page(whole)
