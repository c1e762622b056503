"""The service: the use cases of each subject, as the API and the web pages call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sublet.access.access import Access
from sublet.access.account_platforms import AccountPlatforms
from sublet.access.accounts import Accounts
from sublet.access.audit import AuditLog
from sublet.access.budgets import Budgets
from sublet.access.people_work import PeopleWork
from sublet.access.pledge_changes import PledgeChanges
from sublet.access.pledges import Pledges
from sublet.access.quotas import Quotas
from sublet.access.rekeying import Rekeying
from sublet.access.rules import AccessRules
from sublet.access.usage import UsageReports
from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes
from sublet.annexes.dag_moves import DagMoves
from sublet.annexes.dags import Dags
from sublet.annexes.drains import AnnexDrains
from sublet.annexes.inputs import Inputs
from sublet.annexes.invitations import Invitations
from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.jobs import Jobs
from sublet.annexes.lease_plans import LeasePlans
from sublet.annexes.lease_systems import LeaseSystems
from sublet.annexes.lease_watch import LeaseWatch
from sublet.annexes.leases import Leases
from sublet.annexes.naming import Naming
from sublet.annexes.node_releases import NodeReleases
from sublet.annexes.pilot_claims import Pilots
from sublet.annexes.pilot_orders import PilotOrders
from sublet.annexes.pilot_plans import PilotPlans
from sublet.annexes.platforms import AnnexPlatforms
from sublet.annexes.sharing import AnnexSharing
from sublet.annexes.shrinking import Shrinking
from sublet.annexes.splits import Splits
from sublet.annexes.status import AnnexStatus
from sublet.annexes.templates import Templates
from sublet.apps.catalogue import AppCatalogue
from sublet.apps.maintainers import Maintainers
from sublet.apps.pinning import PinnedApps
from sublet.apps.proposing import Proposing
from sublet.apps.reviewing import Reviewing
from sublet.apps.runs import AppRuns
from sublet.apps.trials import Trials
from sublet.archive.archive import SessionArchive
from sublet.booking.asking import Asking
from sublet.booking.brokers.outbox import BrokerOutbox
from sublet.booking.brokers.registry import Brokers
from sublet.booking.candidates import Candidates
from sublet.booking.connect import Connect
from sublet.booking.contents import Contents
from sublet.booking.direct import Direct
from sublet.booking.explain import Explain
from sublet.booking.group_seats import GroupSeats
from sublet.booking.handing_over import HandOvers
from sublet.booking.logins import Logins
from sublet.booking.loop.state import LoopState
from sublet.booking.offers import Offers
from sublet.booking.output import SessionOutput
from sublet.booking.pausing import Pausing
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.drains import Drains
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.platforms import Platforms
from sublet.booking.platforms.probing import Probing
from sublet.booking.presenter import Presenter
from sublet.booking.price_book import PriceBook
from sublet.booking.rerun import Rerun
from sublet.booking.result_care import ResultCare
from sublet.booking.result_sendings import ResultSendings
from sublet.booking.series import RecurringBookings
from sublet.booking.session_endings import SessionEndings
from sublet.booking.session_notices import SessionNotices
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.booking.visits import Visits
from sublet.booking.ways import Ways
from sublet.data.caches import Caches
from sublet.data.credentials import Credentials
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.globus_sign_in import GlobusSignIn
from sublet.data.places import SharedPlaces
from sublet.data.scratch import ScratchPlaces
from sublet.data.transfers import Transfers
from sublet.data.uploads.care import UploadCare
from sublet.data.uploads.transfers import UploadTransfers
from sublet.data.uploads.uploads import Uploads
from sublet.doors.cybergis.drafts import Drafts
from sublet.kernel import metrics
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.kernel.vault import Vault
from sublet.kernel.version import VERSION
from sublet.notices.events import Events
from sublet.notices.hooks import Hooks
from sublet.notices.webhooks import WebhookDelivery
from sublet.people.assertions import Assertions
from sublet.people.factors import Factors
from sublet.people.groups import Groups
from sublet.people.issuers import TrustedIssuers
from sublet.people.names import PeopleNames
from sublet.people.oidc import Oidc
from sublet.people.people import People
from sublet.people.signing_in import SigningIn
from sublet.people.standing import Standing
from sublet.people.standings import Standings
from sublet.people.tokens import Tokens
from sublet.store.store import Store


@dataclass(frozen=True)
class PeopleCases:
    """The use cases about people: identities, groups, tokens and sign-in."""

    directory: People
    names: PeopleNames
    standing: Standing
    groups: Groups
    tokens: Tokens
    signing_in: SigningIn
    factors: Factors
    oidc: Oidc
    issuers: TrustedIssuers
    assertions: Assertions
    work: PeopleWork


@dataclass(frozen=True)
class AccessCases:
    """The use cases about access: rules, quotas, budgets, pledges, accounts, audit, usage."""

    rules: AccessRules
    budgets: Budgets
    quotas: Quotas
    requests: Access
    pledges: Pledges
    pledge_changes: PledgeChanges
    accounts: Accounts
    account_platforms: AccountPlatforms
    audit: AuditLog
    usage: UsageReports
    rekeying: Rekeying


@dataclass(frozen=True)
class AnnexCases:
    """The use cases about annexes: leases, pilots and the HTCondor jobs on them."""

    registry: Annexes
    platforms: AnnexPlatforms
    sharing: AnnexSharing
    templates: Templates
    plans: LeasePlans
    leases: Leases
    systems: LeaseSystems
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
    """The use cases about apps: proposals, reviews and runs."""

    catalogue: AppCatalogue
    approved: PinnedApps
    runs: AppRuns
    proposing: Proposing
    reviewing: Reviewing
    maintainers: Maintainers
    trials: Trials


@dataclass(frozen=True)
class UploadCases:
    """The use cases about uploads: transfer, storage and cleanup."""

    transfers: UploadTransfers
    kept: Uploads
    care: UploadCare


@dataclass(frozen=True)
class NoticeCases:
    """The use cases about notifications of sessions' changes."""

    hooks: Hooks
    telling: WebhookDelivery


@dataclass
class Service:
    """All use cases of a service, as in `service.sessions.accept(...)` or `service.annexes.leases.shutdown(...)`."""

    settings: Settings
    store: Store
    now: Clock
    # shared by the use cases
    platforms: KnownPlatforms
    kinds: ExecutableKinds
    movers: Movers
    signals: Signals
    loop_state: LoopState
    presenter: Presenter
    authority: Authority
    secrets: SessionSecrets
    vault: Vault
    credentials: Credentials
    globus_sign_in: GlobusSignIn
    uploads: UploadCases
    places: SharedPlaces
    scratch: ScratchPlaces
    caches: Caches
    transfers: Transfers
    throttle: Throttle
    mail: Mail
    standings: Standings
    # ask → offers → accept → session → result
    candidates: Candidates
    asking: Asking
    offers: Offers
    ways: Ways
    endings: SessionEndings
    sessions: Sessions
    price_book: PriceBook
    direct: Direct
    bookings: RecurringBookings
    group_seats: GroupSeats
    handovers: HandOvers
    contents: Contents
    output: SessionOutput
    results: ResultCare
    sendings: ResultSendings
    events: Events
    explanations: Explain
    rerun: Rerun
    connections: Connect
    session_notices: SessionNotices
    visits: Visits
    pausing: Pausing
    drains: Drains
    drafts: Drafts
    # platforms, and signing in to them
    brokers: Brokers
    broker_outbox: BrokerOutbox
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
    archive: SessionArchive

    @property
    def mode_word(self) -> Literal["personal", "gateway"]:
        """The mode, for display only; decisions are made by the policies that were chosen from it."""
        return self.settings.mode

    @property
    def version(self) -> str:
        """Sublet's version."""
        return VERSION

    async def scrape(self, whole: bool) -> bytes:
        """Return the metrics page; those that name platforms only if `whole`."""
        counts = await self.store.read(lambda tx: tx.sessions.count_by_phase())
        for phase, count in counts.items():
            metrics.sessions.labels(phase).set(count)
        return metrics.page(whole)
