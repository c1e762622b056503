"""What goes to a pod and comes back from it, and what two watches know of it."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from sublet.booking.model.job import State
from sublet.booking.model.session import Usage
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.kubernetes import watch
from sublet.platforms.kubernetes.api import ApiServer, ListExpired, ObjectMissing
from sublet.platforms.kubernetes.jobs import SessionJobs
from sublet.platforms.kubernetes.manifests import PodPlace
from sublet.platforms.kubernetes.names import OWNER, SESSION
from sublet.platforms.kubernetes.session import PodSession
from sublet.platforms.kubernetes.states import Left
from sublet.platforms.kubernetes.streams import read_exit
from sublet.platforms.kubernetes.watch import WatchedObjects

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(tmp_path: Path) -> PodSession:
    for name in ("sessions", "running", "news"):
        (tmp_path / name).mkdir()
    made = PodSession("lab", tmp_path, "k1")
    made.make()
    made.write_job({"mounts": [{"target": "in/cube"}], "output_limit": 1000})
    return made


def write_archive(target: Path, *entries: tuple[str, Any]) -> Path:
    with tarfile.open(target, "w") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, tuple):
                entry.type, entry.linkname = content
            else:
                entry.size, entry.mtime = len(content), 1000
            archive.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return target


def test_what_another_node_left_and_printed_is_in_a_folder_of_its_own(session: PodSession, tmp_path: Path) -> None:
    session.write("brought.json", json.dumps({"input": [2, 1000 * 10**9]}).encode())
    archive = write_archive(
        tmp_path / "a",
        ("session/work", None),
        ("session/work/input", b"as"),
        ("session/work/.sublet", None),
        ("session/work/.sublet/script", b"#!/bin/sh"),
        ("session/work/a", None),
        ("session/work/a/b", b"hello"),
        ("session/work/c", (tarfile.LNKTYPE, "session/work/a/b")),
        ("session/stdout", b"out"),
        ("session/stderr", b""),
        ("own/code", b"3\n"),
    )
    (session.work / "a").write_text("of the first")
    assert session.unpack(archive, 1).code == 3
    there = {str(file.relative_to(session.work)) for file in session.work.rglob("*") if file.is_file()}
    assert there == {"a", "nodes/1/a/b", "nodes/1/c", "nodes/1.out"}
    assert (session.work / "nodes/1.out").read_bytes() == b"out"
    assert (session.work / "nodes/1/c").read_bytes() == b"hello"


def test_what_a_pod_left_is_put_in_its_place_and_its_notes_are_read(session: PodSession, tmp_path: Path) -> None:
    archive = write_archive(
        tmp_path / "a",
        ("session/work", None),
        ("session/work/in", None),
        ("session/work/in/cube", (tarfile.SYMTYPE, "/sublet/session/data/cube")),
        ("session/work/a", None),
        ("session/work/a/b", b"hello"),
        ("session/work/c", (tarfile.LNKTYPE, "session/work/a/b")),
        ("session/work/empty", None),
        ("session/stdout", b"out"),
        ("own/code", b"3\n"),
        ("own/times", b"0m0.000s 0m0.000s\n1m2.500s 0m0.250s\n"),
        ("own/peak", b"4096\n"),
        ("own/killed", b"1"),
        ("own/time", b""),
    )
    left = session.unpack(archive)
    assert left == Left(code=3, usage=Usage(0.0, 62.75, 4096), is_over_time=True, killed=1)
    results = session.results()
    assert sorted((file.path, file.size) for file in results.files) == [("a/b", 5), ("c", 5)]
    assert results.folders == ("empty",)
    assert session.output("stdout", 0, 10) == b"out"


def test_a_kinds_own_word_on_the_end_is_read(session: PodSession, tmp_path: Path) -> None:
    words = b'not-started\n"the image is broken"\n'
    assert session.unpack(write_archive(tmp_path / "a", ("session/unstarted", words))) == Left(
        unstarted="not-started", detail="the image is broken"
    )


def test_what_was_brought_and_is_as_it_was_is_not_taken_for_a_result(session: PodSession, tmp_path: Path) -> None:
    for name in ("same", "changed"):
        (session.work / name).write_bytes(b"12345")
    brought = {name: [5, 1000 * 10**9 + 7] for name in ("same", "changed")}
    session.write("brought.json", json.dumps(brought).encode())
    session.unpack(write_archive(tmp_path / "a", ("session/work/same", b"12345"), ("session/work/changed", b"other")))
    assert (session.work / "same").read_bytes() == b"12345"
    assert [file.path for file in session.results().files if file.path != "same"] == ["changed"]


def test_no_link_and_no_name_leads_out_of_the_working_directory(session: PodSession, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (session.work / "way").symlink_to(outside)
    session.unpack(write_archive(tmp_path / "a", ("session/work/way/file", b"x")))
    assert not list(outside.iterdir())
    with pytest.raises(Exception, match="not below the working directory"):
        session.unpack(write_archive(tmp_path / "b", ("session/work/../../up", b"x")))


def test_what_is_small_fits_a_secret_and_belongs_to_nobody(session: PodSession) -> None:
    (session.work / "x").write_bytes(b"x" * 1000)
    packed = session.pack(10_000)
    assert packed is not None
    with tarfile.open(fileobj=gzip.GzipFile(fileobj=io.BytesIO(packed))) as archive:
        assert {entry.name for entry in archive} >= {"work", "work/x", "data"}
        assert {(entry.uid, entry.uname) for entry in archive} == {(0, "")}
    (session.work / "y").write_bytes(bytes(300_000))
    assert session.pack(10_000) is None


def test_the_first_to_cancel_stands(session: PodSession) -> None:
    session.cancel("marie")
    session.cancel("pierre")
    assert session.cancelled_by == "marie"


def test_how_a_program_in_a_pod_ended_is_read() -> None:
    failed = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}
    assert [read_exit(json.dumps(each).encode()) for each in ({"status": "Success"}, failed, {})] == [0, 3, None]
    assert read_exit(b"\xff") is None


class PlayedApi:
    """An API server that plays: lists, and the events of each watch, as they are given."""

    platform = "lab"

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists, self.watches = lists, watches

    def path_of(self, kind: str) -> str:
        return kind

    async def list(self, path: str, **query: str) -> Any:
        if not self.lists:
            await asyncio.Event().wait()
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Any]:
        async def events() -> AsyncIterator[Any]:
            for event in self.watches.pop(0) if self.watches else [asyncio.Event()]:
                if isinstance(event, Exception):
                    raise event
                if isinstance(event, asyncio.Event):
                    await event.wait()
                yield event

        yield events()


def pod(uid: str, version: int, label: str = "k1") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": str(version), "labels": {SESSION: label}}}


def listed(version: int, *pods: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(pods)}


def list_versions(watched: WatchedObjects) -> list[str]:
    return [each["metadata"]["resourceVersion"] for each in watched.find("k1")]


async def watched_by(api: PlayedApi, until: Any) -> tuple[WatchedObjects, list[str]]:
    labels: list[str] = []
    watched = WatchedObjects(api, "pods", "me", labels.append, 0)  # type: ignore[arg-type]
    task = asyncio.create_task(watched.run())
    try:
        async with asyncio.timeout(5):
            while not until(watched):  # noqa: ASYNC110 (a look costs nothing, and nobody tells)
                await asyncio.sleep(0)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return watched, labels


async def test_a_watch_tells_what_changes_and_goes_on_from_where_the_last_one_ended() -> None:
    added, changed = {"type": "ADDED", "object": pod("b", 11)}, {"type": "MODIFIED", "object": pod("a", 12)}
    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "13"}}}
    gone = {"type": "DELETED", "object": pod("b", 14)}
    api = PlayedApi([listed(10, pod("a", 9))], [[added, changed, mark], [gone]])
    watched, labels = await watched_by(
        api, lambda seen: [each["metadata"]["resourceVersion"] for each in seen.find("k1")] == ["12"]
    )
    assert watched.is_live
    assert labels == ["k1"] * 4


async def test_what_a_watch_has_forgotten_and_a_server_that_was_away_are_listed_anew() -> None:
    api = PlayedApi([listed(1, pod("a", 1)), listed(20, pod("c", 20))], [[ListExpired("too old")]])
    await watched_by(api, lambda seen: list_versions(seen) == ["20"])
    away = PlatformUnreachable(platform="lab", why="down")
    api = PlayedApi([away, listed(2, pod("d", 2, "k2"))], [])
    _, labels = await watched_by(api, lambda seen: bool(seen.find("k2")))
    assert labels == ["k2"]


class RefusingApi(PlayedApi):
    """An API server that lets us list and not watch."""

    async def list(self, path: str, **query: str) -> Any:
        return listed(1)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Any]:
        raise PlatformRefused(platform="lab", why='User "alice" cannot watch resource "jobs"')
        yield


async def test_a_watch_that_is_refused_is_tried_less_and_less_often_and_logged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    api, was = RefusingApi([], []), asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await was(0)

    monkeypatch.setattr(watch.asyncio, "sleep", sleep)
    watched = WatchedObjects(api, "jobs", "me", lambda label: None)  # type: ignore[arg-type]
    with capture_logs() as logged:
        task = asyncio.create_task(watched.run())
        while len(pauses) < 8:
            await was(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert pauses[:8] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert [line["event"] for line in logged] == ["watch.failed"]
    assert not watched.is_live


class ExpiringApi(ApiServer):
    """An API server whose lists expire after their first page."""

    def __init__(self) -> None:
        self.platform = "lab"

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        if "continue" in query:
            raise ListExpired("The provided continue parameter is too old")
        return {"metadata": {"continue": "x", "resourceVersion": "1"}, "items": []}


async def test_a_list_that_expires_between_its_pages_is_asked_for_again_later() -> None:
    with pytest.raises(PlatformUnreachable, match="continue parameter is too old"):
        await ExpiringApi().list("/api/v1/pods")


async def test_an_older_answer_overrules_no_newer_one() -> None:
    watched = WatchedObjects(PlayedApi([], []), "pods", "me", lambda label: None)  # type: ignore[arg-type]
    watched.put(pod("a", 5))
    watched.put(pod("a", 3))
    assert watched.find("k1") == [pod("a", 5)]
    watched.drop("a")
    watched.put(pod("a", 6))
    assert watched.find("k1") == []


async def test_deleted_objects_are_remembered_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LATE", 1e-9)
    watched = WatchedObjects(PlayedApi([], []), "pods", "me", lambda label: None)  # type: ignore[arg-type]
    for number in range(100):
        watched.put(pod(f"uid-{number}", number, f"k{number}"))
        watched.drop(f"uid-{number}")
    assert len(watched._removed) == 1
    assert not watched._of_session


class PlayedCluster:
    """An API server with one Job, which gets no pod."""

    platform, access = "lab", SimpleNamespace(namespace="science")
    job: dict[str, Any] | None = pod("job", 1)

    def path_of(self, kind: str, name: str = "") -> str:
        return kind

    async def get(self, path: str) -> Any:
        if self.job is None:
            raise ObjectMissing("gone")
        return {**self.job, "metadata": {**self.job["metadata"], "labels": {OWNER: "me"}}}

    async def list(self, path: str, **query: str) -> Any:
        return {"items": [{"type": "Warning", "reason": "FailedCreate", "message": "no quota"}]}

    async def delete(self, path: str, options: Any = None) -> None:
        if path == "jobs":
            self.job = None


async def test_nothing_of_a_session_that_has_ended_is_remembered(session: PodSession) -> None:
    cluster: Any = PlayedCluster()
    jobs = SessionJobs(cluster, PodPlace("me", "image", "helper"))
    states = await asyncio.gather(jobs.look(session), jobs.look(session))
    assert {state.condition for state in states} == {"FailedCreate: no quota"}
    jobs.groups.heard["k1"] = {"a", "b"}
    session.note("submitted", "job")
    session.cancel("marie")
    await jobs.stop(session)
    assert (await jobs.look(session)).state is State.ENDED
    assert (len(jobs._locks), jobs._warnings, jobs.groups.heard) == (0, {}, {})


async def test_a_list_that_comes_late_hides_nothing_that_the_watch_will_not_tell_again() -> None:
    api = PlayedApi([listed(10, pod("a", 10))], [])
    watched, _ = await watched_by(api, lambda seen: list_versions(seen) == ["10"])
    watched.is_live = False  # the watch that follows the list is being opened
    api.lists.append(listed(9, pod("a", 8)))
    await watched.refresh()
    assert list_versions(watched) == ["10"]
    api.lists.append(listed(12, pod("a", 11)))
    await watched.refresh()
    assert list_versions(watched) == ["11"]


def test_large_data_is_kept_by_its_content_unless_a_session_may_change_it(session: PodSession, tmp_path: Path) -> None:
    for name, size in (("cube/a", 2 << 20), ("cube/small", 10), ("own/b", 2 << 20)):
        (session.root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (session.root / "data" / name).write_bytes(bytes(size))
    (session.root / "data" / "link").symlink_to(session.root / "data" / "cube" / "a")
    session.write_job({"writable": ["data/own"]})
    (kept,) = session.list_large()
    assert (kept.path, kept.size, len(kept.digest)) == ("data/cube/a", 2 << 20, 64)
    session.pack_into(tmp_path / "packed", {kept.path})
    with tarfile.open(tmp_path / "packed") as archive:
        names = archive.getnames()
    assert "data/cube/a" not in names
    assert {"data/cube/small", "data/own/b"} <= set(names)
