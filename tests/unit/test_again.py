"""A request once more: what is named is changed, the rest stays, and each change is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sublet.booking.documents.request import read_request
from sublet.booking.documents.rerun import type_like, with_changes
from sublet.booking.documents.short import full_document
from sublet.booking.model.request import Range
from sublet.kernel.errors import BadRequest

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SHORT = {"run": ["echo", "hello"], "cores": 2, "memory": "1GiB", "time": "10m", "name": "hi", "platform": "here"}


def test_what_is_named_is_changed_and_the_rest_stays() -> None:
    new, told = with_changes(SHORT, {"cores": "4-8", "memory": "1500MiB", "time": "1h", "platform": "there"}, {}, {})
    request = read_request(new, NOW)
    old = read_request(SHORT, NOW)
    assert request.compute.cores == Range(4, 8)
    assert request.compute.memory.min == 1500 * 1024 * 1024
    assert request.duration.total_seconds() == 3600
    assert request.platform == "there"
    assert request.executable == old.executable
    assert told == ("cores: 2 → 4-8", "memory: 1GiB → 1500MiB", "time: 10 min → 1 h", "platform: here → there")


def test_an_apps_amounts_are_changed_by_the_names_of_its_manifest() -> None:
    old = full_document({"app": "hello"})
    old["executable"]["resources"] = {"tasks": 2, "time": "20m"}
    new, told = with_changes(old, {"cores": 1, "time": "40m"}, {}, {})
    assert new["executable"]["resources"] == {"tasks": 2, "cores": 1, "time": "40m"}
    assert told == ("cores: (not said) → 1", "time: 20 min → 40 min")
    again, told = with_changes(new, {"time": "1h", "memory": "2GiB"}, {}, {})
    assert again["executable"]["resources"] == {"tasks": 2, "cores": 1, "time": "1h", "memory": "2GiB"}
    assert told == ("memory: (not said) → 2GiB", "time: 40 min → 1 h")
    assert with_changes({"app": "hello"}, {"time": "1h"}, {}, {})[1] == ("time: (not said) → 1 h",)


def test_nothing_named_is_the_same_request() -> None:
    new, told = with_changes(SHORT, {"cores": "", "memory": None}, {}, {})
    assert read_request(new, NOW) == read_request(SHORT, NOW)
    assert told == ()


def test_old_times_and_what_it_waited_for_are_not_kept() -> None:
    old = {**SHORT, "start": "tomorrow 09:00-12:00", "after": ["3f2a91c0-0000-4000-8000-000000000001"]}
    new, told = with_changes(old, {}, {}, {})
    request = read_request(new, NOW)
    assert (request.after, request.windows) == ((), read_request(SHORT, NOW).windows)
    assert told[0].startswith("start: ")
    assert told[0].endswith(" → as soon as possible")
    later, _ = with_changes(old, {"start": "2026-12-01T09:00:00Z/PT1H"}, {}, {})
    assert read_request(later, NOW).windows


def test_parameters_are_put_over_and_words_are_typed_as_what_they_replace() -> None:
    old = {"notebook": "https://example.org/n.ipynb", "parameters": {"a": 1, "b": "1", "c": True}}
    new, told = with_changes(old, {}, {"d": [1, 2]}, {"a": "2", "b": "2", "e": "x"})
    assert new["executable"]["parameters"] == {"a": 2, "b": "2", "c": True, "d": [1, 2], "e": "x"}
    assert "a: 1 → 2" in told
    assert "e: (not said) → x" in told
    with pytest.raises(BadRequest, match="no parameters"):
        with_changes(SHORT, {}, {"a": 1}, {})


def test_zero_false_and_nothing_are_values() -> None:
    assert (type_like("0", 1), type_like("false", True), type_like("", "x"), type_like("", 1)) == (0, False, "", "")


def test_a_change_that_can_not_be_read_names_its_field() -> None:
    with pytest.raises(BadRequest, match="cores"):
        with_changes(SHORT, {"cores": "many"}, {}, {})
