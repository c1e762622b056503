"""The service: the use cases of each subject, for those who call them over HTTP and on pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sublet.service import metrics
from sublet.service.access import Access
from sublet.service.access_point import AccessPoints
from sublet.service.account_platforms import AccountPlatforms
from sublet.service.accounts import Accounts
from sublet.service.again import Again
from sublet.service.annex_drains import AnnexDrains
from sublet.service.annex_platforms import AnnexPlatforms
from sublet.service.annex_sharing import AnnexSharing
from sublet.service.annex_status import AnnexStatus
from sublet.service.annexes import Annexes
from sublet.service.app_catalogue import AppCatalogue
from sublet.service.app_runs import AppRuns
from sublet.service.apps import Apps
from sublet.service.asking import Asking
from sublet.service.audit import AuditLog
from sublet.service.authority import Authority
from sublet.service.candidates import Candidates
from sublet.service.clock import Clock
from sublet.service.connect import Connect
from sublet.service.contents import Contents
from sublet.service.dag_moves import DagMoves
from sublet.service.dags import Dags
from sublet.service.direct import Direct
from sublet.service.drafts import Drafts
from sublet.service.drains import Drains
from sublet.service.events import Events
from sublet.service.executables import ExecutableKinds, Movers
from sublet.service.explain import Explain
from sublet.service.factors import Factors
from sublet.service.groups import Groups
from sublet.service.hooks import Hooks
from sublet.service.inputs import Inputs
from sublet.service.invitations import Invitations
from sublet.service.invited_sites import InvitedSites
from sublet.service.jobs import Jobs
from sublet.service.known_platforms import KnownPlatforms
from sublet.service.lease_plans import LeasePlans
from sublet.service.lease_watch import LeaseWatch
from sublet.service.leases import Leases
from sublet.service.logins import Logins
from sublet.service.loop_state import LoopState
from sublet.service.mail import Mail
from sublet.service.maintainers import Maintainers
from sublet.service.naming import Naming
from sublet.service.node_releases import NodeReleases
from sublet.service.offers import Offers
from sublet.service.oidc import Oidc
from sublet.service.output import Output
from sublet.service.pausing import Pausing
from sublet.service.people import People
from sublet.service.people_names import PeopleNames
from sublet.service.people_work import PeopleWork
from sublet.service.pilot_orders import PilotOrders
from sublet.service.pilot_plans import PilotPlans
from sublet.service.pilots import Pilots
from sublet.service.platform_changes import PlatformChanges
from sublet.service.platforms import Platforms
from sublet.service.pledges import Pledges
from sublet.service.presenter import Presenter
from sublet.service.probing import Probing
from sublet.service.proposing import Proposing
from sublet.service.quotas import Quotas
from sublet.service.rekeying import Rekeying
from sublet.service.reviewing import Reviewing
from sublet.service.rules import AccessRules
from sublet.service.session_endings import SessionEndings
from sublet.service.session_secrets import SessionSecrets
from sublet.service.sessions import Sessions
from sublet.service.shrinking import Shrinking
from sublet.service.signals import Signals
from sublet.service.signing_in import SigningIn
from sublet.service.splits import Splits
from sublet.service.standing import Standing
from sublet.service.standings import Standings
from sublet.service.telling import Telling
from sublet.service.templates import Templates
from sublet.service.throttle import Throttle
from sublet.service.tokens import Tokens
from sublet.service.trials import Trials
from sublet.service.usage import Usage
from sublet.service.vault import Vault
from sublet.settings import Settings
from sublet.store.store import Store
from sublet.version import VERSION


@dataclass(frozen=True)
class PeopleCases:
    """Who someone is: people, their names, tokens, and how they sign in."""

    directory: People
    names: PeopleNames
    standing: Standing
    groups: Groups
    tokens: Tokens
    signing_in: SigningIn
    factors: Factors
    oidc: Oidc
    work: PeopleWork


@dataclass(frozen=True)
class AccessCases:
    """Who may use what: rules, quotas, pledges, accounts, audit, usage."""

    rules: AccessRules
    quotas: Quotas
    requests: Access
    pledges: Pledges
    accounts: Accounts
    account_platforms: AccountPlatforms
    audit: AuditLog
    usage: Usage
    rekeying: Rekeying


@dataclass(frozen=True)
class AnnexCases:
    """Leases, pilots and the jobs of HTCondor on them."""

    registry: Annexes
    platforms: AnnexPlatforms
    sharing: AnnexSharing
    templates: Templates
    plans: LeasePlans
    leases: Leases
    status: AnnexStatus
    watch: LeaseWatch
    drains: AnnexDrains
    shrinking: Shrinking
    jobs: Jobs
    dags: Dags
    dag_moves: DagMoves
    naming: Naming
    inputs: Inputs
    access_points: AccessPoints
    node_releases: NodeReleases
    pilots: Pilots
    pilot_plans: PilotPlans
    pilot_orders: PilotOrders
    splits: Splits
    sites: InvitedSites
    invitations: Invitations


@dataclass(frozen=True)
class AppCases:
    """Apps: proposed, reviewed, and run by name."""

    catalogue: AppCatalogue
    approved: Apps
    runs: AppRuns
    proposing: Proposing
    reviewing: Reviewing
    maintainers: Maintainers
    trials: Trials


@dataclass(frozen=True)
class NoticeCases:
    """Who is told of what happens to a session."""

    hooks: Hooks
    telling: Telling


@dataclass
class Service:
    """Ask, accept, run, look: `service.sessions.accept(...)`, `service.annexes.leases.shutdown(...)`."""

    settings: Settings
    store: Store
    now: Clock
    # what the use cases share
    platforms: KnownPlatforms
    kinds: ExecutableKinds
    movers: Movers
    signals: Signals
    loop_state: LoopState
    presenter: Presenter
    authority: Authority
    secrets: SessionSecrets
    vault: Vault
    throttle: Throttle
    mail: Mail
    standings: Standings
    # ask → offers → accept → session → result
    candidates: Candidates
    asking: Asking
    offers: Offers
    endings: SessionEndings
    sessions: Sessions
    direct: Direct
    contents: Contents
    output: Output
    events: Events
    explanations: Explain
    rerun: Again
    connections: Connect
    pausing: Pausing
    drains: Drains
    drafts: Drafts
    # platforms: which there are, and signing in to them
    changes: PlatformChanges
    usable_platforms: Platforms
    probing: Probing
    logins: Logins
    # the other subjects
    people: PeopleCases
    access: AccessCases
    annexes: AnnexCases
    apps: AppCases
    notices: NoticeCases

    @property
    def mode(self) -> Literal["personal", "gateway"]:
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
