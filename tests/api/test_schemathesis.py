"""Whatever the description allows, and much that it doesn't, is answered as the description says."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.checks import positive_data_acceptance

from sublet.api.app import make_app, openapi_document
from sublet.service.service import Service
from sublet.service.throttle import LIMITS, Limit, Throttle
from sublet.settings import Settings
from sublet.store.tokens import Token

SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "searching"  # as `make soak` does: every limit of every field too
EXAMPLES = 30 if SEARCHING else 6  # of each address
# What a document means (intervals, names that refer to one another) is more than a schema can say.
LEFT_OUT = [positive_data_acceptance]


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
    values = Settings.load(home, platforms={"memory": platform})
    started = threading.Event()
    found: dict[str, Any] = {}
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    async def serve() -> None:
        async with Service.open(values) as service:
            config = uvicorn.Config(make_app(service), lifespan="off", log_config=None, timeout_graceful_shutdown=1)
            found["server"] = uvicorn.Server(config)
            token = Token("3f0c3a55-8a4e-4a59-9f39-0d3b6a1c7e21", "ann", "tried", datetime.now(UTC))
            await service.store.write(lambda tx: tx.tokens.add(token, SECRET))
            often = Limit(10**6, timedelta(minutes=1))  # bad tokens are tried by hundreds
            service.throttle = Throttle(dict.fromkeys(LIMITS, often))
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


schema = schemathesis.openapi.from_dict(openapi_document())
schema.config.phases.coverage.enabled = SEARCHING
SECRET = "sublet_known-before-there-is-a-service"  # examples are made when tests are collected


@schema.auth()
class Bearer:
    """How a request shows its token; the checks take it away to see what happens."""

    def get(self, case: schemathesis.Case, context: schemathesis.AuthContext) -> str:
        """The token there is."""
        return SECRET

    def set(self, case: schemathesis.Case, data: str, context: schemathesis.AuthContext) -> None:
        """Show it."""
        case.headers["Authorization"] = f"Bearer {data}"


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_answer_is_as_described(case: schemathesis.Case, tried: Tried) -> None:
    path = case.operation.path
    known = tried.offersets if "offersets" in path else tried.sessions
    for name in ("id", "uuid"):
        value = case.path_parameters.get(name)
        if value is not None and "tokens" not in path and len(str(value)) % 2:  # every other time, one that there is
            case.path_parameters[name] = known[0] if "{id}/" in path else known[len(str(value)) % len(known)]
    if case.query and str(case.query.get("follow", "")).lower() in {"true", "1", "yes", "on", "t", "y"}:
        case.path_parameters["id"] = tried.sessions[0]  # it is over, so that following it ends
    case.call_and_validate(base_url=tried.url, excluded_checks=LEFT_OUT, timeout=60)


def test_no_check_was_forgotten() -> None:
    assert {check.__name__ for check in CHECKS.get_all()} >= {
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
    }
