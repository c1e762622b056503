"""Builds the use cases of annexes: leases, pilots and the jobs on them."""

from __future__ import annotations

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes
from sublet.annexes.dag_moves import DagMoves
from sublet.annexes.dags import Dags
from sublet.annexes.drains import AnnexDrains
from sublet.annexes.inputs import PACKING, Inputs
from sublet.annexes.invitations import Invitations
from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.job_addresses import JobAddresses
from sublet.annexes.job_images import JobImages
from sublet.annexes.job_queue import JobQueue
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
from sublet.booking.asking import Asking
from sublet.booking.direct import Direct
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.presenter import Presenter
from sublet.booking.session_endings import SessionEndings
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.data.bringing import CredentialOpener
from sublet.data.executables import Movers
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.settings import Settings
from sublet.service import AnnexCases
from sublet.store.store import Store


def build_annexes(
    settings: Settings,
    store: Store,
    now: Clock,
    *,
    platforms: KnownPlatforms,
    signals: Signals,
    secrets: SessionSecrets,
    authority: Authority,
    presenter: Presenter,
    asking: Asking,
    sessions: Sessions,
    direct: Direct,
    endings: SessionEndings,
    access_points: AccessPoints,
    annex_platforms: AnnexPlatforms,
    sites: InvitedSites,
    changes: PlatformChanges,
    movers: Movers,
    credentials: CredentialOpener,
) -> AnnexCases:
    """Build the use cases of annexes."""
    registry = Annexes(store, now, signals, authority)
    templates = Templates(store, now, authority)
    node_releases = NodeReleases(settings, platforms, access_points)
    pilot_plans = PilotPlans(settings, store, platforms, secrets, access_points)
    addresses = JobAddresses(platforms, movers, credentials)
    splits = Splits(
        settings, store, platforms, signals, secrets, pilot_plans, node_releases, sites, access_points, addresses
    )
    pilots = Pilots(
        settings,
        store,
        now,
        platforms,
        signals,
        secrets,
        access_points,
        node_releases,
        sites,
        pilot_plans,
        splits,
    )
    orders = PilotOrders(store, now, signals, secrets, access_points)
    plans = LeasePlans(settings, store, now, platforms, authority, templates, access_points, registry, changes)
    leases = Leases(
        settings,
        store,
        now,
        presenter,
        signals,
        plans,
        pilots,
        orders,
        splits,
        access_points,
        registry,
        asking,
        sessions,
        direct,
    )
    systems = LeaseSystems(store, platforms, leases, annex_platforms)
    images = JobImages(settings.home / PACKING, movers, credentials)
    status = AnnexStatus(settings, store, now, leases, splits, access_points, registry)
    job_queue = JobQueue(now, authority, registry)
    jobs = Jobs(store, now, status, access_points, registry, job_queue)
    dag_moves = DagMoves(now, jobs, access_points, registry, job_queue)
    return AnnexCases(
        registry=registry,
        platforms=annex_platforms,
        sharing=AnnexSharing(store, signals, sessions, registry, annex_platforms, changes, endings),
        templates=templates,
        plans=plans,
        leases=leases,
        systems=systems,
        status=status,
        watch=LeaseWatch(store, now, signals, leases, status, endings),
        drains=AnnexDrains(store, now, platforms, signals, leases, registry),
        shrinking=Shrinking(store, now, platforms, signals, leases, orders, registry),
        jobs=jobs,
        dags=Dags(access_points, job_queue),
        dag_moves=dag_moves,
        naming=Naming(store, dag_moves, access_points, job_queue),
        inputs=Inputs(settings, store, now, platforms, systems, access_points, images),
        access_points=access_points,
        node_releases=node_releases,
        pilots=pilots,
        pilot_plans=pilot_plans,
        pilot_orders=orders,
        splits=splits,
        sites=sites,
        invitations=Invitations(platforms, signals, authority, sites, pilot_plans, changes),
    )
