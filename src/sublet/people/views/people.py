"""The views of tokens, sign-in, people and groups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.booking.views.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token; its text is only in the answer that creates it."""

    id: str
    person: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    scope: tuple[str, ...] = ()  # read, run, manage; empty: all that the person may do
    use: str = "api"  # browser: a sign-in on the pages; session: for one session; half-…: only for `second`
    session: str = ""  # the one that it is for; empty: any
    used: datetime | None = None  # last use, to the minute
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """Tokens, without their texts."""

    items: tuple[TokenView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenAsk:
    """A token to make.

    For whom (empty: oneself), for how long (`30d`; empty: the service's default), and for what: `scope` has the words
    `read`, `run` and `manage`, each of which includes those before it; `session` makes a token for that session only.
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
    operator: bool = False  # has an operator's rights
    role: str = "person"  # person, reviewer or operator
    pending_role: str = ""  # reviewer or operator, once they have a second factor
    scope: tuple[str, ...] = ()  # of the token that was used; empty: all


@dataclass(frozen=True, kw_only=True)
class SignInAsk:
    """The address to mail a sign-in code to."""

    address: str


@dataclass(frozen=True, kw_only=True)
class SignInView:
    """The answer to a request for a code, the same whether the person may sign in or not."""

    message: str


@dataclass(frozen=True, kw_only=True)
class CodeAsk:
    """A code to sign in with; `client` is the name under which the token is listed."""

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
    """An identity to add to a person."""

    kind: str
    value: str


@dataclass(frozen=True, kw_only=True)
class WorkView:
    """A person's activity, and the rules that apply to them."""

    running: int = 0  # running, or ready to be connected to
    waiting: int = 0  # accepted, but not started
    held: int = 0  # requests whose offers are held for them
    tokens: int = 0  # valid ones, including browser sessions
    rules: tuple[str, ...] = ()  # the access rules that apply to them, for operators
    sessions: tuple[SessionView, ...] = ()  # the newest active ones


@dataclass(frozen=True, kw_only=True)
class PersonView:
    """A person known to a gateway."""

    name: str  # the address with which they first signed in
    role: str  # person, reviewer or operator
    created: datetime
    seen: datetime | None = None  # last sign-in
    blocked: bool = False
    why: str = ""  # why they are blocked
    by: str = ""  # the operator who added them; empty: they signed in by themselves
    second_factor: bool = False  # whether signing in needs a code of an authenticator
    identities: tuple[IdentityView, ...] = ()
    groups: tuple[str, ...] = ()
    work: WorkView | None = None  # given when one person is shown or blocked
    cancelled: tuple[str, ...] = ()  # the sessions that a block cancelled


@dataclass(frozen=True, kw_only=True)
class PersonList:
    """People, by name."""

    items: tuple[PersonView, ...]
    next: str | None = None  # the `after` of the next page


@dataclass(frozen=True, kw_only=True)
class PersonAsk:
    """A person to add."""

    address: str
    role: str = "person"


@dataclass(frozen=True, kw_only=True)
class RoleAsk:
    """A person's new role."""

    role: str


@dataclass(frozen=True, kw_only=True)
class BlockAsk:
    """A block; with `cancel` the person's active sessions are cancelled, otherwise they continue."""

    why: str = ""
    cancel: bool = False


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """A group of people."""

    name: str
    note: str = ""
    created: datetime
    members: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GroupList:
    """All groups."""

    items: tuple[GroupView, ...]


@dataclass(frozen=True, kw_only=True)
class GroupAsk:
    """A group to add."""

    name: str
    note: str = ""
