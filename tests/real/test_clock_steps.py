"""Someone sets the machine's clock by an hour: what runs lasts as long as it was given, and nothing is untrue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.booking.calls.events import events
from sublet.client import Client
from tests.serving import Serving, eventually

HOUR = 3600


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    file = tmp_path / "clock"
    file.write_text("0")
    return file


@pytest.fixture
def serving(tmp_path: Path, clock: Path) -> Iterator[Serving]:
    service = Serving(tmp_path / "home", environment={"SUBLET_CLOCK_STEP": str(clock)})
    try:
        yield service
    finally:
        service.stop()


def set_clock(clock: Path, seconds: int) -> None:
    """In one piece: both services and shims read it."""
    new = clock.with_suffix(".new")
    new.write_text(str(seconds))
    new.rename(clock)


def is_running(client: Client, id: str) -> bool:
    return client.session(id).phase == "RUNNING"


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_ends_nothing_early_or_late(
    serving: Serving, clock: Path, tmp_path: Path, step: int
) -> None:
    gate = tmp_path / "gate"
    waits = ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done; exit 7"]
    client = serving.start()
    short = client.ask(run=["sleep", "600"], time="15s", cores=1)[0].accept()
    long = client.ask(run=waits, time="30m", cores=1)[0].accept()
    for session in (short, long):
        eventually(lambda id=session.id: is_running(client, id), "its start")
    set_clock(clock, step)
    how = "set forward by 1 h" if step > 0 else "set back by 1 h"
    eventually(lambda: how in client.health().clock, "that the step is told")
    ended = short.wait(timeout=60)
    assert (ended.phase, ended.end.kind) == ("FAILED", "timeout")
    assert is_running(client, long.id)  # also after what is looked at again and again was looked at
    gate.touch()
    done = long.wait(timeout=60)
    assert (done.end.kind, done.end.code) == ("exited", 7)
    for one in (ended, done):
        assert 0 < one.view.end.usage.wall < 120
        assert 0 < (one.view.ended - one.view.started).total_seconds() < 120
    kinds = {event.kind: event.detail for event in client.do(events(session=long.id)).items}
    assert how in kinds["session.clock-stepped"]
    assert "clock.stepped" in serving.log()
    assert client.ask(run=["true"], time="1m", cores=1)[0].accept().wait(timeout=60).phase == "COMPLETED"


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_while_no_service_runs_is_noticed_at_its_start(
    serving: Serving, clock: Path, tmp_path: Path, step: int
) -> None:
    gate = tmp_path / "gate"
    client = serving.start()
    session = client.ask(run=["sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done"], time="30m", cores=1)[0].accept()
    eventually(lambda: is_running(client, session.id), "its start")
    serving.kill()
    set_clock(clock, step)
    client = serving.start()
    eventually(lambda: client.health().clock, "that the step is told")
    assert is_running(client, session.id)
    left = client.session(session.id)
    assert 0 < (left.view.until - left.view.started).total_seconds() < HOUR
    gate.touch()
    ended = client.session(session.id).wait(timeout=60)
    assert ended.phase == "COMPLETED"
    assert 0 < (ended.view.ended - ended.view.started).total_seconds() < 120
