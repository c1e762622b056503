"""Clients that a generator made, of what a service says of itself and of IVOA's schema, work through two brokers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sublet.server.app import openapi_document
from tests.broker_processes import BrokerProcess
from tests.engines.environments import have_environment

pytestmark = pytest.mark.engines
SCHEMA = "SUBLET_IVOA_SCHEMA"  # names a file with execution-broker 1.0.7, whose licence lets nobody ship it here
SITES = {
    "booked": '[platforms.slurm]\nkind = "memory"\ntakes = "0s"\n',
    "queue": '[platforms.slurm]\nkind = "memory"\nterms = "predicted"\ntakes = "0s"\nwaits = ["0s", "1s", "20m"]\n',
}
NONE = "[platforms]\n"
# How each of the clients is called: the names in it are those of the description that it was made of.
SERVED = """
from execbroker.models import ExecutionRequest, Update
API, ACCEPT = execbroker.IVOAExecutionBrokerApi, "update"
update = Update(kind="uri:enum-value-update", path="phase", value="ACCEPTED")
request = ExecutionRequest.from_dict({"executable": {
    "kind": KINDS + "executable/docker-container.yaml",
    "image": {"locations": ["docker.io/library/busybox:1"], "digest": "sha256:" + "0" * 64},
}})
"""
UPSTREAM = """
from execbroker.models import DockerContainer, DockerImageSpec, EnumValueUpdate, ExecutionRequest
API, ACCEPT = execbroker.DefaultApi, "abstract_update"
update = EnumValueUpdate(kind="uri:enum-value-update", path="phase", value="ACCEPTED")
request = ExecutionRequest(executable=DockerContainer(
    kind=KINDS + "executable/docker-container.yaml",
    image=DockerImageSpec(locations=["docker.io/library/busybox:1"], digest="sha256:" + "0" * 64),
))
"""
BEGIN = """
import json, sys, time
import execbroker
KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/"
"""
PROGRAM = """
url, token = sys.argv[1:]
configuration = execbroker.Configuration(host=url)
with execbroker.ApiClient(configuration, "Authorization", f"Bearer {token}") as client:
    api = API(client)
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
    session = api.session_update(uuid=chosen.meta.uuid, **{ACCEPT: update})
    deadline = time.monotonic() + 60
    while session.phase not in ("COMPLETED", "FAILED", "CANCELLED") and time.monotonic() < deadline:
        time.sleep(0.2)
        session = api.session_select(uuid=chosen.meta.uuid)
    rest = {offer.meta.uuid: offer.phase for offer in api.offer_set_select(uuid=answer.meta.uuid).offers}
    print(json.dumps({"told": told, "phase": session.phase, "rest": list(rest.values())}, default=str))
"""
ROOT = ("/requests", "/offersets", "/sessions")  # the paths of the Execution Broker


@dataclass(frozen=True)
class GeneratedClient:
    """A client in a directory, and a program that uses it."""

    directory: Path
    program: str


def write_served(file: Path) -> None:
    """What a service itself says of its Execution Broker, without its other addresses."""
    document = openapi_document()
    document["paths"] = {path: text for path, text in document["paths"].items() if path.startswith(ROOT)}
    file.write_text(json.dumps(document))


def generate(schema: Path, made: Path, *options: str) -> Path:
    """Make a client of a description."""
    tools = have_environment("openapi") / "bin"
    words = [tools / "openapi-generator-cli", "generate", "-i", schema, "-g", "python", "-o", made]
    words += ["--package-name", "execbroker", *options]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return made


@pytest.fixture(scope="module", params=["served", *(["upstream"] if os.environ.get(SCHEMA) else [])])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GeneratedClient:
    """A client made of what the service says of itself; and of IVOA's schema, if that is named."""
    made = tmp_path_factory.mktemp("client")
    if request.param == "upstream":
        directory = generate(Path(os.environ[SCHEMA]), made, "--skip-validate-spec")
        return GeneratedClient(directory, BEGIN + UPSTREAM + PROGRAM)
    write_served(made / "served.json")
    # In JSON Schema an object may have more than its schema names: fields of each kind of executable are such.
    open_objects = "--additional-properties=disallowAdditionalPropertiesIfNotPresent=false"
    return GeneratedClient(generate(made / "served.json", made, open_objects), BEGIN + SERVED + PROGRAM)


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


def test_a_generated_client_asks_and_accepts_through_two_levels(client: GeneratedClient, top: BrokerProcess) -> None:
    python = have_environment("openapi") / "bin" / "python"
    words = [python, "-c", client.program, top.url, top.token]
    done = subprocess.run(words, capture_output=True, text=True, cwd=client.directory, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    assert set(seen["told"]) == {"uksrc/booked/slurm", "uksrc/queue/slurm"}
    booked, queue = seen["told"]["uksrc/booked/slurm"], seen["told"]["uksrc/queue/slurm"]
    assert (booked["terms"]["held"], queue["terms"]["held"]) == ("true", "false")
    assert queue["terms"]["inner-terms"] == "predicted"
    assert not queue["start"].endswith("/PT0S"), "a prediction is an interval"
    assert seen["phase"] == "COMPLETED"
    assert sorted(set(seen["rest"])) == ["COMPLETED", "REJECTED"]
