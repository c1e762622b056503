"""One OpenStack for a whole run, whichever ring needs it; what takes long to import is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testbed.openstack.cloud import Cloud

    from tests.engines.openstack_cloud import Project


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    """A cloud that is up; what this machine lacks for one is said aloud."""
    from testbed.openstack.cloud import start_cloud
    from testbed.plan import Skip

    try:
        with start_cloud() as started:
            yield started
    except Skip as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def debian(cloud: Cloud) -> str:
    """The name of an image of alice's with a distribution's system, Podman and JupyterLab."""
    from testbed.openstack.disk import have_disk
    from testbed.openstack.images import upload_disk
    from testbed.plan import Skip

    try:
        parts = have_disk()
    except Skip as missing:
        pytest.skip(str(missing))
    upload_disk(cloud, "alice", "debian", parts)
    return "debian"


@pytest.fixture
def project(cloud: Cloud, tmp_path: Path) -> Project:
    """The project of the cloud, with files of a test's own."""
    from tests.engines.openstack_cloud import Project

    return Project(cloud, tmp_path)
