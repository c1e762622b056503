"""One Kubernetes for a whole run, whichever ring needs it; what takes long to import is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testbed.kubernetes.cluster import Cluster

    from tests.engines.kubernetes_cluster import Namespace

JUPYTER = "localhost/jupyter:1"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster that is up; what this machine lacks for one is said aloud."""
    from testbed.kubernetes.cluster import start_cluster
    from testbed.plan import Skip

    try:
        with start_cluster() as started:
            yield started
    except Skip as missing:
        pytest.skip(str(missing))


@pytest.fixture
def namespace(cluster: Cluster, tmp_path: Path) -> Namespace:
    """A namespace of a test's own."""
    from tests.engines.kubernetes_cluster import make_namespace

    return make_namespace(cluster, tmp_path, {"requests.cpu": "2", "requests.memory": "2Gi", "pods": "10"})


@pytest.fixture(scope="session")
def jupyter_image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name under which the cluster has an image with papermill and JupyterLab, made of what is installed here."""
    from tests.real.jupyter_image import jupyter_archive

    archive = tmp_path_factory.mktemp("image") / "jupyter.tar"
    jupyter_archive(archive, with_lab=True, name=JUPYTER)
    cluster.import_image(archive)
    archive.unlink()
    return JUPYTER
