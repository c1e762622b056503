"""What the slots of an annex can offer, by what the access point shows."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.booking.model.offer import Answer, Predicted
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.platforms.htcondor.offers import Seen, View, answer, list_taken, read_tools, survey_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR, MINUTE, GIB = timedelta(hours=1), timedelta(minutes=1), 1 << 30
SEEN = Seen("annex-example", "example", 20)


def slot(name: str = "c1", hours: float = 4, **changes: Any) -> dict[str, Any]:
    end = round((NOW + hours * HOUR).timestamp())
    ad = {"Name": f"slot1@{name}", "SlotType": "Partitionable", "TotalSlotCpus": 2, "TotalSlotMemory": 4096}
    said = {"LastHeardFrom": round(NOW.timestamp()) - 2, "SubletEnd": end, "SubletTools": "python3=/usr/bin/python3"}
    return ad | said | changes


def job(status: int = 2, host: str = "slot1_1@c1", began: timedelta = HOUR, **changes: Any) -> dict[str, Any]:
    start = round((NOW - began).timestamp())
    ad = {"JobStatus": status, "RequestCpus": 1, "RequestMemory": 1024, "JobCurrentStartDate": start}
    return ad | ({"RemoteHost": host} if status == 2 else {}) | changes


def ask(*slots: Mapping[str, Any], jobs: tuple[Mapping[str, Any], ...] = (), **changes: Any) -> Answer:
    amounts = {name: Range(value, value) for name, value in changes.items() if name in ("cores", "memory", "nodes")}
    rest = {name: value for name, value in changes.items() if name not in amounts}
    request = Request(Executable("command"), Compute(**amounts), **({"duration": HOUR} | rest))
    view = View(NOW, tuple(map(dict, slots)), tuple(map(dict, jobs)))
    return answer(view, request, "sh", NOW, SEEN)


def only(found: Answer) -> Any:
    assert not found.reasons, found.reasons
    (offer,) = found.offers
    return offer


def test_a_free_slot_is_offered_now() -> None:
    offer = only(ask(slot()))
    assert (offer.start, offer.platform, offer.queue, offer.parts) == (NOW, "annex-example", "", 1)
    assert isinstance(offer.terms, Predicted)
    assert offer.why == "a slot is free now"


def test_a_busy_slot_is_offered_at_the_end_of_what_runs() -> None:
    busy = (job(SubletTime=4500), job(host="slot1_2@c1", SubletTime=5400))
    soon = only(ask(slot(), jobs=busy))
    assert (soon.start, soon.queue) == (NOW + 15 * MINUTE, "example")
    assert only(ask(slot(), jobs=busy, cores=2)).start == NOW + 30 * MINUTE


def test_what_waits_before_is_counted_too() -> None:
    busy = (job(SubletTime=4500), job(host="slot1_2@c1", SubletTime=5400))
    waiting = tuple(job(1, SubletTime=3600) for _ in range(2))
    assert only(ask(slot(), jobs=busy + waiting)).start == NOW + 75 * MINUTE


def test_a_job_that_does_not_say_how_long_it_takes_may_take_all_the_time_there_is() -> None:
    found = ask(slot(), jobs=(job(RequestCpus=2),))
    assert not found.offers
    assert "is busy, and ends at 2026-11-16 16:00 UTC" in found.reasons[0].message
    assert only(ask(slot(), slot("c2", 3), jobs=(job(RequestCpus=2),))).start == NOW


def test_a_job_that_is_longer_than_the_time_left_is_refused_with_the_time_left() -> None:
    found = ask(slot(), slot("c2", hours=1.51), duration=5 * HOUR)
    (reason,) = found.reasons
    assert (reason.field, reason.nearest, reason.platform) == ("schedule.requested.duration", "PT4H", "annex-example")
    assert "The annex example is there for 4 h more, and 5 h was asked for" in reason.message
    assert only(ask(slot(), slot("c2", hours=1), duration=3 * HOUR)).start == NOW


def test_an_annex_without_nodes_says_so() -> None:
    silent = slot(LastHeardFrom=round(NOW.timestamp()) - 100)
    for found in (ask(), ask(silent)):
        assert found.reasons[0].message == "The annex example has no node now."
    soon = Seen("annex-example", "example", coming="example#2 is in the queue of expanse")
    found = answer(View(NOW), Request(Executable("command")), "sh", NOW, soon)
    assert found.reasons[0].message == "The annex example has no node now; example#2 is in the queue of expanse."
    assert survey_of(View(NOW, (silent,)), "example").notes == ("example has no node now",)


def test_too_much_is_refused_with_what_there_is() -> None:
    (cores,) = ask(slot(), cores=3).reasons
    assert (cores.field, cores.limit) == ("compute.cores.min", "2")
    (nodes,) = ask(slot(), slot("c2"), nodes=2).reasons
    assert nodes.field == "compute.nodes.min"


def test_each_window_gets_an_offer_if_anything_is_free_in_it() -> None:
    windows = tuple(Window(NOW + hours * HOUR, NOW + (hours + 0.5) * HOUR) for hours in (0.5, 1.5, 2.5, 8))
    found = ask(slot(), windows=windows)
    assert [offer.start for offer in found.offers] == [window.start for window in windows[:3]]
    assert [offer.begin for offer in found.offers] == [window.start for window in windows[:3]]
    alike = ask(slot(), windows=(windows[0], windows[0], Window(NOW, NOW + 2 * HOUR)))
    assert [offer.start for offer in alike.offers] == [NOW, windows[0].start]


def test_a_window_is_kept() -> None:
    window = Window(NOW + HOUR, NOW + 2 * HOUR)
    offer = only(ask(slot(), windows=(window,)))
    assert (offer.start, offer.begin, offer.latest_start > offer.start) == (window.start, window.start, True)
    late = ask(slot(), windows=(Window(NOW + 3.5 * HOUR, NOW + 5 * HOUR),))
    assert late.reasons[0].kind == "urn:window-passed"


def test_a_bag_is_cut_into_as_many_parts_as_there_is_room_for() -> None:
    request: dict[str, Any] = {"parts": 50, "memory": GIB}
    assert only(ask(slot(), **request)).parts == 2
    assert only(ask(slot(), slot("c2"), **request)).parts == 4
    assert only(ask(slot(), slot("c2"), **request | {"memory": 3 * GIB})).parts == 2


def test_the_survey_has_the_tools_that_every_node_has() -> None:
    apptainer = "python3=/usr/bin/python3 apptainer=/usr/bin/apptainer"
    view = View(NOW, (slot(SubletTools=apptainer), slot("c2")))
    found = survey_of(view, "example")
    assert found.tools == {"sh": "/bin/sh", "python3": "/usr/bin/python3"}
    assert [(node.name, node.cores, node.memory) for node in found.nodes] == [("c1", 2, 4 * GIB), ("c2", 2, 4 * GIB)]
    assert read_tools("bad python3= =x") == {"sh": "/bin/sh", "python3": ""}


def test_what_can_not_be_booked_is_after_a_nodes_end_and_what_runs_there_unbooked() -> None:
    slots = (slot(SubletSessions=True), slot("c2", 3, SubletSessions=True))
    view = View(NOW, slots, (job(SubletTime=5400), job(host="slot1_2@c1", SubletBooked=True), job(1)))
    found = {(take.where, take.start, take.cores): take for take in list_taken(view)}
    assert found.keys() == {("c1", NOW + 4 * HOUR, 2), ("c2", NOW + 3 * HOUR, 2), ("c1", NOW - HOUR, 1)}
    assert found["c1", NOW - HOUR, 1].end == NOW + 30 * MINUTE
    assert found["c2", NOW + 3 * HOUR, 2].end > NOW + timedelta(days=365)


def test_a_node_that_has_not_heard_yet_that_it_is_for_sessions_alone_is_not_booked_at_once() -> None:
    before, after = list_taken(View(NOW, (slot(),))), list_taken(View(NOW, (slot(SubletSessions=True),)))
    (soon,) = set(before) - set(after)
    assert (soon.start, soon.end, soon.cores) == (NOW, NOW + timedelta(seconds=15), 2)
