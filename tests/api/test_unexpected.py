"""An error that nobody foresaw: the answer says so, and monitors see it."""

from __future__ import annotations

import httpx2
import pytest

from sublet.kernel.version import VERSION
from tests.api.conftest import HOST, Callers

pytestmark = pytest.mark.anyio


async def test_an_unforeseen_error_is_a_problem_of_this_version_that_metrics_count(callers: Callers) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("nobody foresaw this")

    callers.app.router.add_api_route("/fails", fail)
    transport = httpx2.ASGITransport(app=callers.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as client:
        answer = await client.get("/fails")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["sublet-version"] == VERSION  # else a command takes the service for an older one
    assert (answer.json()["code"], "log" in answer.json()["hint"]) == ("internal", True)
    assert "nobody foresaw" not in answer.text
    operator = await callers.someone("operator", operator=True)
    assert (
        'sublet_http_requests_total{code="500",method="GET",route="/fails"} 1.0'
        in (await operator.get("/metrics")).text
    )
