"""Hooks over HTTP."""

from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.anyio


async def test_a_hook_is_made_listed_tried_and_removed_by_its_owner_alone(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, anonymous: httpx2.AsyncClient
) -> None:
    ask = {"address": "http://127.0.0.1:1/told", "on": ["ended"], "expires": "2d"}
    made = (await ann.post("/v1/hooks", json=ask)).json()
    assert len(made["secret"]) >= 40
    assert (await anonymous.post("/v1/hooks", json=ask)).status_code == 401
    [shown] = (await ann.get("/v1/hooks")).json()["items"]
    assert (shown["secret"], shown["on"], shown["address"]) == ("", ["ended"], ask["address"])
    assert (await bob.get("/v1/hooks")).json() == {"items": []}
    assert (await bob.delete(f"/v1/hooks/{made['id']}")).status_code == 404
    assert (await bob.post(f"/v1/hooks/{made['id']}/test")).status_code == 404
    refused = await ann.post(f"/v1/hooks/{made['id']}/test")
    assert (refused.status_code, refused.json()["code"]) == (502, "not-told")
    assert (await ann.delete(f"/v1/hooks/{made['id']}")).status_code == 204
    assert (await ann.get("/v1/hooks")).json() == {"items": []}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"address": "gopher://x"}, "bad-hook"),
        ({"address": "mailto:ann@example.org"}, "bad-hook"),
        ({"address": "https://example.org", "on": ["nonsense"]}, "bad-request"),
        ({"address": "https://example.org", "expires": "soon"}, "bad-amount"),
    ],
)
async def test_what_can_not_be_told_is_refused_with_the_reason(
    ann: httpx2.AsyncClient, wrong: dict[str, object], code: str
) -> None:
    answer = await ann.post("/v1/hooks", json=wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
