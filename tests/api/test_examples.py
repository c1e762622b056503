"""The published example documents, where they lie beside the checkout; and IVOA's own schema for our answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.api import documents

pytestmark = pytest.mark.anyio

PLACE = Path(__file__).parents[3] / "shared" / "ivoa"
YES = ("01", "02", "09", "10", "26")
SOON = f"{datetime.now(UTC) + timedelta(days=20):%Y-%m-%d}"  # their windows would be over one day
NO = ("20", "22", "23", "25")


def published(*numbers: str) -> list[tuple[str, str, str]]:
    """Name, type and text of the published requests; of ours, in the same shapes, where there are none."""
    found = sorted(path for path in (PLACE / "examples").glob("*-request-*") if path.name[:2] in numbers)
    ours = [(name, make()) for name, make in documents.YES.items()]
    ours_no = [(name, make()) for name, (make, _) in documents.NO.items()]
    if found:
        kinds = {".json": "application/json", ".yaml": "application/yaml"}
        return [(path.name, kinds[path.suffix], path.read_text().replace("2026-12-01", SOON)) for path in found]
    return [(name, "application/yaml", yaml.safe_dump(made)) for name, made in (ours if numbers == YES else ours_no)]


def of(name: str) -> str:
    """A published update, or ours where there is none."""
    path = PLACE / "examples" / f"05-update-{name}.yaml"
    phase = {"accept": "ACCEPTED", "reject": "REJECTED", "cancel": "CANCELLED"}[name]
    return path.read_text() if path.exists() else yaml.safe_dump(documents.phase_update(phase))


async def ask(client: httpx2.AsyncClient, kind: str, text: str) -> dict[str, Any]:
    answer = await client.post("/requests", content=text, headers={"content-type": kind})
    assert answer.status_code == 303, answer.text
    found: dict[str, Any] = (await client.get(answer.headers["location"])).json()
    return found


@pytest.mark.parametrize(("name", "kind", "text"), published(*YES))
async def test_the_examples_that_can_be_run_get_a_yes(ann: httpx2.AsyncClient, name: str, kind: str, text: str) -> None:
    found = await ask(ann, kind, text)
    assert found["result"] == "YES", found["meta"]["messages"]
    assert {offer["phase"] for offer in found["offers"]} == {"OFFERED"}
    conforms(found, "OfferSetResponse")


@pytest.mark.parametrize(("name", "kind", "text"), published(*NO))
async def test_the_examples_that_can_not_be_run_get_a_no(
    ann: httpx2.AsyncClient, name: str, kind: str, text: str
) -> None:
    found = await ask(ann, kind, text)
    assert (found["result"], found["offers"]) == ("NO", [])
    assert found["meta"]["messages"]
    conforms(found, "OfferSetResponse")


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("accept", {"ACCEPTED", "WAITING", "PREPARING"}),
        ("reject", {"REJECTED"}),
        ("cancel", {"CANCELLED"}),
    ],
)
async def test_the_example_updates_move_an_offer(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, anonymous: httpx2.AsyncClient, name: str, phases: set[str]
) -> None:
    _, kind, text = published(*YES)[1]
    first, *others = [offer["meta"]["uuid"] for offer in (await ask(ann, kind, text))["offers"]]
    send = {"content": of(name), "headers": {"content-type": "application/yaml", "accept": "application/json"}}
    assert (await bob.post(f"/sessions/{first}", **send)).status_code == 403  # type: ignore[arg-type]
    assert (await anonymous.post(f"/sessions/{first}", **send)).status_code == 401  # type: ignore[arg-type]
    answer = await ann.post(f"/sessions/{first}", **send)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert answer.json()["phase"] in phases
    conforms(answer.json(), "ScheduledExecutionSession")
    siblings = {(await ann.get(f"/sessions/{other}")).json()["phase"] for other in others}
    assert siblings == ({"REJECTED"} if name == "accept" else {"OFFERED"})


async def test_the_examples_for_direct_execution(ann: httpx2.AsyncClient) -> None:
    _, kind, text = published(*YES)[0]
    accepted = await ann.post("/direct", content=text, headers={"content-type": kind, "accept": "application/json"})
    assert accepted.status_code == 303
    conforms(accepted.json(), "ScheduledExecutionSession")
    _, kind, text = published(*NO)[2]
    failed = await ann.post("/direct", content=text, headers={"content-type": kind, "accept": "application/json"})
    assert (failed.status_code, failed.json()["phase"]) == (400, "FAILED")
    conforms(failed.json(), "ScheduledExecutionSession")


@cache
def schema(path: Path) -> dict[str, Any]:
    """A published schema."""
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


def conforms(document: dict[str, Any], name: str) -> None:
    """Hold an answer against the published schema, where it lies beside the checkout."""
    path = PLACE / "execution-broker-1.0.7.yaml"
    if not path.exists():
        return
    import jsonschema  # which takes seconds, and every worker collects this file

    validator = jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **schema(path)})
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)] == []
    for offer in document.get("offers", ()):
        conforms(offer, "ScheduledExecutionSession")
