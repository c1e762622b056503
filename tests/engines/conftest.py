"""What tests with an OpenStack share: one cloud for a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.openstack.cloud import Cloud, start_cloud
from testbed.plan import Skip

from tests.engines.openstack_cloud import Project


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    """A cloud that is up; what this machine lacks for one is said aloud."""
    try:
        with start_cloud() as started:
            yield started
    except Skip as missing:
        pytest.skip(str(missing))


@pytest.fixture
def project(cloud: Cloud, tmp_path: Path) -> Project:
    """The project of the cloud, with files of a test's own."""
    return Project(cloud, tmp_path)
