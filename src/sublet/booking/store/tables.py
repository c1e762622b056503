"""Tables of requests, bookings, sessions and their events."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint, text

from sublet.booking.model.phases import ACTIVE, Phase
from sublet.kernel.db.schema import Id, Serial, metadata

# Literal values, because SQLite uses a partial index only for a query with the same text.
WORKED_ON = text("phase IN ({})".format(", ".join(f"'{phase}'" for phase in sorted(ACTIVE))))
OFFERED = text(f"phase = '{Phase.OFFERED}'")
WAITING = text(f"phase = '{Phase.WAITING}'")

offersets = Table(
    "offersets",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("key", Text),  # the person's idempotency key: asking again gives the same set
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("result", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("reasons", Text, nullable=False),
    Column("firm", BigInteger, nullable=False, server_default="0"),  # 1: it does not give way to later requests
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
    Column("app", Id, nullable=False, server_default=""),  # the app version that it runs; empty: no app
    Column("offer", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("modified", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("condition", Text, nullable=False),
    Column("marks", Text, nullable=False, server_default=""),
    Column("start", BigInteger),
    Column("until", BigInteger),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("staged", BigInteger),  # how long its staging took
    Column("job", Text, nullable=False),
    Column("cancel_by", Text, nullable=False),
    Column("cancel_reason", Text, nullable=False, server_default=""),
    Column("end", Text),
    Column("connectors", Text),
    Column("lost", BigInteger),  # when its platform lost its record of it
    Column("own_id", Text, nullable=False, server_default=""),  # its platform's own name for the job
    Column("due", BigInteger),  # when the loop must look at it next
    Column("claim_owner", Text),
    Column("claim_token", Text),
    Column("claim_until", BigInteger),
    Index(None, "offerset", "phase"),
    Index(None, "person", "created"),
    Index(None, "platform", "created"),
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
    Index(
        "sessions_offered",
        "phase",  # constant, but by it SQLite sees that no other index has less to read
        "person",
        "platform",
        "created",
        "offerset",
        sqlite_where=OFFERED,
        postgresql_where=OFFERED,
    ),
    Index("sessions_waiting", "platform", "start", "created", sqlite_where=WAITING, postgresql_where=WAITING),
)

calendars = Table(
    "calendars",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),  # of the newest change to its bookings
    Column("floor", BigInteger, nullable=False),  # a calendar in memory that is older than this version is reloaded
    Column("nodes", Text, nullable=False),
    Column("pools", Text, nullable=False),
)

bookings = Table(
    "bookings",
    metadata,
    Column("platform", Text, ForeignKey("calendars.platform"), primary_key=True),
    Column("key", Id, primary_key=True),  # an offer set's id for a hold, a session's id for a booking
    Column("version", BigInteger, nullable=False),  # of the calendar when it last changed
    Column("takes", Text),  # NULL: released; kept until no process needs to learn of it
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
    Column("site", Text, nullable=False, server_default=""),  # the platform's site at that time
    Column("length", BigInteger, nullable=False, server_default="0"),  # the requested duration; 0: unknown
    Index(None, "platform", "at"),
)

dependencies = Table(
    "dependencies",
    metadata,
    Column("session", Id, primary_key=True),  # the session that waits
    Column("after", Id, primary_key=True),  # the session that it waits for, which may be deleted meanwhile
    Column("phase", Text),  # the phase in which that session ended
    Column("words", Text, nullable=False),  # how that session ended
    Index(None, "after"),
)

drains = Table(
    "drains",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("until", BigInteger),  # when it ends automatically; NULL: when an operator ends it
    Column("ends", BigInteger),  # when running sessions are cancelled; NULL: they may finish
)

pledges = Table(
    "pledges",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("settings", Text, nullable=False),  # JSON, in the form of a platform's settings
    Column("changed", BigInteger, nullable=False),
    Column("by", Text, nullable=False),  # who changed it last
)

clocks = Table(
    "clocks",
    metadata,
    Column("boot", Text, primary_key=True),  # the id of one boot of one machine
    Column("offset", BigInteger, nullable=False),  # how far its clock was ahead of the time since boot
    Column("step", BigInteger, nullable=False),  # by how much its clock was last set forward, or (below 0) back
    Column("stepped", BigInteger),  # when that was noticed; NULL: never
)

handovers = Table(
    "handovers",
    metadata,
    Column("session", Id, primary_key=True),
    Column("giver", Text, nullable=False),
    Column("taker", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Index(None, "giver"),
    Index(None, "taker"),
)

visits = Table(
    "visits",
    metadata,
    Column("session", Id, primary_key=True),
    Column("seen", BigInteger, nullable=False),  # when someone last had it open
)

series = Table(
    "series",
    metadata,
    Column("id", Id, primary_key=True),  # of a recurring booking
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("every", Text, nullable=False),  # days, hours and zone
    Column("seats_each", BigInteger, nullable=False),
    Column("fit", Text, nullable=False),
    Column("document", Text, nullable=False),  # the request of each session
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("seats", Text, nullable=False),  # JSON: its sessions
    Column("for_group", Text, nullable=False, server_default=""),  # the group whose members may take seats; empty: none
    Index(None, "person", "created"),
    Index(None, "for_group", "created"),
)

keys = Table(
    "keys",
    metadata,
    Column("person", Text, primary_key=True),
    Column("key", Text, primary_key=True),  # the action, and its idempotency key
    Column("digest", Text, nullable=False),  # of the request
    Column("created", BigInteger, nullable=False),
    Index(None, "created"),
)

broker_asks = Table(  # requests to other brokers, until their outcome is recorded
    "broker_asks",
    metadata,
    Column("key", Id, primary_key=True),  # the idempotency key: sent again, it is the same request there
    Column("broker", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("via", Text, nullable=False),
    Column("offerset", Text, nullable=False),  # the address of the offer set there, once known
    Column("created", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=False),  # when to make sure that nothing stays held there
    Column("tries", BigInteger, nullable=False),
    Index(None, "due"),
)

broker_offers = Table(  # offers of other brokers that were passed on, until nothing is held for them there
    "broker_offers",
    metadata,
    Column("session", Id, primary_key=True),  # the session here
    Column("broker", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("url", Text, nullable=False),  # the session's address there
    Column("offerset", Text, nullable=False),
    Column("expires", BigInteger, nullable=False),  # there
    Column("due", BigInteger, nullable=False),
    Column("tries", BigInteger, nullable=False),
    Index(None, "due"),
)

brokers = Table(
    "brokers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("token", Text, nullable=False),  # sealed; empty: people show their own
    Column("older", BigInteger, nullable=False),  # 1: it speaks a schema before 1.0
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
)
