"""What every ring of tests shares."""

from pathlib import Path

import pytest

from tests.access_points import ap_site, person  # noqa: F401 - fixtures for every ring
from tests.sites import fresh_site, new_site, site, swept  # noqa: F401 - fixtures for every ring


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio alone."""
    return "asyncio"


RINGS = ("real", "docs", "browser", "cli", "contract", "api", "unit")
LONG = (
    "split",
    "annex",
    "pilot",
    "jobs",
    "access_point",
    "guides",
    "guest",
)  # in the names of files that wait the most


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what waits the longest, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: _turn(item.path))  # a stable sort: within a file the order stays


def _turn(file: Path) -> tuple[bool, int, str]:
    ring = next((number for number, ring in enumerate(RINGS) if ring in file.parts), len(RINGS))
    return not any(word in file.name for word in LONG) or ring > 1, ring, str(file)
