"""Sessions come back as they were put in, move as the table says, and are found again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import Mark
from sublet.booking.model.offer import Predicted, Remote
from sublet.booking.model.phases import MOVES, Phase
from sublet.booking.model.session import Connector, End, EndKind, Usage
from sublet.kernel.errors import BadRequest
from sublet.store import Store, Tx
from tests.contract.stored import (
    HOUR,
    MINUTE,
    NOON,
    a_session,
    a_set,
    accept,
    an_offer,
    booked,
    define,
    offer_some,
    whole,
)


def test_an_offer_set_and_its_sessions_come_back_as_they_were(store: Store) -> None:
    offerset = a_set()
    remote = replace(an_offer(), terms=Remote("https://broker/offersets/1", NOON + HOUR))
    predicted = replace(an_offer(), terms=Predicted(NOON, NOON + HOUR, NOON + 2 * HOUR, 21, NOON))
    sessions = [a_session(offerset, offer) for offer in (an_offer(), remote, predicted)]

    def put(tx: Tx) -> None:
        tx.offersets.add(offerset)
        tx.sessions.add_offers(sessions)

    store.write_sync(put)
    assert store.read_sync(lambda tx: tx.offersets.get(offerset.id)) == offerset
    assert [store.read_sync(lambda tx, s=s: tx.sessions.get(s.id)) for s in sessions] == sessions
    assert {s.id for s in store.read_sync(lambda tx: tx.sessions.of_set(offerset.id))} == {s.id for s in sessions}


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.read_sync(lambda tx: tx.offersets.get("no")) is None
    assert store.read_sync(lambda tx: tx.sessions.get("no")) is None
    assert store.write_sync(lambda tx: tx.sessions.move("no", Phase.ACCEPTED, now=NOON)) is None


def test_the_same_key_of_the_same_person_is_the_same_set(store: Store) -> None:
    first = store.write_sync(lambda tx: tx.offersets.add(a_set(key="k")))
    assert store.write_sync(lambda tx: tx.offersets.add(a_set(key="k"))) == first
    assert store.write_sync(lambda tx: tx.offersets.add(a_set("bob", key="k"))) != first
    assert store.write_sync(lambda tx: tx.offersets.add(a_set())) != store.write_sync(
        lambda tx: tx.offersets.add(a_set())
    )
    assert store.read_sync(lambda tx: tx.offersets.by_key("alice", "k")) == first


def test_a_key_that_is_released_can_be_used_for_another_answer(store: Store) -> None:
    first = store.write_sync(lambda tx: tx.offersets.add(a_set(key="once more")))
    store.write_sync(lambda tx: tx.offersets.release_key(first.id))
    second = store.write_sync(lambda tx: tx.offersets.add(a_set(key="once more")))
    assert second.id != first.id
    assert store.read_sync(lambda tx: tx.offersets.by_key(second.person, "once more")) == second
    assert store.read_sync(lambda tx: tx.offersets.get(first.id)) == replace(first, key=None)


def test_a_move_changes_what_it_says_and_returns_it(store: Store) -> None:
    session = store.write_sync(lambda tx: offer_some(tx, count=1))[0]
    end = End(EndKind.SIGNALLED, signal=9, detail="killed", usage=Usage(1.5, 0.5, 1 << 40))
    connectors = (Connector("uri:shell", "AVAILABLE", "https", "https://here/connect/1"),)
    later = NOON + MINUTE
    changes = {
        "start": NOON,
        "until": NOON + HOUR,
        "started": NOON,
        "ended": later,
        "condition": "paused",
        "marks": frozenset({Mark.PAUSED, Mark.LOGIN_NEEDED}),
        "job": "17",
        "cancel_by": "bob",
        "end": end,
        "connectors": connectors,
        "offer": an_offer(NOON + HOUR),
    }
    moved = store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.ACCEPTED, now=later, due=later, **changes))
    expected = replace(session, phase=Phase.ACCEPTED, modified=later, **changes)  # type: ignore[arg-type]
    assert moved == expected
    assert store.read_sync(lambda tx: tx.sessions.get(session.id)) == expected
    emptied = {"end": None, "connectors": (), "until": None, "marks": frozenset()}
    cleared = store.write_sync(lambda tx: tx.sessions.change(session.id, now=later, **emptied))
    assert cleared == replace(expected, **emptied)  # type: ignore[arg-type]


@pytest.mark.parametrize("old", Phase)
def test_only_the_moves_of_the_table_are_made(store: Store, old: Phase) -> None:
    def put(tx: Tx) -> list[str]:
        offerset = tx.offersets.add(a_set())
        sessions = [replace(a_session(offerset), phase=old) for _ in Phase]
        tx.sessions.add_offers(sessions)
        return [session.id for session in sessions]

    ids = store.write_sync(put)
    made = store.write_sync(
        lambda tx: {to: tx.sessions.move(id, to, now=NOON) is not None for id, to in zip(ids, Phase, strict=True)}
    )
    assert {to for to, was in made.items() if was} == MOVES[old]


def test_a_guard_narrows_the_table(store: Store) -> None:
    session = store.write_sync(lambda tx: offer_some(tx, count=1))[0]
    assert (
        store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.CANCELLED, when=(Phase.WAITING,), now=NOON))
        is None
    )
    assert store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.CANCELLED, when=(), now=NOON)) is None
    assert store.write_sync(lambda tx: tx.sessions.change(session.id, when=(Phase.RUNNING,), now=NOON, job="1")) is None
    assert store.read_sync(lambda tx: tx.sessions.get(session.id)) == session


def test_accepting_one_rejects_its_siblings_and_books_in_one_write(store: Store, store_url: str) -> None:
    store.write_sync(define)
    hold = (whole("n0", hours=3),)
    sessions = store.write_sync(lambda tx: offer_some(tx, hold=hold))
    others = store.write_sync(offer_some)
    chosen = sessions[1]
    assert store.write_sync(lambda tx: accept(tx, chosen.id, NOON, (whole("n0"),)))
    phases = store.read_sync(lambda tx: {s.id: s.phase for s in tx.sessions.of_set(chosen.offerset)})
    assert phases == {s.id: Phase.ACCEPTED if s is chosen else Phase.REJECTED for s in sessions}
    assert set(booked(store_url)) == {chosen.id}
    assert {s.phase for s in store.read_sync(lambda tx: tx.sessions.of_set(others[0].offerset))} == {Phase.OFFERED}
    assert store.write_sync(lambda tx: accept(tx, sessions[0].id, NOON, (whole("n1"),))) is None


def test_an_acceptance_that_can_not_be_booked_changes_nothing(store: Store, store_url: str) -> None:
    store.write_sync(define)
    sessions = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0"),)))
    store.write_sync(lambda tx: tx.books.take("here", "other", [whole("n1")]))
    with pytest.raises(Exception, match="no longer free"):
        store.write_sync(lambda tx: accept(tx, sessions[0].id, NOON, (whole("n1"),)))
    assert store.read_sync(lambda tx: tx.sessions.of_set(sessions[0].offerset)) == sorted(sessions, key=lambda s: s.id)
    assert set(booked(store_url)) == {"other", sessions[0].offerset}


def test_offers_that_nobody_answered_expire_and_give_back_what_was_held(store: Store, store_url: str) -> None:
    store.write_sync(define)
    old = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0"),)))
    new = store.write_sync(lambda tx: offer_some(tx, created=NOON + HOUR, hold=(whole("n1"),)))
    taken = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n2"),)))
    store.write_sync(lambda tx: accept(tx, taken[0].id, NOON, (whole("n2"),)))
    assert store.write_sync(lambda tx: tx.sessions.expire(NOON + MINUTE)) == []
    assert set(booked(store_url)) == {old[0].offerset, new[0].offerset, taken[0].id}
    at = NOON + 5 * MINUTE
    expired = store.write_sync(lambda tx: tx.sessions.expire(at))
    assert {s.id for s in expired} == {s.id for s in old}
    assert {(s.phase, s.modified) for s in expired} == {(Phase.EXPIRED, at)}
    assert set(booked(store_url)) == {new[0].offerset, taken[0].id}
    assert store.write_sync(lambda tx: accept(tx, old[0].id, at, (whole("n0"),))) is None


def test_a_hold_stays_until_the_last_offer_of_its_set_has_expired(store: Store, store_url: str) -> None:
    store.write_sync(define)
    sessions = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0"),)))
    at = NOON + HOUR
    assert len(store.write_sync(lambda tx: tx.sessions.expire(at, limit=2))) == 2
    assert set(booked(store_url)) == {sessions[0].offerset}
    assert len(store.write_sync(lambda tx: tx.sessions.expire(at, limit=2))) == 1
    assert booked(store_url) == {}


def test_work_that_is_due_is_claimed_once(store: Store) -> None:
    def put(tx: Tx) -> list[str]:
        ids = []
        for minutes in (3, 1, 2, 60):
            session = offer_some(tx, count=1)[0]
            due = NOON + minutes * MINUTE
            tx.sessions.move(session.id, Phase.ACCEPTED, now=NOON, due=due)
            ids.append(session.id)
        offered = offer_some(tx, count=1)[0]
        tx.sessions.change(offered.id, now=NOON, due=NOON + 4 * MINUTE)  # it expires then, which is no work
        return [*ids, offered.id]

    third, first, second, _, offered = store.write_sync(put)
    now, lease = NOON + 5 * MINUTE, timedelta(seconds=30)
    assert store.read_sync(lambda tx: tx.sessions.next_due()) == NOON + MINUTE
    assert store.write_sync(lambda tx: tx.sessions.claim(now, "a", lease, 9, ["elsewhere"])) == []
    claimed = store.write_sync(lambda tx: tx.sessions.claim(now, "a", lease, 2, ["here", "there"]))
    assert [claim.session.id for claim in claimed] == [first, second]
    assert [c.session.id for c in store.write_sync(lambda tx: tx.sessions.claim(now, "b", lease, 9, ["here"]))] == [
        third
    ]
    assert store.write_sync(lambda tx: tx.sessions.claim(now, "c", lease, 9, ["here"])) == []
    store.write_sync(lambda tx: tx.sessions.move(offered, Phase.EXPIRED, now=now, due=None))
    assert store.read_sync(lambda tx: tx.sessions.next_due()) == now + lease
    assert set(store.read_sync(lambda tx: tx.sessions.owners())) == {"a", "b"}


def test_a_claim_that_has_lapsed_is_somebody_elses_and_its_token_moves_nothing(store: Store) -> None:
    session = store.write_sync(lambda tx: offer_some(tx, count=1))[0]
    store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.ACCEPTED, now=NOON, due=NOON))
    lease = timedelta(seconds=30)
    late = store.write_sync(lambda tx: tx.sessions.claim(NOON, "a", lease, 1, ["here"]))[0]
    assert store.write_sync(lambda tx: tx.sessions.renew_claim(late.token, NOON + 2 * lease)) == 1
    assert store.write_sync(lambda tx: tx.sessions.claim(NOON + lease, "b", lease, 1, ["here"])) == []
    mine = store.write_sync(lambda tx: tx.sessions.claim(NOON + 2 * lease, "b", lease, 1, ["here"]))[0]
    move = {"now": NOON, "when": (Phase.ACCEPTED,)}
    assert store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.WAITING, token=late.token, **move)) is None  # type: ignore[arg-type]
    assert store.write_sync(lambda tx: tx.sessions.change(session.id, token=late.token, now=NOON, job="1")) is None
    assert not store.write_sync(lambda tx: tx.sessions.release_claim(session.id, late.token))
    assert store.write_sync(lambda tx: tx.sessions.move(session.id, Phase.WAITING, token=mine.token, **move))  # type: ignore[arg-type]
    assert store.write_sync(lambda tx: tx.sessions.release_claim(session.id, mine.token))
    assert store.write_sync(lambda tx: tx.sessions.claim(NOON, "c", lease, 1, ["here"]))
    assert store.write_sync(lambda tx: tx.sessions.release_all("c")) == 1
    assert store.read_sync(lambda tx: tx.sessions.owners()) == []


def test_nothing_due_is_never(store: Store) -> None:
    assert store.read_sync(lambda tx: tx.sessions.next_due()) is None
    assert store.write_sync(lambda tx: tx.sessions.claim(NOON, "a", HOUR, 9, ["here"])) == []


def test_running_jobs_are_found_by_platform(store: Store) -> None:
    def put(tx: Tx) -> list[str]:
        sessions = offer_some(tx, count=4)
        for session, job in zip(sessions, ("1", "2", ""), strict=False):
            tx.sessions.move(session.id, Phase.ACCEPTED, now=NOON, job=job)
        tx.sessions.move(sessions[1].id, Phase.CANCELLED, now=NOON)
        return [session.id for session in sessions]

    first, *_ = store.write_sync(put)
    assert store.read_sync(lambda tx: tx.sessions.active("here")) == {first: "1"}
    assert store.read_sync(lambda tx: tx.sessions.active("there")) == {}
    assert [s.id for s in store.read_sync(lambda tx: tx.sessions.by_job("here", ["1", "2", "", "3"]))] == [first]
    assert store.read_sync(lambda tx: tx.sessions.by_job("here", [])) == []


def test_sessions_are_counted_by_phase(store: Store) -> None:
    sessions = store.write_sync(offer_some)
    store.write_sync(lambda tx: tx.sessions.move(sessions[0].id, Phase.ACCEPTED, now=NOON))
    counts = store.read_sync(lambda tx: tx.sessions.count_by_phase())
    assert set(counts) == set(Phase)
    assert {phase: count for phase, count in counts.items() if count} == {Phase.OFFERED: 2, Phase.ACCEPTED: 1}


def test_a_deleted_session_takes_its_events_and_the_last_one_its_set(store: Store) -> None:
    one, other = store.write_sync(lambda tx: offer_some(tx, count=2))
    store.write_sync(lambda tx: tx.events.add(NOON, one.id, "alice", EventKind.FETCHED))
    assert store.write_sync(lambda tx: tx.sessions.delete(one.id))
    assert not store.write_sync(lambda tx: tx.sessions.delete(one.id))
    assert store.read_sync(lambda tx: tx.events.after(0, session=one.id)) == []
    assert store.read_sync(lambda tx: tx.offersets.get(one.offerset))
    assert store.write_sync(lambda tx: tx.sessions.delete(other.id))
    assert store.read_sync(lambda tx: tx.offersets.get(one.offerset)) is None


def test_answers_that_came_to_nothing_are_forgotten_and_others_are_not(store: Store) -> None:
    store.write_sync(define)
    lapsed = store.write_sync(offer_some)
    taken = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0"),)))
    store.write_sync(lambda tx: accept(tx, taken[0].id, NOON, (whole("n0"),)))
    refusal = store.write_sync(lambda tx: tx.offersets.add(replace(a_set(), result="NO")))
    store.write_sync(lambda tx: tx.sessions.expire(NOON + HOUR))
    recent = store.write_sync(lambda tx: offer_some(tx, created=NOON + HOUR))
    offered = store.write_sync(offer_some)
    seen, removed = None, 0
    while (found := store.write_sync(lambda tx, s=seen: tx.offersets.forget(NOON + HOUR, 1, s))).looked_at:
        seen, removed = found.seen, removed + found.removed
    assert removed == 2
    assert store.write_sync(lambda tx: tx.offersets.forget(NOON + HOUR)).removed == 0
    left = {taken[0].offerset, recent[0].offerset, offered[0].offerset}
    assert {s.offerset for s in store.read_sync(lambda tx: tx.sessions.list()).items} == left
    gone = (lapsed[0].offerset, refusal.id)
    assert [store.read_sync(lambda tx, id=id: tx.offersets.get(id)) for id in gone] == [None, None]
    assert {event.session for event in store.read_sync(lambda tx: tx.events.after())} == left | {taken[0].id}


def test_offers_that_were_not_taken_are_forgotten_once_what_was_taken_is_over(store: Store) -> None:
    store.write_sync(define)
    taken, *others = store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0"),)))
    store.write_sync(lambda tx: accept(tx, taken.id, NOON, (whole("n0"),)))
    store.write_sync(lambda tx: tx.events.add(NOON, others[0].id, "alice", EventKind.REJECTED))
    store.write_sync(lambda tx: tx.offersets.forget(NOON + HOUR))
    assert len(store.read_sync(lambda tx: tx.sessions.list()).items) == 1 + len(others), "the archive will name them"
    store.write_sync(lambda tx: tx.sessions.move(taken.id, Phase.CANCELLED, now=NOON))
    assert store.write_sync(lambda tx: tx.offersets.forget(NOON + HOUR)).removed == 0, "no answer is"
    assert [session.id for session in store.read_sync(lambda tx: tx.sessions.list()).items] == [taken.id]
    assert store.read_sync(lambda tx: tx.events.after(0, session=others[0].id)) == []
    assert store.read_sync(lambda tx: tx.offersets.get(taken.offerset))


def test_any_text_can_be_stored(store: Store) -> None:
    odd = "naïve; $(rm) 'x' \"y\" % :a \\ 日本 \0 \ud800"

    def put(tx: Tx) -> str:
        offerset = tx.offersets.add(replace(a_set(odd), document=odd, key=odd))
        session = a_session(offerset, name=odd)
        tx.sessions.add_offers([session])
        tx.sessions.change(session.id, now=NOON, condition=odd, job=odd)
        tx.events.add(NOON, session.id, odd, EventKind.RUNNING, odd)
        return session.id

    stored = odd.replace("\0", "\ufffd").replace("\ud800", "?")
    id = store.write_sync(put)
    session = store.read_sync(lambda tx: tx.sessions.get(id))
    assert session
    assert (session.name, session.condition, session.job) == (stored, stored, stored)
    assert store.read_sync(lambda tx: tx.events.after(0))[-1].detail == stored
    assert store.read_sync(lambda tx: tx.offersets.by_key(odd, odd))


def test_what_can_not_be_json_is_refused_and_hurts_nobody_else(store: Store) -> None:
    bad = replace(
        a_set(), request=replace(a_set().request, executable=replace(a_set().request.executable, name="\ud800"))
    )  # type: ignore[type-var]
    with pytest.raises(BadRequest):
        store.write_sync(lambda tx: tx.offersets.add(bad))
    assert store.read_sync(lambda tx: tx.sessions.get("a\0b")) is None
