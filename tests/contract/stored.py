"""What the tests of the store put into it, and an independent look at what is booked."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from sqlalchemy import create_engine, text

from sublet.booking.model.offer import Node, Offer, Quote, Reason, Take
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledged import Pledged, pools_of_all
from sublet.booking.model.request import GIB, Compute, Executable, Range, Request, Window
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.model.shape import Shape
from sublet.store import Tx

NOON = datetime(2030, 1, 7, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
NODES = tuple(Node(f"n{i}", 4, 8 * GIB) for i in range(4))
POOLS = {"scratch": 100 * GIB}
PLEDGES = {"srcnet": Pledged(6)}


def define(tx: Tx, platform: str = "here") -> None:
    """A platform of four nodes with four cores each."""
    tx.books.define(platform, NODES, POOLS)


def define_pledged(tx: Tx) -> None:
    """The same, with a part that is pledged."""
    tx.books.define("here", NODES, {**POOLS, **pools_of_all(PLEDGES, {"cores": sum(node.cores for node in NODES)})})


def whole(node: str, start: datetime = NOON, hours: int = 1) -> Take:
    """A whole node for some hours."""
    return Take(node, start, start + hours * HOUR, cores=4, memory=8 * GIB)


def an_offer(start: datetime = NOON, nodes: tuple[str, ...] = ("n0",), platform: str = "here") -> Offer:
    """One core for an hour, with something in every field."""
    return Offer(
        platform=platform,
        way="sh",
        start=start,
        latest_start=start + 5 * MINUTE,
        duration=HOUR,
        nodes=nodes,
        shape=Shape(1, GIB),
        storage={"space": GIB},
        pools={"space": "scratch"},
        costs=(Quote("urn:cost", 1.5, 2.5, "a price"),),
        why="earliest",
    )


def a_set(person: str = "alice", created: datetime = NOON, key: str | None = None) -> OfferSet:
    """An offer set that lasts five minutes."""
    return OfferSet(
        id=str(uuid.uuid4()),
        person=person,
        created=created,
        expires=created + 5 * MINUTE,
        result="YES",
        request=Request(
            executable=Executable("command", "hello", {"argv": ["echo", "hello; $(rm)", 3, None, {"deep": [True]}]}),
            compute=Compute(cores=Range(1, 4)),
            windows=(Window(created, created + HOUR),),
        ),
        document='{"run": "echo hello"}',
        content_type="application/json",
        reasons=(Reason("urn:resource-limit", "compute.cores.min", "Too many.", "9", "4", "4"),),
        key=key,
    )


def a_session(offerset: OfferSet, offer: Offer | None = None, name: str = "hello") -> Session:
    """One of a set's offers."""
    return Session(
        id=str(uuid.uuid4()),
        offerset=offerset.id,
        person=offerset.person,
        name=name,
        kind="command",
        phase=Phase.OFFERED,
        offer=offer or an_offer(offerset.created),
        created=offerset.created,
        modified=offerset.created,
        expires=offerset.expires,
    )


def offer_some(
    tx: Tx, person: str = "alice", created: datetime = NOON, count: int = 3, hold: tuple[Take, ...] = ()
) -> list[Session]:
    """Record an answer with some offers, and hold what they need."""
    offerset = tx.offersets.add(a_set(person, created))
    sessions = [a_session(offerset) for _ in range(count)]
    tx.sessions.add_offers(sessions)
    if hold:
        tx.books.take("here", offerset.id, hold)
    tx.events.add(created, offerset.id, person, "offerset.made")
    return sessions


def accept(tx: Tx, id: str, now: datetime, takes: tuple[Take, ...]) -> Session | None:
    """Take an offer: its siblings are rejected and the hold becomes a booking, in one write."""
    moved = tx.sessions.move(id, Phase.ACCEPTED, when=(Phase.OFFERED,), now=now, start=takes[0].start, due=now)
    if moved is None:
        return None
    tx.sessions.reject_siblings(moved, now)
    tx.books.release("here", moved.offerset)
    tx.books.take("here", id, takes)
    tx.events.add(now, id, moved.person, "session.accepted", phase=moved.phase)
    return moved


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    """What a query says, asked by somebody who knows nothing of the store."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]
    finally:
        engine.dispose()


def booked(url: str, platform: str = "here") -> dict[str, list[list[object]]]:
    """The takes of every key, out of the rows."""
    found = rows(url, f"SELECT key, takes FROM bookings WHERE takes IS NOT NULL AND platform = '{platform}'")
    return {str(key): json.loads(str(takes)) for key, takes in found}


def most_cores(url: str, platform: str = "here") -> dict[str, int]:
    """Per node, the most cores that are booked at any instant, and per pool the most of it: by the rows alone."""
    steps: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for takes in booked(url, platform).values():
        for where, start, end, cores, _, _, size, pool in takes:
            amount = int(str(size if pool else cores))
            steps[str(where)] += [(int(str(start)), amount), (int(str(end)), -amount)]
    most: dict[str, int] = {}
    for where, changes in steps.items():
        now = most[where] = 0
        for _, change in sorted(changes):  # at one instant what ends comes first: the times are half open
            now += change
            most[where] = max(most[where], now)
    return most
