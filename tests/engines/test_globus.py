"""Sublet asks Globus as Globus' own client does, and the stand-in of the tests answers as that client expects it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.movers.globus import GlobusMover
from sublet.movers.globus_sign_in import build_address, exchange_code, make_verifier
from sublet.movers.port import SIMPLE, Policy, TransferPhase
from tests.contract.moving import content, quiet
from tests.engines.environments import have_environment
from tests.globus_server import RECORDED, TOKEN, GlobusDouble, serve_globus

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
HERE = Path(__file__).parent
ADDED = {"fail_on_quota_errors", "notify_on_succeeded", "notify_on_failed", "notify_on_inactive"}  # by our choice


@pytest.fixture(scope="module")
def python() -> str:
    return str(have_environment("globus") / "bin" / "python")


@pytest.fixture
def globus(tmp_path: Path) -> Iterator[GlobusDouble]:
    with serve_globus() as server:
        yield server


def fill(globus: GlobusDouble, tmp_path: Path) -> tuple[str, str]:
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "source" / "data").mkdir()
    (tmp_path / "source" / "data" / "file").write_bytes(b"x" * 1000)
    return globus.add(tmp_path / "source", is_web=True), globus.add(tmp_path / "target", is_web=True)


def run(python: str, *words: str) -> Any:
    done = subprocess.run([python, "-I", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_recorded_answers_are_those_that_globus_own_sdk_ships(python: str) -> None:
    assert run(python, str(HERE / "globus_answers.py")) == RECORDED


async def test_globus_own_client_gets_on_with_the_stand_in_and_asks_what_sublet_asks(
    python: str, globus: GlobusDouble, tmp_path: Path
) -> None:
    source, target = fill(globus, tmp_path)
    words = (str(HERE / "globus_client.py"), f"http://{globus.address}", TOKEN, source, "/data/file", target)
    told = await asyncio.to_thread(run, python, *words)
    web = f"http://{globus.address}/web/{source}"
    expected = {"size": 1000, "names": ["file"], "web": web, "is_same": True, "is_done": True}
    assert told == {**expected, "cancelled": "Canceled", "error": [404, "NotFound"]}
    assert (tmp_path / "target" / "made" / "whole").read_bytes() == b"x" * 1000
    theirs = [describe(*asked) for asked in globus.asked]
    globus.asked.clear()
    await do_the_same(globus, source, target)
    ours = [describe(*asked) for asked in globus.asked]
    assert {asked[:2] for asked in ours} <= {asked[:2] for asked in theirs}
    for kind in {asked[:2] for asked in ours}:
        [their_fields, our_fields] = [
            set().union(*(fields for *about, fields in asked if tuple(about) == kind)) for asked in (theirs, ours)
        ]
        assert our_fields - ADDED == their_fields - ADDED, kind


async def do_the_same(globus: GlobusDouble, source: str, target: str) -> None:
    server = f"http://{globus.address}"
    tokens = [Credential(place, CredentialKind.TOKEN, secret=TOKEN) for place in ("globus://", server)]
    mover = GlobusMover(Policy(False, credentials=tokens, globus_transfer=server, globus_auth=server), pause=0.01)
    location = f"globus://{source}/data/file"
    for address in (location, f"globus://{source}/data/"):
        await mover.links(Data("file", SIMPLE, address))
    submission = await mover.reserve(location)
    moves = [(location, f"globus://{target}/again/file")]
    tasks = [await mover.submit(moves, submission) for _ in range(2)]
    assert tasks[0] == tasks[1]
    assert (await mover.look(location, tasks[0])).phase is TransferPhase.DONE
    await mover.stop(location, tasks[0])
    await mover.push(content("sent", b"y"), f"globus://{target}/new/", quiet)


def describe(method: str, address: str, body: Any) -> tuple[str, str, frozenset[str]]:
    """What was asked for, without what differs each time; and the names of all that was said."""
    parts = urlsplit(address)
    words = ["ID" if word.count("-") == 4 else word for word in parts.path.split("/")]
    fields = {*parse_qs(parts.query), *(body or {})}
    items = body.get("DATA", []) if isinstance(body, dict) else []
    return method, "/".join(words), frozenset(fields | {f"item.{name}" for item in items for name in item})


async def test_globus_own_client_signs_in_as_sublet_does(python: str, globus: GlobusDouble) -> None:
    address, client, verifier = f"http://{globus.address}", "3f6c1f9a-0000-4000-8000-000000000001", make_verifier()
    words = [python, "-I", str(HERE / "globus_sign_in.py"), address, client, verifier]

    def sign_in() -> tuple[str, str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(words, text=True, **pipes) as process:  # type: ignore[call-overload]
            assert process.stdout
            page = process.stdout.readline().strip()
            told, complaint = process.communicate(globus.sign_in(page) + "\n", timeout=60)
        assert process.returncode == 0, complaint
        return page, told

    page, told = await asyncio.to_thread(sign_in)
    ours = build_address(address, client, "globus://", verifier)
    assert {**parse_qs(urlsplit(page).query), "state": ["_default"]} == parse_qs(urlsplit(ours).query)
    assert urlsplit(page)[:3] == urlsplit(ours)[:3]
    assert json.loads(told) == {"transfer.api.globus.org": "a-refresh-token"}
    [(_, _, theirs)] = [asked for asked in globus.asked if asked[1] == "/v2/oauth2/token"]
    globus.asked.clear()
    assert await exchange_code(address, client, globus.sign_in(ours), verifier) == "a-refresh-token"
    [(_, _, form)] = globus.asked
    assert {**form, "code": None} == {**theirs, "code": None}
