"""`kill -9` at any point loses nothing and runs nothing twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.calls.platforms import calendar
from sublet.client import Client
from sublet.kernel.errors import SubletError
from sublet.kernel.faults import POINTS
from sublet.platforms.local.shim.faults import POINTS as SHIM_POINTS
from tests.serving import Serving, eventually

OVER = {"COMPLETED", "FAILED", "CANCELLED"}


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    service = Serving(tmp_path / "home", environment={"SUBLET_HOLD": "2m"})
    try:
        yield service
    finally:
        service.stop()


def counted(witness: Path, seconds: float = 0.3) -> list[str]:
    """A command that leaves a line each time it runs."""
    return ["sh", "-c", f"echo ran >> {witness}; sleep {seconds}; echo done"]


def no_bookings(client: Client) -> bool:
    now = datetime.now(UTC)
    lanes = client.do(calendar("here", now, now + timedelta(days=1))).lanes
    return not any(lane.busy for lane in lanes)


@pytest.mark.parametrize("point", POINTS)
def test_a_service_that_dies_there_goes_on_where_it_was(serving: Serving, tmp_path: Path, point: str) -> None:
    witness = tmp_path / "witness"
    client = serving.start(SUBLET_CRASH_AT=point)
    offer = client.ask(run=counted(witness), time="2m", cores=1)[0]
    with contextlib.suppress(SubletError):
        offer.accept()  # the answer may be lost with the service
    assert serving.died() == -9, serving.log()
    client = serving.start()
    session = client.session(offer.id)
    if session.phase == "OFFERED":
        session = session.accept()
    ended = session.wait(timeout=30)
    assert (ended.phase, ended.end.code) == ("COMPLETED", 0)
    assert witness.read_text() == "ran\n"
    assert b"done" in b"".join(piece.encode() for piece in session.logs(follow=False))
    eventually(lambda: no_bookings(client), "giving the node back")


def test_a_service_that_is_killed_while_a_shim_starts_loses_nothing(serving: Serving, tmp_path: Path) -> None:
    """Nobody is there to hear that the shim is ready; it needs nobody."""
    witness = tmp_path / "witness"
    client = serving.start(SUBLET_CRASH_AT="shim.launched")
    offer = client.ask(run=counted(witness), time="2m", cores=1)[0]
    with contextlib.suppress(SubletError):
        offer.accept()
    assert serving.died() == -9, serving.log()
    ended = serving.start().session(offer.id).wait(timeout=30)
    assert (ended.phase, ended.end.code) == ("COMPLETED", 0)
    assert witness.read_text() == "ran\n"


@pytest.mark.parametrize("point", SHIM_POINTS[1:])
def test_a_shim_that_is_killed_is_told_as_it_was(serving: Serving, tmp_path: Path, point: str) -> None:
    """Either its program never ran, and the end says so, or it ran once, and the end doesn't deny it."""
    witness = tmp_path / "witness"
    client = serving.start(SUBLET_CRASH_AT=point)
    ended = client.ask(run=counted(witness), time="2m", cores=1)[0].accept().wait(timeout=60)
    if point == "shim.told":
        assert (ended.phase, ended.end.code, witness.read_text()) == ("COMPLETED", 0, "ran\n")
    elif point in ("shim.started", "shim.ending"):
        assert (ended.phase, ended.end.kind) == ("FAILED", "unknown")
        assert not witness.exists() or witness.read_text() in ("", "ran\n")  # it may end before it has written
    else:
        assert (ended.phase, ended.end.kind) == ("FAILED", "not-started")
        assert not witness.exists()
    eventually(lambda: no_bookings(client), "giving the node back")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/sublet-{ended.id}"))


def test_what_ended_while_no_service_was_there_is_told_afterwards(serving: Serving, tmp_path: Path) -> None:
    witness, gate = tmp_path / "witness", tmp_path / "gate"
    client = serving.start()
    waits = ["sh", "-c", f"echo ran >> {witness}; until [ -e {gate} ]; do sleep 0.05; done; exit 7"]
    session = client.ask(run=waits, time="2m", cores=1)[0].accept()
    eventually(witness.exists, "its start")
    serving.kill()
    gate.touch()
    place = serving.home / "platforms" / "here" / "sessions" / session.id
    eventually((place / "end.json").exists, "its end")
    client = serving.start()
    ended = client.session(session.id).wait(timeout=30)
    assert (ended.phase, ended.end.kind, ended.end.code) == ("FAILED", "exited", 7)
    assert witness.read_text() == "ran\n"


def test_a_restarted_service_adopts_what_still_runs_and_can_cancel_it(serving: Serving, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    client = serving.start()
    session = client.ask(run=counted(witness, 600), time="20m", cores=1)[0].accept()
    eventually(witness.exists, "its start")
    serving.kill()
    client = serving.start()
    adopted = client.session(session.id)
    assert adopted.phase in {"PREPARING", "RUNNING"}
    ended = adopted.cancel()
    assert ended.phase == "CANCELLED"
    assert ended.end.by
    eventually(lambda: no_bookings(client), "giving the node back")
