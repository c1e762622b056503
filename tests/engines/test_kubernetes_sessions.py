"""Sessions on a real Kubernetes: files there and back, secrets that nobody sees, ways in, and what a crash leaves."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.job import Program, State
from sublet.booking.model.session import EndKind
from sublet.kernel.short_paths import remove_links
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.kubernetes.platform import Kubernetes
from tests.engines.asking import PATIENCE
from tests.engines.kubernetes_cluster import Namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
LISTENER = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"from the pod " + self.path.encode())
http.server.HTTPServer((os.environ["SUBLET_HOST"], int(os.environ["SUBLET_PORT"])), Page).serve_forever()
"""


@pytest.fixture
async def platform(namespace: Namespace, tmp_path: Path) -> AsyncIterator[Kubernetes]:
    made = namespace.platform()
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def trial(platform: Kubernetes) -> AsyncIterator[ConformanceTrial]:
    made = ConformanceTrial(platform, PATIENCE)
    yield made
    await made.clean()


async def test_files_too_large_for_a_secret_go_there_and_come_back(trial: ConformanceTrial) -> None:
    key, body = trial.key(), os.urandom(9 << 20)
    place = await trial.platform.place(key)
    assert place is not None
    (place / "data" / "cube").write_bytes(body)
    job = trial.job("sh", "-c", 'cat "$SUBLET_DATA/cube" "$SUBLET_DATA/cube" >twice; mkdir empty; ln twice other')
    state = await trial.wait_for_end(await trial.platform.submit(job, key))
    assert state.end is not None
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0)
    left = await trial.platform.results(key)
    assert [(file.path, file.size) for file in left.files] == [("other", 18 << 20), ("twice", 18 << 20)]
    assert list(left.folders) == ["empty"]
    assert b"".join([piece async for piece in trial.platform.read(key, "twice")]) == body * 2


async def test_secrets_are_in_no_description_and_their_secret_goes_when_it_has_begun(
    trial: ConformanceTrial, namespace: Namespace
) -> None:
    job = trial.job("sh", "-c", 'printf %s "$PASSWORD" >out; sleep 3600')
    job = replace(job, program=replace(job.program, environment={"PASSWORD": "polonium-210"}))
    started = await trial.platform.submit(job, trial.key())

    async def has_started() -> bool:
        return (await trial.state(started)).state is State.RUNNING

    await trial.until("its start", has_started)
    seen = namespace.cluster.kubectl("-n", namespace.name, "get", "jobs,pods,events,configmaps", "-o", "json")
    assert "polonium" not in seen
    assert not [name for name in namespace.list_left() if name.startswith("secret")]
    await trial.platform.cancel([started], "marie")
    await trial.wait_for_end(started)
    read = [piece async for piece in trial.platform.read(started, "out")]
    assert b"".join(read) == b"polonium-210"


async def test_an_image_with_its_own_entrypoint_is_run_as_it_is(trial: ConformanceTrial) -> None:
    job = trial.job("true")
    words = ("sh", "-c", "echo printed; echo $WHO >$SUBLET_DATA/../work/who; exit 4")
    program = Program(words, {"WHO": "marie"}, image="localhost/python:3", keeps_entrypoint=True)
    state = await trial.wait_for_end(await trial.platform.submit(replace(job, program=program), trial.key()))
    assert state.end is not None
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 4)
    assert await trial.platform.output(trial.keys[-1], "stdout", 0, 100) == b"printed\n"
    assert [file.path for file in (await trial.platform.results(trial.keys[-1])).files] == ["who"]


@pytest.mark.parametrize("name", ["home", "a-home-of-which-the-path-is-too-long-" * 4], ids=["short", "long"])
async def test_what_listens_in_a_pod_is_reached_through_a_socket_here_which_is_found_again(
    namespace: Namespace, tmp_path: Path, name: str
) -> None:
    home, key = tmp_path / name, ""
    for _ in range(2):  # the second time, as a service does that was started again
        platform = namespace.platform()
        await platform.open(home)
        trial = ConformanceTrial(platform, PATIENCE)
        if not key:
            program = Program(("python3", "-c", LISTENER), connects="uri:http")
            key = await platform.submit(replace(trial.job("true"), program=program), trial.key())
        path = await find_way_in(trial, key)
        assert os.stat(path).st_mode & 0o077 == 0
        assert [file.name for file in (home / "s").iterdir()] == [os.path.basename(path)]
        for page in ("one", "two"):
            assert (await get(path, page)).endswith(f"from the pod /{page}".encode())
        await platform.close()
    await platform.open(home)
    await platform.cancel([key], "the test")
    await trial.wait_for_end(key)
    await platform.clean(key)
    await platform.close()
    assert list((home / "s").iterdir()) == []
    remove_links(home / "s")


async def find_way_in(trial: ConformanceTrial, key: str) -> str:
    """The socket by which a session is reached, once it is there."""

    async def find() -> str:
        state = await trial.state(key)
        return state.connector.location.removeprefix("unix:") if state.connector else ""

    await trial.until("a way in", find)
    return await find()


async def get(path: str, page: str) -> bytes:
    """What a server behind a socket answers."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"GET /{page} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


async def test_whoever_is_known_by_certificate_or_a_service_account_can_run_sessions(
    namespace: Namespace, tmp_path: Path
) -> None:
    cluster, name = namespace.cluster, namespace.name
    certificate = {"client-certificate": str(cluster.log / "carol.crt"), "client-key": str(cluster.log / "carol.key")}
    config = cluster.write_config(tmp_path / "carol", "carol", name, **certificate)
    account = json.loads(cluster.kubectl("-n", name, "get", "serviceaccount", "gateway", "-o", "json"))
    secret = json.loads(cluster.kubectl("-n", name, "get", "secret", account["secrets"][0]["name"], "-o", "json"))
    (tmp_path / "token").write_text(
        cluster.kubectl(
            "-n", name, "get", "secret", secret["metadata"]["name"], "-o", "go-template={{.data.token | base64decode}}"
        )
    )
    (tmp_path / "token").chmod(0o600)
    by_token = {"server": cluster.server, "authority": str(cluster.authority), "token_file": str(tmp_path / "token")}
    images = {key: value for key, value in namespace.settings().items() if key != "kubeconfig"}
    for number, entry in enumerate(({"kubeconfig": str(config)}, {**by_token, "namespace": name})):
        platform = Kubernetes(name="cluster", **images, **entry)
        await platform.open(tmp_path / str(number))
        trial = ConformanceTrial(platform, PATIENCE)
        try:
            state = await trial.wait_for_end(await trial.submit("true"))
            assert state.end is not None
            assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0)
        finally:
            await trial.clean()
            await platform.close()


async def test_a_platform_that_is_opened_again_finds_what_runs_and_nothing_is_left_after_a_cancel_and_a_sweep(
    namespace: Namespace, tmp_path: Path
) -> None:
    first, second = namespace.platform(), namespace.platform()
    await first.open(tmp_path)
    trial = ConformanceTrial(first, PATIENCE)
    job = await trial.submit("sleep", "3600")
    await first.close()
    (tmp_path / "sessions" / job / "submitted").unlink()  # as if it had been killed before it could note that
    await second.open(tmp_path)
    trial.platform = second
    try:
        assert await second.find(job) == job
        assert await second.submit(trial.job("sleep", "3600"), job) == job
        assert len([name for name in namespace.list_left() if name.startswith("job")]) == 1
        assert list(await second.list_left()) == [job]
        await second.cancel([job], "marie")
        await trial.wait_for_end(job)
        await second.clean(job)
        assert list(await second.list_left()) in ([], [job])  # its pod may still be on its way out

        async def is_gone() -> bool:
            return not namespace.list_left()

        await trial.until("all of it to be gone", is_gone)
    finally:
        await second.close()
