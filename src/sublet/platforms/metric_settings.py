"""Performance metrics in a platform's settings, named by IVOA or by other URNs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, FiniteFloat

METRIC = "urn:ivoa:calycopis:metric:"


def _metrics(value: object) -> object:
    """Expand names without a URN to IVOA's, and single numbers to (least, most)."""
    if not isinstance(value, Mapping):
        return value
    return {
        name if ":" in str(name) else f"{METRIC}{name}": (bound, bound) if isinstance(bound, int | float) else bound
        for name, bound in value.items()
    }


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= bounds[0] <= bounds[1]:
        raise ValueError("write the least and the most, from 0 upwards: [150, 200]")
    return bounds


Metrics = Annotated[
    dict[str, Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_in_order)]], BeforeValidator(_metrics)
]  # URN → the least and the most
