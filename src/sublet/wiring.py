"""Builds a service from its settings, without starting anything."""

from __future__ import annotations

from sublet.access.access import Access
from sublet.access.account_platforms import AccountPlatforms
from sublet.access.accounts import Accounts
from sublet.access.audit import AuditLog
from sublet.access.budgets import Budgets
from sublet.access.pledge_caps import PledgeCaps
from sublet.access.pledge_changes import PledgeChanges
from sublet.access.pledges import Pledges
from sublet.access.policy_service import PolicedLimits, PolicyService
from sublet.access.quotas import OpenAccess, RuledAccess
from sublet.access.rekeying import Rekeying
from sublet.access.rules import AccessRules
from sublet.access.usage import UsageReports
from sublet.annex_wiring import build_annexes
from sublet.annexes.access_point import AccessPoints
from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.platforms import AnnexPlatforms
from sublet.apps.catalogue import AppCatalogue
from sublet.apps.maintainers import Maintainers
from sublet.apps.pinning import PinnedApps
from sublet.apps.proposing import Proposing
from sublet.apps.reviewing import Reviewing
from sublet.apps.runs import AppRuns
from sublet.apps.trials import Trials
from sublet.archive.advice import KnownHabits
from sublet.archive.archive import SessionArchive
from sublet.booking.asking import Asking
from sublet.booking.brokers.carrying import Carrying
from sublet.booking.brokers.forwarding import Forwarding
from sublet.booking.brokers.giving_way import RemoteGivingWay
from sublet.booking.brokers.lengthening import Lengthening
from sublet.booking.brokers.outbox import BrokerOutbox
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
from sublet.booking.platforms.added_pledges import AddedPledges
from sublet.booking.platforms.drains import Drains
from sublet.booking.platforms.drains_seen import DrainsSeen
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.platforms import Platforms
from sublet.booking.platforms.probing import Probing
from sublet.booking.platforms.systems import OwnSystems
from sublet.booking.presenter import Presenter
from sublet.booking.price_book import PriceBook
from sublet.booking.recorded_clock import is_clock_doubted
from sublet.booking.rerun import Rerun
from sublet.booking.result_care import ResultCare
from sublet.booking.result_sendings import ResultSendings
from sublet.booking.series import RecurringBookings
from sublet.booking.session_endings import SessionEndings
from sublet.booking.session_notices import SessionNotices
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.booking.standard_images import StandardImages
from sublet.booking.visits import Visits
from sublet.booking.ways import Ways
from sublet.broker_wiring import build_changes
from sublet.data.caches import Caches
from sublet.data.credentials import Credentials
from sublet.data.globus_sign_in import GlobusSignIn
from sublet.data.places import SharedPlaces
from sublet.data.scratch import ScratchPlaces
from sublet.data.transfers import Transfers
from sublet.data.uploads import FOLDER, UploadArea, UploadCare, UploadNames, Uploads, UploadTransfers
from sublet.doors.cybergis.drafts import Drafts
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock, utc_now
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.kernel.vault import Vault
from sublet.loading import list_own_movers, load_executable_kinds, load_known_platforms, load_movers
from sublet.notices.events import Events
from sublet.notices.hooks import Hooks
from sublet.notices.webhooks import WebhookDelivery
from sublet.people.names import PeopleNames
from sublet.people.standing import Standing
from sublet.people.standings import Standings
from sublet.people_wiring import build_people
from sublet.policies import choose_mover_policies, has_owner
from sublet.service import AccessCases, AppCases, NoticeCases, Service, UploadCases
from sublet.store.store import Store


def build_service(settings: Settings, store: Store, now: Clock = utc_now) -> Service:
    """Build all use cases of a service, without starting anything."""
    is_personal = has_owner(settings)
    knows_people = not is_personal
    kinds, bad_kinds = load_executable_kinds(contained_only=not is_personal)
    known, broken = load_known_platforms(settings, own_logins=is_personal)
    platforms = KnownPlatforms(store, now, settings.answer_within, known, broken, names_all=is_personal)
    upload_area = UploadArea(settings.home / FOLDER)
    of_uploads = settings, store, now, upload_area
    own_movers = list_own_movers(store, platforms, upload_area, own_logins=is_personal)
    movers, bad_movers = load_movers(choose_mover_policies(settings), own_movers)
    broken |= bad_kinds | bad_movers
    signals, loop_state, drains_seen, standings = Signals(), LoopState(), DrainsSeen(), Standings()
    secrets = SessionSecrets(settings.home)
    vault = Vault(settings.home, settings.master_key, secrets.key if is_personal else None)
    credentials, transfers = Credentials(store, now, vault), Transfers(store, now)
    throttle, mail = Throttle(settings.throttle.limits), Mail(settings.mail)
    authority = Authority(settings, has_owner=is_personal)
    presenter = Presenter(settings, authority, platforms, loop_state, secrets)

    names, standing = PeopleNames(store, authority, knows_people), Standing(settings, store, knows_people)
    quotas = OpenAccess(platforms) if is_personal else RuledAccess(settings, store, now, platforms, throttle)
    budgets = Budgets(settings, store, now, authority, quotas)
    caps = PledgeCaps(platforms, quotas)
    policy = PolicyService(settings, store, now, platforms)
    places = SharedPlaces(store, now, authority, platforms, quotas, kinds)
    catalogue = AppCatalogue(settings, store, presenter, quotas)
    approved = PinnedApps(settings, store, platforms, quotas, catalogue, needs_review=not is_personal)
    trials = Trials(settings, is_allowed=is_personal)
    access_points = AccessPoints(settings, now, platforms, authority)
    annex_platforms = AnnexPlatforms(settings, store, platforms, access_points, has_annexes=is_personal)

    candidates = Candidates(
        *(settings, store, now, platforms, kinds, movers, drains_seen),
        guests=annex_platforms,
        limits=PolicedLimits(quotas, policy),
        bars=[approved],
        credentials=credentials,
        places=places,
        transfers=transfers,
        forwarding=Forwarding(store, now, secrets, RemoteGivingWay(store, now)),
        projects=budgets,
        takes_any_option=is_personal,
        carrying=Carrying(kinds, now),
    )
    price_book = PriceBook(settings)
    asking = Asking(
        settings,
        store,
        now,
        platforms,
        presenter,
        signals,
        authority,
        names,
        resolvers=[UploadNames(store), approved, trials, StandardImages(settings, needs_named=not is_personal)],
        policies=[quotas],
        candidates=candidates,
        adviser=KnownHabits(store, now),
        price_book=price_book,
        filters=[caps, budgets],
    )
    offers = Offers(store, now, signals, asking)
    endings = SessionEndings(now, signals)
    admissions = [caps, quotas, budgets, approved]
    sessions = Sessions(
        settings,
        store,
        now,
        platforms,
        presenter,
        signals,
        mail,
        authority,
        names,
        guests=annex_platforms,
        admissions=admissions,
        code=approved,
        endings=endings,
        price_book=price_book,
        lengthening=Lengthening(store, now, platforms, signals, admissions, [policy]),
        reviews=[policy],
    )
    direct = Direct(presenter, asking, offers, sessions)
    contents = Contents(store, now, authority, sessions)
    output = SessionOutput(platforms, signals, contents, sessions)

    people = build_people(
        settings,
        store,
        now,
        knows_people=knows_people,
        names=names,
        standing=standing,
        standings=standings,
        presenter=presenter,
        throttle=throttle,
        mail=mail,
        vault=vault,
        authority=authority,
        secrets=secrets,
        sessions=sessions,
    )

    rules = AccessRules(settings, store, now, platforms, authority, quotas)
    account_platforms = AccountPlatforms(settings, store, vault)
    sites = InvitedSites(settings, platforms, secrets, can_invite=is_personal)
    sources = OwnSystems(settings), sites, account_platforms, annex_platforms
    changes, brokers = build_changes(
        *(settings, store, now, platforms, sources, vault, credentials, people.assertions), own_logins=is_personal
    )
    platforms.open_new = changes.refresh
    usable = Platforms(store, now, platforms, annex_platforms, quotas)
    accounts = Accounts(
        settings, store, now, platforms, signals, vault, authority, quotas, rules, account_platforms, changes
    )
    telling = WebhookDelivery(settings, store, now, vault, mail, standing, is_private_usual=is_personal)
    notices = NoticeCases(Hooks(settings, store, now, signals, vault, throttle, sessions, telling), telling)
    access = AccessCases(
        rules,
        budgets,
        quotas,
        Access(settings, store, now, presenter, throttle, mail, authority, rules),
        Pledges(store, now, platforms, usable, rules),
        PledgeChanges(store, now, platforms, authority, AddedPledges(store, platforms)),
        accounts,
        account_platforms,
        AuditLog(store),
        UsageReports(store, now),
        Rekeying(store, now, [accounts, people.factors, notices.hooks, credentials, brokers]),
    )

    maintainers = Maintainers(settings, catalogue)
    runs = AppRuns(platforms, quotas, approved, people.tokens, catalogue, maintainers, candidates, asking, direct)
    apps = AppCases(
        catalogue,
        approved,
        runs,
        Proposing(settings, store, now, platforms, movers, throttle, mail, catalogue, has_strangers=not is_personal),
        Reviewing(settings, store, now, signals, mail, catalogue, endings, is_own_reviewer=is_personal),
        maintainers,
        trials,
    )
    explanations = Explain(store, now, sessions)
    result_care = ResultCare(settings, store, now, platforms, movers, signals, contents, credentials)
    visits = Visits(settings, store, now)

    bookings = RecurringBookings(settings, store, now, asking, offers, sessions)
    return Service(
        settings=settings,
        store=store,
        now=now,
        platforms=platforms,
        kinds=kinds,
        movers=movers,
        signals=signals,
        loop_state=loop_state,
        presenter=presenter,
        authority=authority,
        secrets=secrets,
        vault=vault,
        credentials=credentials,
        globus_sign_in=GlobusSignIn(settings, credentials),
        uploads=UploadCases(
            UploadTransfers(*of_uploads), Uploads(*of_uploads), UploadCare(store, upload_area, is_clock_doubted)
        ),
        places=places,
        scratch=ScratchPlaces(store, now, platforms),
        caches=Caches(now, authority, platforms),
        transfers=transfers,
        throttle=throttle,
        mail=mail,
        standings=standings,
        candidates=candidates,
        asking=asking,
        offers=offers,
        ways=Ways(kinds, platforms, asking, candidates),
        endings=endings,
        sessions=sessions,
        price_book=price_book,
        direct=direct,
        bookings=bookings,
        group_seats=GroupSeats(store, now, authority, signals, bookings, sessions.admissions, sessions.reviews),
        handovers=HandOvers(store, now, authority, names, signals, sessions, sessions.admissions, sessions.reviews),
        contents=contents,
        output=output,
        results=result_care,
        sendings=ResultSendings(result_care),
        events=Events(store, signals, sessions),
        explanations=explanations,
        rerun=Rerun(contents, asking, sessions),
        connections=Connect(store, platforms, standing, visits),
        visits=visits,
        session_notices=SessionNotices(store, presenter, explanations),
        pausing=Pausing(store, now, platforms, presenter, signals, sessions),
        drains=Drains(settings, store, now, platforms, signals, drains_seen, endings),
        drafts=Drafts(store, now, platforms, presenter, output, catalogue, runs, offers, notices.hooks, direct),
        brokers=brokers,
        broker_outbox=BrokerOutbox(store, now, platforms),
        changes=changes,
        usable_platforms=usable,
        probing=Probing(settings, store, now, platforms, usable, changes),
        logins=Logins(settings, store, now, platforms, signals, takes_answers=is_personal),
        people=people,
        access=access,
        annexes=build_annexes(
            settings,
            store,
            now,
            platforms=platforms,
            signals=signals,
            secrets=secrets,
            authority=authority,
            presenter=presenter,
            asking=asking,
            sessions=sessions,
            direct=direct,
            endings=endings,
            access_points=access_points,
            annex_platforms=annex_platforms,
            sites=sites,
            changes=changes,
            movers=movers,
            credentials=credentials,
        ),
        apps=apps,
        notices=notices,
        archive=SessionArchive(store, now),
    )
