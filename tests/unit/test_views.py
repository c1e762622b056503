"""Views travel as JSON and come back the same, whoever writes the JSON."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import sublet
from sublet.api.views import SUBJECTS, every_view
from sublet.booking.views.health import HealthView
from sublet.kernel.views import duration_iso, plain, read, read_duration, read_instant
from tests.canned import NOW, a_session, a_yes, an_end, an_offer

KINDS = list(every_view().values())


@pytest.mark.parametrize("view", [a_session(end=an_end(code=3)), a_yes(an_offer(), an_offer())])
def test_a_view_comes_back_from_json_as_it_went(view: Any) -> None:
    assert read(type(view), json.loads(json.dumps(plain(view)))) == view


@pytest.mark.parametrize("view", [a_session(end=an_end(code=3)), a_yes(an_offer(), an_offer())])
def test_what_pydantic_writes_the_reader_reads(view: Any) -> None:
    assert read(type(view), json.loads(TypeAdapter(type(view)).dump_json(view))) == view


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_is_a_frozen_dataclass_that_openapi_can_describe(kind: Any) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert TypeAdapter(kind).json_schema()["title"] == kind.__name__


def test_the_views_of_every_subject_are_listed() -> None:
    with_views = {folder.parent.name for root in sublet.__path__ for folder in Path(root).glob("*/views")}
    assert set(SUBJECTS) == with_views


def test_fields_of_a_newer_service_are_left_out() -> None:
    assert read(HealthView, {"status": "ok", "version": "9", "mode": "personal", "mood": "good"}).version == "9"


def test_an_instant_is_written_in_utc_with_a_z() -> None:
    assert plain(NOW) == "2026-11-16T09:00:00Z"
    assert read_instant("2026-11-16T10:00:00+01:00") == NOW
    assert read_instant("2026-11-16T09:00:00").tzinfo is UTC


@given(st.integers(min_value=-(400 * 86400 * 1000), max_value=400 * 86400 * 1000))
def test_a_duration_comes_back_as_it_went(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert read_duration(duration_iso(duration)) == duration
    assert read_duration(json.loads(TypeAdapter(timedelta).dump_json(duration))) == duration


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1), timezones=st.just(UTC)))
def test_an_instant_comes_back_as_it_went(instant: datetime) -> None:
    assert read_instant(plain(instant)) == instant
