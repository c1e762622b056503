"""Containers on a cluster, by Apptainer: an image is sent or pulled once, checked, and sees only what it should."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.apps.calls import trials
from sublet.apps.model.tree import TreeFile, archive_of
from sublet.client import Client
from sublet.data.calls import places
from sublet.data.views.places import PlaceAsk
from tests.real import images, mpi
from tests.real.jupyter_image import jupyter_archive
from tests.real.notebooks import notebook
from tests.real.researchers import at
from tests.registries import registry
from tests.serving import eventually
from tests.sites import Site
from tests.sites import running as site_running
from tests.web_source import serve_source

pytestmark = pytest.mark.engines

KEPT = "/home/researcher/.sublet/kept"
LOOK = "cat /compute_shared/dem.txt; (echo x >/compute_shared/new) 2>/dev/null || echo refused"
MANIFEST = {"name": "flood", "container": "box", "execution_stage": "sh /job/executable/main.sh"}
WRONG = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def box(swept: None) -> Iterator[Site]:
    if not images.made_busybox():
        pytest.skip("busybox-static is not installed")
    with site_running("--base", "box", "--nodes", "4") as site:
        for word in ("APPTAINER_BINDPATH=/home,/scratch", "APPTAINERENV_SITE=yes"):  # as modules of centres say
            site.on("researcher@login", "sh", "-c", f"echo export {word} >>~/.bashrc")
        site.on("researcher@login", "sh", "-c", "mkdir -p /scratch/another && echo theirs >/scratch/another/result")
        yield site


@pytest.fixture(scope="module")
def client(box: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with at(box, tmp_path_factory.mktemp("own") / "home") as person:
        client = person.serving.start()
        assert person.signs_in() == 0, person.said
        eventually(lambda: client.ask(run=["true"], platform=box.name).result == "YES", "an offer", 90)
        yield client


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


def asked(client: Client, site: Site, image: Any, *words: str, **wishes: Any) -> Any:
    """A session of a container, accepted."""
    common = {"platform": site.name, "time": "3m", "memory": "200MiB", "image": image, "run": list(words)}
    offers = client.ask(**(common | wishes))
    assert offers, offers.reasons
    return offers[0].accept()


def said(session: Any, stream: str = "stdout") -> str:
    return "".join(session.logs(stream=stream))


def kept(site: Site) -> list[str]:
    return sorted(site.on("researcher@login", "ls", KEPT, check=False).split())


def test_two_sessions_with_one_image_send_it_once_and_see_only_what_they_should(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "box.tar", Entrypoint=[])
    (made / "cube.txt").write_text("a cube\n")
    data = [{"name": "cube", "location": f"file://{made}/cube.txt", "path": "/input"}]
    script = (
        "cat /input/cube.txt; echo x >/input/new || echo refused; echo left >out.txt; ls /home; ls -a /root"
        "; env; exit 7"
    )
    image = f"file://{made}/box.tar"
    first = asked(client, box, image, "sh", "-c", script, data=data, env={"ODD": "$(id)"})
    second = asked(client, box, image, "sh", "-c", "echo second")
    assert first.wait(timeout=120).exit_code == 7, said(first, "stderr")
    assert second.wait(timeout=120).exit_code == 0, said(second, "stderr")
    lines = said(first).splitlines()
    assert lines[:2] == ["a cube", "refused"]
    assert {"FROM_IMAGE=yes", "ODD=$(id)"} <= set(lines)
    assert not any("SLURM" in line or "SUBLET_SESSION" in line or ".ssh" in line for line in lines), lines
    assert first.result("out.txt").text() == "left\n"
    assert said(second) == "second\n"
    assert "once for all" not in said(first, "stderr") + said(second, "stderr"), "it was made before they began"
    assert len(kept(box)) == 1
    made = float(box.on("researcher@login", "stat", "-c", "%.6Y", f"{KEPT}/{kept(box)[0]}/image.sif"))
    assert made <= min(first.view.started.timestamp(), second.view.started.timestamp())
    assert box.on("researcher@login", "find", "/home/researcher", "-name", ".apptainer") == ""


def test_an_archive_on_a_web_server_is_fetched_and_made_by_the_system_itself_once(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "web.tar", Entrypoint=[], Env=["PATH=/bin", "WEB=yes"])
    before = kept(box)
    with serve_source(box.facts["here"]) as source:
        image = source.put("/web.tar", (made / "web.tar").read_bytes())
        sessions = [asked(client, box, image, "sh", "-c", "echo web $WEB") for _ in range(2)]
        for session in sessions:
            assert session.wait(timeout=180).exit_code == 0, (session.end, said(session, "stderr"))
        third = asked(client, box, image, "sh", "-c", "echo web $WEB")
        assert third.wait(timeout=180).exit_code == 0, said(third, "stderr")
        assert len(source.gets("/web.tar")) == 1
    assert [said(session) for session in [*sessions, third]] == ["web yes\n"] * 3
    assert not any("once for all" in said(session, "stderr") for session in sessions), "it was made before they began"
    [entry] = set(kept(box)) - set(before)
    assert box.on("researcher@login", "ls", f"{KEPT}/{entry}/image.sif")
    assert any(f"was fetched by {box.name} from" in line for line in roads(client, sessions[0])), roads(
        client, sessions[0]
    )
    assert any("was in the cache" in line for line in roads(client, third)), roads(client, third)


def roads(client: Client, session: Any) -> list[str]:
    return [event.detail for event in client.events(session.id)]


def test_an_image_of_a_registry_that_only_this_machine_reaches_is_fetched_here_and_sent_once(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "near.tar", Entrypoint=[], Env=["PATH=/bin", "NEAR=yes"])
    before = kept(box)
    with registry() as near:
        digest = near.push("tools/near", "1", made / "near.tar")
        sessions = [
            asked(client, box, f"{near.address}/tools/near:1", "sh", "-c", "echo near $NEAR"),
            asked(client, box, f"docker://{near.address}/tools/near@{digest}", "sh", "-c", "echo near $NEAR"),
            asked(client, box, {"locations": [f"{near.address}/tools/near:1"], "digest": WRONG}, "true"),
            asked(client, box, f"{near.address}/tools/nothing:1", "true"),
        ]
        for session in sessions:
            session.wait(timeout=120)
    assert [said(session) for session in sessions[:2]] == ["near yes\n"] * 2, sessions[0].end
    assert len(set(kept(box)) - set(before)) == 1
    for session in sessions[2:]:
        assert (session.phase, session.end.kind) == ("FAILED", "staging-failed")
        assert "no such image" in session.end.detail


def test_an_image_of_a_registry_that_the_login_host_reaches_is_pulled_there_once(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "far.tar", Entrypoint=[], Env=["PATH=/bin", "FAR=yes"])
    box.on("researcher@login", "sh", "-c", "echo export APPTAINER_NOHTTPS=true >>~/.bashrc")  # no certificate here
    with registry(box.facts["here"]) as far:
        digest = far.push("tools/far", "1", made / "far.tar")
        image = f"{far.address}/tools/far@{digest}"
        sessions = [asked(client, box, image, "sh", "-c", "echo far $FAR") for _ in range(2)]
        for session in sessions:
            session.wait(timeout=120)
        assert [said(session) for session in sessions] == ["far yes\n"] * 2, sessions[0].end
        assert far.fetched() == 2, "its configuration and its layer, once each"
    assert f"oci-{digest.replace(':', '-')}" in kept(box)


def test_an_image_that_is_not_the_one_that_was_meant_is_refused(client: Client, box: Site, made: Path) -> None:
    right = images.docker_archive(made / "meant.tar")
    shutil.copy(made / "meant.tar", Path(box.facts["scratch"]) / "meant.tar")
    pull = [
        "apptainer",
        "--silent",
        "pull",
        "--disable-cache",
        "/scratch/meant.sif",
        "docker-archive:/scratch/meant.tar",
    ]
    box.on("login", *pull)
    shutil.copy(Path(box.facts["scratch"]) / "meant.sif", made)
    meant = {"meant.tar": right, "meant.sif": images.digest((made / "meant.sif").read_bytes())}
    sessions = []
    for name, digest in meant.items():
        location = f"file://{made}/{name}"
        good = asked(client, box, {"locations": [location], "digest": digest}, "a", "b")
        bad = asked(client, box, {"locations": [location], "digest": WRONG}, "a")
        sessions.append((good, bad))
    for good, bad in sessions:
        assert good.wait(timeout=120).exit_code == 0, said(good, "stderr")
        assert said(good) == "entry a b\n"
        bad.wait(timeout=120)
        assert (bad.phase, bad.end.kind) == ("FAILED", "staging-failed"), bad.end
        assert WRONG in bad.end.detail


def test_an_app_runs_its_execution_stage_in_a_container_for_each_task_over_two_nodes(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "app.tar", Entrypoint=[])
    manifest = """\
name: flood
image: busybox
parameters: {label: {type: string, default: ""}}
resources: {nodes: 1-2, tasks: 1-4, memory: 100MiB-400MiB, time: 1m-5m}
stages:
  pre: {script: 'echo "$user_id on $hpc" > $HOME/pre; ls /home; cat /scratch/another/result; echo "$SITE" >&2'}
  execution: {script: 'echo "$SUBLET_TASK of $SUBLET_TASKS: $param_label" > $result_folder/$SUBLET_TASK', each: task}
  post: {script: 'cat $HOME/pre $result_folder/*; touch x || echo read-only; exit 3'}
"""
    files = [TreeFile("sublet.yaml", manifest.encode()), TreeFile("code/a", b"1"), TreeFile("link", link="code")]
    trial = client.do(trials.try_app(archive_of(files), image=f"file://{made}/app.tar"))
    wishes = {"tasks": 3, "nodes": 2, "cores": 2, "memory": "200MiB", "time": "3m", "platform": box.name}
    offers = client.ask(app=trial.name, parameters={"label": "$(id); 'x'"}, **wishes)
    assert offers, offers.reasons
    session = offers[0].accept()
    assert session.wait(timeout=120).exit_code == 3, said(session, "stderr")
    lines = said(session).splitlines()
    assert lines[0].endswith(f" on {box.name}"), lines
    assert lines[1:] == [*(f"{task} of 3: $(id); 'x'" for task in range(3)), "read-only"]
    assert "No such file" in said(session, "stderr"), "what others left under the same account is not there"
    assert "yes" not in said(session, "stderr").splitlines()
    assert session.end.detail == "the stage post failed"
    assert session.result("result/1").text() == "1 of 3: $(id); 'x'\n"


def test_a_container_for_each_node_runs_once_on_each_and_is_told_where_the_first_is(
    client: Client, box: Site, made: Path
) -> None:
    images.oci_archive(made / "each.tar", Entrypoint=[])
    script = 'echo "$SUBLET_NODE_NUMBER of $SUBLET_NODES $SLURMD_NODENAME $SUBLET_FIRST_NODE"'
    image = f"file://{made}/each.tar"
    session = asked(client, box, image, "sh", "-c", script, nodes=2, each_node=True)
    assert session.wait(timeout=120).exit_code == 0, said(session, "stderr")
    (zero, first, named), (one, second, also) = (line.rsplit(maxsplit=2) for line in sorted(said(session).splitlines()))
    assert (zero, one) == ("0 of 2", "1 of 2")
    assert first == named == also != second


@pytest.mark.soak
def test_an_mpi_program_runs_over_two_nodes_in_a_container_and_an_app_by_apptainer(
    client: Client, box: Site, made: Path
) -> None:
    if missing := mpi.find_missing("mpich"):
        pytest.skip(f"{missing} is not installed")
    mpi.mpi_archive(made / "mpich.tar", "mpich")
    image = f"file://{made}/mpich.tar"
    app = mpi.propose(client, "mpich", image)
    contained = {"image": image, "run": ["python3", "/opt/program.py", "mpich"], "tasks": 4}
    sessions = [mpi.start(client, box, **wish) for wish in (contained, app | {"tasks": 4})]
    alone = mpi.start(client, box, **app, tasks=1, nodes=1)
    for session in sessions:
        assert mpi.lines_of(session) == mpi.expected(4, 2)
    assert mpi.lines_of(alone) == mpi.expected(1, 1)
    for node in ("c1", "c2", "c3"):
        assert "sublet" not in box.on(node, "ls", "/dev/shm"), "shared memory goes with the last task"


@pytest.mark.soak
def test_a_repository_that_is_one_notebook_runs_in_a_generic_image(client: Client, box: Site, made: Path) -> None:
    jupyter_archive(made / "jupyter.tar")
    text = json.dumps(notebook("years = 1", "import os; print('years', years, os.getcwd(), os.listdir('/home'))"))
    code = archive_of([TreeFile("flood.ipynb", text.encode())])
    trial = client.do(trials.try_app(code, image=f"file://{made}/jupyter.tar"))
    offers = client.ask(app=trial.name, parameters={"years": 3}, memory="500MiB", time="5m", platform=box.name)
    assert offers, offers.reasons
    session = offers[0].accept()
    assert session.wait(timeout=180).exit_code == 0, said(session, "stderr")
    assert said(session) == "years 3 /job []\n"
    assert "years 3" in session.result("result/executed.ipynb").text()


@pytest.fixture(scope="module")
def declared(client: Client, box: Site) -> None:
    """Reference data and scratch."""
    box.on("researcher@login", "sh", "-c", "mkdir -p /scratch/reference && echo heights >/scratch/reference/dem.txt")
    shared = PlaceAsk(name="compute_shared", platform=box.name, kind="reference", path="/scratch/reference")
    client.do(places.add(shared))
    client.do(places.add(PlaceAsk(name="scratch", platform=box.name, kind="scratch", keep=3600)))


def test_reference_data_is_read_only_and_scratch_is_found_again_by_the_next_session(
    client: Client, box: Site, made: Path, declared: None
) -> None:
    images.oci_archive(made / "box.tar", Entrypoint=[])
    image = f"file://{made}/box.tar"
    script = f"{LOOK}; cat /compute_shared/dem.txt >$SUBLET_PLACE_SCRATCH/kept; ls /home; echo $SUBLET_PLACE_SCRATCH"
    first = asked(client, box, image, "sh", "-c", script, places=["compute_shared", "scratch"])
    second = asked(
        client, box, image, "cat", "/mine/kept", places=[{"name": "scratch", "path": "/mine"}], after=[first.id]
    )
    assert first.wait(timeout=120).exit_code == 0, said(first, "stderr")
    assert said(first).splitlines() == ["heights", "refused", "/scratch"]
    assert second.wait(timeout=120).exit_code == 0, (second.end, said(second, "stderr"))
    assert said(second) == "heights\n"
    [found] = box.on("researcher@login", "sh", "-c", "cd ~/.sublet/places && stat -c '%a %n' *").splitlines()
    assert found.startswith("700 scratch-")
    plain = client.ask(
        run=["sh", "-c", "cat scratch/kept compute_shared/dem.txt"],
        platform=box.name,
        time="2m",
        places=["scratch", "compute_shared"],
    )[0].accept()
    assert plain.wait(timeout=120).exit_code == 0, said(plain, "stderr")
    assert said(plain) == "heights\nheights\n"
    client.do(places.clear(box.name, "scratch"))
    assert box.on("researcher@login", "ls", "-A", ".sublet/places") == ""
    assert box.on("researcher@login", "ls", "/scratch/reference") == "dem.txt\n", "no session changed it"


def test_a_cybergis_manifest_with_a_mount_runs_where_there_is_such_a_place(
    client: Client, box: Site, made: Path, declared: None
) -> None:
    images.oci_archive(made / "box.tar", Entrypoint=[])
    manifest = json.dumps(MANIFEST | {"mount": ["/compute_shared"], "supported_hpc": [box.name]}).encode()
    code = archive_of([TreeFile("manifest.json", manifest), TreeFile("main.sh", f"{LOOK}\n".encode())])
    trial = client.do(trials.try_app(code, image=f"file://{made}/box.tar"))
    offers = client.ask(app=trial.name, memory="200MiB", time="3m", platform=box.name)
    assert offers, offers.reasons
    session = offers[0].accept()
    assert session.wait(timeout=180).exit_code == 0, said(session, "stderr")
    assert said(session) == "heights\nrefused\n"
    client.do(places.remove(box.name, "compute_shared"))
    refused = client.ask(app=trial.name, memory="200MiB", time="3m", platform=box.name)
    assert refused.result == "NO"
    assert [reason.message for reason in refused.reasons] == [
        f"{box.name} has no place compute_shared; it has: scratch."
    ]
    bad = PlaceAsk(name="gone", platform=box.name, kind="reference", path="/scratch/gone")
    client.do(places.add(bad))
    late = asked(client, box, f"file://{made}/box.tar", "true", places=["gone"]).wait(timeout=60)
    assert "/scratch/gone is not a directory there" in late.end.detail
