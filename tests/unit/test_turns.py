"""Whose turn it is at an account's site."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.fair_share import Turn, next_turns

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def waiting(person: str, number: int, minute: int = 0) -> Turn:
    return Turn(f"{person}-{number:03}", person, NOON + timedelta(minutes=minute))


def there(person: str, number: int) -> Turn:
    return Turn(f"{person}-there-{number:03}", person, NOON, NOON)


def test_one_persons_hundred_do_not_hold_up_anothers_first() -> None:
    crowd = [waiting("ann", number, number) for number in range(100)]
    assert next_turns([*crowd, waiting("bob", 0, 200)], 2) == ["ann-000", "bob-000"]
    full = [*(there("ann", number) for number in range(9)), *crowd, waiting("bob", 0, 200)]
    assert next_turns(full, 10) == ["bob-000"]


def test_among_those_with_as_many_there_who_waits_the_longest_is_next() -> None:
    assert next_turns([waiting("ann", 0, 2), waiting("bob", 0, 1), waiting("cy", 0, 3)], 2) == ["bob-000", "ann-000"]


def test_nobody_comes_where_all_places_are_taken_or_there_are_fewer_than_before() -> None:
    assert next_turns([there("ann", 0), waiting("bob", 0)], 1) == []
    assert next_turns([there("ann", 0), there("ann", 1), waiting("bob", 0)], 1) == []


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")), st.integers(1, 12))
def test_places_are_never_overbooked_never_left_empty_and_shared_evenly(at: str, line: str, capacity: int) -> None:
    turns = [there(person, n) for n, person in enumerate(at)] + [waiting(p, n, n) for n, p in enumerate(line)]
    chosen = next_turns(turns, capacity)
    free = max(0, capacity - len(at))
    assert len(chosen) == min(free, len(line)) == len(set(chosen))
    came = Counter(id.partition("-")[0] for id in chosen)
    before, still = Counter(at), Counter(line) - came
    for one in still:  # whoever still waits has no fewer there than the last who came, but for one
        for other in came:
            assert before[one] + came[one] >= before[other] + came[other] - 1
