"""The migrations make exactly the tables that the code believes in, whoever starts first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from sublet.booking.model.marks import write_marks
from sublet.cli.doctor.settings import database as check_in_doctor
from sublet.kernel.db.engine import Database
from sublet.kernel.db.versions import HEAD
from sublet.kernel.errors import BrokenStore
from sublet.kernel.home import Home
from sublet.store import Store
from sublet.store.migrate import CopyBefore, migrate, upgrade, version
from sublet.store.migrations import config_for
from sublet.store.tables import metadata
from tests.contract.stored import offer_some, rows
from tests.nursery import talking, typed
from tests.postgres import Postgres

OPENER = "tests.contract.opener"


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create()


def by_migrations(database: Database) -> None:
    """Bring an empty database up to date step by step, as it was with those who began earlier."""
    with database.writing.connect() as connection:
        database.begin(connection)
        upgrade(database, connection)
        connection.commit()


@pytest.mark.parametrize("furnished", [by_migrations, migrate])
def test_the_tables_of_the_code_are_those_of_the_newest_migration(
    empty_url: str, furnished: Callable[[Database], None]
) -> None:
    database = Database(empty_url)
    furnished(database)
    with database.writing.connect() as connection:
        assert version(connection) == HEAD
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": database.postgres}
        )
        assert compare_metadata(context, metadata) == []
        assert ScriptDirectory.from_config(config_for(connection)).get_heads() == [HEAD]
    database.close()


def test_the_migrations_can_be_undone_and_done_again(empty_url: str) -> None:
    database = Database(empty_url)
    by_migrations(database)
    with database.writing.connect() as connection:
        database.begin(connection)
        command.downgrade(config_for(connection), "base")
        connection.commit()
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
    migrate(database)
    with database.writing.connect() as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())
    database.close()


def test_processes_that_start_together_on_an_empty_database_all_succeed(empty_url: str) -> None:
    started = [talking(OPENER, [empty_url], os.environ) for _ in range(3)]
    assert [list(process.lines()) for process in started] == [["False\n"]] * 3
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert rows(empty_url, "SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_a_database_that_is_up_to_date_is_opened_without_the_migration_tool(store_url: str) -> None:
    Store.open(store_url).close()
    assert typed([store_url], os.environ, program=OPENER).stdout.strip() == "False"


def test_a_database_of_a_newer_version_is_refused(empty_url: str, tmp_path: Path) -> None:
    Store.open(empty_url).close()
    (tmp_path / "sublet.toml").write_text(f'database = "{empty_url}"\n')
    assert [(one.state, one.what) for one in check_in_doctor(Home(str(tmp_path)))] == [("ok", "database")]
    database = Database(empty_url)
    with database.writing.connect() as connection:
        database.begin(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    database.close()
    with pytest.raises(BrokenStore) as caught:
        Store.open(empty_url, copies=CopyBefore(tmp_path / "backups"))
    assert f"newer version of Sublet made its tables (9999; this one knows those up to {HEAD})" in caught.value.message
    assert "sublet restore FILE --replace" in caught.value.advice
    assert not (tmp_path / "backups").exists()
    (finding,) = check_in_doctor(Home(str(tmp_path)))
    assert (finding.state, "newer version of Sublet made its tables (9999;" in finding.detail) == ("bad", True)
    assert "sublet restore FILE --replace" in finding.todo


def test_a_database_is_copied_before_its_tables_are_changed(tmp_path: Path) -> None:
    """Whoever goes back to the older version can put the copy back."""
    file, copies = tmp_path / "sublet.db", CopyBefore(tmp_path / "backups", keep=2)
    for number in range(3):
        Store.open(f"sqlite:///{file}").close()
        database = Database(f"sqlite:///{file}")
        with database.writing.connect() as connection:
            database.begin(connection)
            command.downgrade(config_for(connection), "0006")
            connection.execute(text(f"INSERT INTO codes VALUES ('{number}', 'a', 'b', 'c', 1, 2, 3)"))
            connection.commit()
        database.close()
        Store.open(f"sqlite:///{file}", copies=copies).close()
        (newest, *_) = sorted((tmp_path / "backups").iterdir(), key=os.path.getmtime, reverse=True)
        newest.rename(newest.with_name(f"sublet-0006-{number}.db"))  # several in one second
    names = sorted(one.name for one in (tmp_path / "backups").iterdir())
    assert len(names) == 2
    found = rows(f"sqlite:///{tmp_path}/backups/sublet-0006-2.db", "SELECT version_num FROM alembic_version")
    assert found == [("0006",)]
    assert len(rows(f"sqlite:///{tmp_path}/backups/sublet-0006-2.db", "SELECT id FROM codes")) == 3
    assert rows(f"sqlite:///{file}", "SELECT version_num FROM alembic_version") == [(HEAD,)]


SAID = {  # what versions without marks said of a session → the marks that it has
    "paused: stopped on its node; its time runs on; ends soon, at 2030-01-07 13:00:00 UTC": "paused warned",
    "unknown: the platform has no record of it; if that stays so, it is given up at 13:00:00 UTC": "lost",
    "being cancelled; unknown: the platform has no record of it": "lost",
    "Sign in to here first. sublet system login here": "login-needed",
    "Sign in to there first. sublet system login there": "",
    "here is being drained by its operator: cooling": "held-back",
    "of 2 parts 1 run, 1 wait: Slurm job 7 waits in debug": "",
    "": "",
}


def test_what_conditions_said_before_there_were_marks_becomes_marks_once(store_url: str) -> None:
    store = Store.open(store_url)
    sessions = store.write_sync(lambda tx: offer_some(tx, count=len(SAID) + 1))
    store.close()
    database = Database(store_url)
    with database.writing.connect() as connection:
        database.begin(connection)
        command.downgrade(config_for(connection), "0013")
        connection.execute(text("INSERT INTO drains (platform, by, created, reason) VALUES ('here', 'op', 1, '')"))
        for session, words in zip(sessions, [*SAID, "paused, and over"], strict=True):
            phase = "COMPLETED" if words.endswith("over") else "PREPARING"
            said = {"said": words, "phase": phase, "id": session.id}
            connection.execute(text("UPDATE sessions SET condition = :said, phase = :phase WHERE id = :id"), said)
        connection.commit()
    database.close()
    store = Store.open(store_url)
    found = store.read_sync(lambda tx: [tx.sessions.get(session.id) for session in sessions])
    store.close()
    assert [write_marks(one.marks) for one in found if one] == [*SAID.values(), ""]
