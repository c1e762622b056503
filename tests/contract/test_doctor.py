"""What the doctor says of the database in use, on a real one."""

from __future__ import annotations

from pathlib import Path

from sublet.cli.doctor.settings import database
from sublet.kernel.home import Home
from tests.postgres import Postgres


def test_postgresql_is_named_when_it_is_in_use(tmp_path: Path, postgres: Postgres) -> None:
    (tmp_path / "sublet.toml").write_text(f'database = "{postgres.create()}"\n')
    [found] = database(Home(str(tmp_path)))
    assert (found.state, found.detail.split()[0]) == ("ok", "PostgreSQL")
    assert "postgresql://" in found.detail
