"""What a platform performs, as its settings state it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sublet.booking.model.offer import Quote
from sublet.platforms.local.platform import Local

PERFORMANCE = "urn:ivoa:calycopis:metric:compute-performance"


def stated(**metrics: Any) -> tuple[Quote, ...]:
    return Local.model_validate({"name": "here", "metrics": metrics}).stated_metrics


def test_a_short_name_is_ivoas_and_a_single_number_is_both_bounds() -> None:
    assert stated(**{"compute-performance": [150, 200.5]}) == (Quote(PERFORMANCE, 150, 200.5),)
    assert stated(**{"compute-performance": 150}) == (Quote(PERFORMANCE, 150, 150),)
    assert stated(**{"urn:example:score": [1, 2]}) == (Quote("urn:example:score", 1, 2),)
    assert stated() == ()


@pytest.mark.parametrize("bounds", [[2, 1], [-1, 1], [1], "fast", [1, float("inf")], [float("nan"), 1]])
def test_bounds_that_are_none_are_refused(bounds: Any) -> None:
    with pytest.raises(ValidationError):
        stated(score=bounds)
