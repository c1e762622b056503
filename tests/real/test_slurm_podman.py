"""Containers on a cluster, by Podman without root: images are unpacked before a session's time, once for all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from tests.real import images
from tests.real.researchers import at
from tests.registries import registry
from tests.serving import eventually
from tests.sites import Site
from tests.sites import running as site_running
from tests.web_source import serve_source

pytestmark = pytest.mark.engines

KEPT = "/home/researcher/.sublet/kept"
WRONG = "sha256:" + "0" * 64
SUBORDINATE = "echo researcher:300000:65536 >/etc/subuid; cp /etc/subuid /etc/subgid"  # whom a container's users are


@pytest.fixture(scope="module")
def cluster(swept: None) -> Iterator[Site]:
    if not shutil.which("podman") or not images.made_busybox():
        pytest.skip("podman or busybox-static is not installed")
    with site_running("--nodes", "1") as site:
        site.on("c1", "sh", "-c", SUBORDINATE)
        site.on("login", "rm", "-f", "/usr/bin/ch-run")  # which would be preferred; the machine itself keeps its own
        yield site


@pytest.fixture(scope="module")
def client(cluster: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with at(cluster, tmp_path_factory.mktemp("own") / "home") as person:
        client = person.serving.start()
        assert person.signs_in() == 0, person.said
        eventually(lambda: client.ask(run=["true"], platform=cluster.name).result == "YES", "an offer", 90)
        yield client


def start(client: Client, site: Site, image: Any, *words: str, **wishes: Any) -> Any:
    """A session of a container, accepted."""
    common = {"platform": site.name, "time": "3m", "memory": "200MiB", "image": image, "run": list(words)}
    offers = client.ask(**(common | wishes))
    assert offers, offers.reasons
    assert offers[0].view.way == "podman"
    return offers[0].accept()


def read(session: Any, stream: str = "stdout") -> str:
    return "".join(session.logs(stream=stream))


def wait_for(*sessions: Any) -> list[str]:
    """What each says, once it has ended well."""
    for session in sessions:
        assert session.wait(timeout=180).exit_code == 0, (session.end, read(session, "stderr"))
    return [read(session) for session in sessions]


def list_kept(site: Site) -> set[str]:
    return set(site.on("researcher@login", "ls", KEPT, check=False).split())


def require_unpacked_before(site: Site, entry: str, *sessions: Any) -> None:
    """It was there when the first of them began, and Podman has loaded nothing."""
    made = float(site.on("researcher@login", "stat", "-c", "%.6Y", f"{KEPT}/{entry}/unpacked/image.json"))
    assert made <= min(session.view.started.timestamp() for session in sessions)
    assert site.on("researcher@c1", "podman", "images", "--quiet").strip() == ""
    assert site.on("researcher@c1", "podman", "ps", "--all", "--quiet").strip() == ""


def test_an_archive_that_is_sent_is_unpacked_once_and_runs_as_its_configuration_says(
    client: Client, cluster: Site, tmp_path: Path
) -> None:
    own = {"Env": ["PATH=/bin", "OF_IMAGE=a b"], "Entrypoint": ["/bin/echo", "entry"], "Cmd": ["by", "default"]}
    id = images.docker_archive(tmp_path / "own.tar", WorkingDir="/opt/none/yet", **own)
    image = {"locations": [f"file://{tmp_path}/own.tar"], "digest": id}
    script = "id -u; pwd; echo $OF_IMAGE; echo changed >/app/doc; cat /app/doc; echo left >/work/out"
    plain = start(client, cluster, image)
    inner = start(client, cluster, image, script, entrypoint=["sh", "-c"])
    wrong = start(client, cluster, {**image, "digest": WRONG})
    assert wait_for(plain, inner) == ["entry by default\n", "0\n/opt/none/yet\na b\nchanged\n"]
    assert inner.result("out").text() == "left\n"
    wrong.wait(timeout=120)
    assert (wrong.phase, wrong.end.kind) == ("FAILED", "staging-failed"), wrong.end
    assert WRONG in wrong.end.detail
    [entry] = list_kept(cluster)
    require_unpacked_before(cluster, entry, plain, inner)
    root = f"{KEPT}/{entry}/unpacked/root"
    assert cluster.on("researcher@login", "cat", f"{root}/app/doc") == "made for tests\n", "no session changes it"


def test_an_image_that_runs_as_a_user_of_its_own_owns_its_files_and_writes_results(
    client: Client, cluster: Site, tmp_path: Path
) -> None:
    before = list_kept(cluster)
    images.oci_archive(tmp_path / "ann.tar", Entrypoint=[], User="ann", StopSignal="SIGINT", Env=["PATH=/bin"])
    images.oci_archive(tmp_path / "number.tar", Entrypoint=[], User="1234", Env=["PATH=/bin"])
    script = "id -u; id -g; touch /app/mine && ls /app; pwd; echo left >out"
    ann = start(client, cluster, f"file://{tmp_path}/ann.tar", "sh", "-c", script)
    number = start(client, cluster, f"file://{tmp_path}/number.tar", "sh", "-c", script)
    shown = "doc\nmine\n/work\n"
    assert wait_for(ann, number) == [f"1000\n1000\n{shown}", f"1234\n0\n{shown}"]
    assert [session.result("out").text() for session in (ann, number)] == ["left\n"] * 2
    for entry in list_kept(cluster) - before:
        require_unpacked_before(cluster, entry, ann, number)


def test_archives_at_an_address_and_images_of_a_registry_come_once_and_are_unpacked_before(
    client: Client, cluster: Site, tmp_path: Path
) -> None:
    images.oci_archive(tmp_path / "web.tar", Entrypoint=[], Env=["PATH=/bin", "FROM=web"])
    images.oci_archive(tmp_path / "near.tar", Entrypoint=[], Env=["PATH=/bin", "FROM=shop"])
    with serve_source(cluster.facts["here"]) as source, registry() as near:
        near.push("tools/near", "1", tmp_path / "near.tar")
        web = source.put("/web.tar", (tmp_path / "web.tar").read_bytes())
        for image, said in ((web, "web\n"), (f"{near.address}/tools/near:1", "shop\n")):
            before = list_kept(cluster)
            sessions = [start(client, cluster, image, "sh", "-c", "echo $FROM") for _ in range(2)]
            assert wait_for(*sessions) == [said] * 2
            [entry] = list_kept(cluster) - before
            require_unpacked_before(cluster, entry, *sessions)
        assert len(source.gets("/web.tar")) == 1
        fetched = near.fetched()  # a configuration and a layer; again, if the site did not answer in time
        assert wait_for(start(client, cluster, f"{near.address}/tools/near:1", "sh", "-c", "echo $FROM")) == ["shop\n"]
        assert near.fetched() == fetched


def test_an_image_that_is_named_by_its_path_there_is_unpacked_once(client: Client, cluster: Site) -> None:
    before = list_kept(cluster)
    images.oci_archive(Path(cluster.facts["scratch"], "named.tar"), Entrypoint=[], Env=["PATH=/bin", "FROM=there"])
    image = "oci-archive:/scratch/named.tar"
    sessions = [start(client, cluster, image, "sh", "-c", "echo $FROM") for _ in range(2)]
    assert wait_for(*sessions) == ["there\n"] * 2
    [entry] = list_kept(cluster) - before
    require_unpacked_before(cluster, entry, *sessions)
