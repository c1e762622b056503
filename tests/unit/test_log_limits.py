"""A log can't be flooded, and says what it left out."""

import json
import logging
from pathlib import Path

import pytest
import structlog

from sublet.kernel import logs
from sublet.kernel.log_file import LogFile
from sublet.kernel.log_limits import TELL_AFTER, LogLimiter, LogRate

RATES = {"warning": LogRate(burst=1000, per_second=100), "info": LogRate(burst=10_000, per_second=1000)}


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> LogLimiter:
    return LogLimiter(RATES, clock)


def test_lines_beyond_the_burst_are_counted_and_told_with_the_next_one(limiter: LogLimiter, clock: Clock) -> None:
    written = [limiter.admit("a", "warning", 100) for _ in range(25)]
    assert written == [True] * 10 + [False] * 15
    clock.now = 1.0
    assert limiter.admit("a", "warning", 100)
    assert limiter.take_omitted("a", "warning") == {"a": 15}
    assert limiter.take_omitted("a", "warning") == {}, "each is told once"


def test_one_event_can_not_push_another_out_of_the_log(limiter: LogLimiter) -> None:
    while limiter.admit("flood", "warning", 100):
        pass
    assert limiter.admit("session.failed", "warning", 100)
    assert limiter.admit("flood", "info", 100), "a level is counted by itself"


def test_what_was_left_out_of_a_flood_that_ended_is_told_with_any_later_line(limiter: LogLimiter, clock: Clock) -> None:
    while limiter.admit("flood", "warning", 100):
        pass
    assert limiter.take_omitted("other", "info") == {}
    clock.now = TELL_AFTER + 1
    assert limiter.take_omitted("other", "info") == {"flood": 1}


def test_a_line_longer_than_the_burst_is_written_when_nothing_else_was(limiter: LogLimiter, clock: Clock) -> None:
    assert limiter.admit("traceback", "warning", 5000)
    assert not limiter.admit("traceback", "warning", 100)
    clock.now = 60.0
    assert limiter.admit("traceback", "warning", 5000)


def test_what_libraries_log_is_in_the_log_as_an_event_and_limited_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LogFile(tmp_path / "log", 0, 0)
    lines: list[str] = []
    monkeypatch.setattr(file, "write", lines.append)
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    try:
        logs.start_logs(file=file)
        for number in range(20_000):
            logging.getLogger("a.library").warning("no. %d", number)
        logging.getLogger("another").error("alone")
    finally:
        structlog.configure(**before)
        logging.getLogger().handlers = handlers
    events = [json.loads(line) for line in "".join(lines).splitlines()]
    assert {"event": "a.library", "says": "no. 0", "level": "warning"}.items() <= events[0].items()
    assert events[-1]["says"] == "alone"
    assert sum(map(len, lines)) < 500_000
