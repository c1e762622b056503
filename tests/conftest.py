"""What every ring of tests shares."""

import pytest

from tests.access_points import ap_site, person  # noqa: F401 - fixtures for every ring
from tests.sites import fresh_site, new_site, site, swept  # noqa: F401 - fixtures for every ring


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio alone."""
    return "asyncio"
