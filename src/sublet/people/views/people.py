"""Who asks, and by which tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.booking.views.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token; its text is there once, when it is made."""

    id: str
    person: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    scope: tuple[str, ...] = ()  # read, run, manage; empty: all that the person may
    use: str = "api"  # browser: a sign-in on the pages; session: for one session; half-…: good for nothing but `second`
    session: str = ""  # the one that it is for; empty: any
    used: datetime | None = None  # when it was last shown, to the minute
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """Tokens, without their texts."""

    items: tuple[TokenView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenAsk:
    """Asks for a token.

    For whom (oneself if empty), for how long (`30d`; none: the service's default), and for what: `scope` has the words
    `read`, `run` and `manage`, each of which includes those before it; `session` makes one for that session only.
    """

    person: str = ""
    expires: str = ""
    note: str = ""
    scope: tuple[str, ...] = ()
    session: str = ""


@dataclass(frozen=True, kw_only=True)
class WhoView:
    """Who the service takes the caller for."""

    person: str
    mode: str  # personal or gateway
    operator: bool = False  # may see and do what concerns everyone
    role: str = "person"  # person, reviewer or operator
    scope: tuple[str, ...] = ()  # what the token that was shown is for; empty: all


@dataclass(frozen=True, kw_only=True)
class SignInAsk:
    """Asks for a code to sign in with, by mail."""

    address: str


@dataclass(frozen=True, kw_only=True)
class SignInView:
    """What is answered to whoever asks for a code, whether they may sign in or not."""

    message: str


@dataclass(frozen=True, kw_only=True)
class CodeAsk:
    """Signs in with a code; `client` is what the token is listed as."""

    address: str
    code: str
    client: str = ""


@dataclass(frozen=True, kw_only=True)
class IdentityView:
    """One of the names that a person has somewhere."""

    kind: str  # email, oidc, uid, htcondor, or system:NAME for their user name there
    value: str
    created: datetime


@dataclass(frozen=True, kw_only=True)
class IdentityAsk:
    """Names a person somewhere."""

    kind: str
    value: str


@dataclass(frozen=True, kw_only=True)
class WorkView:
    """What someone has under way, and what lets them in."""

    running: int = 0  # sessions that run, or can be connected to
    waiting: int = 0  # sessions that were accepted and have not started
    held: int = 0  # requests whose offers are held for them
    tokens: int = 0  # that are good now, browsers included
    rules: tuple[str, ...] = ()  # those of the access rules that speak of them; for operators
    sessions: tuple[SessionView, ...] = ()  # the newest of those under way


@dataclass(frozen=True, kw_only=True)
class PersonView:
    """Someone who is known to a gateway."""

    name: str  # the address by which they first came
    role: str  # person, reviewer or operator
    created: datetime
    seen: datetime | None = None  # when they last signed in
    blocked: bool = False
    why: str = ""  # they are blocked
    by: str = ""  # the operator who added them; empty: they came by themselves
    second_factor: bool = False  # a code of an authenticator is asked for when they sign in
    identities: tuple[IdentityView, ...] = ()
    groups: tuple[str, ...] = ()
    work: WorkView | None = None  # where one person is shown, or blocked
    cancelled: tuple[str, ...] = ()  # the sessions that a block cancelled


@dataclass(frozen=True, kw_only=True)
class PersonList:
    """Those who are known, by name."""

    items: tuple[PersonView, ...]
    next: str | None = None  # what to send as `after` for more


@dataclass(frozen=True, kw_only=True)
class PersonAsk:
    """Makes someone known."""

    address: str
    role: str = "person"


@dataclass(frozen=True, kw_only=True)
class RoleAsk:
    """Gives someone another part."""

    role: str


@dataclass(frozen=True, kw_only=True)
class BlockAsk:
    """Lets someone in no more; with `cancel` what they have under way is cancelled too, else it goes on."""

    why: str = ""
    cancel: bool = False


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """People under one name."""

    name: str
    note: str = ""
    created: datetime
    members: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GroupList:
    """The groups that there are."""

    items: tuple[GroupView, ...]


@dataclass(frozen=True, kw_only=True)
class GroupAsk:
    """Makes a group."""

    name: str
    note: str = ""
