"""Builds the use cases about people: who they are, and how they sign in."""

from __future__ import annotations

from sublet.access.people_work import PeopleWork
from sublet.booking.presenter import Presenter
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.sessions import Sessions
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.kernel.vault import Vault
from sublet.people.arrivals import Arrivals
from sublet.people.assertions import Assertions
from sublet.people.factors import Factors
from sublet.people.groups import Groups
from sublet.people.issuers import TrustedIssuers
from sublet.people.names import PeopleNames
from sublet.people.oidc import Oidc
from sublet.people.people import People
from sublet.people.sign_in_tokens import SignInTokens
from sublet.people.signing_in import SigningIn
from sublet.people.standing import Standing
from sublet.people.standings import Standings
from sublet.people.tokens import Tokens
from sublet.service import PeopleCases
from sublet.store.store import Store


def build_people(
    settings: Settings,
    store: Store,
    now: Clock,
    *,
    knows_people: bool,
    names: PeopleNames,
    standing: Standing,
    standings: Standings,
    presenter: Presenter,
    throttle: Throttle,
    mail: Mail,
    vault: Vault,
    authority: Authority,
    secrets: SessionSecrets,
    sessions: Sessions,
) -> PeopleCases:
    """Build the use cases about people."""
    directory = People(settings, store, now, standings, authority, knows_people)
    tokens = Tokens(settings, store, now, names, standing, sessions, knows_people)
    sign_in_tokens = SignInTokens(settings)
    signing_in = SigningIn(
        *(settings, store, now, presenter, standings, throttle, mail, authority, secrets, tokens, sign_in_tokens),
        knows_people,
    )
    arrivals = Arrivals(settings, authority, signing_in)
    factors = Factors(settings, store, now, standings, vault, throttle, authority, secrets, sign_in_tokens)
    return PeopleCases(
        directory,
        names,
        standing,
        Groups(store, now, authority),
        tokens,
        signing_in,
        factors,
        Oidc(settings, store, now, throttle, authority, secrets, arrivals, sign_in_tokens, knows_people),
        TrustedIssuers(settings, store, now, authority, arrivals, standing, knows_people),
        Assertions(settings, store, now, secrets, knows_people),
        PeopleWork(store, now, presenter, directory, sessions),
    )
