"""What is booked stays booked, once, whoever looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sublet.booking.model.events import EventKind
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import GIB
from sublet.booking.store.bookings import KEPT, SWEEP
from sublet.kernel.errors import NoRoom, NotBookable, NotFound
from sublet.store import Store, Tx
from tests.contract.stored import HOUR, NODES, NOON, POOLS, booked, define, rows, whole

Open = Callable[[], Store]


def test_a_platform_without_a_calendar_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.write_sync(lambda tx: tx.books.calendar("nowhere"))


def test_what_is_taken_is_seen_by_another_process(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.write_sync(define)
    one.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    assert other.write_sync(lambda tx: tx.books.calendar("here").takes("a")) == (whole("n0"),)
    with pytest.raises(NotBookable):
        other.write_sync(lambda tx: tx.books.take("here", "b", [whole("n0")]))


def test_every_kind_of_change_reaches_a_process_that_had_looked_before(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.write_sync(define)
    for key, node in (("stays", "n0"), ("goes", "n1"), ("longer", "n2"), ("held", "n3")):
        one.write_sync(lambda tx, key=key, node=node: tx.books.take("here", key, [whole(node)]))
    assert other.write_sync(lambda tx: tx.books.calendar("here").takes("goes"))

    def change(tx: Tx) -> None:
        tx.books.release("here", "goes")
        tx.books.extend("here", "longer", NOON + 2 * HOUR)
        tx.books.release("here", "held")
        tx.books.take("here", "booked", [whole("n3", hours=3)])

    one.write_sync(change)

    def look(tx: Tx) -> list[tuple[Take, ...]]:
        return [tx.books.calendar("here").takes(key) for key in ("stays", "goes", "longer", "held", "booked")]

    expected = [(whole("n0"),), (), (whole("n2", hours=2),), (), (whole("n3", hours=3),)]
    assert other.write_sync(look) == expected
    assert one.write_sync(look) == expected
    assert one.read_sync(look) == expected


def test_a_work_that_raises_leaves_the_calendar_as_it_was(store: Store, store_url: str) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    store.write_sync(lambda tx: tx.books.take("here", "b", [whole("n1")]))

    def fail(tx: Tx) -> None:
        tx.books.release("here", "a")
        tx.books.take("here", "c", [whole("n0")])
        tx.books.extend("here", "b", NOON + 4 * HOUR)
        tx.books.release("here", "c")
        tx.books.take("here", "d", [whole("n2")])
        tx.events.add(NOON, "a", "alice", EventKind.CLEANED)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write_sync(fail)
    calendar = store.write_sync(lambda tx: tx.books.calendar("here"))
    taken = {key: calendar.takes(key) for key in "abcd"}
    assert taken == {"a": (whole("n0"),), "b": (whole("n1"),), "c": (), "d": ()}
    assert calendar.fits([whole("n1", NOON + HOUR), whole("n2")])
    assert set(booked(store_url)) == {"a", "b"}
    assert store.read_sync(lambda tx: tx.events.after(0)) == []


def test_a_booking_in_place_of_a_hold_that_does_not_fit_keeps_the_hold(store: Store) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: tx.books.take("here", "other", [whole("n1")]))
    store.write_sync(lambda tx: tx.books.take("here", "hold", [whole("n0")]))

    def book(tx: Tx) -> None:
        tx.books.release("here", "hold")
        tx.books.take("here", "session", [whole("n0"), whole("n1")])

    with pytest.raises(NotBookable):
        store.write_sync(book)
    assert store.write_sync(lambda tx: tx.books.calendar("here").takes("hold")) == (whole("n0"),)
    assert store.read_sync(lambda tx: tx.books.calendar("here").takes("hold")) == (whole("n0"),)


def test_an_extension_into_another_booking_is_refused(store: Store) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    store.write_sync(lambda tx: tx.books.take("here", "b", [whole("n0", NOON + 2 * HOUR)]))
    with pytest.raises(NoRoom):
        store.write_sync(lambda tx: tx.books.extend("here", "a", NOON + 3 * HOUR))
    assert store.write_sync(lambda tx: tx.books.extend("here", "a", NOON + 2 * HOUR)) == (whole("n0", hours=2),)


def test_releasing_twice_is_harmless(store: Store) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    assert store.write_sync(lambda tx: tx.books.release("here", "a")) == (whole("n0"),)
    assert store.write_sync(lambda tx: tx.books.release("here", "a")) == ()


def test_new_nodes_keep_the_bookings_in_every_process(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.write_sync(define)
    one.write_sync(
        lambda tx: tx.books.take("here", "a", [whole("n0"), Take("scratch", NOON, NOON + HOUR, size=GIB, pool=True)])
    )
    other.write_sync(lambda tx: tx.books.calendar("here"))
    more = (*NODES[1:], Node("n9", 64, 64 * GIB, 2))

    def redefine(tx: Tx) -> None:
        tx.books.take("here", "before", [whole("n1")])
        tx.books.define("here", more, {"scratch": 2 * GIB})
        tx.books.take("here", "after", [whole("n9")])

    one.write_sync(redefine)
    for store in (one, other):
        calendar = store.write_sync(lambda tx: tx.books.calendar("here"))
        assert calendar.nodes == more
        assert calendar.pools == {"scratch": 2 * GIB}
        assert [bool(calendar.takes(key)) for key in ("a", "before", "after")] == [True, True, True]
        assert not calendar.fits([whole("n1")])
    # The node comes back, and what was booked on it is still booked.
    other.write_sync(define)
    with pytest.raises(NotBookable):
        one.write_sync(lambda tx: tx.books.take("here", "b", [whole("n0")]))


def test_defining_that_is_undone_leaves_no_trace(store: Store, store_url: str) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))

    def fail(tx: Tx) -> None:
        tx.books.take("here", "b", [whole("n1")])
        tx.books.define("here", NODES[:1], {})
        tx.books.release("here", "a")
        tx.books.define("new", NODES, {})
        tx.books.take("new", "c", [whole("n0")])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write_sync(fail)
    calendar = store.write_sync(lambda tx: tx.books.calendar("here"))
    assert (calendar.nodes, dict(calendar.pools)) == (NODES, POOLS)
    assert (bool(calendar.takes("a")), bool(calendar.takes("b"))) == (True, False)
    with pytest.raises(NotFound):
        store.write_sync(lambda tx: tx.books.calendar("new"))
    assert rows(store_url, "SELECT platform FROM calendars") == [("here",)]


def test_defining_the_same_again_changes_nothing(store: Store, store_url: str) -> None:
    store.write_sync(define)
    before = rows(store_url, "SELECT version, floor FROM calendars")
    store.write_sync(define)
    assert rows(store_url, "SELECT version, floor FROM calendars") == before


def test_released_keys_are_forgotten_after_a_while_and_who_slept_meanwhile_reads_all(
    open_store: Open, store_url: str
) -> None:
    def come_and_go(tx: Tx, key: str) -> None:
        tx.books.take("here", key, [whole("n2")])
        tx.books.release("here", key)

    sleeper, busy = open_store(), open_store()
    busy.write_sync(define)
    busy.write_sync(lambda tx: tx.books.take("here", "stays", [whole("n0")]))
    busy.write_sync(lambda tx: tx.books.take("here", "goes", [whole("n1")]))
    assert sleeper.write_sync(lambda tx: tx.books.calendar("here").takes("goes"))
    busy.write_sync(lambda tx: tx.books.release("here", "goes"))
    for turn in range(KEPT + SWEEP):
        busy.write_sync(lambda tx, key=f"k{turn}": come_and_go(tx, key))
    (count,) = rows(store_url, "SELECT count(*) FROM bookings")[0]
    assert int(str(count)) <= KEPT + SWEEP
    assert sleeper.write_sync(lambda tx: tx.books.calendar("here").takes("goes")) == ()
    assert sleeper.write_sync(lambda tx: tx.books.calendar("here").takes("stays")) == (whole("n0"),)


def test_asking_reads_only_what_is_new(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.write_sync(define)
    one.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    first = other.write_sync(lambda tx: tx.books.calendar("here"))
    one.write_sync(lambda tx: tx.books.take("here", "b", [whole("n1")]))
    # The same calendar has caught up: it was not made anew from every row.
    assert other.write_sync(lambda tx: tx.books.calendar("here")) is first
    assert first.takes("b") == (whole("n1"),)


def test_a_reader_can_change_nothing(store: Store, store_url: str) -> None:
    store.write_sync(define)
    with pytest.raises(Exception, match="read"):
        store.read_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
    assert booked(store_url) == {}
