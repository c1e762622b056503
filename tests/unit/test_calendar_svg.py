"""The calendar as a picture: where things are, and that what is drawn says what it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.offer import Node, Take
from sublet.booking.pages.calendar import TRACK, CalendarMark, Picture, draw, frame, without
from sublet.web.axis import MOST_TICKS, ticks
from sublet.web.drawing import environment
from sublet.web.words import Clock

GIB = 1 << 30
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NODE = Node("n1", 8, 32 * GIB)
UTC_ZONE, LONDON = ZoneInfo("UTC"), ZoneInfo("Europe/London")


def taken(start: float, end: float, cores: int = 4, memory: int = GIB, where: str = "n1") -> Take:
    return Take(where, NOON + start * HOUR, NOON + end * HOUR, cores, memory)


def mark(label: str, start: float, end: float, *nodes: str) -> CalendarMark:
    return CalendarMark(label, nodes or ("n1",), NOON + start * HOUR, NOON + end * HOUR, f"Offer {label}")


def picture(
    *marks: CalendarMark, takes: tuple[Take, ...] = (), nodes: tuple[Node, ...] = (NODE,), hours: int = 10
) -> Picture:
    return draw(nodes, takes, marks, NOON, NOON + hours * HOUR, now=NOON, zone=UTC_ZONE)


def svg(drawn: Picture, name: str = "here") -> ElementTree.Element:
    macro = environment().get_template("parts.html").module.calendar  # type: ignore[attr-defined]
    text = str(macro(drawn, Clock(NOON, UTC_ZONE), name, "key", "Bars are offers."))
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


def test_a_busy_time_is_as_wide_as_it_is_long_and_as_high_as_the_scarcest_thing_is_taken() -> None:
    (step,) = picture(takes=(taken(1, 3, cores=2, memory=24 * GIB),)).lanes[0].steps
    assert (step.x, step.width) == (10, 20)
    assert (step.share, step.height) == (75, TRACK * 0.75)


def test_what_begins_before_or_ends_after_the_picture_is_cut_at_its_edges() -> None:
    lane = picture(mark("1", 9, 14), takes=(taken(-5, 2), taken(-9, -8), taken(11, 12))).lanes[0]
    assert [(step.x, step.width) for step in lane.steps] == [(0, 20)]
    assert (lane.bars[0].x, lane.bars[0].width) == (90, 10)


def test_offers_that_overlap_get_rows_of_their_own_and_others_share_one() -> None:
    bars = picture(mark("1", 0, 3), mark("2", 1, 4), mark("3", 5, 6)).lanes[0].bars
    rows = {bar.mark.label: bar.y for bar in bars}
    assert rows["1"] == rows["3"] < rows["2"]


def test_short_offers_side_by_side_leave_room_for_their_numbers() -> None:
    first, second = picture(mark("1", 0, 0.1), mark("2", 0.2, 0.3)).lanes[0].bars
    assert first.y != second.y
    assert first.width > 0.5


def test_an_offer_on_several_nodes_is_drawn_on_each_and_one_without_nodes_on_a_lane_of_its_own() -> None:
    nodes = (NODE, Node("n2", 8, 32 * GIB), Node("n3", 8, 32 * GIB))
    anywhere = CalendarMark("2", (), NOON, NOON + HOUR, "Offer 2")
    drawn = picture(mark("1", 0, 1, "n1", "n3"), anywhere, nodes=nodes)
    assert [(lane.name, len(lane.bars)) for lane in drawn.lanes] == [("n1", 1), ("n2", 0), ("n3", 1), ("any node", 1)]


def test_of_many_nodes_those_with_offers_are_shown_and_the_rest_is_counted() -> None:
    nodes = tuple(Node(f"n{i}", 8, 32 * GIB) for i in range(100))
    drawn = picture(mark("1", 0, 1, "n77"), takes=(taken(1, 2, where="n50"),), nodes=nodes)
    assert {"n77", "n50"} < {lane.name for lane in drawn.lanes}
    assert (len(drawn.lanes), drawn.more) == (12, 88)


def test_ones_own_hold_is_not_drawn_as_taken() -> None:
    left = without([taken(0, 4, cores=6, memory=2 * GIB)], [taken(1, 2, cores=4), taken(2, 4, cores=6, memory=2 * GIB)])
    assert [(t.start, t.end, t.cores) for t in left] == [(NOON, NOON + HOUR, 6), (NOON + HOUR, NOON + 2 * HOUR, 2)]


def test_the_frame_holds_all_marks_and_the_present_when_it_is_near() -> None:
    start, end = frame([mark("1", 1, 2), mark("2", 3, 5)], NOON)
    assert start < NOON < NOON + 5 * HOUR < end
    far, _ = frame([mark("1", 100, 101)], NOON)
    assert far > NOON + 99 * HOUR


def test_now_is_drawn_only_where_it_is() -> None:
    assert picture().now == 0
    assert draw([NODE], (), (), NOON, NOON + HOUR, now=NOON - HOUR, zone=UTC_ZONE).now is None


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
    st.integers(60, 400 * 86_400),
    st.sampled_from(["UTC", "Europe/London", "Asia/Tehran", "America/St_Johns", "Pacific/Apia"]),
)
def test_ticks_are_few_in_order_inside_and_round(start: datetime, seconds: int, zone: str) -> None:
    end = start + timedelta(seconds=seconds)
    found = ticks(start, end, ZoneInfo(zone))
    assert len(found) <= MOST_TICKS + 4
    assert all(start <= tick.time < end and tick.time.second == 0 for tick in found)
    assert all(a.time < b.time for a, b in pairwise(found))


def test_on_the_day_the_clock_changes_ticks_stay_on_round_hours() -> None:
    start = datetime(2027, 3, 27, 18, tzinfo=UTC)
    found = ticks(start, start + timedelta(hours=20), LONDON)
    assert all(tick.label.endswith(":00") for tick in found)
    assert [tick.day for tick in found if tick.day] == ["Sat 27 Mar", "Sun 28 Mar"]


@pytest.mark.parametrize(
    ("length", "label"),
    [(timedelta(minutes=8), "12:01"), (timedelta(hours=8), "13:00"), (timedelta(days=8), "2 Mar")],
)
def test_the_steps_fit_the_length(length: timedelta, label: str) -> None:
    assert ticks(NOON, NOON + length, UTC_ZONE)[1 if length < timedelta(days=1) else 0].label == label


def test_the_drawing_is_well_formed_named_and_escaped() -> None:
    evil = '<script>alert("1")</script>'
    drawn = picture(mark("1", 1, 2, evil), takes=(taken(3, 4, where=evil),), nodes=(Node(evil, 8, 32 * GIB),))
    root = svg(drawn, evil)
    assert root.get("role") == "img"
    assert (root.findtext("title") or "").startswith(f"Calendar of {evil}")
    assert "table below" in (root.findtext("desc") or "")
    assert root.find(".//script") is None
    assert [e.get("style") for e in root.iter() if e.get("style")] == []
    assert "50 % taken" in "".join(root.itertext())


def test_every_offer_is_on_the_picture_also_when_the_first_takes_more_nodes_than_are_drawn() -> None:
    nodes = tuple(Node(f"n{i}", 8, 32 * GIB) for i in range(40))
    large = mark("1", 0, 1, *(f"n{i}" for i in range(30)))
    small = [mark(str(i), i, i + 1, f"n{i + 30}") for i in range(2, 6)]
    drawn = draw(nodes, (), [large, *small], NOON, NOON + 10 * HOUR, now=NOON, zone=UTC_ZONE, most=3)
    assert {bar.mark.label for lane in drawn.lanes for bar in lane.bars} == {"1", "2", "3", "4", "5"}
    assert len(drawn.lanes) == 5
    assert [one.label for one in drawn.marks] == ["1", "2", "3", "4", "5"]


def test_a_predicted_offer_is_hatched_over_its_spread_and_within_the_frame() -> None:
    spread = (NOON - HOUR, NOON + 8 * HOUR)
    predicted = CalendarMark("1", (), NOON + HOUR, NOON + 2 * HOUR, "Offer 1", "predicted", spread)
    start, end = frame([predicted], NOON)
    assert start < spread[0] < spread[1] < end
    drawn = draw([], (), [predicted], start, end, now=NOON, zone=UTC_ZONE)
    root = svg(drawn)
    assert root.find(".//pattern") is not None
    rectangles = root.findall(".//g[@class='bar predicted']/rect")
    assert [one.get("fill") for one in rectangles] == ["url(#key-hatch)", None]
    wide, narrow = (float((one.get("width") or "").rstrip("%")) for one in rectangles)
    assert wide == pytest.approx(9 * narrow, rel=0.01)
