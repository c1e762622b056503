"""What another broker's documents say, read with suspicion; what is written of terms is read again as it was."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.booking.brokers.forwarding import is_named, write_document
from sublet.booking.calls import brokers as calls
from sublet.booking.documents.kinds import NODE_COMPUTE
from sublet.booking.model.brokers import LATEST, find_next_try
from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.model.job import JobState, State
from sublet.booking.model.offer import Booked, Offer, Predicted, Remote, Terms, list_route, rate_offer
from sublet.booking.model.phases import Phase
from sublet.booking.model.ranking import sort_offers
from sublet.booking.model.run_time import RunEstimate
from sublet.booking.model.session import End, EndKind, Session
from sublet.booking.model.shape import Shape
from sublet.booking.views.brokers import BrokerAddition
from sublet.doors.ivoa.sessions import instant, session_document
from sublet.doors.ivoa.terms import describe_run_time, describe_terms
from sublet.platforms.broker.older import write_older
from sublet.platforms.broker.pace import LONGEST, WatchPace
from sublet.platforms.broker.reading import RUN_TIME, OfferReader, read_gpu_sorts, read_run_time, read_terms
from sublet.platforms.broker.states import read_state
from sublet.platforms.broker.wire import BrokerReply

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EXPIRES = NOW + HOUR
GUESS = Predicted(NOW, NOW + HOUR, NOW + 3 * HOUR, samples=25, as_of=NOW)
FIRM, NOTHING = Remote("u", EXPIRES, "slurm", Booked(), held=True), Remote("u", EXPIRES)
DEEP = Remote("u", EXPIRES, "cam", Remote("v", EXPIRES, "slurm", GUESS))


def an_offer(terms: Terms, start: datetime = NOW, latest: datetime | None = None) -> Offer:
    return Offer("uksrc", "broker", start, latest or start, HOUR, (), Shape(1, 1 << 30), terms=terms)


def a_session(terms: Terms, phase: Phase = Phase.OFFERED, **more: Any) -> Session:
    ids = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "7f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    return Session(*ids, "me", "sums", "command", phase, an_offer(terms), NOW, NOW, EXPIRES, **more)


@pytest.mark.parametrize("terms", [Booked(), GUESS, FIRM, DEEP, replace(DEEP, inner=FIRM)])
def test_terms_that_a_broker_writes_are_read_again_by_the_broker_above_it(terms: Terms) -> None:
    _, values = describe_terms(a_session(terms), instant)
    above = Remote("w", EXPIRES, values["platform"], read_terms(values, EXPIRES))
    assert list_route("top", above) == ("top", *list_route("uksrc", terms))
    assert _first(above) == _first(terms)
    _, again = describe_terms(a_session(above), instant)
    assert again.get("p90") == values.get("p90")


def _first(terms: Terms | None) -> Terms | None:
    return _first(terms.inner) if isinstance(terms, Remote) else terms


def test_a_broker_that_states_no_terms_is_not_said_to_hold_anything() -> None:
    _, values = describe_terms(a_session(NOTHING), instant)
    assert (values["terms"], values["held"], "inner-terms" in values) == ("remote", "false", False)


def test_what_another_broker_predicts_comes_after_what_is_held_for_the_same_time() -> None:
    guess, firm = an_offer(DEEP), an_offer(FIRM)
    vague = an_offer(NOTHING, latest=NOW + 2 * HOUR)
    assert sort_offers([guess, vague, firm], rate_offer) == [firm, vague, guess]


def test_how_a_session_ended_is_read_as_it_was_written() -> None:
    ends = [
        End(EndKind.EXITED, code=0),
        End(EndKind.EXITED, code=3),
        End(EndKind.SIGNALLED, signal=9),
        End(EndKind.CANCELLED, by="marie", detail="enough"),
        End(EndKind.OUT_OF_MEMORY),
    ]
    for end in ends:
        session = a_session(FIRM, end.phase, end=end, ended=NOW, started=NOW)
        state = read_state(session_document(session, _request(), "http://x"), "cam")
        assert (state.state, state.end) == (State.ENDED, end)


def _request() -> Any:
    from sublet.booking.model.request import Executable, Request

    return Request(Executable("command", "sums", {"argv": ["true"]}))


def test_an_end_that_does_not_fit_the_phase_is_not_believed() -> None:
    message = {"kind": "urn:sublet:end:exited", "values": {"code": "0"}, "message": "It went well."}
    state = read_state({"phase": "FAILED", "meta": {"messages": [message]}}, "cam")
    assert state.end == End(EndKind.UNKNOWN, detail="It went well.")


@pytest.mark.parametrize("phase", ["OFFERED", "EXPIRED", "REJECTED", "", "DANCING"])
def test_what_was_never_accepted_is_no_job(phase: str) -> None:
    assert read_state({"phase": phase}, "cam").state is State.UNKNOWN


def test_a_clock_that_differs_is_allowed_for() -> None:
    ahead = BrokerReply(200, {"date": "Tue, 17 Nov 2026 12:10:00 GMT"}, b"")
    assert ahead.find_skew(NOW) == timedelta(minutes=10)
    assert BrokerReply(200, {"date": "Tue, 17 Nov 2026 12:00:01 GMT"}, b"").find_skew(NOW) == timedelta(0)
    assert BrokerReply(200, {"date": "yesterday"}, b"").find_skew(NOW) == timedelta(0)
    item = {
        "meta": {"uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"},
        "expires": "2026-11-17T12:15:00Z",
        "schedule": {"available": {"start": "2026-11-17T13:10:00Z/PT0S", "duration": "PT1H"}},
    }
    offer = OfferReader("cam", "https://cam.org", NOW, timedelta(minutes=10)).read_offer(item)
    assert isinstance(offer.terms, Remote)
    assert (offer.start, offer.terms.expires) == (NOW + HOUR, NOW + timedelta(minutes=5))
    assert offer.terms.url == "https://cam.org/sessions/6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


def test_a_broker_that_takes_its_time_is_not_taken_for_one_whose_clock_is_ahead() -> None:
    date = {"date": "Tue, 17 Nov 2026 12:00:20 GMT"}  # it answered 20 s after it was asked
    assert BrokerReply(200, date, b"", timedelta(seconds=21)).find_skew(NOW) == timedelta(0)
    assert BrokerReply(200, date, b"", timedelta(seconds=5)).find_skew(NOW) == timedelta(seconds=15)
    behind = BrokerReply(200, {"date": "Tue, 17 Nov 2026 11:50:00 GMT"}, b"", timedelta(seconds=21))
    assert behind.find_skew(NOW) == timedelta(minutes=-10)


def test_reasons_name_the_broker_and_the_platform_that_it_named() -> None:
    message = {"kind": "urn:resource-limit", "message": "Too large.", "values": {"platform": "slurm", "nearest": "8"}}
    answer, dropped = OfferReader("cam", "x", NOW).read({"result": "NO", "meta": {"messages": [message]}})
    (reason,) = answer.reasons
    assert (reason.platform, reason.message, reason.nearest, dropped) == ("cam/slurm", "Too large.", "8", 0)
    (silent,) = OfferReader("cam", "x", NOW).read({"result": "NO"})[0].reasons
    assert silent.platform == "cam"


def test_a_document_is_written_as_older_brokers_read_it() -> None:
    kinds = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
    older = write_older(
        {
            "executable": {"kind": f"{kinds}/executable/docker-container.yaml", "meta": {"name": "sums"}, "image": 1},
            "data": [{"kind": "urn:own:kind", "meta": {"name": "cube"}}],
            "tint": "blue",
        }
    )
    assert older["executable"] == {
        "type": "https://www.purl.org/ivoa.net/EB/schema/types/executable/docker-container-1.0",
        "name": "sums",
        "image": 1,
    }
    assert (older["data"], older["tint"]) == ([{"type": "urn:own:kind", "name": "cube"}], "blue")


def test_a_platform_that_is_named_is_the_broker_or_one_behind_it() -> None:
    assert write_document({"platform": "cam/slurm", "x": 1}, "cam") == {"platform": "slurm", "x": 1}
    assert write_document({"platform": "cam"}, "cam") == {}
    assert (is_named("cam", "cam"), is_named("camelot", "cam"), is_named("cam/x/y", "cam")) == (True, False, True)


def test_sessions_are_looked_at_less_and_less_until_something_changes() -> None:
    time = [0.0]
    pace = WatchPace(lambda: time[0])
    pace.watch("a")
    looks = []
    while time[0] < 300:
        time[0] += 0.1
        if pace.list_due():
            looks.append(time[0])
    pauses = [later - sooner for sooner, later in itertools.pairwise(looks)]
    assert pauses[0] < 1 < LONGEST - 1 < pauses[-1] <= LONGEST + 0.2
    pace.note("a", JobState(State.RUNNING))
    time[0] += 1
    assert pace.list_due() == ["a"]
    pace.note("a", JobState(State.ENDED))
    time[0] += 100
    assert pace.list_due() == []


def test_what_fails_is_tried_again_later_each_time() -> None:
    waits = [find_next_try(NOW, tries) - NOW for tries in (0, 1, 5, 50)]
    assert waits == sorted(waits)
    assert waits[-1] == LATEST


def test_what_the_command_line_sends_can_be_sent() -> None:
    added = calls.add(BrokerAddition(name="cam", url="https://cam.org", token="t"))
    assert json.loads(added.body or b"") == {"name": "cam", "url": "https://cam.org", "token": "t", "older": False}
    assert json.loads(calls.set_token("cam", "u").body or b"") == {"token": "u"}


def test_how_long_it_will_run_is_read_and_what_can_not_be_right_is_left_out() -> None:
    estimate = RunEstimate(timedelta(minutes=12), timedelta(minutes=15), timedelta(minutes=19), 34, "sim.py")
    _, values = describe_run_time(estimate)
    item = {"messages": [{"kind": RUN_TIME, "values": values}]}
    assert read_run_time(item, timedelta(hours=1)) == estimate
    assert read_run_time(item, timedelta(minutes=5)) is None
    assert read_run_time({}, timedelta(hours=1)) is None
    for wrong in ({"p90": "PT1M"}, {"p10": "soon"}, {"runs": "many"}, {"runs": "9" * 99}):
        message = {"kind": RUN_TIME, "values": values | wrong}
        assert read_run_time({"messages": [message]}, timedelta(hours=1)) is None, wrong


def test_sorts_of_gpu_that_a_broker_states_are_read_as_far_as_they_can_be() -> None:
    sorts = [{"type": "A100", "driver": "550"}, {"type": 3}, "V100", {"type": "V100"}]
    assert read_gpu_sorts({"gpu_sorts": sorts}) == (GpuSort("A100", "550"), GpuSort("V100"))
    assert read_gpu_sorts({"gpu_sorts": "A100"}) == read_gpu_sorts({}) == ()
    session = a_session(Booked())
    stated = replace(session, offer=replace(session.offer, gpu_sorts=(GpuSort("A100", "550"),)))
    asked = replace(_request(), compute=replace(_request().compute, kind=NODE_COMPUTE))
    assert read_gpu_sorts(session_document(stated, asked, "http://x")["compute"]) == (GpuSort("A100", "550"),)
