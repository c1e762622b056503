"""Tables of access rules, usage, budgets, requests for access, and community accounts."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Table, Text

from sublet.kernel.db.schema import Id, metadata

rules = Table(
    "rules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("effect", Text, nullable=False),  # allow or deny
    Column("who", Text, nullable=False),  # a pattern such as *@illinois.edu, group:NAME, or a person's name
    Column("noun", Text, nullable=False),  # system, account, pledge, app, place or project
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
    Column("session", Id, primary_key=True),  # accepted on a gateway; this row outlives the session
    Column("person", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("app", Text, nullable=False),  # the name of its app; empty: none
    Column("accepted", BigInteger, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("cores", BigInteger, nullable=False),  # over all its nodes
    Column("gpus", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),  # microseconds that it may take
    Column("started", BigInteger),
    Column("ended", BigInteger),  # NULL: active
    Index(None, "person", "platform", "ended"),
    Index(None, "person", "app", "ended"),
    Index(None, "ended"),
)

draws = Table(
    "draws",
    metadata,
    Column("session", Id, ForeignKey("uses.session"), primary_key=True),
    Column("pledge", Text, primary_key=True),
    Column("cores", Double, nullable=False),  # its part of the session, over all nodes
    Index(None, "pledge"),
)

budgets = Table(
    "budgets",
    metadata,
    Column("id", Id, primary_key=True),
    Column("holder", Text, nullable=False),  # a person's name or a pattern, group:NAME, or project:NAME
    Column("measure", Text, nullable=False),  # money, core-hours, energy or carbon
    Column("amount", Double, nullable=False),
    Column("period", Text, nullable=False),  # month, quarter, year or total
    Column("created", BigInteger, nullable=False),
    Column("platform", Text, nullable=False),  # or * for all
    Column("until", BigInteger),
    Column("by", Text, nullable=False),
    Column("note", Text, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("session", Id, primary_key=True),  # this row outlives the session
    Column("budget", Id, ForeignKey("budgets.id"), primary_key=True),
    Column("person", Text, nullable=False),
    Column("amount", Double, nullable=False),  # for the full reserved time
    Column("reserved", BigInteger, nullable=False),  # microseconds that it may take
    Column("started", BigInteger),
    Column("ended", BigInteger),  # NULL: active
    Index(None, "budget", "person", "ended"),
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
    Column("rule", Id, nullable=False),  # the rule that granted it
    Index(None, "person", "created"),
    Index(None, "state", "created"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("settings", Text, nullable=False),  # everything but its key
    Column("capacity", BigInteger, nullable=False),  # concurrent sessions at the site
    Column("key", Text, nullable=False),  # its private key, sealed
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("session", Id, primary_key=True),  # waits to be submitted by an account, or was
    Column("account", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("taken", BigInteger),  # when its turn came; NULL: it waits
    Index(None, "account", "taken"),
)
