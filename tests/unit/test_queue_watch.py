"""When the queue of an access point is looked at: while its log grows, and now and then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.own import OwnAccessPoint
from sublet.annexes.queue_watch import QueueWatch, read_change

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def seconds(number: float) -> datetime:
    return BEGIN + timedelta(seconds=number)


def test_a_queue_whose_log_stays_as_it_is_is_looked_at_now_and_then(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    log = tmp_path / "spool/job_queue.log"
    log.write_text("1\n")
    point = object.__new__(OwnAccessPoint)
    object.__setattr__(point, "directory", tmp_path)
    watch = QueueWatch()
    assert [number for number in range(25) if watch.is_due(point, seconds(number))] == [0, 10, 20]
    log.write_text("1\n2\n")
    assert watch.is_due(point, seconds(25))
    log.write_text("1\n2\n3\n")
    assert not watch.is_due(point, seconds(25.5))
    assert watch.is_due(point, seconds(26))


def test_a_queue_whose_log_nobody_may_read_is_looked_at_every_two_seconds() -> None:
    watch, machines = QueueWatch(), cast(AccessPoint, object())
    assert [number for number in range(7) if watch.is_due(machines, seconds(number))] == [0, 2, 4, 6]


def test_a_queue_that_has_not_changed_is_known_by_its_log(tmp_path: Path) -> None:
    log = tmp_path / "job_queue.log"
    assert read_change(log) is None
    log.write_text("1\n")
    before = read_change(log)
    assert read_change(log) == before is not None
    log.write_text("1\n2\n")
    assert read_change(log) != before
