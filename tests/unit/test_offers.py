"""Which offers a request gets on a calendar, and what a NO says."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import PASSING_ON, expiry_of, hold_of, takes_of
from sublet.booking.model.offer import Answer, Node, Offer, Quote, Remote, Take
from sublet.booking.model.offers import WayFacts, find_offers
from sublet.booking.model.prices import MONETARY, Prices
from sublet.booking.model.request import (
    GIB,
    Compute,
    Data,
    Executable,
    Limit,
    Range,
    Recurring,
    Request,
    Storage,
    Window,
)
from sublet.booking.model.shape import Shape

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)  # a Sunday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOLD = 5 * MINUTE
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
TO_RUN = Executable("command", fields={"argv": ["true"]})
PERFORMANCE = "urn:ivoa:calycopis:metric:compute-performance"


def calendar(*takes: Take, nodes: Iterable[Node] = (Node("a", 8, 32 * GIB),), disk: int = 100 * GIB) -> Calendar:
    made = Calendar(nodes, {"disk": disk})
    for number, take in enumerate(takes):
        made.take(f"booking-{number}", [take])
    return made


def busy(start: datetime, end: datetime, cores: int = 8, node: str = "a") -> Take:
    return Take(node, start, end, cores, GIB)


def asking(**parts: Any) -> Request:
    return replace(Request(TO_RUN), **parts)


def find(request: Request, on: Calendar | None = None, **more: Any) -> Answer:
    given: dict[str, Any] = {
        "platform": "here",
        "ways": [WayFacts("sh")],
        "pools": ("disk",),
        "prices": Prices(),
        "metrics": (),
        "now": NOW,
        "hold": HOLD,
        "release": timedelta(seconds=10),
        "prepare": timedelta(0),
    }
    return find_offers(request, on or calendar(), **given | more)


def starts(answer: Answer) -> list[str]:
    return [f"{offer.start:%a %H:%M}" for offer in answer.offers]


def the_reason(answer: Answer) -> Any:
    assert not answer.offers
    (reason,) = answer.reasons
    assert reason.platform == "here"
    return reason


def between(hour: int, until: int, day: int = 0) -> Window:
    return Window(MONDAY + day * DAY + hour * HOUR, MONDAY + day * DAY + until * HOUR)


def test_without_a_window_the_offer_starts_now_and_slides_while_it_is_held() -> None:
    answer = find(asking())
    (offer,) = answer.offers
    assert (offer.start, offer.latest_start, offer.why) == (NOW, NOW + HOLD, "earliest")
    assert {expiry_of(offer, NOW, HOLD) for offer in answer.offers} == {NOW + HOLD}
    assert hold_of(answer.offers) == (Take("a", NOW, NOW + HOLD + 2 * HOUR, 1, GIB),)


def test_what_waits_for_others_starts_no_sooner_than_they_are_planned_to_end() -> None:
    end = NOW + 3 * HOUR
    (offer,) = find(asking(not_before=end)).offers
    assert (offer.start, offer.latest_start) == (end, end)
    (soon,) = find(asking(not_before=NOW + MINUTE)).offers
    assert (soon.start, soon.latest_start) == (NOW + MINUTE, NOW + HOLD)
    reason = the_reason(find(asking(not_before=end, windows=(Window(NOW, NOW + HOUR),))))
    assert "The sessions that it depends on are planned to end at 2026-11-15T23:00:00Z" in reason.message


def test_a_start_is_on_a_whole_second() -> None:
    now = NOW + timedelta(microseconds=300)
    (offer,) = find(asking(), now=now).offers
    assert offer.start == NOW + timedelta(seconds=1)
    (later,) = find(asking(), calendar(busy(now, now + HOUR)), now=now).offers
    assert later.start == NOW + HOUR + timedelta(seconds=1)


@pytest.mark.parametrize("length", [timedelta(seconds=1), 3 * HOUR, 8 * DAY, 300 * DAY])
def test_an_idle_platform_says_yes_however_long_it_is(length: timedelta) -> None:
    assert find(asking(duration=length)).offers[0].duration == length


def test_nine_ten_and_eleven_on_monday() -> None:
    answer = find(asking(windows=(between(9, 12),), duration=4 * HOUR))
    assert starts(answer) == ["Mon 09:00", "Mon 10:00", "Mon 11:00"]
    assert [offer.why for offer in answer.offers] == [
        "earliest",
        "10:00 on Monday 16 November, UTC",
        "11:00 on Monday 16 November, UTC",
    ]


def test_several_windows_share_the_offers() -> None:
    request = asking(windows=tuple(between(9, 12, day) for day in range(3)), duration=4 * HOUR)
    assert starts(find(request)) == ["Mon 09:00", "Mon 11:00", "Tue 09:00", "Tue 11:00", "Wed 09:00", "Wed 11:00"]


def test_recurring_windows_are_offered_by_the_clock_of_their_zone() -> None:
    request = asking(recurring=(Recurring((0, 1, 2), "09:00", "12:00", "America/New_York"),))
    answer = find(request)
    assert starts(answer)[:2] == ["Mon 14:00", "Mon 16:00"]
    assert answer.offers[1].why == "11:00 on Monday 16 November, America/New_York"


def test_a_recurring_window_is_found_even_when_months_are_booked() -> None:
    request = asking(recurring=(Recurring((0,), "09:00", "12:00", "UTC"),))
    answer = find(request, calendar(busy(NOW, NOW + 60 * DAY)))
    assert answer.offers[0].start == datetime(2027, 1, 18, 9, tzinfo=UTC)


def test_what_is_booked_leaves_the_other_times() -> None:
    booked = calendar(busy(MONDAY + 9 * HOUR, MONDAY + 10 * HOUR + 10 * MINUTE + timedelta(seconds=7)))
    answer = find(asking(windows=(between(9, 12),), duration=HOUR), booked)
    assert starts(answer) == ["Mon 10:10", "Mon 11:00"]
    two = asking(windows=(between(8, 12),), duration=HOUR)
    assert starts(find(two, booked)) == ["Mon 08:00", "Mon 10:15", "Mon 11:00"]


def test_a_short_window_is_offered_in_quarters_of_an_hour() -> None:
    window = Window(MONDAY + 9 * HOUR, MONDAY + 10 * HOUR)
    assert starts(find(asking(windows=(window,)))) == ["Mon 09:00", "Mon 09:15", "Mon 09:30", "Mon 09:45"]


def test_a_long_window_is_offered_at_the_same_time_on_other_days() -> None:
    window = Window(MONDAY + 9 * HOUR, MONDAY + 30 * DAY)
    assert starts(find(asking(windows=(window,)))) == ["Mon 09:00", "Wed 09:00", "Fri 09:00", "Sun 09:00"]


def test_an_instant_is_a_window_of_its_own() -> None:
    instants = tuple(Window(MONDAY + hour * HOUR, MONDAY + hour * HOUR) for hour in (9, 14))
    assert starts(find(asking(windows=instants))) == ["Mon 09:00", "Mon 14:00"]


def test_there_are_never_more_offers_than_allowed() -> None:
    every_day = Recurring(tuple(range(7)), "00:00", "23:00", "UTC")
    request = asking(recurring=(every_day,), compute=Compute(cores=Range(1, 8)))
    for most in (1, 2, 3, 6, 10):
        assert len(find(request, at_most=most).offers) == most


@pytest.mark.parametrize("count", [2, 3, 6, 11])
def test_each_window_that_was_named_gets_an_offer(count: int) -> None:
    windows = tuple(between(9, 10, day) for day in range(count))
    request = asking(windows=windows, compute=Compute(cores=Range(1, 8)))
    offers = find(request, at_most=4).offers
    assert all(any(window.start <= offer.start < window.end for offer in offers) for window in windows)


def test_a_window_in_which_nothing_is_free_takes_none_from_the_others() -> None:
    windows = tuple(between(9, 12, day) for day in range(3))
    full = calendar(busy(windows[1].start, windows[1].end + 2 * HOUR))
    offers = find(asking(windows=windows), full).offers
    assert {offer.start.day for offer in offers} == {windows[0].start.day, windows[2].start.day}


def test_the_largest_is_offered_beside_the_least() -> None:
    request = asking(compute=Compute(cores=Range(2, 16), memory=Range(GIB, 8 * GIB)))
    least, largest = find(request).offers
    assert (least.shape, least.why) == (Shape(2, GIB), "earliest")
    assert (largest.shape, largest.why) == (Shape(8, 8 * GIB), "largest")


def test_the_largest_may_come_now_with_what_is_free_and_later_with_all() -> None:
    request = asking(compute=Compute(cores=Range(2, 8)))
    answer = find(request, calendar(busy(NOW, NOW + HOUR, cores=4)))
    assert [(offer.shape.cores, offer.start, offer.why) for offer in answer.offers] == [
        (2, NOW, "earliest"),
        (4, NOW, "largest at that time"),
        (8, NOW + HOUR, "largest"),
    ]


def test_the_largest_has_more_nodes_where_more_are_welcome() -> None:
    nodes = [Node(name, 4, 8 * GIB) for name in "abc"]
    request = asking(compute=Compute(nodes=Range(1, 2), cores=Range(2, 2)))
    assert [len(offer.nodes) for offer in find(request, calendar(nodes=nodes)).offers] == [1, 2]


def test_the_cheapest_says_so_where_prices_differ() -> None:
    request = asking(compute=Compute(cores=Range(2, 8)))
    answer = find(request, prices=Prices(core_hour=1))
    assert [(offer.why, offer.costs[0].max) for offer in answer.offers] == [("earliest, cheapest", 4), ("largest", 16)]


def test_the_largest_is_as_large_as_the_asker_will_pay_for() -> None:
    request = asking(compute=Compute(cores=Range(2, 8)), costs=(Limit(MONETARY, max=10),))
    answer = find(request, prices=Prices(core_hour=1))
    assert [offer.shape.cores for offer in answer.offers] == [2, 5]


def test_a_limit_on_costs_is_obeyed_and_the_no_names_the_price() -> None:
    reason = the_reason(find(asking(costs=(Limit(MONETARY, max=1),)), prices=Prices(core_hour=1)))
    assert (reason.kind, reason.field, reason.nearest) == ("urn:cost-limit", "costs[0].max", "2")
    assert find(asking(costs=(Limit(MONETARY, max=2),)), prices=Prices(core_hour=1)).offers


def test_a_cost_that_is_not_quoted_is_a_no_only_when_it_is_limited() -> None:
    karma = "urn:example:karma"
    assert the_reason(find(asking(costs=(Limit(karma, max=1),)))).field == "costs[0].type"
    assert find(asking(costs=(Limit(karma, min=1),))).offers


def test_a_limit_on_performance_is_obeyed() -> None:
    fast = asking(metrics=(Limit(PERFORMANCE, min=150),))
    assert find(fast, metrics=(Quote(PERFORMANCE, 150, 200),)).offers[0].metrics
    assert the_reason(find(fast, metrics=(Quote(PERFORMANCE, 100, 120),))).nearest == "100"
    assert the_reason(find(fast)).field == "metrics[0].type"
    assert find(asking(metrics=(Limit("urn:example:colour", max=5),))).offers


def test_a_window_that_is_half_over_is_met_by_what_is_left_of_it() -> None:
    answer = find(asking(windows=(Window(NOW - HOUR, NOW + 2 * MINUTE),)))
    (offer,) = answer.offers
    assert (offer.start, offer.latest_start) == (NOW, NOW + 2 * MINUTE - timedelta(seconds=1))
    assert expiry_of(offer, NOW, HOLD) == offer.latest_start


def test_preparing_comes_before_the_start() -> None:
    (offer,) = find(asking(), prepare=10 * MINUTE).offers
    assert (offer.start, offer.prepare) == (NOW + 10 * MINUTE, 10 * MINUTE)
    reason = the_reason(find(asking(windows=(Window(NOW, NOW + 5 * MINUTE),)), prepare=10 * MINUTE))
    assert "10 min of preparing" in reason.message


def test_another_way_is_taken_when_the_best_gets_ready_too_late() -> None:
    ways = [WayFacts("podman", 10 * MINUTE), WayFacts("slow", HOUR), WayFacts("apptainer", MINUTE)]
    soon = asking(windows=(Window(NOW, NOW + 5 * MINUTE),))
    assert {offer.way for offer in find(soon, ways=ways).offers} == {"apptainer"}
    assert {offer.way for offer in find(asking(), ways=ways).offers} == {"podman"}


def test_a_gap_that_is_too_short_to_hold_the_offer_for_long_is_offered_for_less() -> None:
    answer = find(asking(), calendar(busy(NOW + 2 * HOUR + MINUTE, NOW + 9 * HOUR)))
    (offer,) = answer.offers
    assert (offer.start, offer.latest_start) == (NOW, NOW + MINUTE)
    assert expiry_of(offer, NOW, HOLD) == NOW + MINUTE


def test_a_gap_that_nobody_could_take_in_time_is_not_offered() -> None:
    (offer,) = find(asking(), calendar(busy(NOW + 2 * HOUR + timedelta(seconds=10), NOW + 9 * HOUR))).offers
    assert offer.start == NOW + 9 * HOUR


def test_storage_is_booked_from_preparing_to_release() -> None:
    request = asking(storage=(Storage("scratch", Range(10 * GIB, 20 * GIB)),))
    offer, _ = find(request, prepare=MINUTE).offers
    pool = takes_of(offer)[-1]
    assert (pool.where, pool.size, pool.pool) == ("disk", 10 * GIB, True)
    assert (pool.start, pool.end) == (NOW, NOW + MINUTE + 2 * HOUR + timedelta(seconds=10))


def test_the_most_storage_is_offered_as_far_as_there_is_room_and_money() -> None:
    request = asking(storage=(Storage("a", Range(10 * GIB, 50 * GIB)), Storage("b", Range(GIB, 90 * GIB))))
    least, largest = find(request).offers
    assert (dict(least.storage), least.why) == ({"a": 10 * GIB, "b": GIB}, "earliest")
    assert (dict(largest.storage), largest.why) == ({"a": 50 * GIB, "b": 50 * GIB}, "largest")
    prices = Prices(storage_gib_hour=1)
    for limit in (40, 100):
        limited = replace(request, costs=(Limit(MONETARY, max=limit),))
        for offer in find(limited, prices=prices).offers:
            assert offer.costs[0].max <= limit
            assert offer.costs[0].max == sum(offer.storage.values()) / GIB * 2
    taken = Take("disk", NOW, NOW + 9 * HOUR, size=89 * GIB, pool=True)
    (only,) = find(request, calendar(taken)).offers
    assert only.why == "earliest"


def test_the_largest_has_the_most_storage_too() -> None:
    request = asking(storage=(Storage("a", Range(GIB, 4 * GIB)),), compute=Compute(cores=Range(1, 4)))
    least, largest = find(request).offers
    assert (least.shape.cores, least.storage["a"]) == (1, GIB)
    assert (largest.shape.cores, largest.storage["a"]) == (4, 4 * GIB)


def test_the_most_memory_is_in_whole_gib() -> None:
    odd = calendar(nodes=[Node("a", 8, 24_200_000_000)])
    _, largest = find(asking(compute=Compute(memory=Range(GIB, 1000 * GIB))), odd).offers
    assert largest.shape.memory == 22 * GIB
    (only,) = find(asking(compute=Compute(memory=Range(22 * GIB, 1000 * GIB))), odd).offers
    assert only.shape.memory == 22 * GIB


def test_limits_on_what_a_component_costs_are_kept() -> None:
    prices = Prices(core_hour=1, storage_gib_hour=1)
    asked = asking(storage=(Storage("a", Range(GIB, GIB)),), compute=Compute(cores=Range(1, 8)))

    def limited(part: str, most: float) -> Answer:
        return find(
            replace(asked, costs=(Limit(MONETARY, max=most, part=part, path=f"{part}.costs[0]"),)), prices=prices
        )

    for part in ("compute", "storage[0]"):
        assert the_reason(limited(part, 1)).field == f"{part}.costs[0].max"
    assert limited("executable", 0).offers
    assert {offer.shape.cores for offer in limited("compute", 4).offers} == {1, 2}
    offer = limited("compute", 2).offers[0]
    assert (offer.costs[0].max, offer.compute_costs[0].max, offer.storage_costs["a"][0].max) == (4, 2, 2)


def test_data_of_known_size_is_booked_too() -> None:
    data = (Data("a", "simple-data-resource", "x", "scratch", size=12 * GIB), Data("b", "x", "y", size=3 * GIB))
    request = asking(storage=(Storage("scratch", Range(10 * GIB, 20 * GIB), ("a",)),), data=data)
    assert find(request).offers[0].storage == {"scratch": 12 * GIB, "b": 3 * GIB}
    small = replace(request, storage=(Storage("scratch", Range(GIB, GIB), ("a",)),))
    assert the_reason(find(small)).nearest == "12GiB"


NODES = [Node("a", 8, 16 * GIB), Node("b", 4, 64 * GIB), Node("c", 2, GIB, 4)]


def test_a_hold_is_the_most_that_any_of_the_offers_needs() -> None:
    offer = find(asking(compute=Compute(cores=Range(2, 2)))).offers[0]
    late = replace(offer, start=NOW + HOUR, latest_start=NOW + HOUR, shape=Shape(4, 2 * GIB))
    assert hold_of([offer, late]) == (
        Take("a", NOW, NOW + HOUR, 2, GIB),
        Take("a", NOW + HOUR, NOW + 3 * HOUR, 4, 2 * GIB),
    )


def test_another_brokers_offer_expires_here_a_little_sooner_than_there() -> None:
    offer: Offer = replace(find(asking()).offers[0], terms=Remote("https://elsewhere.org/sessions/1", NOW + MINUTE))
    assert expiry_of(offer, NOW, HOLD) == NOW + MINUTE - PASSING_ON
    soon = replace(offer, terms=Remote("https://elsewhere.org/sessions/1", NOW + PASSING_ON))
    assert expiry_of(soon, NOW, HOLD) == NOW + PASSING_ON / 2
