"""A database that is gone, cut or damaged is told by doctor and by the start, and never taken for a new one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.kernel.db.record import read_record
from tests.nursery import typed
from tests.serving import Serving

PLAYED = ("--platform", "memory")


def run_one(client: Client) -> None:
    client.ask(run=["true"], time="1m")[0].accept().wait()


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose service was killed with sessions that are in the write-ahead log alone."""
    home = tmp_path_factory.mktemp("used") / "home"
    serving = Serving(home, *PLAYED)
    client = serving.start()
    for _ in range(3):
        run_one(client)
    serving.stop()  # writes down how far it came, and moves the log into the database
    client = serving.start()
    for _ in range(3):
        run_one(client)
    record = read_record(str(home))
    assert record
    deadline = record.events
    while (now := read_record(str(home))) and now.events <= deadline:
        run_one(client)
    serving.kill()
    assert (home / "sublet.db-wal").stat().st_size > 0
    return home


@pytest.fixture
def home(used: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    copied = tmp_path / "home"
    shutil.copytree(used, copied, ignore=shutil.ignore_patterns("run"))
    text = (copied / "database.json").read_text().replace(str(used), str(copied))
    (copied / "database.json").write_text(text)
    return copied


def test_a_service_that_was_killed_starts_again(home: Path) -> None:
    assert typed(["doctor"], {"SUBLET_HOME": str(home)}).stdout.count("database") == 1
    serving = Serving(home, *PLAYED)
    before = len(list(serving.start().sessions()))
    serving.stop()
    assert before > 6
    assert "damaged" not in serving.log()


def cut(home: Path) -> None:
    (home / "sublet.db-wal").unlink()


def truncate(home: Path) -> None:
    log = home / "sublet.db-wal"
    with log.open("r+b") as file:
        file.truncate(32 + (log.stat().st_size - 32) // 2)


def lose(home: Path) -> None:
    for file in home.glob("sublet.db*"):
        file.unlink()


def empty(home: Path) -> None:
    lose(home)
    (home / "sublet.db").touch()


def damage(home: Path) -> None:
    """A page in the middle is overwritten, and the log moved in before."""
    with sqlite3.connect(home / "sublet.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with (home / "sublet.db").open("r+b") as file:
        for page in range(2, 12):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)


def scribble(home: Path) -> None:
    lose(home)
    (home / "sublet.db").write_text("this is no database at all, and never was one\n" * 100)


def take_newer(home: Path) -> None:
    with sqlite3.connect(home / "sublet.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (take_newer, "a newer version of Sublet made its tables (9999;"),
        (cut, "events are missing; its write-ahead log"),
        (truncate, "events are missing; its write-ahead log"),
        (lose, "is gone"),
        (empty, "is gone"),
        (damage, "is damaged"),
        (scribble, "is damaged: file is not a database"),
    ],
)
def test_the_start_refuses_and_doctor_says_why(home: Path, harm: Callable[[Path], None], words: str) -> None:
    harm(home)
    environment = {"SUBLET_HOME": str(home), "SUBLET_URL": "own", "COLUMNS": "400"}
    found = typed(["doctor", "--json"], environment)
    assert found.returncode == 1
    assert words in found.stdout
    refused = typed(["serve", *PLAYED], environment)
    assert refused.returncode == 3
    assert refused.stderr.startswith("error: The database sqlite:///")
    assert words in refused.stderr
    assert "sublet restore FILE" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_in_which_nothing_ran_yet_is_missed_too(tmp_path: Path) -> None:
    """A gateway's people and rules are in it before its first session is."""
    home = tmp_path / "home"
    serving = Serving(home, *PLAYED)
    serving.start()
    serving.stop()
    record = read_record(str(home))
    assert record
    assert record.events == 0
    lose(home)
    refused = typed(["serve", *PLAYED], {"SUBLET_HOME": str(home), "SUBLET_URL": "own", "COLUMNS": "400"})
    assert refused.returncode == 3
    assert "is gone" in refused.stderr
    assert "sublet restore FILE" in refused.stderr


def test_whoever_removes_the_record_begins_without_what_is_missing(home: Path) -> None:
    lose(home)
    (home / "database.json").unlink()
    serving = Serving(home, *PLAYED)
    assert list(serving.start().sessions()) == []
    serving.stop()
    assert read_record(str(home))
