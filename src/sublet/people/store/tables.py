"""Who comes, how they are known, and by what they come in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from sublet.kernel.db.schema import Id, metadata

people = Table(
    "people",
    metadata,
    Column("name", Text, primary_key=True),  # the e-mail address by which they first came, in small letters
    Column("role", Text, nullable=False),  # operator, reviewer or person
    Column("created", BigInteger, nullable=False),
    Column("seen", BigInteger),
    Column("blocked", Text),  # why they may not come in; NULL: they may
    Column("by", Text, nullable=False),  # the operator who added them; empty: they came by themselves
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
    Column("confirmed", BigInteger),  # when it was first shown to work; NULL: it counts for nothing yet
    Column("step", BigInteger, nullable=False),  # the newest whose code was used
    Column("tries", BigInteger, nullable=False),  # that were wrong, since
    Column("tried", BigInteger, nullable=False),
    Column("recovery", Text, nullable=False),  # hashes of the codes that are left, as words
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
    Column("person", Text, primary_key=True),  # a name, who need not have come yet
    Index(None, "person"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("person", Text, primary_key=True),
    Column("issuer", Text, primary_key=True),  # its name in the settings
    Column("name", Text, primary_key=True),  # as rules know it, ISSUER:GROUP; empty: it was asked, and there is none
    Column("until", BigInteger, nullable=False),  # when the token expires that said so
)

shown_assertions = Table(
    "shown_assertions",
    metadata,
    Column("id", Text, primary_key=True),  # of a token that counts once
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
    Column("operator", BigInteger, nullable=False),  # 1: its holder may do what operators may
    Column("guest", BigInteger, nullable=False, server_default="0"),  # 1: its holder was invited by an operator
    Column("use", Text, nullable=False, server_default="api"),  # api, browser or session
    Column("scope", Text, nullable=False, server_default=""),  # words of what its holder may do; empty: all
    Column("session", Id, nullable=False, server_default=""),  # the one session that it is for; empty: any
    Column("used", BigInteger),  # when it was last shown
    Index(None, "person"),
    Index(None, "session"),
)
