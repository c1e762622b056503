"""What a policy service's answer means: anything but a clear yes is a no."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.access.model.access import Limits
from sublet.access.model.verdict import Verdict, describe_executable, read_verdict
from sublet.booking.documents.request import read_document


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"result": True}, Verdict(True)),
        ({"result": False}, Verdict(False)),
        ({}, Verdict(False, "its policy does not decide this")),
        ({"result": {"allow": False, "reason": "no\nGPUs  here"}}, Verdict(False, "no GPUs here")),
        (
            {"result": {"allow": True, "limits": {"cores": 4, "seconds": 60, "core_hours": 2.5, "gpus": None}}},
            Verdict(True, "", Limits(cores=4, time=timedelta(minutes=1), hours=2.5)),
        ),
        ({"result": {"allow": True, "decided_by": "rule 7"}, "decision_id": "1"}, Verdict(True)),
    ],
)
def test_an_answer_as_the_contract_has_it(answer: Any, verdict: Verdict) -> None:
    assert read_verdict(answer) == verdict


@pytest.mark.parametrize(
    "answer",
    [
        [],
        None,
        "yes",
        {"result": "yes"},
        {"result": 1},
        {"result": {}},
        {"result": {"allow": "true"}},
        {"result": {"allow": True, "reason": 7}},
        {"result": {"allow": True, "limits": []}},
        {"result": {"allow": True, "limits": {"core": 1}}},
        {"result": {"allow": True, "limits": {"cores": "1"}}},
        {"result": {"allow": True, "limits": {"cores": -1}}},
        {"result": {"allow": True, "limits": {"cores": float("inf")}}},
        {"result": {"allow": True, "limits": {"cores": True}}},
    ],
)
def test_what_is_not_understood_is_no_yes(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_verdict(answer)


@pytest.mark.parametrize(
    ("short", "images"),
    [
        ({"image": "docker://busybox"}, ["docker://busybox"]),
        ({"image": {"locations": ["a.org/x", "b.org/x"]}}, ["a.org/x", "b.org/x"]),
        ({"image": f"a.org/x@sha256:{'0' * 64}"}, [f"a.org/x@sha256:{'0' * 64}"]),
        ({"steps": ["true"], "image": "a.org/x"}, ["a.org/x"]),
        ({"notebook": "https://a.org/a.ipynb", "image": "a.org/x"}, ["a.org/x"]),
        ({"compose": {"services": {"a": {"image": "a.org/a"}, "b": {"image": "a.org/b"}}}}, ["a.org/a", "a.org/b"]),
        ({"compose": "services: {a: {image: a.org/a}}"}, ["a.org/a"]),
    ],
)
def test_every_image_that_may_run_is_named_to_a_policy_service(short: dict[str, Any], images: list[str]) -> None:
    described = describe_executable(read_document(short, datetime(2026, 11, 18, tzinfo=UTC)).request)
    assert (described["image"], described["images"]) == (images[0], images)
