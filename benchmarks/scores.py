"""How good predictions were: their errors, and how often the truth fell inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

DAY = 86_400.0
WARM = 30 * DAY  # nothing is judged before there is some record; of a short trace, after its first third
Spread3 = tuple[float, float, float]  # p10, p50, p90, in seconds


@dataclass(slots=True)
class Score:
    """How good predictions were."""

    count: int = 0
    error: float = 0.0  # sum of |p50 − wait|
    loss: float = 0.0  # sum of the quantile losses of p10, p50 and p90
    inside: int = 0  # between p10 and p90, by a second

    def add(self, spread: Spread3, wait: float) -> None:
        """One more."""
        self.count += 1
        self.error += abs(spread[1] - wait)
        for part, value in zip((0.1, 0.5, 0.9), spread, strict=True):
            self.loss += max(part * (wait - value), (part - 1) * (wait - value))
        self.inside += spread[0] - 1 <= wait <= spread[2] + 1


def describe(scores: dict[str, Score]) -> Iterator[str]:
    """A table."""
    yield "| method | jobs | mean error of the median | quantile loss | between p10 and p90 (80 % is right) |"
    yield "| --- | --- | --- | --- | --- |"
    for name, score in scores.items():
        count = max(score.count, 1)
        errors = f"{score.error / count / 60:.0f} min | {score.loss / count / 60:.0f} min"
        yield f"| {name} | {score.count} | {errors} | {score.inside / count:.0%} |"
