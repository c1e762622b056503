"""Sessions and offer sets as IVOA documents, without a service behind them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
import yaml
from pydantic_core import to_json

from sublet.api.bodies import to_yaml
from sublet.core.offer import Offer, Quote, Reason, Shape
from sublet.core.request import GIB, Compute, Data, Executable, Range, Request, Storage, Volume
from sublet.core.session import CLIENT_MOVES, Connector, End, EndKind, OfferSet, Phase, Session
from sublet.wire.offersets import offerset_document
from sublet.wire.sessions import LIFECYCLE, reason_message, session_document

BASE = "https://broker.example.org"
ID = "7c1f6b1e-8d43-4b0a-9e55-6a3f0a1d2b3c"
SET = "0f3b2c59-77aa-4a37-8f6f-1f64f9d7a111"
NINE = datetime(2026, 12, 1, 9, tzinfo=UTC)
REQUEST = Request(
    Executable("docker-container", "fit", {"image": {"locations": ["registry.example.org/fit:1"]}}),
    Compute("c", cores=Range(2, 4), memory=Range(4 * GIB, 8 * GIB), volumes=(Volume("v", "/in", "cube"),)),
    storage=(Storage("scratch", Range(10 * GIB, 20 * GIB), ("cube",)),),
    data=(Data("cube", "simple-data-resource", "https://d.example.org/c", "scratch", prepare=timedelta(minutes=10)),),
)
OFFER = Offer(
    platform="here",
    way="podman",
    start=NINE,
    latest_start=NINE + timedelta(minutes=5),
    duration=timedelta(hours=4),
    nodes=("n1",),
    shape=Shape(2, 4 * GIB),
    prepare=timedelta(minutes=11),
    storage={"scratch": 10 * GIB},
    costs=(Quote("urn:ivoa:calycopis:cost:monetary", 0.1, 0.5, "in EUR"),),
    metrics=(Quote("urn:ivoa:calycopis:metric:compute-performance", 150.0, 200.0),),
    why="earliest",
)
OFFERED = Session(ID, SET, "ann", "fit", "docker-container", Phase.OFFERED, OFFER, NINE, NINE, NINE)


def document(session: Session = OFFERED, request: Request = REQUEST) -> dict[str, Any]:
    return session_document(session, request, BASE)


def test_a_session_is_always_a_scheduled_one() -> None:
    assert document()["kind"].endswith("/session/scheduled-execution-session.yaml")


def test_the_start_of_an_offer_is_an_interval_in_which_it_may_slide() -> None:
    assert document()["schedule"] == {
        "preparing": {"start": "2026-12-01T08:49:00Z", "duration": "PT11M"},
        "available": {"start": "2026-12-01T09:00:00Z/PT5M", "duration": "PT4H"},
        "releasing": {"start": "2026-12-01T13:00:00Z", "duration": "PT10S"},
    }


def test_the_start_of_an_accepted_session_no_longer_slides() -> None:
    accepted = replace(OFFERED, phase=Phase.WAITING, start=NINE, until=NINE + timedelta(hours=5))
    available = document(accepted)["schedule"]["available"]
    assert available == {"start": "2026-12-01T09:00:00Z/PT0S", "duration": "PT5H"}


@pytest.mark.parametrize("phase", Phase)
def test_the_options_are_exactly_the_moves_that_its_owner_has(phase: Phase) -> None:
    options = {option["path"]: option for option in document(replace(OFFERED, phase=phase))["meta"]["options"]}
    moves = CLIENT_MOVES.get(phase)
    assert ("phase" in options) == (moves is not None)
    if moves:
        assert options["phase"]["values"] == [move.value for move in moves]


@pytest.mark.parametrize("phase", Phase)
def test_components_have_a_phase_that_ivoa_gives_components(phase: Phase) -> None:
    known = {phase.value for phase in Phase} - {"OFFERED", "ACCEPTED", "REJECTED", "EXPIRED"} | {"INITIALIZING"}
    said = document(replace(OFFERED, phase=phase))
    found = [said[name] for name in ("executable", "compute")] + said["storage"] + said["data"]
    assert {component["phase"] for component in found} <= known
    assert said["executable"]["phase"] == LIFECYCLE[phase]


def test_only_an_offer_expires() -> None:
    assert document()["expires"] == "2026-12-01T09:00:00Z"
    assert "expires" not in document(replace(OFFERED, phase=Phase.RUNNING))


def test_components_keep_their_uuids_and_point_to_one_another_by_them() -> None:
    said = document()
    assert said["compute"]["meta"]["uuid"] == str(uuid5(UUID(ID), "compute/"))
    assert said["compute"]["volumes"][0]["resource"] == said["data"][0]["meta"]["uuid"]
    assert said["data"][0]["storage"] == said["storage"][0]["meta"]["uuid"]
    assert said["storage"][0]["data"] == [said["data"][0]["meta"]["uuid"]]


def test_one_plain_node_is_ivoas_simple_compute_and_anything_more_is_the_extension() -> None:
    assert document()["compute"]["kind"].endswith("simple-compute-resource.yaml")
    gpus = replace(OFFERED, offer=replace(OFFER, shape=Shape(8, 3 * GIB // 2, 2), nodes=("n1", "n2")))
    compute = document(gpus)["compute"]
    assert compute["kind"] == "urn:sublet:kind:compute:node-compute-resource"
    assert (compute["nodes"], compute["gpus"], compute["memory"]) == (
        {"min": 2, "max": 2},
        {"min": 2, "max": 2},
        {"min": 1.5, "max": 1.5},
    )


def test_a_connector_below_the_service_is_given_in_full() -> None:
    connector = Connector("uri:jupyter-lab", "AVAILABLE", "HTTP", f"/connect/{ID}/lab?token=x")
    said = document(replace(OFFERED, phase=Phase.AVAILABLE, connectors=(connector,)))
    assert said["connectors"][0]["location"] == f"{BASE}/connect/{ID}/lab?token=x"


def test_a_session_says_how_it_ended() -> None:
    ended = replace(OFFERED, phase=Phase.FAILED, ended=NINE, end=End(EndKind.EXITED, code=3))
    (said,) = document(ended)["meta"]["messages"]
    assert (said["level"], said["message"]) == ("ERROR", "It exited with code 3.")


def test_a_reason_is_a_message_whose_template_gives_its_sentence() -> None:
    reason = Reason(
        "urn:resource-limit",
        "compute.cores.min",
        "compute.cores.min is 64, but the largest node of here has 16; 16 cores would be possible.",
        wanted="64",
        limit="16",
        nearest="16 cores",
        platform="here",
    )
    said = reason_message(reason, NINE, "WARN")
    filled = said["template"]
    for name, value in said["values"].items():
        filled = filled.replace(f"${{{name}}}", value)
    assert filled == said["message"] == reason.message
    assert said["template"].startswith("${field} is ${wanted}, but the largest node of ${platform} has ${limit};")


def test_yaml_says_the_same_as_json_to_the_oldest_readers_and_repeats_nothing_by_alias() -> None:
    found = OfferSet(SET, "ann", NINE, NINE, "YES", REQUEST, "", "", offers=(OFFERED, OFFERED))
    said = offerset_document(found, BASE)
    text = to_yaml(said).decode()
    assert "result: 'YES'" in text
    assert "&" not in text
    assert yaml.safe_load(text) == json.loads(to_json(said))
