"""Whatever the description allows, and much that it doesn't, is answered as the description says."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn
from hypothesis import HealthCheck, settings

from sublet.app import open_service
from sublet.kernel.rate_limits import RateLimit
from sublet.kernel.settings import Settings
from sublet.people.store.tokens import Token
from sublet.server.app import make_app, openapi_document
from tests.databases import put_database
from tests.examples import SEARCHING

if TYPE_CHECKING:
    import schemathesis  # which takes seconds, and every worker collects this file

pytestmark = pytest.mark.engines

EXAMPLES = 30 if SEARCHING else 4  # of each address
SECRET = "sublet_known-before-there-is-a-service"


@dataclass
class Tried:
    """A service that is being tried out, and things that there are in it."""

    url: str
    sessions: tuple[str, ...]
    offersets: tuple[str, ...]


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """A service in a thread of its own, on a port of its own, with something in it."""
    home = tmp_path_factory.mktemp("home")
    platform = {"kind": "memory", "nodes": 100, "cores": 16, "memory": "16GiB", "takes": "0.1s"}
    nobody = "http://127.0.0.1:9"  # no test asks Globus itself
    values = Settings.load(home, platforms={"memory": platform}, globus_auth=nobody, globus_transfer=nobody)
    put_database(home / "sublet.db")
    started = threading.Event()
    found: dict[str, Any] = {}
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    async def serve() -> None:
        async with open_service(values) as service:
            config = uvicorn.Config(make_app(service), lifespan="off", log_config=None, timeout_graceful_shutdown=1)
            found["server"] = uvicorn.Server(config)
            token = Token("3f0c3a55-8a4e-4a59-9f39-0d3b6a1c7e21", "ann", "tried", datetime.now(UTC))
            await service.store.write(lambda tx: tx.tokens.add(token, SECRET))
            often = RateLimit(10**6, timedelta(minutes=1))  # bad tokens are tried by hundreds
            service.throttle.change_limits(dict.fromkeys(values.throttle.limits, often))
            started.set()
            await found["server"].serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(60)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield Tried(url, *furnished(url))
    finally:
        found["server"].should_exit = True
        thread.join()
        listener.close()


def furnished(url: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A session that is over, some that can be accepted, and where they came from."""
    headers = {"authorization": f"Bearer {SECRET}"}
    with httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as client:
        asked = [client.post("/v1/offersets", json={"run": ["true"], "time": "1m"}).json() for _ in range(3)]
        over = asked[0]["offers"][0]["id"]
        client.post(f"/v1/sessions/{over}/accept")
        client.get(f"/v1/sessions/{over}/logs", params={"follow": True})
        sessions = (over, *(offer["id"] for one in asked[1:] for offer in one["offers"]))
    return sessions, tuple(one["id"] for one in asked)


@pytest.fixture(scope="module")
def schema() -> schemathesis.BaseSchema:
    """The description, and how a request shows its token; the checks take it away to see what happens."""
    import schemathesis

    schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
    described = schemathesis.openapi.from_dict(openapi_document())
    described.config.phases.coverage.enabled = SEARCHING  # every limit of every field

    @described.auth()
    class Bearer:
        def get(self, case: schemathesis.Case, context: schemathesis.AuthContext) -> str:
            return SECRET

        def set(self, case: schemathesis.Case, data: str, context: schemathesis.AuthContext) -> None:
            case.headers["Authorization"] = f"Bearer {data}"

    return described


def test_every_answer_is_as_described(schema: schemathesis.BaseSchema, tried: Tried) -> None:
    from schemathesis.checks import load_all_checks
    from schemathesis.core.failures import FailureGroup
    from schemathesis.pytest.lazy import get_all_tests
    from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

    load_all_checks()
    # What a document means (intervals, names that refer to one another) is more than a schema can say.
    meaning = [positive_data_acceptance]
    # IVOA's documents are read leniently: what can't be understood is a message in the answer (docs/ivoa.md).
    lenient = [*meaning, negative_data_rejection]

    def is_answered(case: schemathesis.Case) -> None:
        aim(case, tried)
        left_out = meaning if case.operation.path.startswith("/v1/") else lenient
        try:
            case.call_and_validate(base_url=tried.url, excluded_checks=left_out, timeout=60)
        except FailureGroup as failures:
            if remaining := failures.split(takes_numbers_for_booleans)[1]:
                raise remaining from None

    trial = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    wrong: list[BaseException] = []
    for found in get_all_tests(schema=schema, test_func=is_answered, settings=trial, given_kwargs={}):
        _, try_it = found.ok()
        try:
            try_it()
        except (Exception, BaseExceptionGroup) as error:  # of one address; the others are tried all the same
            wrong.append(error)
    if wrong:
        raise BaseExceptionGroup("answers that are not as described", wrong)


def takes_numbers_for_booleans(failure: BaseException) -> bool:
    """Whether a request was accepted only because 0 and 1, or yes and no, are read as booleans, which does no harm."""
    return "dry_run: Incorrect type" in getattr(failure, "message", "")


def aim(case: schemathesis.Case, tried: Tried) -> None:
    """Every other time, ask for something that there is."""
    path = case.operation.path
    known = tried.offersets if "offersets" in path else tried.sessions
    for name in ("id", "uuid"):
        value = case.path_parameters.get(name)
        if value is not None and "tokens" not in path and len(str(value)) % 2:
            case.path_parameters[name] = known[0] if "{id}/" in path else known[len(str(value)) % len(known)]
    if case.query and str(case.query.get("follow", "")).lower() in {"true", "1", "yes", "on", "t", "y"}:
        case.path_parameters["id"] = tried.sessions[0]  # it is over, so that following it ends


def test_no_check_was_forgotten() -> None:
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    assert {check.__name__ for check in CHECKS.get_all()} >= {
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
    }
