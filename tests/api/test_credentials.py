"""Credentials over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.sshd import make_key

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
        {"kind": "key", "place": "sftp://data.example.org", "endpoint": ""},  # it is no key
        {"kind": "login", "place": "sftp://data.example.org", "endpoint": "not-a-host-key"},
        {"kind": "token", "place": "sftp://data.example.org", "endpoint": ""},
        {"kind": "token", "place": "https://data.example.org", "endpoint": "", "secret": "hush\nsecond line"},
        {"kind": "token", "place": "https://data.example.org", "endpoint": "", "secret": "hush\r\nX-Other: 1"},
        {"kind": "token", "place": "https://data.example.org", "endpoint": "", "secret": "hushé"},
        {"kind": "login", "place": "https://data.example.org", "endpoint": "", "secret": "hush\x00"},
        {"kind": "login", "place": "https://data.example.org", "endpoint": "", "user": "marie\n"},
        {"secret": "hush hush"},
        {"user": "AKIA\r\n"},
        {"region": "eu\r\n"},
    ],
)
async def test_what_could_never_open_anything_is_refused(ann: httpx2.AsyncClient, wrong: dict[str, str]) -> None:
    answer = await ann.post("/v1/credentials", json=KEYS | wrong)
    assert answer.status_code == 400, answer.text
    assert "hush" not in answer.text


async def test_a_key_is_kept_without_its_passphrase_and_with_the_host_key(
    ann: httpx2.AsyncClient, tmp_path: Path
) -> None:
    key = await asyncio.to_thread(make_key, tmp_path / "key", "sesame")
    ask = {
        "place": "sftp://data.example.org",
        "kind": "key",
        "user": "marie",
        "secret": key.read_text(),
        "endpoint": f"SHA256:{'a' * 43}",
    }
    refused = await ann.post("/v1/credentials", json=ask)
    assert refused.json()["code"] == "passphrase-needed"
    assert (await ann.post("/v1/credentials", json=ask | {"passphrase": "sesame"})).status_code == 201
    (kept,) = (await ann.get("/v1/credentials")).json()["items"]
    assert (kept["kind"], kept["endpoint"]) == ("key", ask["endpoint"])
    assert "secret" not in kept
