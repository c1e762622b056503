"""Access in the store: rules and requests as they were put in, and what people use, by month, platform and app."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from sublet.access.model.access import AccessRequest, AccessRule, Limits, Use
from sublet.apps.store.tables import apps, versions
from sublet.booking.model.phases import Phase
from sublet.booking.model.shape import TotalAmounts
from sublet.store import Store, Tx
from tests.contract.stored import NOON, offer_some

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
MONTH = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = Limits(64, 1 << 40, 0, 4, timedelta(hours=12), 0.5, 3, 1000.0)
RULE = AccessRule("3f2a0000-1", "allow", "*@illinois.edu", "account", "k*", NOON, LIMITS, NOON + HOUR, "op", "ünï\0")


async def test_a_rule_comes_back_as_it_went(store: Store) -> None:
    plain = AccessRule("3f2b0000-2", "deny", "group:lab", "app", "summa", NOON + HOUR)
    for rule in (plain, RULE):
        await store.write(lambda tx, rule=rule: tx.rules.add(rule))
    found = await store.read(lambda tx: tx.rules.list())
    assert [rule.id for rule in found] == [RULE.id, plain.id]
    assert (found[0].limits, found[0].expires, found[0].note) == (LIMITS, NOON + HOUR, "ünï�")
    assert found[1] == plain
    assert await store.read(lambda tx: tx.rules.list("app")) == [plain]
    assert [len(await store.read(lambda tx, name=name: tx.rules.find(name))) for name in ("3f2", "3F2A", "3g", "")] == [
        2,
        1,
        0,
        0,
    ]
    assert await store.write(lambda tx: tx.rules.remove(plain.id))
    assert not await store.write(lambda tx: tx.rules.remove(plain.id))


async def test_a_request_is_decided_once(store: Store) -> None:
    request = AccessRequest("aa00-1", "anna@illinois.edu", "account", "keeling", "to learn", NOON)
    await store.write(lambda tx: tx.access_requests.add(request))
    assert await store.read(lambda tx: tx.access_requests.open("anna@illinois.edu", "account", "keeling")) == request
    assert await store.read(lambda tx: tx.access_requests.count_open("anna@illinois.edu")) == 1

    def decide(tx: Tx) -> bool:
        return tx.access_requests.decide("aa00-1", "granted", now=NOON + HOUR, by="op", answer="ok", rule="r1")

    assert [await store.write(decide), await store.write(decide)] == [True, False]
    [decided] = await store.read(lambda tx: tx.access_requests.list(state="granted"))
    assert (decided.decided, decided.by, decided.answer, decided.rule) == (NOON + HOUR, "op", "ok", "r1")
    assert not await store.read(lambda tx: tx.access_requests.list(person="eve@example.net"))


def taken(tx: Tx, person: str, cores: int, hours: int, app: str = "") -> str:
    """Accept a session that may take so much."""
    [session] = offer_some(tx, person, count=1)
    tx.uses.add(session, TotalAmounts(cores=cores, time=hours * HOUR), app, NOON)
    return session.id


def end(tx: Tx, id: str, started: datetime | None, ended: datetime) -> None:
    """Let a session end, through the phases."""
    for phase in (Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING, Phase.RUNNING, Phase.RELEASING):
        tx.sessions.move(id, phase, now=NOON, started=started, ended=ended)
    assert tx.sessions.move(id, Phase.COMPLETED, now=NOON)


async def test_what_is_under_way_counts_as_reserved_and_what_ended_as_used_in_its_month(store: Store) -> None:
    def use(name: str = "here", noun: str = "system", person: str = "anna") -> Use:
        return store.read_sync(lambda tx: tx.uses.of(person, noun, name, MONTH))

    first = await store.write(lambda tx: taken(tx, "anna", 4, 10, "summa"))
    second = await store.write(lambda tx: taken(tx, "anna", 1, 2))
    third = await store.write(lambda tx: taken(tx, "anna", 8, 1))
    await store.write(lambda tx: taken(tx, "eve", 100, 100))
    assert use() == Use(3, 50.0)
    assert use("summa", "app") == Use(1, 40.0)
    await store.write(lambda tx: tx.uses.extend(second, 5 * HOUR))
    assert use() == Use(3, 53.0)
    await store.write(lambda tx: end(tx, first, NOON, NOON + HOUR))
    assert use() == Use(2, 17.0), "an hour of four cores was used"
    await store.write(lambda tx: end(tx, second, NOON - 30 * 24 * HOUR, MONTH - HOUR))
    assert use() == Use(1, 12.0), "that was last month's"
    await store.write(lambda tx: end(tx, third, None, NOON))
    assert use() == Use(0, 4.0), "it never ran"
    await store.write(lambda tx: tx.sessions.delete(first))
    assert use() == Use(0, 4.0), "what was used can't be deleted"
    assert use("summa", "app") == Use(0, 4.0)
    assert use("elsewhere") == Use()


async def test_a_version_says_which_app_it_is_of_and_approved_ones_can_be_used(store: Store) -> None:
    def put(tx: Tx) -> None:
        sql = tx.rules._sql
        sql.modify(insert(apps).values(name="summa", person="p", repository="r", created=1))
        common = dict.fromkeys(("repository", "branch", "commit", "tree", "manifest", "manifest_hash", "image"), "")
        common |= dict.fromkeys(("digest", "about", "proposed_by", "decided_by", "why"), "")
        for number, state in ((1, "revoked"), (2, "approved"), (3, "proposed")):
            values = common | {"id": f"v{number}", "app": "summa", "number": number, "state": state, "proposed": 1}
            sql.modify(insert(versions).values(**values))

    await store.write(put)
    assert await store.read(lambda tx: tx.rules.apps()) == ("summa",)
    assert await store.read(lambda tx: [tx.uses.app_of(v) for v in ("v1", "v9", "")]) == ["summa", "", ""]
