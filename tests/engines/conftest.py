"""What tests with large servers share: one Kubernetes for a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.kubernetes.cluster import Cluster, start_cluster
from testbed.plan import Skip

from tests.engines.kubernetes_cluster import Namespace, make_namespace


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster that is up; what this machine lacks for one is said aloud."""
    try:
        with start_cluster() as started:
            yield started
    except Skip as missing:
        pytest.skip(str(missing))


@pytest.fixture
def namespace(cluster: Cluster, tmp_path: Path) -> Namespace:
    """A namespace of a test's own."""
    return make_namespace(cluster, tmp_path, {"requests.cpu": "2", "requests.memory": "2Gi", "pods": "10"})
