"""Tables of people, identities, second factors, groups, sign-in codes and tokens."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from sublet.kernel.db.schema import Id, metadata

people = Table(
    "people",
    metadata,
    Column("name", Text, primary_key=True),  # the e-mail address with which they first signed in, in lower case
    Column("role", Text, nullable=False),  # operator, reviewer or person
    Column("created", BigInteger, nullable=False),
    Column("seen", BigInteger),
    Column("blocked", Text),  # why they are blocked; NULL: they aren't
    Column("by", Text, nullable=False),  # the operator who added them; empty: they signed in by themselves
)

identities = Table(
    "identities",
    metadata,
    Column("kind", Text, primary_key=True),  # email, oidc, uid, htcondor, or system:NAME
    Column("value", Text, primary_key=True),
    Column("person", Text, ForeignKey("people.name"), nullable=False),
    Column("created", BigInteger, nullable=False),
    Index(None, "person"),
)

factors = Table(
    "factors",
    metadata,
    Column("person", Text, ForeignKey("people.name"), primary_key=True),
    Column("secret", Text, nullable=False),  # of their authenticator, sealed
    Column("created", BigInteger, nullable=False),
    Column("confirmed", BigInteger),  # NULL: not in effect yet
    Column("step", BigInteger, nullable=False),  # the newest whose code was used
    Column("tries", BigInteger, nullable=False),  # wrong ones since then
    Column("tried", BigInteger, nullable=False),
    Column("recovery", Text, nullable=False),  # hashes of the remaining codes, space-separated
)

groups = Table(
    "groups",
    metadata,
    Column("name", Text, primary_key=True),
    Column("created", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
)

members = Table(
    "members",
    metadata,
    Column("group", Text, ForeignKey("groups.name"), primary_key=True),
    Column("person", Text, primary_key=True),  # a name; they may not have signed in yet
    Index(None, "person"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("person", Text, primary_key=True),
    Column("issuer", Text, primary_key=True),  # its name in the settings
    Column("name", Text, primary_key=True),  # as in rules, ISSUER:GROUP; empty: marks that the issuer was asked
    Column("until", BigInteger, nullable=False),  # when the confirming token expires
)

shown_assertions = Table(
    "shown_assertions",
    metadata,
    Column("id", Text, primary_key=True),  # of a single-use token
    Column("until", BigInteger, nullable=False),
    Index(None, "until"),
)

codes = Table(
    "codes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("address", Text, nullable=False),
    Column("host", Text, nullable=False),  # who asked for it
    Column("hash", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("tries", BigInteger, nullable=False),
    Index(None, "address", "created"),
    Index(None, "host", "created"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),  # SHA-256 of the secret, which is never stored
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("operator", BigInteger, nullable=False),  # 1: its holder has an operator's rights
    Column("guest", BigInteger, nullable=False, server_default="0"),  # 1: an operator made it for someone else
    Column("use", Text, nullable=False, server_default="api"),  # api, browser, session, once or half-…
    Column("scope", Text, nullable=False, server_default=""),  # scope words; empty: all
    Column("session", Id, nullable=False, server_default=""),  # the one session that it is for; empty: any
    Column("used", BigInteger),  # last use
    Index(None, "person"),
    Index(None, "session"),
)
