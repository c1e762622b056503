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
from sublet.booking.model.offer import Offer, Predicted, Quote, Reason
from sublet.booking.model.phases import CLIENT_MOVES, Phase
from sublet.booking.model.request import GIB, Compute, Data, Executable, Range, Request, Storage, Volume
from sublet.booking.model.session import Connector, End, EndKind, OfferSet, Session
from sublet.booking.model.shape import Shape
from sublet.booking.model.staging import StagingEstimate, exactly
from sublet.doors.ivoa.offersets import offerset_document
from sublet.doors.ivoa.sessions import LIFECYCLE, reason_message, session_document

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


def test_data_and_storage_have_schedules_and_data_without_storage_gets_one() -> None:
    plain = replace(REQUEST, storage=(), data=(Data("cube", "simple-data-resource", "https://d.example.org/c"),))
    estimate = StagingEstimate(exactly(timedelta(seconds=90)), {"cube": timedelta(seconds=89.5)}, samples=3)
    offer = replace(OFFER, staging=estimate, prepare=timedelta(seconds=90), storage={}, pools={})
    said = document(replace(OFFERED, offer=offer), plain)
    [data], [storage] = said["data"], said["storage"]
    assert data["schedule"]["preparing"] == {"start": "2026-12-01T08:58:30Z", "duration": "PT1M30S"}
    assert {name: data["schedule"][name] for name in ("available", "releasing")} == {
        name: said["schedule"][name] for name in ("available", "releasing")
    }
    assert storage["schedule"] == said["schedule"]
    assert (data["storage"], storage["data"]) == (storage["meta"]["uuid"], [data["meta"]["uuid"]])


def test_disk_and_pools_are_stated_where_there_are_any() -> None:
    assert "disk" not in document()["compute"]
    assert "pool" not in document()["storage"][0]
    offer = replace(OFFER, shape=Shape(2, 4 * GIB, 0, 50 * GIB), pools={"scratch": "fast"})
    said = document(replace(OFFERED, offer=offer))
    assert said["compute"]["disk"] == {"min": 50, "max": 50}
    assert said["storage"][0]["pool"] == "fast"


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


def test_a_plain_request_gets_a_plain_kind_and_whole_numbers_rounded_down() -> None:
    odd = replace(OFFERED, offer=replace(OFFER, shape=Shape(2, 24_200_000_000)))
    compute = document(odd)["compute"]
    assert compute["kind"].endswith("/compute/simple-compute-resource.yaml")
    assert compute["memory"] == {"min": 22, "max": 22}
    assert {"nodes", "gpus"}.isdisjoint(compute)


def test_the_kind_is_the_one_asked_for_whatever_the_memory_is() -> None:
    asked = replace(REQUEST, compute=replace(REQUEST.compute, memory=Range(GIB * 3 // 2, 2 * GIB)))
    assert document(request=asked)["compute"]["kind"].endswith("/compute/simple-compute-resource.yaml")


def test_the_extension_is_for_those_who_asked_by_it() -> None:
    gpus = replace(OFFERED, offer=replace(OFFER, shape=Shape(8, 3 * GIB // 2, 2), nodes=("n1", "n2")))
    asked = replace(REQUEST, compute=replace(REQUEST.compute, kind="node-compute-resource"))
    compute = document(gpus, asked)["compute"]
    assert compute["kind"] == "urn:sublet:kind:compute:node-compute-resource"
    assert (compute["nodes"], compute["gpus"], compute["memory"]) == (
        {"min": 2, "max": 2},
        {"min": 2, "max": 2},
        {"min": 1.5, "max": 1.5},
    )


def predicted(*, p10: int, p50: int, p90: int, samples: int = 100, **more: Any) -> Session:
    """An offer of a shared queue; the times are minutes after nine."""
    times = [NINE + timedelta(minutes=minutes) for minutes in (p10, p50, p90)]
    terms = Predicted(*times, samples=samples, as_of=NINE)
    offer = replace(OFFER, nodes=(), start=times[1], latest_start=times[1], terms=terms, queue="gpu", **more)
    return replace(OFFERED, offer=offer)


def test_a_predicted_offer_does_not_look_firm() -> None:
    said = document(predicted(p10=5, p50=20, p90=65))
    assert said["schedule"]["available"]["start"] == "2026-12-01T09:05:00Z/PT1H"
    (message,) = [message for message in said["meta"]["messages"] if message["kind"] == "urn:sublet:terms"]
    assert message["message"].startswith(
        "Nothing is held on here: when it starts is a prediction, likely between 2026-"
    )
    assert message["values"] == {
        "terms": "predicted",
        "platform": "here",
        "held": "false",
        "p10": "2026-12-01T09:05:00Z",
        "p50": "2026-12-01T09:20:00Z",
        "p90": "2026-12-01T10:05:00Z",
        "samples": "100",
        "as-of": "2026-12-01T09:00:00Z",
        "queue": "gpu",
    }


def test_a_prediction_that_rests_on_nothing_is_not_exact_either() -> None:
    said = document(predicted(p10=0, p50=0, p90=0, samples=0))
    assert said["schedule"]["available"]["start"] == "2026-12-01T09:00:00Z/PT1H"


def test_a_predicted_start_stays_inside_the_window_asked_for() -> None:
    session = predicted(p10=-30, p50=20, p90=500, begin=NINE)
    session = replace(session, offer=replace(session.offer, latest_start=NINE + timedelta(hours=1)))
    assert document(session)["schedule"]["available"]["start"] == "2026-12-01T09:00:00Z/PT1H"


def test_what_waits_in_a_shared_queue_has_no_settled_start_until_it_has_started() -> None:
    waits = replace(predicted(p10=5, p50=20, p90=65), phase=Phase.WAITING, start=NINE + timedelta(minutes=20))
    assert document(waits)["schedule"]["available"]["start"] == "2026-12-01T09:05:00Z/PT1H"
    runs = replace(waits, phase=Phase.RUNNING, started=NINE + timedelta(minutes=7))
    assert document(runs)["schedule"]["available"]["start"] == "2026-12-01T09:07:00Z/PT0S"


def test_only_what_is_booked_is_said_to_be_held() -> None:
    (message,) = document()["meta"]["messages"]
    assert message["values"] == {"terms": "booked", "platform": "here", "held": "true"}
    assert message["message"].startswith("Held on here for you until it expires")
    (message,) = document(replace(OFFERED, phase=Phase.WAITING, start=NINE))["meta"]["messages"]
    assert message["message"] == "Booked on here."


def test_components_say_what_they_cost_and_perform() -> None:
    part = (Quote("urn:ivoa:calycopis:cost:monetary", 0.3, 0.3, "in EUR"),)
    said = document(replace(OFFERED, offer=replace(OFFER, compute_costs=part, storage_costs={"scratch": part})))
    assert [cost["max"] for cost in said["costs"]] == [0.5]
    assert [cost["max"] for cost in said["compute"]["costs"]] == [0.3]
    assert [cost["max"] for cost in said["storage"][0]["costs"]] == [0.3]
    assert said["compute"]["metrics"] == said["metrics"] != []


def test_data_without_storage_gets_a_storage_of_its_own() -> None:
    data = (
        Data("cube", "simple-data-resource", "https://d.example.org/c", size=3 * GIB),
        Data("b", "x", "https://d/b"),
    )
    offer = replace(OFFER, storage={"cube": 3 * GIB})
    said = document(replace(OFFERED, offer=offer), replace(REQUEST, storage=(), data=data))
    assert [thing["storage"] for thing in said["data"]] == [room["meta"]["uuid"] for room in said["storage"]]
    assert [room["data"] for room in said["storage"]] == [[thing["meta"]["uuid"]] for thing in said["data"]]
    assert [room.get("size") for room in said["storage"]] == [{"min": 3, "max": 3}, None]


def test_an_answer_stands_while_an_offer_of_it_can_be_taken_or_was_taken() -> None:
    def stands(*offers: Session) -> bool:
        found = OfferSet(SET, "ann", NINE, NINE, "YES", REQUEST, "", "", offers=offers)
        return found.stands(NINE)

    later = replace(OFFERED, expires=NINE + timedelta(seconds=1))
    rejected = replace(later, phase=Phase.REJECTED)
    assert stands(rejected, later)
    assert stands(rejected, replace(later, phase=Phase.CANCELLED, start=NINE))
    assert not stands(OFFERED, rejected)  # the one is expired though nobody has noted it yet
    assert not stands()


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
