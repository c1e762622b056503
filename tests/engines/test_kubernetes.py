"""A real Kubernetes, with a kubelet that runs pods, keeps the promises of every platform."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from testbed.kubernetes.cluster import Cluster

from sublet.platforms.conformance import Rule, rules_for, try_rule
from sublet.platforms.kubernetes.platform import Kubernetes
from tests.engines.asking import PATIENCE
from tests.engines.kubernetes_cluster import Namespace, make_namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def shared(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Namespace:
    return make_namespace(
        cluster, tmp_path_factory.mktemp("kubernetes"), {"requests.cpu": "2", "requests.memory": "2Gi"}
    )


@pytest.fixture
async def platform(shared: Namespace, tmp_path: Path) -> AsyncIterator[Kubernetes]:
    made = shared.platform()
    await made.open(tmp_path)
    yield made
    await made.close()


@pytest.mark.parametrize("rule", rules_for(Kubernetes(name="cluster")), ids=lambda rule: rule.__name__)
async def test_kubernetes_keeps_the_rule(platform: Kubernetes, rule: Rule) -> None:
    finding = await try_rule(platform, rule, PATIENCE)
    assert finding.ok, f"{finding.rule} {finding.detail}"
