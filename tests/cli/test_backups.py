"""Backup and restore, as an operator types them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.kernel.db.copies import save_sqlite
from sublet.kernel.db.engine import address_of
from sublet.kernel.db.record import find_loss, read_record
from tests.nursery import typed
from tests.postgres import Postgres
from tests.serving import Serving

PLAYED = ("--platform", "memory")


def run_one(client: Client) -> str:
    session = client.ask(run=["true"], time="1m")[0].accept()
    session.wait()
    return session.id


def types(home: Path, *words: str, path: str = os.environ["PATH"]) -> tuple[int, str, str]:
    done = typed([*words], {**os.environ, "SUBLET_HOME": str(home), "SUBLET_URL": "own", "PATH": path})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Client]]:
    """A service that runs, with settings and something of its owner's."""
    home = tmp_path_factory.mktemp("backups") / "home"
    (home / "systems").mkdir(parents=True)
    (home / "sublet.toml").write_text('hold = "7m"\n')
    (home / "systems" / "mine.yaml").write_text("name: mine\n")
    serving = Serving(home, *PLAYED)
    client = serving.start()
    try:
        yield serving, client
    finally:
        serving.stop()


@pytest.fixture(scope="module")
def backup(running: tuple[Serving, Client], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A backup of it, made while it works, with sessions that are in the write-ahead log alone."""
    serving, client = running
    done = {run_one(client) for _ in range(3)}
    file = tmp_path_factory.mktemp("files") / "sublet.tar.gz"
    code, said, wrong = types(serving.home, "backup", str(file))
    assert code == 0, wrong
    assert f"{file} has " in said
    return file, done


def test_a_backup_is_private_and_has_what_a_service_needs(
    running: tuple[Serving, Client], backup: tuple[Path, set[str]]
) -> None:
    file, _ = backup
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        names = set(archive.getnames())
        manifest = json.load(archive.extractfile("manifest.json") or pytest.fail("no manifest"))
    assert {"database", "sublet.toml", "systems/mine.yaml", "manifest.json"} <= names
    assert not {name for name in names if name.startswith(("platforms", "logs", "run", "sublet.db"))}
    assert manifest["database"] == "sqlite"
    code, _, wrong = types(running[0].home, "backup", str(file))
    assert (code, "is there already" in wrong) == (1, True)
    code, _, wrong = types(running[0].home, "backup", str(file.parent / "nowhere" / "new.tar.gz"))
    assert (code, "there is no directory" in wrong, "mkdir -p" in wrong) == (1, True, True), wrong


def test_a_restored_home_serves_what_there_was_at_the_backup(
    running: tuple[Serving, Client], backup: tuple[Path, set[str]], tmp_path: Path
) -> None:
    later = run_one(running[1])
    file, done = backup
    home = tmp_path / "home"
    code, said, wrong = types(home, "restore", str(file))
    assert code == 0, wrong
    assert re.search(r"is as it was .* at \d\d:\d\d, with", said)
    assert (home / "sublet.toml").read_text() == 'hold = "7m"\n'
    assert (home / "sublet.db").stat().st_mode & 0o777 == 0o600
    restored = Serving(home, *PLAYED)
    found = {session.id for session in restored.start().sessions()}
    restored.stop()
    assert done <= found
    assert later not in found


def test_restore_refuses_over_a_running_service_and_a_used_home(
    running: tuple[Serving, Client], backup: tuple[Path, set[str]], tmp_path: Path
) -> None:
    file, done = backup
    code, _, wrong = types(running[0].home, "restore", str(file), "--replace")
    assert (code, "a service runs on" in wrong) == (1, True)
    home = tmp_path / "home"
    home.mkdir()
    (home / "sublet.toml").write_text('hold = "9m"\n')
    code, _, wrong = types(home, "restore", str(file))
    assert (code, "is in use: it has sublet.toml" in wrong, "--replace" in wrong) == (1, True, True)
    assert (home / "sublet.toml").read_text() == 'hold = "9m"\n'
    code, _, wrong = types(home, "restore", str(file), "--replace")
    assert code == 0, wrong
    (aside,) = home.glob("replaced-*")
    assert (aside / "sublet.toml").read_text() == 'hold = "9m"\n'
    with sqlite3.connect(home / "sublet.db") as connection:
        assert done <= {row[0] for row in connection.execute("SELECT id FROM sessions")}


def test_a_backup_that_is_cut_or_changed_changes_nothing(backup: tuple[Path, set[str]], tmp_path: Path) -> None:
    file, _ = backup
    harmed = tmp_path / "harmed.tar.gz"
    whole = file.read_bytes()
    middle = len(whole) // 2
    overwritten = whole[:middle] + b"\0" * 200 + whole[middle + 200 :]
    for content in (b"", b"no backup at all", whole[:100], whole[:middle], whole[: middle + middle // 2], overwritten):
        harmed.write_bytes(content)
        code, _, wrong = types(tmp_path / "home", "restore", str(harmed))
        assert (code, "was not restored" in wrong, "Traceback" in wrong) == (1, True, False)
    unpacked = tmp_path / "unpacked"
    with tarfile.open(file) as archive:
        archive.extractall(unpacked)
    (unpacked / "sublet.toml").write_text("hold = '1s'")
    with tarfile.open(harmed, "w:gz") as archive:
        for one in sorted(unpacked.rglob("*")):
            if one.is_file():
                archive.add(one, str(one.relative_to(unpacked)))
    code, _, wrong = types(tmp_path / "home", "restore", str(harmed))
    assert (code, "sublet.toml in it is damaged" in wrong) == (1, True)
    with tarfile.open(harmed, "w:gz") as archive:
        archive.add(unpacked / "sublet.toml", "../escaped")
    code, _, wrong = types(tmp_path / "home", "restore", str(harmed))
    assert (code, "does not belong in a backup" in wrong) == (1, True)
    with tarfile.open(harmed, "w:gz") as archive:
        for name in ("sublet.toml", "sublet.toml/beneath"):
            archive.add(unpacked / "sublet.toml", name)
    code, _, wrong = types(tmp_path / "home", "restore", str(harmed))
    assert (code, "was not restored" in wrong, "Traceback" in wrong) == (1, True, False)
    left = {one.name for one in (tmp_path / "home").iterdir()}
    assert left <= {"run", "logs"}
    assert not (tmp_path / "escaped").exists()


def test_a_restore_that_fails_midway_changes_nothing_and_leaves_nothing_behind(
    backup: tuple[Path, set[str]], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert types(home, "restore", str(backup[0]))[0] == 0
    (home / "sublet.toml").write_text('hold = "8m"\n')
    elsewhere = tmp_path / "elsewhere.db"
    shutil.move(home / "sublet.db", elsewhere)
    settings = tmp_path / "sublet.toml"
    settings.write_text(f'database = "sqlite:///{elsewhere}"\n')
    obstacle = Path(f"{elsewhere}.restored")  # a directory where the copy would be written
    (obstacle / "full").mkdir(parents=True)
    before = {path: path.read_bytes() for path in (*home.rglob("*"), elsewhere) if path.is_file()}
    code, _, wrong = types(home, "restore", str(backup[0]), "--replace", "--config", str(settings))
    assert (code, "was not restored" in wrong, "Nothing was changed" in wrong) == (1, True, True), wrong
    assert {path: path.read_bytes() for path in (*home.rglob("*"), elsewhere) if path.is_file()} == before
    assert not list(home.glob("replaced-*"))
    shutil.rmtree(obstacle)
    code, _, wrong = types(home, "restore", str(backup[0]), "--replace", "--config", str(settings))
    assert code == 0, wrong


def test_another_programs_database_is_not_restored(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE flowers (name TEXT)")
    code, _, wrong = types(tmp_path / "home", "restore", str(tmp_path / "other.db"))
    assert (code, "it is not a database of Sublet" in wrong, "Traceback" in wrong) == (1, True, False), wrong


def test_a_damaged_database_is_not_backed_up(backup: tuple[Path, set[str]], tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert types(home, "restore", str(backup[0]))[0] == 0
    with (home / "sublet.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 8 * 4096)
    code, _, wrong = types(home, "backup", str(tmp_path / "new.tar.gz"))
    assert (code, "No backup was made" in wrong, "Traceback" in wrong) == (1, True, False)
    assert {one.name for one in tmp_path.iterdir()} == {"home"}


def test_postgresql_is_dumped_and_put_back(postgres: Postgres, tmp_path: Path) -> None:
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not here")
    home, url = tmp_path / "home", postgres.create(without_host=True)
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(f'database = "{url}"\n')
    serving = Serving(home, *PLAYED)
    client = serving.start()
    before = run_one(client)
    file = tmp_path / "sublet.tar.gz"
    code, _, wrong = types(home, "backup", str(file))
    assert code == 0, wrong
    after = run_one(client)
    serving.stop()
    code, _, wrong = types(home, "restore", str(file))
    assert (code, "is in use" in wrong) == (1, True)
    (home / "database.json").unlink()
    code, _, wrong = types(home, "restore", str(file), "--replace")
    assert code == 0, wrong
    record = read_record(str(home))
    found = {session.id for session in serving.start().sessions()}
    serving.stop()
    assert (before in found, after in found) == (True, False)
    (aside,) = home.glob("replaced-*")
    assert (aside / "database").stat().st_size > 0, "what was there is kept"
    assert record
    assert record.events > 0, "the restored events are recorded"
    assert find_loss(str(home), address_of(url), record.events - 1), "fewer than these would be a loss"


@pytest.mark.parametrize("missing", ["pg_restore", "psql", "pg_dump"])
def test_without_postgresqls_programs_a_restore_says_that_nothing_was_restored(
    postgres: Postgres, tmp_path: Path, missing: str
) -> None:
    home, url, programs = tmp_path / "home", postgres.create(), tmp_path / "bin"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(f'database = "{url}"\n')
    serving = Serving(home, *PLAYED)
    serving.start()
    file = tmp_path / "sublet.tar.gz"
    assert types(home, "backup", str(file))[0] == 0
    serving.stop()
    programs.mkdir()
    for name in {"pg_restore", "psql", "pg_dump"} - {missing}:
        (programs / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    code, _, wrong = types(home, "restore", str(file), "--replace", path=str(programs))
    assert (code, f"{file} was not restored: {missing} is not installed" in " ".join(wrong.split())) == (1, True), wrong
    assert not list(home.glob("replaced-*"))


def test_a_copy_from_before_an_upgrade_replaces_the_database_alone(
    backup: tuple[Path, set[str]], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert types(home, "restore", str(backup[0]))[0] == 0
    copy = home / "backups" / "sublet-0007-20261116T120000.db"
    copy.parent.mkdir()
    save_sqlite(str(home / "sublet.db"), copy)
    serving = Serving(home, *PLAYED)
    later = run_one(serving.start())
    serving.stop()
    (home / "sublet.toml").write_text('hold = "8m"\n')
    code, _, wrong = types(home, "restore", str(copy))
    assert (code, "is in use" in wrong) == (1, True)
    code, _, wrong = types(home, "restore", str(copy), "--replace")
    assert code == 0, wrong
    assert (home / "sublet.toml").read_text() == 'hold = "8m"\n', "the settings stay"
    assert copy.exists()
    found = {session.id for session in serving.start().sessions()}
    serving.stop()
    assert backup[1] <= found
    assert later not in found
