"""A service with a real Kubernetes beside this machine: asked, killed between calls, cancelled and swept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.booking.calls.platforms import sweep
from sublet.kernel.errors import SubletError
from tests.engines.kubernetes_cluster import Namespace
from tests.nursery import typed
from tests.serving import Serving, eventually

pytestmark = pytest.mark.engines
PATIENCE = 300.0  # seconds, on a busy machine


@pytest.fixture
def serving(tmp_path: Path, namespace: Namespace) -> Iterator[Serving]:
    home = tmp_path / "home"
    home.mkdir()
    values = namespace.settings()
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    (home / "sublet.toml").write_text("\n".join(["[platforms.lab]", 'kind = "kubernetes"', *lines]) + "\n")
    service = Serving(home, environment={"SUBLET_HOLD": "2m"})
    try:
        yield service
    finally:
        service.stop()


def count_created(namespace: Namespace, kind: str) -> int:
    """How many objects of a kind were ever made by a controller, or are there."""
    words = ("-n", namespace.name, "get", "events", "-o", "json", "--field-selector", f"involvedObject.kind={kind}")
    events = json.loads(namespace.cluster.kubectl(*words))["items"]
    return len({event["involvedObject"]["uid"] for event in events})


@pytest.mark.parametrize("point", ["submit.before", "submit.after", "running.after", "ended.before"])
def test_a_service_that_is_killed_there_finds_its_one_job_again(
    serving: Serving, namespace: Namespace, point: str
) -> None:
    client = serving.start(SUBLET_CRASH_AT=point)
    offer = client.ask(run=["sh", "-c", "echo ran >>ran; sleep 1; echo done"], time="2m", cores=1)[0]
    with contextlib.suppress(SubletError):
        offer.accept()
    assert serving.died() == -9, serving.log()
    client = serving.start()
    ended = client.session(offer.id).wait(timeout=PATIENCE)
    assert (ended.phase, ended.end.code) == ("COMPLETED", 0), (ended.end, serving.log())
    assert count_created(namespace, "Job") == 1
    assert count_created(namespace, "Pod") == 1
    eventually(lambda: not namespace.list_left(), "nothing to be left in the cluster", PATIENCE)


def test_nothing_is_left_after_a_cancel_and_a_sweep(serving: Serving, namespace: Namespace) -> None:
    client = serving.start()
    session = client.ask(run=["sleep", "600"], time="20m", cores=1)[0].accept()
    eventually(lambda: client.session(session.id).phase == "RUNNING", "it to run", PATIENCE)
    assert len([name for name in namespace.list_left() if name.startswith("job")]) == 1
    session.cancel()
    ended = client.session(session.id).wait(timeout=PATIENCE)
    assert ended.phase == "CANCELLED"
    client.do(sweep("lab"))
    eventually(lambda: not namespace.list_left(), "nothing to be left in the cluster", PATIENCE)


def test_a_person_adds_a_cluster_and_runs_a_command_an_image_and_asks_for_too_much(
    tmp_path: Path, namespace: Namespace
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "sublet.toml").write_text('[platforms.here]\nkind = "local"\ncores = 1\nmemory = "1GiB"\n')
    serving = Serving(home)
    client = serving.start()
    try:
        words = [f"--set={name}={value}" for name, value in namespace.settings().items()]
        added = typed(["system", "add", "lab", "--scheduler", "kubernetes", *words], serving.environment)
        assert "lab is added" in added.stdout, added.stderr
        eventually(lambda: "lab" in [each.name for each in client.platforms()], "the platform", PATIENCE)
        offers = client.ask(run=["true"], time="1m", cores=1)
        assert {offer.platform for offer in offers} == {"here", "lab"}
        ran = typed(
            ["run", "--platform", "lab", "--time", "2m", "--", "sh", "-c", "echo from a pod"], serving.environment
        )
        assert (ran.returncode, ran.stdout) == (0, "from a pod\n"), ran.stderr
        image = typed(
            [
                "run",
                "--platform",
                "lab",
                "--time",
                "2m",
                "--image",
                "localhost/python:3",
                "--",
                "python3",
                "-c",
                "print(6 * 7)",
            ],
            serving.environment,
        )
        assert (image.returncode, image.stdout) == (0, "42\n"), image.stderr
        much = typed(["ask", "--platform", "lab", "--cores", "64", "--", "true"], serving.environment)
        assert much.returncode == 1
        assert "2 cores" in much.stdout + much.stderr
    finally:
        serving.stop()
