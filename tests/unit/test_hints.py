"""Hints of an answer: told with their numbers, taken by them, and by one key where someone sits."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from sublet.booking.cli.hints import apply_hints, choose_hints, describe_hints
from sublet.booking.model.offer import HINT
from sublet.booking.views.offers import OfferSetView, ReasonView
from sublet.cli.output import Output
from sublet.kernel.errors import BadRequest

NIGHT = "2026-11-17T19:00:00Z/PT6H"
VIEW = OfferSetView(
    id="x",
    result="YES",
    created=datetime(2026, 11, 17, tzinfo=UTC),
    reasons=(
        ReasonView(kind="urn:held", field="", message="Something else."),
        ReasonView(kind=HINT, field="memory", message="80 % used less.", limit="2.4GiB", nearest="3GiB"),
        ReasonView(kind=HINT, field="cores", message="Few were busy.", limit="1.1", nearest="2"),
        ReasonView(kind=HINT, field="start", message="From 19:00 on it would cost 30 % less.", nearest=NIGHT),
    ),
)


class Sitting(Output):
    """Someone sits at a terminal."""

    can_ask = True  # type: ignore[assignment]


def test_each_hint_is_told_with_its_number_and_what_it_advises() -> None:
    assert describe_hints(VIEW) == [
        "hint 1: 80 % used less. --memory 3GiB is enough. Take it with: --take 1",
        "hint 2: Few were busy. --cores 2 is enough. Take it with: --take 2",
        "hint 3: From 19:00 on it would cost 30 % less. Take it with: --take 3",
    ]


def test_hints_that_are_taken_are_put_over_the_request() -> None:
    asked = {"run": ["true"], "memory": "8GiB", "cores": 8}
    assert apply_hints(asked, VIEW, [1, 2]) == {"run": ["true"], "memory": "3GiB", "cores": 2}
    assert apply_hints(asked, VIEW, [3]) == asked | {"start": NIGHT}
    with pytest.raises(BadRequest, match="no hint 4: it has 3"):
        apply_hints(asked, VIEW, [1, 4])


@pytest.mark.parametrize(("key", "taken"), [("2", [2]), ("4", []), ("\r", []), ("n", [])])
def test_one_key_takes_a_hint_where_someone_sits(key: str, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "getchar", lambda: key)
    assert choose_hints(Sitting(), VIEW) == taken
    assert choose_hints(Sitting(json=True), VIEW) == []
    assert choose_hints(Output(), VIEW) == [], "nobody is asked where nobody sits"
