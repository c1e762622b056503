"""Where a database is: any directory can be a home, whatever characters its name has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.kernel.db.copies import copy_of
from sublet.kernel.db.engine import Database, address_of
from sublet.kernel.db.record import sqlite_file

NAMES = ("josé", "💥", 'it\'s "here"', "50%41", "a?b=c#d", "two\nlines", "a b;c$d")


@pytest.mark.parametrize("name", NAMES)
def test_a_sqlite_database_is_where_its_address_says_whatever_characters_that_has(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    home.mkdir(mode=0o700)
    url = f"sqlite:///{home / 'sublet.db'}"
    database = Database(url)
    with database.writing.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE x (y)")
        database.check_file()
    database.close()
    assert os.listdir(tmp_path) == [name]
    assert (home / "sublet.db").exists()
    assert sqlite_file(database.where) == sqlite_file(address_of(url)) == str(home / "sublet.db")
    assert copy_of(url).is_used()
