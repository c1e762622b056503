"""The calendar's laws, on any sequence of bookings, with an index small enough to be cut and joined all the time."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import Window
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NoRoom, NotBookable
from tests.examples import examples

T0 = datetime(2026, 3, 2, tzinfo=UTC)
UNIT = timedelta(minutes=7, microseconds=1)
LAST = 40  # times are whole units from 0 to here

NODES = (Node("a", 2, 8), Node("b", 4, 8, 1), Node("c", 7, 24, 3), Node("d", 4, 16), Node("e", 4, 16))
POOLS = {"disk": 20, "tape": 9}

times = st.integers(0, LAST).map(lambda n: T0 + n * UNIT)
lengths = st.sampled_from((1, 1, 2, 3, 5, 11, 25)).map(lambda n: n * UNIT)


@st.composite
def node_takes(draw: st.DrawFn) -> Take:
    start = draw(times)
    name = draw(st.sampled_from(NODES)).name
    cores, memory, gpus = draw(st.tuples(st.integers(0, 4), st.integers(0, 9), st.sampled_from((0, 0, 1))))
    return Take(name, start, start + draw(lengths), cores, memory, gpus)


@st.composite
def pool_takes(draw: st.DrawFn) -> Take:
    start = draw(times)
    return Take(
        draw(st.sampled_from(sorted(POOLS))), start, start + draw(lengths), size=draw(st.integers(0, 9)), pool=True
    )


bookings = st.lists(st.one_of(node_takes(), node_takes(), pool_takes()), min_size=1, max_size=4).map(tuple)


@st.composite
def wide_bookings(draw: st.DrawFn) -> tuple[Take, ...]:
    """One shape on several nodes for one time, as an accepted offer books it."""
    one = draw(node_takes())
    names = draw(st.sets(st.sampled_from([node.name for node in NODES]), min_size=1))
    return tuple(replace(one, where=name) for name in sorted(names))


@dataclass(frozen=True)
class Question:
    """What `earliest` is asked."""

    shape: Shape
    nodes: int
    duration: timedelta
    windows: list[Window]
    storage: dict[str, int] = field(default_factory=dict)
    lead: timedelta = timedelta(0)
    tail: timedelta = timedelta(0)


windows = st.tuples(times, st.sampled_from((0, 1, 4, 30, 9000))).map(lambda w: Window(w[0], w[0] + w[1] * UNIT))
shapes = st.builds(Shape, st.integers(0, 7), st.integers(0, 24), st.sampled_from((0, 0, 1, 2)))
questions = st.builds(
    Question,
    shapes,
    st.integers(1, 5),
    lengths,
    st.lists(windows, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(sorted(POOLS)), st.integers(0, 9), max_size=2),
    st.sampled_from((0, 1, 4)).map(lambda n: n * UNIT),
    st.sampled_from((0, 1, 4)).map(lambda n: n * UNIT),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.one_of(bookings, wide_bookings(), wide_bookings())),
        st.tuples(st.just("put"), wide_bookings()),
        st.tuples(st.just("release"), st.integers(0, 99)),
    ),
    max_size=25,
)
checked_steps = steps.map(lambda made: [step for step in made if step[0] != "put"])


def lived(made: list[tuple[str, object]]) -> Calendar:
    """A calendar after some steps, those that it refuses left out."""
    calendar = Calendar(NODES, POOLS, grain=4)
    keys: list[str] = []
    for number, (what, value) in enumerate(made):
        key = str(number)
        if isinstance(value, int):
            if keys:
                calendar.release(keys.pop(value % len(keys)))
            continue
        assert isinstance(value, tuple)
        try:
            (calendar.take if what == "take" else calendar.put)(key, value)
        except NotBookable:
            continue
        keys.append(key)
    return calendar


def all_takes(calendar: Calendar) -> list[Take]:
    return [take for number in range(99) for take in calendar.takes(str(number))]


def used(takes: list[Take], where: str, pool: bool, time: datetime) -> tuple[int, int, int, int]:
    """By plain addition, what is taken of a node or pool at one moment."""
    there = [t for t in takes if (t.where, t.pool) == (where, pool) and t.start <= time < t.end]
    return (
        sum(t.cores for t in there),
        sum(t.memory for t in there),
        sum(t.gpus for t in there),
        sum(t.size for t in there),
    )


def moments(takes: list[Take], start: datetime, end: datetime) -> list[datetime]:
    """All the times in [start, end) from which on anything may differ."""
    return [start, *sorted({t for take in takes for t in (take.start, take.end) if start < t < end})]


def has_room(takes: list[Take], node: Node, shape: Shape, start: datetime, end: datetime) -> bool:
    if shape == Shape(0, 0, 0):
        return True
    for time in moments(takes, start, end):
        cores, memory, gpus, _ = used(takes, node.name, False, time)
        if cores + shape.cores > node.cores or memory + shape.memory > node.memory or gpus + shape.gpus > node.gpus:
            return False
    return True


def would_do(takes: list[Take], asked: Question, start: datetime) -> bool:
    """By looking at every node and every moment, whether it can start then."""
    end = start + asked.duration
    if sum(has_room(takes, node, asked.shape, start, end) for node in NODES) < asked.nodes:
        return False
    return all(
        size == 0 or used(takes, name, True, time)[3] + size <= POOLS[name]
        for name, size in asked.storage.items()
        for time in moments(takes, start - asked.lead, end + asked.tail)
    )


def first_by_looking(takes: list[Take], asked: Question) -> datetime | None:
    """The earliest start there is: it is a window's own, or one at which something ends."""
    ends = {take.end for take in takes}
    for start in sorted({w.start for w in asked.windows} | ends | {end + asked.lead for end in ends}):
        inside = any(w.start == start or w.start <= start < w.end for w in asked.windows)
        if inside and would_do(takes, asked, start):
            return start
    return None


def ask(calendar: Calendar, asked: Question) -> tuple[datetime, list[Take]] | None:
    """The start that the calendar finds, and what would be booked."""
    shape = asked.shape
    slot = calendar.earliest(
        shape, asked.nodes, asked.duration, asked.windows, storage=asked.storage, lead=asked.lead, tail=asked.tail
    )
    if slot is None:
        return None
    assert len(set(slot.nodes)) == asked.nodes
    start, end = slot.start, slot.start + asked.duration
    nodes = [Take(name, start, end, shape.cores, shape.memory, shape.gpus) for name in slot.nodes]
    pools = [
        Take(name, start - asked.lead, end + asked.tail, size=size, pool=True) for name, size in asked.storage.items()
    ]
    return start, nodes + pools


def state(calendar: Calendar) -> tuple[object, ...]:
    """All that can be seen of a calendar."""
    span = (T0 - 100 * UNIT, T0 + 300 * UNIT)
    return calendar.busy(*span), calendar.free(*span), all_takes(calendar)


@examples(60)
@given(checked_steps)
def test_never_over_capacity_at_any_instant(made: list[tuple[str, object]]) -> None:
    calendar = lived(made)
    takes = all_takes(calendar)
    for time in moments(takes, T0, T0 + 100 * UNIT):
        for node in NODES:
            cores, memory, gpus, _ = used(takes, node.name, False, time)
            assert (cores <= node.cores, memory <= node.memory, gpus <= node.gpus) == (True, True, True)
        for name, size in POOLS.items():
            assert used(takes, name, True, time)[3] <= size


@examples(60)
@given(steps, st.one_of(bookings, wide_bookings()))
def test_release_restores_exactly_what_was(made: list[tuple[str, object]], more: tuple[Take, ...]) -> None:
    calendar = lived(made)
    before = state(calendar)
    calendar.put("more", more)
    assert calendar.release("more") == more
    assert state(calendar) == before


@examples(250)
@given(steps, st.lists(questions, min_size=1, max_size=4))
def test_earliest_is_earliest_and_can_be_taken(made: list[tuple[str, object]], asked: list[Question]) -> None:
    calendar = lived(made)
    takes = all_takes(calendar)
    for question in asked:
        found = ask(calendar, question)
        assert (found and found[0]) == first_by_looking(takes, question)
        if found is not None:
            assert calendar.fits(found[1])
            calendar.take("found", found[1])
            calendar.release("found")


@examples(80)
@given(steps, st.one_of(bookings, wide_bookings()))
def test_take_is_all_or_nothing(made: list[tuple[str, object]], wanted: tuple[Take, ...]) -> None:
    calendar = lived(made)
    before = state(calendar)
    fits = calendar.fits(wanted)
    assert state(calendar) == before
    try:
        calendar.take("98", wanted)
    except NotBookable:
        assert not fits
        assert state(calendar) == before
    else:
        assert fits
        assert calendar.takes("98") == wanted


@examples(80)
@given(checked_steps, wide_bookings(), st.integers(0, 60))
def test_extend_never_overlaps(made: list[tuple[str, object]], mine: tuple[Take, ...], more: int) -> None:
    calendar = lived(made)
    try:
        calendar.take("98", mine)
    except NotBookable:
        return
    before = state(calendar)
    until = mine[0].end + more * UNIT
    try:
        after = calendar.extend("98", until)
    except NoRoom as refused:
        assert state(calendar) == before
        free_until = refused.values["free_until"]
        assert isinstance(free_until, datetime)
        assert mine[0].end <= free_until < until
        after = calendar.extend("98", free_until)
        until = free_until
    assert {take.end for take in after} == {until}
    calendar.release("98")
    assert calendar.fits(after)


@examples(80)
@given(steps, st.randoms(use_true_random=False), questions)
def test_taken_and_released_in_any_order_leaves_a_calendar_like_a_new_one(
    made: list[tuple[str, object]], dice: object, asked: Question
) -> None:
    calendar, new = lived(made), Calendar(NODES, POOLS)
    keys = [str(number) for number in range(99)]
    dice.shuffle(keys)  # type: ignore[attr-defined]
    for key in keys:
        calendar.release(key)
    assert state(calendar) == state(new)
    assert ask(calendar, asked) == ask(new, asked)


@examples(80)
@given(steps, times, lengths)
def test_free_and_busy_say_what_plain_addition_says(
    made: list[tuple[str, object]], start: datetime, length: timedelta
) -> None:
    calendar = lived(made)
    takes, end = all_takes(calendar), start + length
    free, busy = calendar.free(start, end), calendar.busy(start, end)
    for node in NODES:
        seen = [used(takes, node.name, False, time) for time in moments(takes, start, end)]
        most = [max(column) for column in zip(*seen, strict=True)]
        assert free[node.name] == Shape(
            max(node.cores - most[0], 0), max(node.memory - most[1], 0), max(node.gpus - most[2], 0)
        )
        for time in moments(takes, start, end):
            assert used(busy[node.name], node.name, False, time) == used(takes, node.name, False, time)
    for name in POOLS:
        for time in moments(takes, start, end):
            assert used(busy[name], name, True, time) == used(takes, name, True, time)
