"""Data that sessions on a real Kubernetes bring is kept in a claim: sent once for a person, and seen by nobody else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import Mount
from sublet.booking.model.session import EndKind
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.kubernetes.platform import Kubernetes
from tests.engines.asking import PATIENCE
from tests.engines.kubernetes_cluster import Namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
BODY = os.urandom(5 << 20)
LARGE = 4 << 20


@pytest.fixture
def claim(namespace: Namespace) -> str:
    """A claim on a directory of the node, as an administrator may give one."""
    room: dict[str, Any] = {"storage": "1Gi"}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "manual"}
    path = {"path": f"/var/tmp/{namespace.name}", "type": "DirectoryOrCreate"}
    volume = {"capacity": room, "hostPath": path, "persistentVolumeReclaimPolicy": "Retain", **spec}
    wanted = {"resources": {"requests": room}, "volumeName": namespace.name, **spec}
    metadata = {"name": namespace.name}
    namespace.cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": namespace.name},
            "spec": wanted,
        },
    )
    return "data"


@pytest.fixture
async def platform(namespace: Namespace, claim: str, tmp_path: Path) -> AsyncIterator[Kubernetes]:
    made = namespace.platform(claim=claim)
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def trial(platform: Kubernetes) -> AsyncIterator[ConformanceTrial]:
    made = ConformanceTrial(platform, PATIENCE)
    yield made
    await made.clean()


async def bring(trial: ConformanceTrial, script: str, person: str, **more: Any) -> int:
    """Run a script beside the data, and see it end well; how many bytes were sent."""
    key = trial.key()
    place = await trial.platform.place(key)
    assert place is not None
    (place / "data" / "cube").mkdir(parents=True)
    (place / "data" / "cube" / "a.fits").write_bytes(BODY)
    (place / "data" / "cube" / "small").write_bytes(b"small")
    job = replace(trial.job("sh", "-c", script), person=person, **more)
    end = (await trial.wait_for_end(await trial.platform.submit(job, key))).end
    printed = await trial.platform.output(key, "stderr", 0, 1000)
    assert end is not None
    assert (end.kind, end.code) == (EndKind.EXITED, 0), (end, printed)
    return int((place / "carried").read_text())


async def test_data_is_sent_once_for_all_sessions_of_a_person_and_is_seen_by_nobody_else(
    trial: ConformanceTrial, namespace: Namespace
) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    check = f'cd $SUBLET_DATA/cube && [ "$(sha256sum <a.fits)" = "{digest}  -" ] && [ "$(cat small)" = small ]'
    assert await bring(trial, check, "ann@example.org") > LARGE
    assert await bring(trial, check, "ann@example.org") < LARGE, "it was there"
    alone = f"{check} && [ $(ls /kept | wc -l) = 1 ] && ! touch /kept/x"
    assert await bring(trial, alone, "bob@example.org") > LARGE, "what ann sent is not bob's to see"
    seen = json.loads(namespace.cluster.kubectl("-n", namespace.name, "get", "pvc", "data", "-o", "json"))
    assert seen["status"]["phase"] == "Bound"


async def test_what_a_session_may_change_is_its_own(trial: ConformanceTrial) -> None:
    change = 'echo more >>"$SUBLET_DATA/cube/a.fits"'
    writable = {"mounts": (Mount("data/cube", "cube", read_only=False),)}
    for _ in range(2):
        assert await bring(trial, change, "ann@example.org", **writable) > LARGE
