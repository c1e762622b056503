"""Start times, as they are written in messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from sublet.booking.model.starts import instant


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=9, minutes=30))])
def test_a_time_of_any_zone_is_written_in_utc(zone: timezone) -> None:
    time = datetime(2026, 11, 17, 12, 30, 15, 900, tzinfo=UTC)
    assert instant(time.astimezone(zone)) == "2026-11-17T12:30:15Z"
