"""Times in sentences and in what is typed: on the visitor's clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sublet.booking.model.windows import parse_start
from sublet.web.local_times import localize, show_in_zone
from sublet.web.words import Clock

NOW = datetime(2026, 3, 3, 22, 30, tzinfo=UTC)
TEHRAN = Clock.of("Asia/Tehran", NOW)  # UTC+3:30


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Running since 2026-03-03 20:00:05 UTC (2h ago).", "Running since today 23:30:05 (2h ago)."),
        ("ends soon, at 23:59:30 UTC", "ends soon, today at 03:29:30"),
        ("ends soon, at 00:10:00 UTC", "ends soon, today at 03:40"),
        ("its booked time ended at 2026-03-03T09:00:00Z", "its booked time ended yesterday at 12:30"),
        ("it could start at 2026-12-24T08:00:00Z if", "it could start on Thu 24 Dec at 11:30 if"),
        ("free at 2026-03-04T00:00:00Z/PT1H", "free today at 03:30 for 1 h"),
        ("free at 2026-03-04T00:00:00Z/2026-03-04T01:00:00Z", "free today 03:30–04:30"),
        ("what 2026-03-04T00:00:00Z is", "what today 03:30 is"),
        ("begins at 09:00 on Friday 6 March, Europe/London", "begins on Fri 6 Mar at 12:30"),
        ("2026-03-04T00:00:00Z/PT1H", "today 03:30 for 1 h"),
        ("2026-03-04T00:00:00Z/2026-03-04T01:00:00+00:00", "today 03:30–04:30"),
        ("4 nodes from 2026-03-04 00:00 to 2026-03-04 02:00 UTC", "4 nodes from today 03:30–05:30"),
        ("at 2026-13-45 99:00 UTC", "at 2026-13-45 99:00 UTC"),
        ("17:00 on Tuesday 3 March, UTC, cheapest", "yesterday 20:30, cheapest"),
        ("09:00 on Friday 6 March, Europe/London", "Fri 6 Mar 12:30"),
        ("09:00 on Friday 31 Brumaire, UTC", "09:00 on Friday 31 Brumaire, UTC"),
        ("<b>no</b> time", "&lt;b&gt;no&lt;/b&gt; time"),
    ],
)
def test_a_sentence_names_times_on_the_visitors_clock(said: str, shown: str) -> None:
    now = NOW if "ago" not in said else datetime(2026, 3, 3, 20, 10, tzinfo=UTC)
    text = localize(said, Clock.of("Asia/Tehran", now))
    assert ("<b>" in text, text.striptags() if "<time" in text else str(text)) == (False, shown)
    assert ("<time" in text) <= ("UTC" in text)  # in the title, for the record


def test_an_interval_is_shown_in_the_zone_of_the_page_and_means_the_same() -> None:
    asked = "2026-12-01T09:00:00Z/2026-12-01T10:00:00Z"
    shown = show_in_zone(asked, TEHRAN.zone)
    assert shown == "2026-12-01T12:30:00+03:30/2026-12-01T13:30:00+03:30"
    assert parse_start(shown, NOW) == parse_start(asked, NOW)
    assert show_in_zone("weekdays 09:00-12:00 UTC", TEHRAN.zone) == "weekdays 09:00-12:00 UTC"
