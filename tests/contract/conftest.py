"""A store on each database, empty for every test; a machine and the ways to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from sublet.store import Store
from sublet.store.tables import metadata
from tests.contract.carrying import splits  # noqa: F401 - a fixture
from tests.contract.far_system import old_programs, old_slurm, slurm  # noqa: F401 - fixtures
from tests.contract.reaching import far, far_login, far_server, reach  # noqa: F401 - fixtures
from tests.databases import put_database
from tests.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that is up to date and empty."""
    if request.param == "sqlite":
        put_database(tmp_path / "sublet.db")
        return f"sqlite:///{tmp_path}/sublet.db"
    server: Postgres = request.getfixturevalue("postgres")
    server.sql(emptied(server), "migrated")  # quicker than a new one
    return server.url("migrated")


@cache
def emptied(server: Postgres) -> str:
    """What leaves no rows in any table, and lets numbers begin anew; where there is little, quicker than TRUNCATE."""
    numbers = server.sql("SELECT relname FROM pg_class WHERE relkind = 'S'", "migrated").split()
    rows = [f'DELETE FROM "{table.name}"' for table in reversed(metadata.sorted_tables)]
    return "; ".join([*rows, *(f'ALTER SEQUENCE "{number}" RESTART' for number in numbers)])


@pytest.fixture
def open_store(store_url: str) -> Iterator[Callable[[], Store]]:
    """Opens the database once more, as another process would."""
    stores: list[Store] = []

    def open_one() -> Store:
        stores.append(Store.open(store_url))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    """One store."""
    return open_store()
