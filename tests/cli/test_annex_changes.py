"""How an annex is changed and ended on the command line: nodes given back, drains, sharing, history, templates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sublet.annexes.cli.templates import type_details
from sublet.annexes.cli.texts import describe_annex
from sublet.annexes.views.annexes import (
    DetailsView,
    TemplateList,
    TemplateView,
)
from sublet.booking.views.events import EventView
from tests.canned import NOW, Heard, Said
from tests.cli.conftest import Serve, Type
from tests.cli.test_annexes import ANNEX, ENDED, HOUR, NODE, QUEUED, UP, lines, past

pytestmark = pytest.mark.anyio


def test_ends_and_changes_are_told(type_in: Type, canned: Serve) -> None:
    service = canned(
        {
            "POST /v1/annexes/example/shutdown": Said(replace(ANNEX, leases=(ENDED,))),
            "POST /v1/annexes/example%232/cancel": Said(replace(ANNEX, leases=(replace(QUEUED, state="ending"),))),
            "POST /v1/annexes/example/rename": Said(replace(ANNEX, name="better")),
            "POST /v1/annexes/example/open": Said(replace(ANNEX, open=True)),
            "POST /v1/annexes/example/close": Said(ANNEX),
            "POST /v1/annexes/example/unshare": Said(replace(ANNEX, guests=())),
        }
    )
    said = [
        type_in("annex", *words.split()).out
        for words in (
            *("shutdown example", "cancel example#2", "rename example better", "open example", "close example"),
            "unshare example bob",
        )
    ]
    assert said == [
        "example#1 has ended.\n",
        "example#2 is ending: waits for priority.\n",
        "example is called better now.\n",
        "example runs all your jobs.\n",
        "example runs only your jobs that name it.\n",
        "example is not shared with anyone.\n",
    ]
    assert json.loads(service.heard[-1].body) == {"guest": "bob"}


def test_some_nodes_of_a_lease_are_given_back(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/annexes/example%231/shutdown": Said(replace(ANNEX, leases=(UP,)))})
    assert type_in("annex", "shutdown", "example#1", "--node", "1").out == "Given back of example#1: 1.\n"
    assert json.loads(service.heard[-1].body) == {"nodes": [1]}


def test_what_is_drained_is_told_with_how_it_is_undone(type_in: Type, canned: Serve) -> None:
    one, other = replace(NODE, draining=True), replace(NODE, number=1, node="exp-1-02")
    service = canned(
        {
            "POST /v1/annexes/example%231/drain": Said(replace(ANNEX, leases=(replace(UP, nodes=(one, other)),))),
            "POST /v1/annexes/example/drain": Said(replace(ANNEX, leases=(replace(UP, nodes=(one,)),))),
            "POST /v1/annexes/example/undrain": Said(replace(ANNEX, leases=(replace(UP, nodes=(other,)),))),
        }
    )
    typed = type_in("annex", "drain", "example#1", "--node", "exp-1-01")
    assert typed.out == "Of example#1 exp-1-01 takes no new jobs.\n"
    assert "sublet annex undrain example#1 --node exp-1-01" in typed.err
    assert json.loads(service.heard[-1].body) == {"nodes": ["exp-1-01"]}
    assert type_in("annex", "drain", "example").out == (
        "example#1 takes no new jobs, and ends when its running jobs are done.\n"
    )
    assert type_in("annex", "undrain", "example").out == "example#1 takes new jobs on 1 node.\n"
    assert " draining " in lines(list(describe_annex(replace(ANNEX, leases=(replace(UP, nodes=(one,)),)), NOW)))


def test_sharing_says_plainly_what_it_means_and_wants_a_yes(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/annexes/example/share": Said(ANNEX)})
    typed = type_in("annex", "share", "example", "bob")
    assert (typed.code, typed.out) == (1, "")
    assert "run as your own account, in containers only" in typed.err
    assert not service.heard
    assert type_in("annex", "share", "example", "bob", "--yes").out == "example is shared with bob.\n"


def test_history_and_what_happened(type_in: Type, canned: Serve) -> None:
    event = EventView(id=1, time=NOW, session="l1", person="ada", kind="lease.asked", detail="example#1", phase="")
    canned({"GET /v1/annexes/example/history": past(ENDED, events=(event,))})
    assert "lease.asked" not in type_in("annex", "history", "example").out
    assert "lease.asked" in type_in("annex", "history", "example", "--events").out
    assert type_in("annex", "history", "example", "-q").out == "example#1\n"


def test_the_logs_of_the_last_lease_are_shown(type_in: Type, canned: Serve) -> None:
    said = {"stderr": b"pilot: it was idle\n", "stdout": b"0 StartLog: up\n"}

    def log(heard: Heard) -> Said:
        stream = "stdout" if "stream=stdout" in heard.target else "stderr"
        return Said(said[stream] if "offset=" not in heard.target else b"")

    canned({"GET /v1/annexes/example/history": past(ENDED, QUEUED), "GET /v1/sessions/s2/logs": log})
    assert type_in("annex", "logs", "example").out == "pilot: it was idle\n"
    assert type_in("annex", "logs", "example", "--htcondor").out == "0 StartLog: up\n"
    assert json.loads(type_in("annex", "logs", "example", "--json").out)["lease"] == "example#2"


def test_templates_are_saved_listed_shown_and_removed(type_in: Type, canned: Serve) -> None:
    kept = TemplateView(name="big", details=DetailsView(nodes=8, lifetime=4 * HOUR), changed=NOW)
    service = canned(
        {
            "PUT /v1/templates/big": Said(kept),
            "GET /v1/templates": Said(TemplateList(items=(kept,))),
            "GET /v1/templates/big": Said(kept),
            "DELETE /v1/templates/big": Said(b"", 204),
            "GET /v1/annexes/example%231/history": past(ENDED),
        }
    )
    typed = type_in("annex", "template", "save", "big", "--from", "example#1", "--nodes", "8")
    assert typed.out == "The template big is kept.\nnodes     8\nlifetime  4 h\n"
    sent = json.loads(service.heard[-1].body)
    assert (sent["nodes"], sent["cores"], sent["system"]) == (8, 128, "expanse")
    assert "big       --nodes 8 --lifetime 4h" in type_in("annex", "template", "list").out
    assert type_in("annex", "template", "show", "big").out == "nodes     8\nlifetime  4 h\n"
    asked = DetailsView(nodes=1, scheduler={"nice": 5, "exclusive": True, "options": {"switches": "1"}})
    assert type_details(asked) == "--nodes 1 --nice 5 --exclusive --option switches=1"
    assert type_in("annex", "template", "remove", "big").out == "big is removed.\n"
