"""`sublet system probe`, and the track record in `sublet system show`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from sublet.booking.views.systems import DifferenceView, LiveNodeView, LiveQueueView, ProbeView, RecordView, TrackView
from tests.canned import NOW, Canned, Said
from tests.cli.conftest import Type

GIB = 1 << 30
NODE = LiveNodeView(name="128c-503g", cores=128, memory=503 * GIB, count=700)
PROBED = ProbeView(
    system="expanse",
    as_of=NOW,
    version="23.02.7",
    default_queue="compute",
    accounts=("abc",),
    tools={},
    queues=(
        LiveQueueView(name="compute", sharing="whole", nodes=(NODE,), max_nodes=16, max_time=timedelta(days=1)),
        LiveQueueView(name="shared", sharing="shared", nodes=(NODE,), per_user={"running": 4}),
    ),
    differences=(
        DifferenceView(subject="queue compute", what="most nodes", known="32", live="16", state="different"),
        DifferenceView(
            subject="queue compute",
            what="memory of a node",
            known="256GiB",
            live="503GiB",
            state="different",
            nodes_of="compute",
        ),
        DifferenceView(subject="queue compute", what="sharing", known="whole", live="whole", state="same"),
        DifferenceView(subject="tool apptainer", what="tool", known="", live="not there", state="unknown"),
    ),
)
RECORD = RecordView(
    system="expanse",
    days=90,
    enough=20,
    items=(
        TrackView(
            queue="compute",
            size="1 node",
            samples=31,
            p10=-timedelta(hours=2),
            p50=timedelta(0),
            p90=timedelta(hours=3),
        ),
        TrackView(queue="shared", size="1 node, up to 8 cores", samples=3),
    ),
)
ANSWERS = {"POST /v1/systems/expanse/probe": Said(PROBED), "GET /v1/systems/expanse/record": Said(RECORD)}


@pytest.fixture
def own(type_in: Type, canned: Callable[[Any], Canned], tmp_path: Path) -> Path:
    """The file of a system of one's own, whose service answers."""
    canned(ANSWERS)
    assert type_in("system", "add", "expanse", "--user", "alice").code == 0
    return tmp_path / "home" / "systems" / "expanse.yaml"


def test_a_probe_shows_what_differs_and_counts_the_rest(type_in: Type, own: Path) -> None:
    assert type_in("system", "probe", "expanse").out == snapshot("""\
OF              WHAT              KNOWN   LIVE
queue compute   most nodes        32      16         differs
queue compute   memory of a node  256GiB  503GiB     differs
tool apptainer  tool              -       not there  not known

2 differ, 1 not known on one side, 1 the same (--all shows them).
""")
    assert "sharing" in type_in("system", "probe", "expanse", "--all").out
    assert type_in("system", "probe", "expanse", "-q").out == (
        "queue compute: most nodes\nqueue compute: memory of a node\n"
    )
    assert json.loads(type_in("system", "probe", "expanse", "--json").out)["queues"][0]["max_time"] == "P1D"


def test_what_is_saved_counts_in_checks_and_the_rest_of_the_file_stays(type_in: Type, own: Path) -> None:
    own.write_text("# my own\n" + own.read_text() + "# the end\n")
    before = own.read_text()
    wish = ("--queue", "compute", "--nodes", "20", "--time", "1h", "--project", "abc")
    assert type_in("system", "check", "expanse", *wish).code == 0
    assert type_in("system", "probe", "expanse", "--save").code == 0
    assert own.read_text().startswith(before)
    checked = type_in("system", "check", "expanse", *wish)
    assert checked.code == 1
    assert "from probe of 2026-11-16" in checked.out
    shown = json.loads(type_in("system", "show", "expanse", "--json").out)
    queues = {queue["name"]: queue for queue in shown["queues"]}
    assert (queues["compute"]["max_nodes"], queues["compute"]["nodes"][0]["name"]) == (16, "128c-503g")
    assert queues["shared"]["nodes"][0]["name"] == "cpu", "nodes that are as they were known keep their names"
    assert queues["shared"]["max_time"] == "P2D"
    assert type_in("system", "probe", "expanse", "--save").code == 0, "again"


def test_only_systems_of_ones_own_are_probed(type_in: Type, canned: Callable[[Any], Canned]) -> None:
    canned(ANSWERS)
    refused = type_in("system", "probe", "expanse")
    assert (refused.code, "sublet system add expanse" in refused.err) == (1, True)


def test_a_login_that_is_missing_is_told_as_such(type_in: Type, canned: Callable[[Any], Canned]) -> None:
    type_in("system", "add", "expanse")
    problem = {"code": "login-needed", "detail": "A person must sign in first.", "hint": "sublet system login expanse"}
    canned({"POST /v1/systems/expanse/probe": Said(problem, 409)})
    refused = type_in("system", "probe", "expanse")
    assert (refused.code, "hint: sublet system login expanse" in refused.err) == (4, True)


def test_the_track_record_of_an_own_system_is_shown(type_in: Type, own: Path) -> None:
    shown = type_in("system", "show", "expanse").out
    assert shown[shown.index("\nPredicted") :] == snapshot("""\

Predicted starts, and how much later jobs started in 90 days
  QUEUE    SIZE                   STARTS  P10   P50  P90
  compute  1 node                 31      -2 h  0 s  3 h
  shared   1 node, up to 8 cores  3       -     -    -    no track record: 20 starts make one
""")
    assert json.loads(type_in("system", "show", "expanse", "--json").out)["record"]["items"][0]["p10"] == "-PT2H"


def test_without_a_service_a_system_is_shown_and_none_is_started(type_in: Type, tmp_path: Path) -> None:
    type_in("system", "add", "expanse")
    shown = type_in("system", "show", "expanse")
    assert (shown.code, "Predicted" in shown.out) == (0, False)
    assert not (tmp_path / "home" / "run").exists()
