"""A disk that fills, below all of SUBLET_HOME: the trouble is told, and all goes on when there is room again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.cli.doctor.home import place
from sublet.cli.doctor.settings import database
from sublet.client import Client
from sublet.kernel.errors import SubletError
from sublet.kernel.home import Home
from tests.serving import Serving, eventually
from tests.sites import mounted

FILL = "dd if=/dev/zero of=big bs=64k 2>/dev/null; exit 1"


@pytest.fixture
def small_home(tmp_path: Path, swept: None) -> Iterator[Path]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with mounted(home, "8m") as small:
        if not small:
            pytest.skip("nothing can be mounted here")
        home.chmod(0o700)  # what is mounted has a mode of its own
        yield home


def failing(client: Client) -> bool:
    return client.health().status == "failing"


def test_a_disk_that_fills_is_told_and_the_service_goes_on_when_there_is_room(small_home: Path) -> None:
    # It logs to the same disk, as the service that starts by itself does.
    service = Serving(small_home, log=small_home / "service.log")
    client = service.start()
    try:
        session = client.ask(run=["sh", "-c", FILL], time="1m")[0].accept()
        eventually(lambda: failing(client), "the trouble")
        assert "disk is full" in client.health().problem
        with pytest.raises(SubletError, match="disk is full"):
            client.ask(run=["true"], time="1m")
        eventually(lambda: "disk is full" in client.session(session.id).condition, "the trouble of the session")
        next(small_home.glob("platforms/*/sessions/*/work/big")).unlink()
        assert session.wait(90).phase == "FAILED"
        assert not failing(client)
        assert client.ask(run=["true"], time="1m")[0].accept().wait(30).phase == "COMPLETED"
    finally:
        service.stop()


def test_the_doctor_says_that_the_disk_is_full(small_home: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_home / "big").write_bytes(b"\0" * (9 << 20))
    found = {one.what: one for one in place(Home(str(small_home)))}
    assert "No space left on device" in found["SUBLET_HOME"].detail
    assert found["free disk"].state == "bad"


def test_a_full_disk_is_not_taken_for_a_damaged_database(small_home: Path) -> None:
    service = Serving(small_home)
    service.start()
    service.stop()
    with pytest.raises(OSError, match="No space left"):
        (small_home / "big").write_bytes(b"\0" * (9 << 20))
    found = {one.what: one for one in database(Home(str(small_home)))}["database"]
    assert (found.state, "full" in found.detail, "damaged" in found.detail) == ("bad", True, False)
    words = [sys.executable, "-m", "sublet", "serve"]
    refused = subprocess.run(
        words, env=os.environ | {"SUBLET_HOME": str(small_home)}, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode != 0
    assert "Free some space" in refused.stderr
    assert "damaged" not in refused.stderr
    assert "restore" not in refused.stderr, "nobody is sent to a backup because of a full disk"


def test_a_full_disk_is_in_health_before_anything_has_to_be_written(small_home: Path) -> None:
    service = Serving(small_home)
    client = service.start()
    try:
        with pytest.raises(OSError, match="No space left"):
            (small_home / "big").write_bytes(b"\0" * (9 << 20))
        eventually(lambda: failing(client), "the trouble")
        assert "disk is full" in client.health().problem
        (small_home / "big").unlink()
        eventually(lambda: not failing(client), "the end of the trouble")
    finally:
        service.stop()


def test_the_doctor_says_that_the_home_is_read_only_and_does_not_blame_the_database(small_home: Path) -> None:
    store = sqlite3.connect(small_home / "sublet.db")
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("CREATE TABLE x (y)")
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_home)], check=True)
    try:
        found = {one.what: one for check in (place, database) for one in check(Home(str(small_home)))}
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_home)], check=True)
    assert found["SUBLET_HOME"].state == "bad"
    assert "Read-only file system" in found["SUBLET_HOME"].detail
    assert found["database"].state == "ok"


def test_a_first_start_on_a_full_disk_names_the_disk(small_home: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_home / "big").write_bytes(b"\0" * (9 << 20))
    environment = os.environ | {"SUBLET_HOME": str(small_home)}
    words = [sys.executable, "-m", "sublet", "ps"]
    refused = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert refused.returncode == 3
    assert f"nothing can be written to {small_home}: No space left on device" in refused.stderr
    assert "Free some space there" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_session_that_fills_the_disk_of_the_service_is_told_once_by_run(small_home: Path) -> None:
    service = Serving(small_home, log=small_home.parent / "service.log")
    client = service.start()
    words = [sys.executable, "-m", "sublet", "run", "--time", "5m", "--", "sh", "-c", FILL.replace("exit 1", "exit 3")]
    environment = os.environ | {"SUBLET_HOME": str(small_home)}
    told = small_home.parent / "told"
    with told.open("w") as errors, subprocess.Popen(words, env=environment, stderr=errors) as runs:
        try:
            eventually(lambda: failing(client), "the trouble")
            eventually(lambda: "disk is full" in told.read_text(), "a word of it where it was run")
            seen = service.log().count("turn.failed")
            eventually(lambda: service.log().count("turn.failed") > seen + 4, "more turns that fail")
            assert failing(client), "it stays told while the disk is full"
            next(small_home.glob("platforms/*/sessions/*/work/big")).unlink()
            runs.wait(timeout=90)
        finally:
            runs.kill()
            service.stop()
    said = told.read_text()
    assert said.count("disk is full") == 1, said
    assert runs.returncode == 3, said
    assert "exited with code 3" in said
