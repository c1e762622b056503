"""A client that a generator made of IVOA's schema works through two levels of brokers, and sees what an offer is."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.broker_processes import BrokerProcess
from tests.engines.environments import have_environment

pytestmark = pytest.mark.engines
SCHEMA = "SUBLET_IVOA_SCHEMA"  # its licence lets nobody ship it here: name a file with execution-broker 1.0.7
SITES = {
    "booked": '[platforms.slurm]\nkind = "memory"\ntakes = "0s"\n',
    "queue": '[platforms.slurm]\nkind = "memory"\nterms = "predicted"\ntakes = "0s"\nwaits = ["0s", "1s", "20m"]\n',
}
NONE = "[platforms]\n"
PROGRAM = """
import json, sys, time
import execbroker
from execbroker.models import (
    DockerContainer, DockerImageSpec, EnumValueUpdate, ExecutionRequest, SimpleComputeResource,
)
KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/"
url, token = sys.argv[1:]
configuration = execbroker.Configuration(host=url)
with execbroker.ApiClient(configuration, "Authorization", f"Bearer {token}") as client:
    api = execbroker.DefaultApi(client)
    request = ExecutionRequest(executable=DockerContainer(
        kind=KINDS + "executable/docker-container.yaml",
        image=DockerImageSpec(locations=["docker.io/library/busybox:1"], digest="sha256:" + "0" * 64),
    ))
    answer = api.execution_request(execution_request=request)
    seen = {
        next(m.values["route"] for m in offer.meta.messages if m.kind == "urn:sublet:terms"): offer
        for offer in answer.offers
    }
    told = {route: {
        "terms": next(m.values for m in offer.meta.messages if m.kind == "urn:sublet:terms"),
        "start": offer.schedule.available.start,
        "phase": offer.phase,
    } for route, offer in seen.items()}
    chosen = seen[next(route for route in seen if "booked" in route)]
    update = EnumValueUpdate(kind="uri:enum-value-update", path="phase", value="ACCEPTED")
    session = api.session_update(uuid=chosen.meta.uuid, abstract_update=update)
    deadline = time.monotonic() + 60
    while session.phase not in ("COMPLETED", "FAILED", "CANCELLED") and time.monotonic() < deadline:
        time.sleep(0.2)
        session = api.session_select(uuid=chosen.meta.uuid)
    rest = {offer.meta.uuid: offer.phase for offer in api.offer_set_select(uuid=answer.meta.uuid).offers}
    print(json.dumps({"told": told, "phase": session.phase, "rest": list(rest.values())}, default=str))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a client that was made of the schema; the directory that it is in."""
    schema = os.environ.get(SCHEMA)
    if not schema:
        pytest.skip(f"IVOA's schema is not here: {SCHEMA}=execution-broker-1.0.7.yaml names it")
    tools = have_environment("openapi") / "bin"
    made = tmp_path_factory.mktemp("client")
    words = [tools / "openapi-generator-cli", "generate", "-i", schema, "-g", "python", "-o", made]
    words += ["--package-name", "execbroker", "--skip-validate-spec"]
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return made


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """An aggregator above one above two sites."""
    home = tmp_path_factory.mktemp("levels")
    with ExitStack() as stack:

        def start(name: str, settings: str) -> BrokerProcess:
            process = BrokerProcess.start(home / name, settings)
            stack.callback(process.serving.stop)
            return process

        sites = {name: start(name, settings) for name, settings in SITES.items()}
        middle, top = start("middle", NONE), start("top", NONE)
        for name, site in sites.items():
            middle.add(name, site)
        top.add("uksrc", middle)
        yield top


def test_a_generated_client_asks_and_accepts_through_two_levels(client: Path, top: BrokerProcess) -> None:
    python = have_environment("openapi") / "bin" / "python"
    words = [python, "-c", PROGRAM, top.url, top.token]
    done = subprocess.run(words, capture_output=True, text=True, cwd=client, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    assert set(seen["told"]) == {"uksrc/booked/slurm", "uksrc/queue/slurm"}
    booked, queue = seen["told"]["uksrc/booked/slurm"], seen["told"]["uksrc/queue/slurm"]
    assert (booked["terms"]["held"], queue["terms"]["held"]) == ("true", "false")
    assert queue["terms"]["inner-terms"] == "predicted"
    assert not queue["start"].endswith("/PT0S"), "a prediction is an interval"
    assert seen["phase"] == "COMPLETED"
    assert sorted(set(seen["rest"])) == ["COMPLETED", "REJECTED"]
