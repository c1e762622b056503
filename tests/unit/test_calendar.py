"""The calendar: exact nodes, storage pools, half-open windows."""

from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.calendar import Calendar, Slot
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import GIB, Window
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NoRoom, NotBookable, NotFound

T0 = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
ONE = Shape(1, GIB)


def at(hours: float) -> datetime:
    return T0 + hours * HOUR


def take(where: str, start: float, end: float, cores: int = 1, memory: int = 0, gpus: int = 0) -> Take:
    return Take(where, at(start), at(end), cores, memory, gpus)


def store(where: str, start: float, end: float, size: int) -> Take:
    return Take(where, at(start), at(end), size=size, pool=True)


def window(start: float, end: float) -> Window:
    return Window(at(start), at(end))


def calendar(nodes: int = 2, cores: int = 4, **pools: int) -> Calendar:
    return Calendar([Node(f"n{n}", cores, 16 * GIB, 1) for n in range(nodes)], pools)


def test_an_idle_calendar_says_yes_at_the_start_of_the_window() -> None:
    found = calendar().earliest(ONE, 2, 3 * HOUR, [window(0, 8)])
    assert found is not None
    assert found.start == T0
    assert sorted(found.nodes) == ["n0", "n1"]


def test_an_eight_day_session_fits_an_idle_calendar() -> None:
    assert calendar().earliest(ONE, 1, timedelta(days=8), [window(0, 0.1)]) is not None


def test_a_booking_that_ends_when_another_starts_does_not_collide() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 1, cores=4)])
    cal.take("b", [take("n0", 1, 2, cores=4)])
    assert not cal.fits([take("n0", 0.9, 1.1)])


def test_a_take_is_all_or_nothing() -> None:
    cal = calendar(2)
    cal.take("a", [take("n1", 1, 2, cores=4)])
    with pytest.raises(NotBookable):
        cal.take("b", [take("n0", 0, 3), take("n1", 0, 3)])
    assert cal.takes("b") == ()
    assert cal.free(at(0), at(3))["n0"] == Shape(4, 16 * GIB, 1)


def test_takes_of_one_key_count_against_each_other() -> None:
    cal = calendar(1)
    assert cal.fits([take("n0", 0, 1, cores=2), take("n0", 0, 1, cores=2)])
    assert not cal.fits([take("n0", 0, 1, cores=3), take("n0", 0.5, 1, cores=2)])
    assert cal.fits([take("n0", 0, 1, cores=4)])


def test_a_take_of_an_unknown_node_is_not_bookable() -> None:
    with pytest.raises(NotBookable):
        calendar().take("a", [take("elsewhere", 0, 1)])


@pytest.mark.parametrize("cores", [-1, 10**30])
def test_a_take_of_an_absurd_amount_is_not_bookable(cores: int) -> None:
    with pytest.raises(NotBookable):
        calendar().take("a", [take("n0", 0, 1, cores=cores)])


def test_an_unknown_node_is_remembered_when_put_and_given_back_at_release() -> None:
    cal = calendar()
    takes = (take("gone", 0, 1), take("n0", 0, 1))
    cal.put("a", takes)
    assert cal.takes("a") == takes
    assert cal.release("a") == takes
    assert cal.release("a") == ()


def test_nothing_fits_where_more_was_put_than_there_is() -> None:
    cal = calendar(1)
    cal.put("a", [take("n0", 0, 1, cores=3), take("n0", 0, 1, cores=30, memory=10**25, gpus=9)])
    assert cal.free(at(0), at(1))["n0"] == Shape(0, 0, 0)
    assert not cal.fits([take("n0", 0, 1, cores=1)])
    found = cal.earliest(Shape(1, 0), 1, HOUR, [window(0, 8)])
    assert found == Slot(at(1), ("n0",))
    cal.release("a")
    assert cal.free(at(0), at(1))["n0"] == Shape(4, 16 * GIB, 1)


def test_the_same_nodes_must_be_free_for_the_whole_time() -> None:
    cal = calendar(2)
    cal.take("a", [take("n0", 0, 1, cores=4), take("n1", 1, 2, cores=4)])
    # One node's worth is free at every instant, but no one node is free throughout.
    assert cal.earliest(ONE, 1, 2 * HOUR, [window(0, 8)]) == Slot(at(1), ("n0",))


def test_every_resource_counts() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 1, cores=1, gpus=1), take("n0", 1, 2, cores=1, memory=16 * GIB)])
    assert cal.earliest(Shape(1, GIB, 1), 1, HOUR, [window(0, 8)]) == Slot(at(2), ("n0",))
    assert cal.earliest(Shape(1, 0, 0), 1, HOUR, [window(0, 8)]) == Slot(at(0), ("n0",))


def test_a_shape_that_no_node_has_is_never_free() -> None:
    assert calendar().earliest(Shape(5, 0), 1, HOUR, [window(0, 9000)]) is None
    assert calendar().earliest(ONE, 3, HOUR, [window(0, 9000)]) is None


def test_nodes_of_different_sizes_are_told_apart() -> None:
    cal = Calendar([Node("small", 2, GIB), Node("big", 64, 512 * GIB, 4)])
    assert cal.earliest(Shape(3, 0), 1, HOUR, [window(0, 1)]) == Slot(T0, ("big",))
    cal.take("a", [take("big", 0, 5, cores=62)])
    assert cal.earliest(Shape(3, 0), 1, HOUR, [window(0, 9)]) == Slot(at(5), ("big",))


def test_a_window_admits_its_own_start_and_nothing_at_its_end() -> None:
    cal = calendar(1)
    assert cal.earliest(ONE, 1, HOUR, [window(3, 3)]) == Slot(at(3), ("n0",))
    cal.take("a", [take("n0", 0, 2, cores=4)])
    assert cal.earliest(ONE, 1, HOUR, [window(1, 1)]) is None
    assert cal.earliest(ONE, 1, HOUR, [window(1, 2)]) is None
    assert cal.earliest(ONE, 1, HOUR, [Window(at(1), at(2) + timedelta(microseconds=1))]) == Slot(at(2), ("n0",))


def test_windows_may_come_in_any_order_and_overlap() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 5.5, cores=4)])
    assert cal.earliest(ONE, 1, HOUR, [window(8, 9), window(5, 7), window(0, 2), window(6, 7)]) == Slot(
        at(5.5), ("n0",)
    )
    assert cal.earliest(ONE, 1, HOUR, []) is None


def test_a_window_far_in_the_future_is_free() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 9000, cores=4)])
    far = datetime(2199, 1, 1, tzinfo=UTC)
    assert cal.earliest(ONE, 1, timedelta(days=400), [Window(far, far + timedelta(days=3000))]) == Slot(far, ("n0",))


def test_microseconds_count() -> None:
    cal = calendar(1)
    end = T0 + timedelta(microseconds=7)
    cal.take("a", [Take("n0", T0, end, cores=4)])
    assert cal.earliest(ONE, 1, timedelta(seconds=1), [window(0, 1)]) == Slot(end, ("n0",))


def test_a_whole_node_is_left_for_whole_node_requests() -> None:
    cal = calendar(3)
    cal.take("a", [take("n1", 0, 8, cores=2)])
    assert cal.earliest(ONE, 1, HOUR, [window(0, 1)]) == Slot(T0, ("n1",))
    assert cal.earliest(Shape(4, 0), 2, HOUR, [window(0, 1)]) == Slot(T0, ("n0", "n2"))


def test_a_node_without_gpus_is_chosen_when_none_is_asked_for() -> None:
    cal = Calendar([Node("gpu", 4, GIB, 4), Node("plain", 4, GIB)])
    assert cal.earliest(Shape(4, 0), 1, HOUR, [window(0, 1)]) == Slot(T0, ("plain",))


def test_storage_is_needed_from_before_the_start_until_after_the_end() -> None:
    cal = calendar(1, disk=100)
    cal.take("a", [store("disk", 0, 2, 60)])
    cal.take("b", [store("disk", 6, 7, 60)])

    def ask(size: int, lead: float, tail: float, hours: float = 1) -> Slot | None:
        return cal.earliest(
            ONE, 1, hours * HOUR, [window(0, 20)], storage={"disk": size}, lead=lead * HOUR, tail=tail * HOUR
        )

    assert ask(40, 1, 1) == Slot(at(0), ("n0",))
    assert ask(50, 0, 0) == Slot(at(2), ("n0",))
    assert ask(50, 1, 0) == Slot(at(3), ("n0",))
    assert ask(50, 1, 2) == Slot(at(3), ("n0",))
    assert ask(50, 1, 2.5) == Slot(at(8), ("n0",))
    assert ask(101, 0, 0) is None


def test_an_unknown_pool_never_has_room() -> None:
    assert calendar().earliest(ONE, 1, HOUR, [window(0, 1)], storage={"elsewhere": 1}) is None
    assert calendar().earliest(ONE, 1, HOUR, [window(0, 1)], storage={"elsewhere": 0}) is not None


def test_nodes_and_storage_must_be_free_together() -> None:
    cal = calendar(1, disk=100)
    cal.take("a", [take("n0", 2, 4, cores=4), store("disk", 0, 1.5, 100), store("disk", 4.5, 6, 100)])
    found = cal.earliest(ONE, 1, HOUR, [window(0, 20)], storage={"disk": 1}, lead=HOUR)
    assert found == Slot(at(7), ("n0",))


def test_extending_moves_the_end_where_there_is_room() -> None:
    cal = calendar(2, disk=100)
    cal.take("a", [take("n0", 0, 1, cores=4), take("n1", 0, 1, cores=4), store("disk", -1, 1.5, 50)])
    assert cal.extend("a", at(3)) == cal.takes("a")
    assert [t.end for t in cal.takes("a")] == [at(3), at(3), at(3.5)]
    assert not cal.fits([take("n0", 2.9, 3)])
    assert cal.fits([take("n0", 3, 4, cores=4)])
    assert not cal.fits([store("disk", 3.4, 4, 51)])


def test_extending_into_the_next_booking_says_how_far_it_is_free_and_changes_nothing() -> None:
    cal = calendar(2)
    cal.take("a", [take("n0", 0, 1), take("n1", 0, 1)])
    cal.take("b", [take("n1", 2, 3, cores=4)])
    before = cal.busy(at(0), at(9))
    with pytest.raises(NoRoom) as caught:
        cal.extend("a", at(4))
    assert caught.value.values["free_until"] == at(2)
    assert cal.busy(at(0), at(9)) == before
    assert [t.end for t in cal.extend("a", at(2))] == [at(2), at(2)]


def test_only_the_steps_that_end_last_are_extended() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 1, cores=2), take("n0", 1, 2, cores=3)])
    assert [t.end for t in cal.extend("a", at(5))] == [at(1), at(5)]


def test_a_booking_can_be_cut_short_and_what_it_had_is_free() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 4, cores=4)])
    assert [t.end for t in cal.extend("a", at(2))] == [at(2)]
    assert cal.fits([take("n0", 2, 4, cores=4)])


def test_extending_what_was_never_booked_says_so() -> None:
    with pytest.raises(NotFound):
        calendar().extend("nobody", at(1))


def test_an_extended_take_of_an_unknown_node_is_only_remembered() -> None:
    cal = calendar(1)
    cal.put("a", [take("gone", 0, 1)])
    assert [t.end for t in cal.extend("a", at(2))] == [at(2)]


def test_busy_shows_steps_cut_at_the_ends_that_were_asked() -> None:
    cal = calendar(2, disk=100)
    cal.take("a", [take("n0", 0, 4, cores=1), take("n0", 2, 6, cores=2, gpus=1), store("disk", 0, 9, 7)])
    assert cal.busy(at(1), at(5)) == {
        "n0": [take("n0", 1, 2, cores=1), take("n0", 2, 4, cores=3, gpus=1), take("n0", 4, 5, cores=2, gpus=1)],
        "n1": [],
        "disk": [store("disk", 1, 5, 7)],
    }


def test_free_is_the_least_over_the_time_asked() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 0, 1, cores=3), take("n0", 1, 2, memory=GIB, cores=0)])
    assert cal.free(at(0), at(2))["n0"] == Shape(1, 15 * GIB, 1)
    assert cal.free(at(1), at(2))["n0"] == Shape(4, 15 * GIB, 1)


def test_a_take_of_no_time_takes_nothing() -> None:
    cal = calendar(1)
    cal.take("a", [take("n0", 1, 1, cores=4)])
    assert cal.fits([take("n0", 0, 2, cores=4)])
    assert len(cal.release("a")) == 1
