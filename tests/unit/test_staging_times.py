"""How long staging takes: by what was measured, over files, hosts and hops."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.answers import delay_starts
from sublet.booking.model.offer import Answer, Offer, Predicted
from sublet.booking.model.request import Data
from sublet.booking.model.shape import Shape
from sublet.booking.model.staging import NO_TIME, Spread, StagingEstimate, describe_staging, exactly
from sublet.data.estimating import PlannedItem, StagingPlan, source_of
from sublet.data.model.throughput import (
    MAKE_GUESS,
    MAKE_LEAST,
    SEND_GUESS,
    Hop,
    Meter,
    Transfer,
    TransferTimes,
    find_quantile,
    find_transfers,
    predict_transfer,
)
from sublet.data.whereabouts import Whereabouts
from tests.examples import examples

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MB = 1_000_000
HERE: Any = SimpleNamespace(name="here", carries=False, fetches=True)
FAR: Any = SimpleNamespace(name="far", carries=True, fetches=False)


def moved(size: int, seconds: float, source: str = "a.org", system: str = "far", hop: Hop = Hop.HERE) -> Transfer:
    return Transfer(NOW, source, system, hop, size, seconds)


def item(name: str, size: int | None = 100 * MB, host: str = "a.org", **more: Any) -> PlannedItem:
    data = Data(name, "simple-data-resource", f"https://{host}/{name}", size=size, prepare=more.pop("prepare", None))
    return PlannedItem(data, more.pop("guess", 10 * SECOND), **more)


def test_without_a_record_the_guess_is_the_most() -> None:
    assert predict_transfer(MB, [], 10 * SECOND) == Spread(SECOND, 5 * SECOND, 10 * SECOND)


def test_with_a_record_it_is_the_middle_of_what_was_measured_with_its_spread() -> None:
    record = [moved(100 * MB, seconds) for seconds in (8, 9, 10, 11, 40)]
    time = predict_transfer(200 * MB, record, 999 * SECOND)
    assert (time.likely, time.high) == (20 * SECOND, 80 * SECOND)
    assert time.low == 16 * SECOND


def test_few_measurements_make_a_wide_estimate() -> None:
    time = predict_transfer(100 * MB, [moved(100 * MB, 10)], SECOND)
    assert time == Spread(5 * SECOND, 10 * SECOND, 20 * SECOND)


def test_transfers_of_a_like_size_count_more() -> None:
    record = [moved(1000, 1.0)] * 3 + [moved(100 * MB, 10)] * 2
    assert predict_transfer(100 * MB, record, SECOND).likely == 10 * SECOND


def test_what_nobody_knows_the_size_of_takes_as_long_as_others_from_there_did() -> None:
    record = [moved(0, 30.0, hop=Hop.THERE), moved(5 * MB, 40.0, hop=Hop.THERE)]
    assert predict_transfer(None, record, SECOND).likely == 30 * SECOND
    assert predict_transfer(5 * MB, record[:1], 7 * SECOND).high == 7 * SECOND  # nothing was counted


def test_what_came_to_this_machine_tells_of_all_systems_and_what_was_sent_of_one() -> None:
    record = [moved(MB, 1), moved(MB, 2, source="", hop=Hop.SENT)]
    assert find_transfers(record, "a.org", "other", Hop.HERE) == record[:1]
    assert find_transfers(record, "", "other", Hop.SENT) == []
    assert find_transfers(record, "", "far", Hop.SENT) == record[1:]


def test_hosts_are_beside_one_another_and_files_of_one_come_in_turn() -> None:
    items = [item("x"), item("y"), item("z", host="b.org", guess=15 * SECOND), item("own", prepare=5 * SECOND)]
    found = StagingPlan(items).estimate(HERE)
    assert found.time.high == 20 * SECOND
    assert found.items == {"x": 10 * SECOND, "y": 10 * SECOND, "z": 15 * SECOND, "own": 5 * SECOND}
    assert found.samples == 0


def test_what_is_sent_on_is_a_second_hop_after_all_has_come() -> None:
    items = [item("x"), item("z", host="b.org")]
    sending = timedelta(seconds=2 * (100 * MB // SEND_GUESS))
    assert StagingPlan(items).estimate(FAR).time.high == 10 * SECOND + sending
    measured = [moved(100 * MB, 1.0, source="", hop=Hop.SENT)] * 20
    assert StagingPlan(items, measured).estimate(FAR).time.likely == 5 * SECOND + 2 * SECOND


@pytest.mark.parametrize("hop", [Hop.THERE, Hop.STREAMED])
def test_the_road_is_the_one_that_was_taken_the_last_time(hop: Hop) -> None:
    newest_first = [moved(100 * MB, 4.0, hop=hop)] * 9 + [moved(100 * MB, 50.0)] * 9
    found = StagingPlan([item("x")], newest_first).estimate(FAR)
    assert (found.time.likely, found.samples) == (4 * SECOND, 9)


def test_what_a_system_has_already_takes_no_time_and_is_named() -> None:
    kept = item("cube.fits", where=Whereabouts("data-1"))
    found = StagingPlan([kept, item("y", host="b.org", where=Whereabouts("data-2"))]).estimate(FAR, {"data-1"})
    assert found.there == ("cube.fits",)
    assert found.items["cube.fits"] == timedelta(0)
    assert found.time.high == 15 * SECOND
    alone = StagingPlan([kept]).estimate(FAR, {"data-1"})
    assert alone.lead == timedelta(0)
    assert describe_staging(alone, None) == "predicted under 1 s, cube.fits was there already"


def test_results_that_a_session_left_on_a_system_need_not_be_moved_there_and_elsewhere_they_do() -> None:
    plan = StagingPlan([item("out", where=Whereabouts(platform="far"))])
    assert plan.estimate(FAR).there == ("out",)
    assert not plan.estimate(HERE).there


def test_an_image_file_that_a_system_has_is_still_read_here_but_not_sent() -> None:
    shared = item("image.sif", where=Whereabouts("sha256-1"))
    shared = replace(shared, data=replace(shared.data, shared=True))
    here = replace(shared, data=replace(shared.data, location="file:///images/image.sif"))
    assert StagingPlan([here]).estimate(FAR, {"sha256-1"}).time.high == 10 * SECOND
    assert StagingPlan([here]).estimate(FAR).time.high == 15 * SECOND
    assert StagingPlan([shared]).estimate(FAR, {"sha256-1"}).time.high == NO_TIME, "one at an address is not even read"


def test_an_archive_of_an_image_takes_time_to_load_where_that_is_before_the_session_and_none_once_it_is_there() -> None:
    class Maker(SimpleNamespace):
        async def find_made(self, archives: object) -> list[str]:
            return []

    maker: Any = Maker(name="here", carries=False, fetches=True)
    size = 10 * MAKE_GUESS
    data = Data("tool.tar", "simple-data-resource", "file:///tool.tar", size=size, shared=True)
    plan = StagingPlan([PlannedItem(data, NO_TIME, is_only_made=True)])
    assert plan.estimate(maker).time.high == MAKE_LEAST + 10 * SECOND
    assert plan.estimate(maker, {"file:///tool.tar"}).time.high == NO_TIME
    assert plan.estimate(maker, {"file:///tool.tar"}).there == ("tool.tar",)
    assert not plan.estimate(FAR).items, "a path is of the system that runs it"
    measured = Transfer(NOW, "", "here", Hop.MADE, size, 4.0)
    assert replace(plan, history=[measured]).estimate(maker).time.likely == 4 * SECOND


def test_an_image_counts_where_the_system_pulls_it() -> None:
    plan = StagingPlan([item("image", size=None, guess=30 * SECOND, is_image=True)])
    assert not plan.estimate(HERE).items
    assert plan.estimate(FAR).time.high == 30 * SECOND


def test_no_password_is_part_of_a_source() -> None:
    assert source_of(Data("d", "x", "https://me:secret@a.org:8443/x")) == "a.org:8443"
    assert source_of(Data("d", "x", "file:///tmp/x")) == source_of(Data("d", "x", "/tmp/x")) == ""


def test_bytes_of_several_parts_and_files_are_added_up() -> None:
    told: list[tuple[int, int | None]] = []
    meter = Meter(lambda done, total: told.append((done, total)))
    for done in (10, 20, 5, 30):
        meter(done, None)
    assert (meter.bytes, told[-1]) == (50, (30, None))
    times = TransferTimes()
    times.note("a.org", 10, 3.0)
    times.note("a.org", 20, 2.0)
    assert times.by_source == {"a.org": (30, 3.0)}


def predicted(**more: Any) -> Offer:
    terms = Predicted(NOW, NOW + 60 * SECOND, NOW + 600 * SECOND)
    start = NOW + 60 * SECOND
    return replace(Offer("far", "sh", start, start, 60 * SECOND, (), Shape(1, 1), terms=terms), **more)


def test_a_job_waits_in_the_queue_once_its_data_is_there() -> None:
    staging = StagingEstimate(Spread(10 * SECOND, 40 * SECOND, 80 * SECOND), {"x": 80 * SECOND})
    (offer,) = delay_starts(Answer((predicted(),)), staging, NOW).offers
    assert isinstance(offer.terms, Predicted)
    assert (offer.start, offer.latest_start, offer.prepare) == (NOW + 100 * SECOND,) * 2 + (80 * SECOND,)
    assert offer.terms.p90 == NOW + 680 * SECOND
    (later,) = delay_starts(Answer((predicted(begin=NOW + 30 * SECOND),)), staging, NOW).offers
    assert later.start == NOW + 70 * SECOND  # thirty seconds of it are over before anything would start


def test_data_that_comes_too_late_for_the_window_is_a_no() -> None:
    staging = StagingEstimate(exactly(3600 * SECOND), {"x": 3600 * SECOND})
    answer = delay_starts(Answer((predicted(latest_start=NOW + 120 * SECOND),)), staging, NOW)
    assert not answer.offers
    assert answer.reasons[0].message == "far would have its data after 1 h, too late for the time asked."


def test_predicted_and_actual_stand_beside_each_other() -> None:
    time = Spread(25 * SECOND, 40 * SECOND, 80 * SECOND)
    known = StagingEstimate(time, {"x": 80 * SECOND}, samples=12)
    assert describe_staging(known, 38.2 * SECOND) == "predicted 40 s (25 s to 1 min 20 s), took 38 s"
    assert describe_staging(replace(known, samples=0), None) == "predicted 40 s (25 s to 1 min 20 s), a guess"
    assert describe_staging(StagingEstimate(), None) == ""
    assert describe_staging(StagingEstimate(exactly(0.2 * SECOND), {"x": SECOND}), 0.1 * SECOND) == ""


transfers = st.lists(
    st.builds(moved, st.integers(0, 10**12), st.floats(0, 10**5), st.just("a.org"), st.just("far"), st.just(Hop.HERE)),
    max_size=30,
)


@examples(200)
@given(st.none() | st.integers(0, 10**13), transfers, st.integers(0, 10**5))
def test_an_estimate_is_ordered_and_never_negative(size: int | None, record: list[Transfer], guess: int) -> None:
    time = predict_transfer(size, record, guess * SECOND)
    assert timedelta(0) <= time.low <= time.likely <= time.high


@examples(200)
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 10)), min_size=1), st.floats(0.01, 0.99))
def test_a_quantile_has_at_least_its_part_of_the_weight_below_it(
    values: list[tuple[float, float]], part: float
) -> None:
    found = find_quantile(values, part)
    whole = sum(weight for _, weight in values)
    assert sum(weight for value, weight in values if value <= found) >= part * whole * 0.999999
    assert sum(weight for value, weight in values if value < found) <= part * whole * 1.000001
