"""Databases that are up to date: the migrations are run once for all tests of a worker, and copied."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sublet.store import Store


@cache
def newest() -> bytes:
    """An empty SQLite database with the tables of today."""
    with TemporaryDirectory(prefix="sublet-database-") as directory:
        file = Path(directory) / "sublet.db"
        Store.open(f"sqlite:///{file}").close()
        return file.read_bytes()


def put_database(file: Path) -> None:
    """Lay such a database where a service or a store is going to look for one, unless there is one."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        place = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with open(place, "wb") as made:
        made.write(newest())
