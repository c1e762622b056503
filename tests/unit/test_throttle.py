"""Whoever tries too often is told how long to wait, and nobody else is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sublet.kernel import throttle
from sublet.kernel.errors import BadAmount, TooMany
from sublet.kernel.rate_limits import RateLimit, parse_rate_limit
from sublet.kernel.throttle import Throttle, neighbours


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def three(clock: Clock) -> Throttle:
    """Three a minute."""
    return Throttle({"token": RateLimit(3, timedelta(minutes=1)), "code": RateLimit(1, timedelta(hours=1))}, clock)


def seconds(three: Throttle, who: str = "host", what: str = "token") -> int:
    with pytest.raises(TooMany) as refused:
        three.spend(what, who)
    return int(str(refused.value.values["seconds"]))


def test_as_many_as_allowed_pass_at_once_and_the_next_waits(three: Throttle, clock: Clock) -> None:
    for _ in range(3):
        three.spend("token", "host")
    assert seconds(three) == 20
    clock.time += 19.5
    assert seconds(three) == 1
    clock.time += 0.5
    three.spend("token", "host")
    assert seconds(three) == 20


def test_a_refused_try_makes_the_wait_no_longer(three: Throttle, clock: Clock) -> None:
    for _ in range(3):
        three.spend("token", "host")
    assert {seconds(three) for _ in range(50)} == {20}


def test_who_waited_long_enough_has_all_tries_again(three: Throttle, clock: Clock) -> None:
    for _ in range(4):
        for _ in range(3):
            three.spend("token", "host")
        seconds(three)
        clock.time += 60


def test_others_and_other_things_are_counted_apart(three: Throttle) -> None:
    for who in ("one", "two"):
        for _ in range(3):
            three.spend("token", who)
        three.spend("code", who)
        assert seconds(three, who, "code") == 3600


def test_however_many_try_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_KNOWN", 100)
    many = Throttle({"token": RateLimit(3, timedelta(minutes=1))}, Clock())
    for _ in range(3):
        many.spend("token", "insistent")
    for number in range(1000):
        many.spend("token", f"host-{number}")
        assert len(many) <= 100
    seconds(many, "insistent")  # who tried the most is forgotten last


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::2", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_a_host_is_counted_with_its_neighbours(host: str, counted: str) -> None:
    assert neighbours(host) == counted


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("200/10m", RateLimit(200, timedelta(minutes=10))),
        ("30/h", RateLimit(30, timedelta(hours=1))),
        (" 5 / 1m30s ", RateLimit(5, timedelta(seconds=90))),
    ],
)
def test_a_rate_limit_is_read_and_written_back(text: str, limit: RateLimit) -> None:
    assert parse_rate_limit(text) == limit
    assert parse_rate_limit(str(limit)) == limit


@pytest.mark.parametrize("text", ["", "200", "0/m", "-3/m", "1.5/m", "3/", "3/0s", "3/soon", "many/h", "9" * 40 + "/h"])
def test_what_is_no_rate_limit_says_what_one_is(text: str) -> None:
    with pytest.raises(BadAmount):
        parse_rate_limit(text)


def test_other_limits_count_what_was_tried_before(three: Throttle, clock: Clock) -> None:
    for _ in range(3):
        three.spend("token", "host")
    three.change_limits({"token": RateLimit(6, timedelta(minutes=1))})
    assert seconds(three) == 10
