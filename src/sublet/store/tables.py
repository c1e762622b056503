"""The tables. Times are microseconds since 1970 and documents are JSON text, so that both databases store the same."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects import postgresql

NAMES = {
    "ix": "%(table_name)s_%(column_0_N_name)s",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
}
metadata = MetaData(naming_convention=NAMES)

# Ids are compared byte by byte, so that a prefix is a range whatever the database's language is.
Id = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
# In so many words, because SQLite uses a partial index only for a query with the same words.
WORKED_ON = text("phase IN ('ACCEPTED', 'AVAILABLE', 'PREPARING', 'RELEASING', 'RUNNING', 'WAITING')")
Serial = BigInteger().with_variant(Integer(), "sqlite")

offersets = Table(
    "offersets",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("key", Text),  # the asker's own, so that asking again gives the same set
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("result", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("reasons", Text, nullable=False),
    UniqueConstraint("person", "key"),
    Index(None, "created"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("offerset", Id, ForeignKey("offersets.id"), nullable=False),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("app", Id, nullable=False, server_default=""),  # the version that it runs; empty: it is no app
    Column("offer", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("modified", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("condition", Text, nullable=False),
    Column("start", BigInteger),
    Column("until", BigInteger),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("job", Text, nullable=False),
    Column("cancel_by", Text, nullable=False),
    Column("end", Text),
    Column("connectors", Text),
    Column("due", BigInteger),  # when the loop must look at it next
    Column("claim_owner", Text),
    Column("claim_token", Text),
    Column("claim_until", BigInteger),
    Index(None, "offerset", "phase"),
    Index(None, "person", "created"),
    Index(None, "created"),
    Index(None, "phase", "expires"),
    Index("sessions_due", "due", sqlite_where=text("due IS NOT NULL"), postgresql_where=text("due IS NOT NULL")),
    Index(
        "sessions_claimed",
        "claim_token",
        sqlite_where=text("claim_token IS NOT NULL"),
        postgresql_where=text("claim_token IS NOT NULL"),
    ),
    Index(
        "sessions_job",
        "platform",
        "job",
        sqlite_where=WORKED_ON,
        postgresql_where=WORKED_ON,
    ),
)

calendars = Table(
    "calendars",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),  # of the newest change to its bookings
    Column("floor", BigInteger, nullable=False),  # what is remembered from before this version is read anew
    Column("nodes", Text, nullable=False),
    Column("pools", Text, nullable=False),
)

bookings = Table(
    "bookings",
    metadata,
    Column("platform", Text, ForeignKey("calendars.platform"), primary_key=True),
    Column("key", Id, primary_key=True),  # an offer set's id for a hold, a session's id for a booking
    Column("version", BigInteger, nullable=False),  # of the calendar when it last changed
    Column("takes", Text),  # NULL: released; kept until no process needs to hear of it
    Index(None, "platform", "version"),
)

events = Table(
    "events",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("session", Id, nullable=False),
    Column("person", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Index(None, "session", "id"),
    Index(None, "person", "id"),
    sqlite_autoincrement=True,
)

starts = Table(
    "starts",
    metadata,
    Column("session", Id, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("cores", BigInteger, nullable=False),  # per node
    Column("planned", BigInteger, nullable=False),
    Column("actual", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),  # when the plan was made
    Index(None, "platform", "at"),
)

dependencies = Table(
    "dependencies",
    metadata,
    Column("session", Id, primary_key=True),  # it waits
    Column("after", Id, primary_key=True),  # for this one, which may be deleted meanwhile
    Column("phase", Text),  # in which that one is over
    Column("words", Text, nullable=False),  # how it ended
    Index(None, "after"),
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

annexes = Table(
    "annexes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("open", BigInteger, nullable=False),  # 1: to all of its owner's jobs; 2: to none, but to sessions
    Column("guests", Text, nullable=False),
    UniqueConstraint("person", "name"),
)

leases = Table(
    "leases",
    metadata,
    Column("id", Id, primary_key=True),
    Column("annex", Id, ForeignKey("annexes.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("details", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("session", Id, nullable=False),  # empty until there are offers
    Column("ended", BigInteger),
    Column("why", Text, nullable=False),
    UniqueConstraint("annex", "number"),
    Index("leases_live", "created", sqlite_where=text("ended IS NULL"), postgresql_where=text("ended IS NULL")),
)

pilots = Table(
    "pilots",
    metadata,
    Column("lease", Id, ForeignKey("leases.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("node", Text, nullable=False),
    Column("claimed", BigInteger, nullable=False),
    Column("seen", BigInteger),
    Column("ended", BigInteger),
    Column("why", Text, nullable=False),
    Column("facts", Text, nullable=False),
)

templates = Table(
    "templates",
    metadata,
    Column("person", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("details", Text, nullable=False),
    Column("changed", BigInteger, nullable=False),
)

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

rules = Table(
    "rules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("effect", Text, nullable=False),  # allow or deny
    Column("who", Text, nullable=False),  # a pattern such as *@illinois.edu, group:NAME, or a person's name
    Column("noun", Text, nullable=False),  # system, account, pledge or app
    Column("name", Text, nullable=False),  # a pattern of the noun's names
    Column("limits", Text, nullable=False),  # the most of each amount
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("by", Text, nullable=False),
    Column("note", Text, nullable=False),
)

uses = Table(
    "uses",
    metadata,
    Column("session", Id, primary_key=True),  # that was accepted on a gateway; this row outlives it
    Column("person", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("app", Text, nullable=False),  # the name of the app that it runs; empty: none
    Column("accepted", BigInteger, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("cores", BigInteger, nullable=False),  # over all its nodes
    Column("gpus", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),  # microseconds that it may take
    Column("started", BigInteger),
    Column("ended", BigInteger),  # NULL: it is under way
    Index(None, "person", "platform", "ended"),
    Index(None, "person", "app", "ended"),
    Index(None, "ended"),
)

access_requests = Table(
    "access_requests",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("noun", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("state", Text, nullable=False),  # open, granted or refused
    Column("decided", BigInteger),
    Column("by", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("rule", Id, nullable=False),  # that came of it
    Index(None, "person", "created"),
    Index(None, "state", "created"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("person", Text, nullable=False),  # who did it; empty: nobody who is known
    Column("action", Text, nullable=False),  # as in rule.add, sign-in.refused
    Column("noun", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("host", Text, nullable=False),
    Index(None, "time"),
    Index(None, "person", "id"),
    Index(None, "noun", "name", "id"),
    sqlite_autoincrement=True,
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("settings", Text, nullable=False),  # all that is known of it but its key
    Column("capacity", BigInteger, nullable=False),  # its sessions at the site at once
    Column("key", Text, nullable=False),  # its private key, sealed
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("session", Id, primary_key=True),  # that waits to be submitted by an account, or was
    Column("account", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("taken", BigInteger),  # when its turn came; NULL: it waits
    Index(None, "account", "taken"),
)

apps = Table(
    "apps",
    metadata,
    Column("name", Text, primary_key=True),
    Column("person", Text, nullable=False),  # who first proposed it
    Column("repository", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("app", Text, ForeignKey("apps.name"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("repository", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("commit", Text, nullable=False),
    Column("tree", Text, nullable=False),  # SHA-256 of the archive of its files
    Column("manifest", Text, nullable=False),
    Column("manifest_hash", Text, nullable=False),
    Column("image", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("about", Text, nullable=False),  # author, time and subject of its commit, and what was found in it
    Column("state", Text, nullable=False),  # proposed, approved, refused or revoked
    Column("proposed", BigInteger, nullable=False),
    Column("proposed_by", Text, nullable=False),
    Column("decided", BigInteger),
    Column("decided_by", Text, nullable=False),
    Column("why", Text, nullable=False),
    UniqueConstraint("app", "number"),
    Index(None, "state", "proposed"),
)

hooks = Table(
    "hooks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("session", Id, nullable=False),  # empty: all of the person's
    Column("address", Text, nullable=False),  # https:… or mailto:…
    Column("secret", Text, nullable=False),  # what its calls are signed with, encrypted
    Column("events", Text, nullable=False),  # kinds of events, as words; empty: each change of state
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("after", BigInteger, nullable=False),  # the newest event that was dealt with
    Column("trouble", Text, nullable=False),  # why it was given up; empty: it was not
    Index(None, "person"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("hook", Id, ForeignKey("hooks.id"), nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("due", BigInteger),  # when it is tried next; NULL: over
    Column("tries", BigInteger, nullable=False),
    Column("tried", BigInteger),  # when that was last
    Column("answer", Text, nullable=False),
    UniqueConstraint("hook", "event"),
    Index("deliveries_due", "due", sqlite_where=text("due IS NOT NULL"), postgresql_where=text("due IS NOT NULL")),
    sqlite_autoincrement=True,
)

drafts = Table(
    "drafts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("fields", Text, nullable=False),  # as an old client set them
    Column("session", Id, nullable=False),  # empty until it is submitted
    Index(None, "person", "created"),
)
