"""`sublet annex`: what is shown before anything is sent, what is asked, and how leases and nodes are drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from inline_snapshot import snapshot

from sublet.annexes.cli import status as annex_status
from sublet.annexes.cli.details import read_details
from sublet.annexes.cli.texts import costs, describe_annex, describe_leases, describe_plan, overview
from sublet.annexes.views.annexes import (
    AnnexHistory,
    AnnexList,
    AnnexView,
    CostView,
    DetailsView,
    JobsView,
    LeaseView,
    NodeStateView,
    PlanView,
    RowView,
)
from sublet.booking.views.events import EventView
from tests.canned import NOW, Canned, Said
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SOME = DetailsView(system="expanse", queue="compute", project="abc123", nodes=2, cores=128, lifetime=4 * HOUR)
COST = CostView(node_hours=8, core_hours=1024, gpu_hours=0, charged=1024, coin="SU")
ROWS = (
    RowView(field="system", value="expanse", source="you", flag="--system", state="ok"),
    RowView(field="nodes", value="2", source="last time: example#1", flag="--nodes", state="ok", limit="up to 32"),
    RowView(field="lifetime", value="4 h", source="default", flag="--lifetime", state="ok", limit="up to 2 d"),
)
PLAN = PlanView(annex="example", lease="example#2", refused=False, details=SOME, rows=ROWS, cost=COST)
NO = replace(
    ROWS[1],
    value="99",
    state="error",
    message="compute takes jobs of 32 nodes at most.",
    nearest="--nodes 32",
)
REFUSED = replace(PLAN, refused=True, rows=(ROWS[0], NO, ROWS[2]))
QUEUED = LeaseView(
    id="l2",
    name="example#2",
    number=2,
    state="queued",
    why="waits for priority",
    details=SOME,
    created=NOW - MINUTE,
    session="s2",
    job="s2",
    phase="PREPARING",
    queue="compute",
    p10=NOW + 5 * MINUTE,
    p50=NOW + 20 * MINUTE,
    p90=NOW + HOUR,
    cost=CostView(node_hours=0, core_hours=0, gpu_hours=0, charged=0, coin="SU"),
)
NODE = NodeStateView(
    number=0, node="exp-1-01", state="up", cores=128, busy=96, running=3, memory=256 << 30, heard=NOW - 2 * MINUTE / 60
)
DEAD = NodeStateView(number=1, node="exp-1-02", state="dead", heard=NOW - MINUTE, why="it has not reported for 1 min")
UP = replace(
    QUEUED,
    id="l1",
    name="example#1",
    number=1,
    state="up",
    why="",
    phase="RUNNING",
    started=NOW - HOUR,
    until=NOW + 3 * HOUR,
    nodes=(NODE, DEAD),
    cost=CostView(node_hours=2, core_hours=256, gpu_hours=0, charged=256, coin="SU"),
    **dict.fromkeys(("p10", "p50", "p90")),
)
ENDED = replace(UP, state="ended", ended=NOW - MINUTE, why="It was cancelled by ada.", nodes=())
ANNEX = AnnexView(
    id="a",
    name="example",
    person="ada",
    created=NOW,
    leases=(UP, QUEUED),
    guests=("bob",),
    jobs=JobsView(idle=7, running=3),
)


def lines(text: list[str]) -> str:
    return "\n".join(text)


def test_a_whole_request_is_shown_with_sources_flags_limits_and_cost() -> None:
    assert lines(describe_plan(PLAN)) == snapshot("""\
    WHAT      example#2  FROM                  LIMIT      CHANGED BY
ok  system    expanse    you                   -          --system
ok  nodes     2          last time: example#1  up to 32   --nodes
ok  lifetime  4 h        default               up to 2 d  --lifetime

For its whole lifetime it costs 8 node-hours, 1024 core-hours: 1024 SU of abc123.\
""")


def test_what_would_be_refused_is_said_with_what_is_possible() -> None:
    assert lines(describe_plan(REFUSED)) == snapshot("""\
    WHAT      example#2  FROM                  LIMIT      CHANGED BY
ok  system    expanse    you                   -          --system
NO  nodes     99         last time: example#1  up to 32   --nodes
ok  lifetime  4 h        default               up to 2 d  --lifetime

NO: nodes: compute takes jobs of 32 nodes at most.
    possible: --nodes 32

For its whole lifetime it costs 8 node-hours, 1024 core-hours: 1024 SU of abc123.
It would be refused.\
""")


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (COST, "8 node-hours, 1024 core-hours: 1024 SU of abc"),
        (CostView(node_hours=0.25), "0.25 node-hours"),
        (CostView(node_hours=0), "nothing yet"),
        (
            CostView(node_hours=2, gpu_hours=8, remark="1 share of a node-hour"),
            "2 node-hours, 8 GPU-hours (1 share of a node-hour)",
        ),
    ],
)
def test_a_cost_is_told_in_hours_and_in_the_centres_coin(cost: CostView, text: str) -> None:
    assert costs(cost, "abc") == text


def test_all_annexes_are_a_line_each() -> None:
    empty = replace(ANNEX, name="other", leases=(), guests=(), open=True, jobs=None)
    assert lines(overview([ANNEX, empty], NOW)) == snapshot("""\
ANNEX    STATE       NODES   CORES BUSY  JOBS           LEFT  COST    OPEN TO
example  up, queued  1 of 4  96 of 128   3 run, 7 wait  3 h   256 SU  bob
other    no leases   -       -           -              -     -       all your jobs\
""")


def test_one_annex_is_shown_with_its_leases_and_nodes() -> None:
    assert lines(list(describe_annex(ANNEX, NOW))) == snapshot("""\
example: for your jobs that name it, and contained jobs of bob
jobs that name it: 3 run, 7 wait

example#1 on expanse/compute: up for 1 h, 3 h left
  has cost 2 node-hours, 256 core-hours: 256 SU of abc123
  NODE  NAME      STATE  CORES BUSY  JOBS  MEMORY   HEARD      WHY
  0     exp-1-01  up     96 of 128   3     256 GiB  now
  1     exp-1-02  dead   -           -     -        1 min ago  it has not reported for 1 min

example#2 on expanse/compute: queued, asked for 1 min ago
  waits for priority
  expected today 09:20 (in 20 min), between today 09:05 and today 10:00\
""")


def test_an_annex_without_leases_says_so() -> None:
    empty = replace(ANNEX, leases=(), guests=(), jobs=None, trouble="there is no access point yet: sublet annex setup")
    assert lines(list(describe_annex(empty, NOW))) == snapshot("""\
example: for your jobs that name it
note: there is no access point yet: sublet annex setup
It has no lease now. `sublet annex history example` lists its past leases.\
""")


def test_history_tells_how_each_lease_ended() -> None:
    assert lines(describe_leases([ENDED, QUEUED], NOW)) == snapshot("""\
LEASE      ASKED FOR    STATE   WHERE            NODES    LASTED  COST    WHY
example#1  today 08:59  ended   expanse/compute  2 nodes  59 min  256 SU  It was cancelled by ada.
example#2  today 08:59  queued  expanse/compute  2 nodes  -       -       waits for priority\
""")


def past(*leases: LeaseView, events: tuple[EventView, ...] = ()) -> Said:
    return Said(AnnexHistory(annex=replace(ANNEX, leases=leases), events=events))


def served(canned: Serve, **more: Any) -> Canned:
    return canned(
        {
            "POST /v1/annexes/example/plan": Said(PLAN),
            "POST /v1/annexes": Said(replace(QUEUED, job=""), 201),
            "GET /v1/annexes/example%232": Said(replace(ANNEX, leases=(QUEUED,))),
            **more,
        }
    )


def test_a_dry_run_sends_nothing(type_in: Type, canned: Serve) -> None:
    service = served(canned)
    typed = type_in("annex", "create", "example", "--nodes", "2", "--memory", "8GiB", "--dry-run")
    assert (typed.code, typed.out) == (0, lines(describe_plan(PLAN)) + "\n")
    [asked] = [json.loads(heard.body) for heard in service.heard]
    assert (asked["details"]["nodes"], asked["details"]["memory"]) == (2, 8 << 30)


def test_what_would_be_refused_is_never_sent(type_in: Type, canned: Serve) -> None:
    service = served(canned, **{"POST /v1/annexes/example/plan": Said(REFUSED)})
    assert type_in("annex", "create", "example", "--dry-run").code == 1
    typed = type_in("annex", "create", "example", "--yes")
    assert (typed.code, typed.out) == (1, "")
    assert typed.err.splitlines()[-3:] == [
        "error: The resource request is refused: compute takes jobs of 32 nodes at most.",
        "",
        "hint: Possible: --nodes 32.",
    ]
    assert [heard.target for heard in service.heard] == ["/v1/annexes/example/plan"] * 2


def test_it_is_sent_when_someone_agreed_and_waited_for_until_it_is_queued(type_in: Type, canned: Serve) -> None:
    service = served(canned)
    refused = type_in("annex", "create", "example")
    assert (refused.code, refused.err.splitlines()[-1]) == (1, "hint: Confirm with --yes.")
    typed = type_in("annex", "create", "example", "--yes")
    assert (typed.code, typed.out) == (0, "example#2 is in the queue.\n")
    assert typed.err.startswith(lines(describe_plan(PLAN)))
    sent = json.loads(next(heard.body for heard in service.heard if heard.target == "/v1/annexes"))
    assert sent["details"]["lifetime"] == "PT4H"  # all of it, as it was shown
    quiet = type_in("annex", "create", "example", "--yes", "--quiet")
    assert (quiet.out, quiet.err) == ("example#2\n", "")


def test_waiting_lasts_until_all_nodes_have_reported(type_in: Type, canned: Serve) -> None:
    up = replace(UP, name="example#2", nodes=(NODE, replace(NODE, number=1)))
    views = [Said(replace(ANNEX, leases=(one,))) for one in (QUEUED, replace(up, nodes=(NODE,)), up)]
    served(canned, **{"GET /v1/annexes/example%232": views})
    typed = type_in("annex", "create", "example", "--yes", "--wait")
    assert (typed.code, typed.out, len(views)) == (0, "example#2 is up.\n", 1)


def test_a_request_that_ends_before_it_is_queued_is_an_error(type_in: Type, canned: Serve) -> None:
    served(canned, **{"GET /v1/annexes/example%232": Said(replace(ANNEX, leases=(replace(ENDED, job=""),)))})
    typed = type_in("annex", "create", "example", "--yes")
    assert typed.code == 1
    assert "error: The resource request is refused: It was cancelled by ada." in typed.err


def test_more_is_added_and_another_is_cloned(type_in: Type, canned: Serve) -> None:
    clone = {"POST /v1/annexes/copy/plan": Said(PLAN), "POST /v1/annexes/example/leases": Said(QUEUED, 201)}
    service = served(canned, **clone)
    assert type_in("annex", "add", "example", "--nodes", "4", "--yes", "--key", "mine").code == 0
    assert [heard.headers.get("Idempotency-Key") for heard in service.heard if heard.target.endswith("/leases")] == [
        "mine"
    ]
    assert type_in("annex", "clone", "example#1", "copy", "--yes").code == 0
    asked = [json.loads(heard.body) for heard in service.heard if heard.target.endswith("/plan")]
    assert [(one["name"], one["like"], one["details"]["nodes"]) for one in asked] == [
        ("example", "", 4),
        ("copy", "example#1", None),
    ]


def test_the_scheduler_is_asked_by_the_flags_that_requests_have() -> None:
    given = {"nodes": "2", "queue": "short", "nice": "5", "exclusive": True, "options": ("switches=1", "contiguous")}
    assert read_details(dict(given)) == DetailsView(
        nodes=2,
        queue="short",
        scheduler={"nice": 5, "exclusive": True, "options": {"switches": "1", "contiguous": True}},
    )


def test_amounts_that_are_none_are_told(type_in: Type) -> None:
    typed = type_in("annex", "create", "example", "--lifetime", "soon")
    assert (typed.code, typed.err.splitlines()[0]) == (2, "error: soon is not a length of time.")


def test_status_is_drawn_for_people_programs_and_scripts(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/annexes": Said(AnnexList(items=(ANNEX,))), "GET /v1/annexes/example": Said(ANNEX)})
    assert type_in("annex", "status").out.splitlines()[1].startswith("example  up, queued  1 of 4")
    assert type_in("annex", "status", "example", "-q").out == "example#1 up\nexample#2 queued\n"
    assert json.loads(type_in("annex", "status", "example", "--json").out)["leases"][0]["nodes"][1]["state"] == "dead"


def test_watching_draws_again(type_in: Type, canned: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    canned({"GET /v1/annexes/example": Said(ANNEX)})
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(annex_status.time, "sleep", nap)
    typed = type_in("annex", "status", "example", "--watch", "-q")
    assert (typed.code, typed.out) == (130, "example#1 up\nexample#2 queued\n" * 3)
