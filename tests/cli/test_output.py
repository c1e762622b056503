"""How things are drawn: for people, as JSON, and only what a script needs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from sublet.booking.cli import asking, sessions
from sublet.booking.views.events import EventPage, EventView
from sublet.booking.views.moves import Explanation, PauseView
from sublet.booking.views.offers import ReasonView
from sublet.booking.views.platforms import CheckList, CheckView, NodeView, PlatformList, PlatformView
from sublet.booking.views.quotes import QuoteView, TermsView
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.booking.views.sessions import ConnectorView, EndView, SessionPage
from sublet.cli.instants import read_coming, read_past
from sublet.cli.output import Output, pairs, table
from sublet.cli.problems import Problem
from sublet.cli.texts import away, describe_price, length, moment, size, with_local_start, with_local_times
from sublet.kernel.errors import PlatformDraining
from sublet.people.views.people import TokenView, WhoView
from tests.canned import ID, NOW, Said, a_session, an_end, an_offer
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
MONEY = "urn:ivoa:calycopis:cost:monetary"


def drawn(lines: list[str]) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (5400, "1 h 30 min"),
        (3601, "1 h"),
        (8 * 86400, "8 d"),
        (90061, "1 d 1 h"),
    ],
)
def test_lengths_have_two_units_at_most(seconds: int, text: str) -> None:
    assert length(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (2 * 1024**3, "2 GiB"), (1536 * 1024**2, "1.5 GiB")]
)
def test_sizes_have_three_digits(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("later", "text"),
    [
        (timedelta(minutes=5), "today 09:05"),
        (timedelta(days=1), "tomorrow 09:00"),
        (timedelta(days=7), "Mon 23 Nov 09:00"),
        (timedelta(days=400), "Tue 21 Dec 2027 09:00"),
    ],
)
def test_a_moment_has_as_much_of_its_date_as_is_needed(later: timedelta, text: str) -> None:
    assert moment(NOW + later, NOW) == text


def test_near_times_are_relative_to_now() -> None:
    assert away(NOW + timedelta(seconds=3), NOW) == "now"
    assert away(NOW + timedelta(minutes=5), NOW) == "in 5 min"
    assert away(NOW - timedelta(hours=2), NOW) == "2 h ago"


def test_a_price_has_its_currency() -> None:
    assert describe_price(QuoteView(type=MONEY, min=0.5, max=0.5, description="in EUR")) == "0.5 EUR"
    assert describe_price(QuoteView(type=MONEY, min=0.5, max=1.25, description="in EUR")) == "0.5–1.25 EUR"


def test_a_column_that_is_empty_throughout_is_left_out() -> None:
    assert table(("A", "B", "C"), [("1", "", "3"), ("10", "", "")]) == ["A   C", "1   3", "10"]
    assert pairs([("name", "x"), ("longer name", "y"), ("empty", "")]) == ["name         x", "longer name  y"]


def test_offers_are_drawn_as_a_table() -> None:
    offers = [
        an_offer(),
        an_offer(
            start=NOW + timedelta(days=1),
            cores=4,
            gpus=1,
            why="cheapest",
            costs=(QuoteView(type=MONEY, min=1.2, max=1.2, description="in EUR"),),
        ),
        an_offer(
            platform="cluster",
            start=NOW + timedelta(hours=2),
            terms=TermsView(kind="predicted", p10=NOW + timedelta(hours=1), p90=NOW + timedelta(hours=5), samples=3),
        ),
    ]
    assert drawn(asking.draw_offers(offers, NOW)) == snapshot("""\
OFFER     WHERE    START                         TIME    CORES  MEMORY  GPUS  PRICE    TERMS      WHY
3f2a91c0  here     now                           10 min  2      2 GiB   -     -        booked     earliest
3f2a91c0  here     tomorrow 09:00 (in 1 d)       10 min  4      2 GiB   1     1.2 EUR  booked     cheapest
3f2a91c0  cluster  today 11:00 (10:00 to 14:00)  10 min  2      2 GiB   -     -        predicted  earliest\
""")


def test_a_no_names_each_reason_and_the_nearest_yes() -> None:
    reason = ReasonView(
        kind="urn:resource-limit",
        field="compute.cores.min",
        message="The largest node has 2 cores; 100 was asked for.",
        wanted="100",
        limit="2",
        nearest="2 cores",
        platform="here",
    )
    assert drawn(asking.describe_no([reason], NOW)) == snapshot("""\
NO
  here: The largest node has 2 cores; 100 was asked for.
    field compute.cores.min, wanted 100, limit 2
    possible: 2 cores\
""")


def test_sessions_are_drawn_as_a_table() -> None:
    ended = {"started": NOW, "ended": NOW + timedelta(seconds=90)}
    views = [
        a_session(),
        a_session(phase="WAITING", started=None, start=NOW + timedelta(hours=2), nodes=("n1", "n2"), gpus=1),
        a_session(phase="FAILED", name="command", end=an_end(code=7, sentence="It exited with code 7."), **ended),
        a_session(phase="COMPLETED", end=an_end(code=0), **ended),
        a_session(phase="OFFERED", start=None, started=None),
        a_session(phase="PREPARING", started=None, condition="bringing cube (40 %)"),
    ]
    assert drawn(sessions.draw_sessions(views, NOW + timedelta(minutes=3))) == snapshot("""\
ID        NAME  KIND     PHASE      WHERE  CORES  MEMORY  GPUS  TIME                        NOTE
3f2a91c0  fit   command  RUNNING    here   2      2 GiB   -     for 3 min, 57 min left
3f2a91c0  fit   command  WAITING    here   2×2    2 GiB   1     starts in 1 h 57 min
3f2a91c0  -     command  FAILED     here   2      2 GiB   -     took 1 min 30 s, 1 min ago  exit code 7
3f2a91c0  fit   command  COMPLETED  here   2      2 GiB   -     took 1 min 30 s, 1 min ago
3f2a91c0  fit   command  OFFERED    here   2      2 GiB   -     held, expires in 2 min
3f2a91c0  fit   command  PREPARING  here   2      2 GiB   -     due 3 min ago               bringing cube (40 %)\
""")


def test_a_session_is_drawn_in_full() -> None:
    view = a_session(
        phase="AVAILABLE",
        kind="interactive",
        connectors=(
            ConnectorView(kind="uri:shell", status="AVAILABLE", protocol="ws", location="http://x/connect/y/"),
        ),
        page="http://x/web/sessions/y",
        costs=(QuoteView(type=MONEY, min=1.2, max=1.2, description="in EUR"),),
    )
    assert drawn(sessions.describe_session(view, NOW + timedelta(minutes=3))) == snapshot("""\
session  3f2a91c0-0000-4000-8000-000000000001
name     fit
phase    AVAILABLE
kind     interactive, run by exec
where    here, n1
has      2 cores, 2 GiB for 1 h
terms    booked
costs    1.2 EUR
started  today 09:00 (3 min ago)
until    today 10:00 (in 57 min)
page     http://x/web/sessions/y
person   ada

The shell is ready. Type sublet attach 3f2a91c0, or open this in a browser:
http://x/connect/y/\
""")


def test_ps_in_three_manners(type_in: Type, canned: Serve) -> None:
    now = datetime.now(NOW.tzinfo)
    fresh = a_session(phase="FAILED", ended=now, started=now, end=an_end(code=1))
    old = a_session(phase="FAILED", ended=now - timedelta(days=3), id="old", short="old")
    service = canned({"GET /v1/sessions": Said(SessionPage(items=(fresh, old)))})
    assert type_in("ps").out.splitlines()[1].startswith("3f2a91c0  fit   command  FAILED")
    assert type_in("ps", "--quiet").out == "3f2a91c0\n"
    assert [item["id"] for item in json.loads(type_in("--json", "ps").out)["items"]] == [ID]
    assert json.loads(type_in("ps", "--json", "--all").out)["items"][1]["id"] == "old"
    assert "phase=RUNNING&" in service.heard[0].target
    assert "phase=OFFERED" not in service.heard[0].target


def test_an_empty_list_is_empty_on_stdout(type_in: Type, canned: Serve) -> None:
    me = Said(WhoView(person="me", mode="personal", operator=True))
    canned({"GET /v1/sessions": Said(SessionPage(items=())), "GET /v1/whoami": me})
    typed = type_in("ps")
    assert (typed.code, typed.out) == (0, "")
    assert "ps --all" in typed.err
    assert "--everyone" not in typed.err, "nobody else is here"


def test_the_other_commands_draw_what_they_are_told(type_in: Type, canned: Serve) -> None:
    node = NodeView(name="n1", cores=2, memory=4 * 1024**3)
    here = PlatformView(name="here", kind="local", terms="booked", nodes=(node,), tools={"sh": "/bin/sh"})
    canned(
        {
            f"POST /v1/sessions/{ID}/accept": Said(a_session()),
            f"POST /v1/sessions/{ID}/reject": Said(a_session(phase="REJECTED")),
            f"POST /v1/sessions/{ID}/cancel": Said(a_session(phase="CANCELLED")),
            f"POST /v1/sessions/{ID}/extend": Said(a_session()),
            f"POST /v1/sessions/{ID}/pause": Said(PauseView(session=a_session(), how="held in the queue")),
            f"POST /v1/sessions/{ID}/resume": Said(PauseView(session=a_session(), how="released in the queue")),
            f"DELETE /v1/sessions/{ID}": Said(b"", 204),
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/explain": Said(Explanation(session=ID, phase="RUNNING", sentences=("It runs.",))),
            f"GET /v1/sessions/{ID}/results": Said(ResultList(items=(ResultFileView(path="o", size=3, modified=NOW),))),
            f"GET /v1/sessions/{ID}/results/o": Said(b"abc"),
            f"GET /v1/sessions/{ID}/archive": Said([b"tar"]),
            "GET /v1/platforms": Said(PlatformList(items=(here,))),
            "GET /v1/platforms/here": Said(here),
            "POST /v1/platforms/here/check": Said(CheckList(items=(CheckView(rule="r", ok=False, detail="d"),))),
            "POST /v1/tokens": Said(TokenView(id="77", person="ada", created=NOW, token="secret")),
            "GET /v1/events": [
                Said(
                    EventPage(
                        items=(
                            EventView(
                                id=1,
                                time=datetime(2024, 2, 29, 9, tzinfo=NOW.tzinfo),
                                session=ID,
                                person="a",
                                kind="session.accepted",
                            ),
                        )
                    )
                ),
                Said(EventPage(items=())),
            ],
        }
    )
    assert type_in("accept", ID).out.startswith("3f2a91c0 is accepted: on here, ")
    assert type_in("reject", ID).out == "3f2a91c0 is rejected.\n"
    assert type_in("cancel", ID).out == "3f2a91c0 is cancelled.\n"
    assert type_in("pause", ID).out == "3f2a91c0 is paused: held in the queue.\n"
    assert type_in("resume", ID).out == "3f2a91c0 goes on: released in the queue.\n"
    assert type_in("resume", ID, "-q").out == "3f2a91c0\n"
    assert type_in("extend", ID, "30m").out.startswith("3f2a91c0 has until ")
    assert type_in("delete", ID).out == f"{ID} is deleted.\n"
    assert type_in("status", ID, "-q").out == "RUNNING\n"
    assert type_in("explain", ID).out == "3f2a91c0 is RUNNING.\nIt runs.\n"
    assert type_in("result", ID, "-q").out == "o\n"
    assert type_in("result", ID, "o").out == "abc"
    assert type_in("result", ID, "--out", "there", "-q").out == "there/o\n"
    assert Path("there/o").read_bytes() == b"abc"
    assert type_in("result", ID, "--archive", "all.tar.gz").code == 0
    assert Path("all.tar.gz").read_bytes() == b"tar"
    assert type_in("platform", "list", "-q").out == "here\n"
    assert "n1: 2 cores, 4 GiB" in type_in("platform", "show", "here").out
    assert type_in("platform", "check", "here").code == 1
    assert type_in("token").out == "secret\n"
    assert type_in("events").out == "2024-02-29 09:00:00  3f2a91c0  session.accepted\n"


def test_a_path_that_leads_out_is_not_fetched(type_in: Type, canned: Serve) -> None:
    evil = ResultList(items=(ResultFileView(path="../evil", size=3, modified=NOW),))
    canned({f"GET /v1/sessions/{ID}/results": Said(evil)})
    typed = type_in("result", ID, "--out", "there")
    assert (typed.code, typed.out) == (1, "")
    assert "outside" in typed.err


def test_results_are_chosen_and_their_sizes_told_before_anything_is_fetched(type_in: Type, canned: Serve) -> None:
    files = [ResultFileView(path=path, size=1536, modified=NOW) for path in ("a.csv", "plots/b.png", "plots/c.png")]
    service = canned({f"GET /v1/sessions/{ID}/results": Said(ResultList(items=tuple(files)))})
    typed = type_in("result", ID, "plots", "--list")
    assert [line.split()[0] for line in typed.out.splitlines()] == ["FILE", "plots/b.png", "plots/c.png"]
    assert typed.err == f"2 files, 3 KiB. Fetch with: sublet result get {ID} plots --out DIR\n"
    assert type_in("result", ID, "*.tar", "--list").code == 1
    assert {heard.target for heard in service.heard} == {f"/v1/sessions/{ID}/results"}


def test_a_provisioner_is_json_too(type_in: Type) -> None:
    assert json.loads(type_in("dag", "provisioner", "example", "--json").out)["submit"].endswith("queue\n")


def test_more_sessions_than_one_call_has_are_asked_for_in_turn(canned: Serve, type_in: Type) -> None:
    first, second = (
        Said(SessionPage(items=(a_session(),) * n, next=next)) for n, next in ((1000, "1.x"), (500, "2.y"))
    )
    service = canned({"GET /v1/sessions": [first, second]})
    typed = type_in("ps", "--all", "--limit", "1500", "--quiet")
    assert len(typed.out.splitlines()) == 1500
    assert [("limit=1000" in heard.target, "after=1.x" in heard.target) for heard in service.heard] == [
        (True, False),
        (False, True),
    ]
    assert "There are more: add --limit 3000." in type_in("ps", "--all", "--limit", "1500").err


@pytest.fixture
def in_kolkata(in_utc: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_kolkata")
@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Running since 2026-11-16 16:32:21 UTC (6 s ago).", "Running since today 22:02 (6 s ago)."),
        ("it was booked until 2026-11-16T20:28:09Z.", "it was booked until tomorrow 01:58."),
        ("it could start at 2026-11-16T16:40:00Z without it", "it could start today at 22:10 without it"),
        ("It failed at 2026-11-16 20:00:00 UTC (4 h ago).", "It failed tomorrow at 01:30 (4 h ago)."),
        ("planned to end at 2026-12-24T08:00:00Z: too late", "planned to end on Thu 24 Dec at 13:30: too late"),
        ("what 2026-11-16 16:40 UTC is", "what today 22:10 is"),
        ("closed at 2026-13-45 99:00 UTC", "closed at 2026-13-45 99:00 UTC"),
        ("from 2026-11-16 20:00 to 2026-11-16 22:00 UTC", "from tomorrow 01:30 to tomorrow 03:30"),
        (
            "2026-11-16T20:28:09Z.csv in run-2026-11-16T20:28:09Z",
            "2026-11-16T20:28:09Z.csv in run-2026-11-16T20:28:09Z",
        ),
    ],
)
def test_sentences_name_times_by_the_clock_of_the_person(told: str, shown: str) -> None:
    assert with_local_times(told, datetime(2026, 11, 16, 16, 32, tzinfo=UTC)) == shown


@pytest.mark.usefixtures("in_kolkata")
def test_every_table_note_and_error_names_times_by_the_clock_of_the_person(capsys: pytest.CaptureFixture[str]) -> None:
    told = "here is being drained by its operator until 2020-01-02 03:04 UTC"
    out = Output()
    out.note(told)
    out.show(
        None, lambda: [told, *table(("STATE", "FILE"), [(told, "2020-01-02T03:04Z")]), *pairs([("why", told)])], list
    )
    Problem.from_error(PlatformDraining(why=told)).show(as_json=False)
    shown = "".join(capsys.readouterr())
    assert shown.count("until Thu 2 Jan 2020 08:34") == 5
    assert "2020-01-02T03:04Z" in shown, "names are left alone"
    Output(json=True).show({"why": told}, list, list)
    assert told in capsys.readouterr().out, "JSON has what the service said"


@pytest.mark.usefixtures("in_kolkata")
def test_days_and_times_that_are_typed_are_meant_by_the_clock_of_the_person() -> None:
    assert read_past("2026-11-01") == "2026-10-31T18:30:00Z"
    assert read_past("today") == read_past(f"{datetime.now():%Y-%m-%d}")
    assert read_past("yesterday") == read_past(f"{datetime.now() - timedelta(days=1):%Y-%m-%d}")
    assert read_coming("2026-12-01T18:00") == "2026-12-01T12:30:00Z"
    assert read_coming("2026-12-01T18:00Z") == "2026-12-01T18:00:00Z"


def test_what_is_shown_for_a_time_that_can_not_be_read_can_be_typed(type_in: Type, canned: Serve) -> None:
    canned({})
    typed = type_in("ps", "--since", "lately")
    assert (typed.code, "Write 2026-11-01, '2026-11-01 12:00' or 7d." in typed.err) == (2, True), typed.err
    assert read_past("2026-11-01 12:00")


def test_a_phase_that_there_is_not_is_told_with_the_nearest(type_in: Type, canned: Serve) -> None:
    service = canned({})
    typed = type_in("ps", "--phase", "failled")
    assert (typed.code, "There is no phase failled." in typed.err) == (2, True), typed.err
    assert "hint: Did you mean FAILED?" in typed.err
    assert service.heard == []


@pytest.mark.usefixtures("in_kolkata")
def test_why_an_offer_was_made_names_its_start_by_the_clock_of_the_person() -> None:
    now, start = datetime(2026, 11, 16, 16, 30, tzinfo=UTC), datetime(2026, 11, 16, 18, 15, tzinfo=UTC)
    assert with_local_start("18:15 on Monday 16 November, UTC, cheapest", start, now) == "today 23:45, cheapest"


@pytest.mark.parametrize(
    ("end", "note"),
    [
        (EndView(kind="exited", code=3, sentence="It exited with code 3."), "exit code 3"),
        (EndView(kind="cancelled", by="ann", sentence="It was cancelled by ann."), "by ann"),
        (EndView(kind="cancelled", by="ann", detail="disks", sentence="Cancelled by ann: disks."), ""),
    ],
)
def test_an_end_is_told_in_a_few_words_where_they_say_all_of_it(end: EndView, note: str) -> None:
    assert sessions.describe_end_briefly(end) == note
