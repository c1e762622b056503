"""Credentials over HTTP."""

from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.anyio
KEYS = {"place": "s3://bucket", "kind": "s3", "user": "AKIA", "secret": "hush", "endpoint": "https://s3.example.org"}


async def test_a_credential_is_kept_listed_without_its_secret_and_removed_by_its_owner_alone(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, anonymous: httpx2.AsyncClient
) -> None:
    assert (await anonymous.post("/v1/credentials", json=KEYS)).status_code == 401
    made = await ann.post("/v1/credentials", json=KEYS)
    assert made.status_code == 201
    assert (await ann.post("/v1/credentials", json=KEYS | {"user": "NEW"})).status_code == 201
    answer = await ann.get("/v1/credentials")
    [shown] = answer.json()["items"]
    assert (shown["place"], shown["user"]) == ("s3://bucket", "NEW")
    assert "hush" not in made.text + answer.text
    assert (await bob.get("/v1/credentials")).json() == {"items": []}
    assert (await bob.delete("/v1/credentials", params={"place": "s3://bucket"})).status_code == 404
    assert (await ann.delete("/v1/credentials", params={"place": "s3://bucket"})).status_code == 204
    assert (await ann.get("/v1/credentials")).json() == {"items": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"place": "gopher://x"},
        {"place": "https://example.org"},  # S3 keys are for an object store
        {"place": "s3://"},
        {"place": "s3+https://me:pw@example.org/bucket", "endpoint": ""},
        {"endpoint": "not-a-server"},
        {"secret": ""},
        {"kind": "password"},
    ],
)
async def test_what_could_never_open_anything_is_refused(ann: httpx2.AsyncClient, wrong: dict[str, str]) -> None:
    answer = await ann.post("/v1/credentials", json=KEYS | wrong)
    assert answer.status_code == 400, answer.text
    assert "hush" not in answer.text
