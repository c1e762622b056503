"""A restored database replaces the old one completely, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.kernel.db.copies import SqliteCopy, connection_string, read_dump
from sublet.kernel.db.engine import address_of, postgres_options
from sublet.kernel.db.moves import Moves

SIDES = ("", "-wal", "-shm")


def test_a_sqlite_database_stays_whole_if_one_of_its_files_can_not_be_moved(tmp_path: Path) -> None:
    file, copy, aside = tmp_path / "sublet.db", tmp_path / "copy", tmp_path / "aside"
    for side in SIDES:
        Path(f"{file}{side}").write_text(f"old{side}")
    copy.write_text("new")
    (aside / "sublet.db-wal" / "sublet.db-wal").mkdir(parents=True)  # in the way of the second move
    moves = Moves()
    with pytest.raises(OSError, match=r"sublet\.db-wal"):
        SqliteCopy(str(file)).load(copy, aside, moves)
    assert moves.undo() == []
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {
        "copy": "new",
        "sublet.db": "old",
        "sublet.db-wal": "old-wal",
        "sublet.db-shm": "old-shm",
    }


def test_files_that_can_not_be_moved_back_are_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    moves = Moves()
    for name in ("one", "two"):
        moves.move(tmp_path / name, tmp_path / f"{name}.moved")
    (tmp_path / "one").write_text("another file")
    assert moves.undo() == [tmp_path / "one.moved"]
    assert (tmp_path / "two").read_text() == "2"
    assert (tmp_path / "one").read_text() == "another file"


def test_a_move_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    with pytest.raises(FileExistsError):
        Moves().move(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").read_text() == "2"


def test_a_file_moves_to_another_file_system_and_back(tmp_path: Path) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is not another file system here")
    to = shm / f"sublet-{tmp_path.name}-{id(tmp_path)}"
    (tmp_path / "one").write_text("1")
    moves = Moves()
    try:
        moves.move(tmp_path / "one", to)
        assert (to.read_text(), (tmp_path / "one").exists()) == ("1", False)
        assert moves.undo() == []
        assert (to.exists(), (tmp_path / "one").read_text()) == (False, "1")
    finally:
        to.unlink(missing_ok=True)


def test_the_counts_of_a_dump_are_of_its_rows_and_its_sequence() -> None:
    dump = """\
--
SET standard_conforming_strings = on;

COPY public.sessions (id, person, name) FROM stdin;
s1\talice\tSELECT pg_catalog.setval('public.events_id_seq', 99, true);
s2\tbob\tCOPY public.sessions (id) FROM stdin;
\\.


SELECT pg_catalog.setval('public.events_id_seq', 12, true);
"""
    assert read_dump(dump.splitlines(keepends=True)) == (12, 2)
    unused = "SELECT pg_catalog.setval('public.events_id_seq', 1, false);"
    assert read_dump([unused]) == (0, 0)


def test_a_password_of_postgresql_is_shown_nowhere_however_its_address_names_it() -> None:
    for url in ("postgresql://u:secret@h:5433/gw", "postgresql:///gw?host=/run&user=u&password=secret"):
        options = postgres_options(url)
        assert (options["user"], options["dbname"], options.pop("password")) == ("u", "gw", "secret")
        assert "secret" not in address_of(url)
        assert "secret" not in connection_string(options)
    assert connection_string({"dbname": "it's", "options": "-c a=b\\c"}) == r"dbname='it\'s' options='-c a=b\\c'"
