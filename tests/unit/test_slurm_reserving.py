"""What Slurm is asked for to hold an offer, and who may ask for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from sublet.booking.model.offer import Booked, Offer, Predicted
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.batch.fitting import answer
from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish
from sublet.platforms.slurm.platform import Slurm
from sublet.platforms.slurm.readers import SlurmPlan
from sublet.platforms.slurm.reserving import can_reserve, words_to_reserve

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
MIB = 1 << 20
SHARED = {
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CORE_MEMORY",
    "SLURM_VERSION": "22.05.8",
    "SlurmUser": "slurm(64030)",
}
QUEUE = SiteQueue("batch", max_core_memory=256 * MIB)
WISH = SlurmWish("batch", Amounts(Shape(2, 512 * MIB), 2, timedelta(minutes=10)))


def ask(wish: SlurmWish = WISH, queue: SiteQueue = QUEUE, config: Any = SHARED, **asked: Any) -> dict[str, str]:
    plan = SlurmPlan(START, ("c1", "c2"))
    words = words_to_reserve(wish, SlurmAccount(SchedulerOptions(**asked)), plan, queue, config)
    return dict(word.split("=", 1) for word in words)


def test_the_planned_nodes_are_reserved_for_a_little_longer_than_the_job_may_run() -> None:
    assert ask(licenses="matlab:2") == {
        "StartTime": "2026-12-01T09:00:00",
        "Duration": "13",
        "Nodes": "c1,c2",
        "PartitionName": "batch",
        "CoreCnt": "2,2",
        "Licenses": "matlab:2",
        "Flags": "PURGE_COMP=00:05:00",
    }


def test_nodes_are_reserved_whole_where_cores_alone_would_not_hold_what_was_asked_for() -> None:
    more = replace(WISH, amounts=Amounts(Shape(2, 513 * MIB), 2, timedelta(minutes=10)))
    gpus = replace(WISH, amounts=Amounts(Shape(2, 0, 1), 2, timedelta(minutes=10)))
    whole = [ask(more), ask(gpus), ask(exclusive=True), ask(queue=replace(QUEUE, whole=True))]
    whole += [ask(queue=SiteQueue("batch")), ask(config={**SHARED, "SelectType": "select/linear"})]
    assert not any("CoreCnt" in words for words in whole)
    uncounted = {**SHARED, "SelectTypeParameters": "CR_CORE"}
    assert ask(more, SiteQueue("batch"), uncounted)["CoreCnt"] == "2,2"


def test_an_older_slurm_is_asked_for_no_flag_that_it_does_not_know() -> None:
    assert "Flags" not in ask(config={**SHARED, "SLURM_VERSION": "19.05.5"})
    assert "Flags" not in ask(config={})


def test_operators_and_slurms_own_user_may_reserve() -> None:
    assert can_reserve("ann|Operator\n", SHARED)
    assert can_reserve("ann|Administrator", SHARED)
    assert can_reserve("slurm|", SHARED)
    assert can_reserve("root|", {})
    assert not can_reserve("ann|None", SHARED)
    assert not can_reserve("", SHARED)


@pytest.mark.parametrize(
    ("value", "count"), [("yes", 4), ("No", 0), (True, 4), (False, 0), (7, 7), ("7", 7), (None, 0)]
)
def test_how_many_are_held_is_a_number_or_yes_or_no(value: object, count: int) -> None:
    settings = {} if value is None else {"reservations": value}
    assert Slurm.model_validate({"name": "far", **settings}).reservations == count


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(ValidationError, match="reservations"):
        Slurm.model_validate({"name": "far", "reservations": "perhaps"})


def test_a_reserved_offer_stands_beside_a_predicted_one_of_the_same_time() -> None:
    predicted = Offer(
        platform="far",
        way="exec",
        start=START,
        latest_start=START,
        duration=timedelta(minutes=10),
        nodes=(),
        shape=Shape(1, 0),
        terms=Predicted(p10=START, p50=START, p90=START, samples=0, as_of=START),
        why="earliest",
    )
    both = answer([predicted, replace(predicted, terms=Booked(reservation="key"))], [])
    assert [offer.terms.kind for offer in both.offers] == ["predicted", "booked"]
