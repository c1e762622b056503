"""Predictions by the hour of the week, tried beside Sublet's own: what came at this hour, in the weeks before.

Two ways: alone (`hour of week`), as a table of past weeks would say it, and as one more likeness beside those by
which Sublet finds similar cases (`sublet by week`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from heapq import nsmallest
from math import log1p

from benchmarks.scores import Spread3
from sublet.archive.model.habits import quantile
from sublet.booking.model.estimate import ENOUGH, NEAREST, OF_HOUR, OF_LENGTH, Sample

WEEK = 168  # hours
BESIDE = 1  # an hour sooner or later counts, too


def count_apart(one: datetime, other: datetime) -> int:
    """How many hours of the week two times are apart: Monday at nine and another Monday at ten are one."""
    apart = (one.weekday() * 24 + one.hour - other.weekday() * 24 - other.hour) % WEEK
    return min(apart, WEEK - apart)


def recall_hour(known: Sequence[Sample], sample: Sample) -> Spread3:
    """What those waited that came at this hour of the week; with fewer than twenty, at the twenty nearest hours."""
    alike = [each for each in known if count_apart(each.at, sample.at) <= BESIDE]
    if len(alike) < ENOUGH:
        alike = nsmallest(ENOUGH, known, key=lambda each: count_apart(each.at, sample.at))
    return spread_of([(each.actual - each.at).total_seconds() for each in alike])


def predict_by_week(known: Sequence[Sample], sample: Sample) -> Spread3:
    """As Sublet predicts, with the hour of the week in place of that of the day."""

    def measure(each: Sample) -> float:
        far = abs(_scale(each.planned, each.at) - _scale(sample.planned, sample.at))
        far += OF_HOUR * count_apart(each.at, sample.at)
        return far + OF_LENGTH * abs(log1p(each.length.total_seconds() / 60) - asked)

    asked = log1p(sample.length.total_seconds() / 60)
    alike = nsmallest(NEAREST, known, key=measure)
    return spread_of([(each.actual - each.at).total_seconds() for each in alike])


def _scale(planned: datetime, at: datetime) -> float:
    return log1p(max((planned - at).total_seconds(), 0.0) / 60)


def spread_of(values: Sequence[float]) -> Spread3:
    """Their 10th, 50th and 90th percentile."""
    ordered = sorted(values) or [0.0]
    return quantile(ordered, 0.1), quantile(ordered, 0.5), quantile(ordered, 0.9)
