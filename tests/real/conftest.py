"""What the tests on real components share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.service import Service
from tests.real.clusters import logged_in
from tests.real.staging import settings_of
from tests.real.workers import worker  # noqa: F401 - a fixture
from tests.sites import Site
from tests.web_source import WebSource, serve_source


@pytest.fixture(scope="module")
def home(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a service, with an open login to the site."""
    place = tmp_path_factory.mktemp("h")
    with logged_in(site, place):
        yield place


@pytest.fixture(scope="module")
def source(site: Site) -> Iterator[WebSource]:
    """A server that this machine and the site's login host reach."""
    with serve_source(".".join([*site.host.split(".")[:3], "1"])) as server:
        yield server


@pytest.fixture
async def service(site: Site, home: Path) -> AsyncIterator[Service]:
    """A service that brings data to the site, and has nothing else."""
    async with open_service(settings_of(site, home)) as opened:
        yield opened
