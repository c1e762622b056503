"""Parameters are checked on the server: what is wrong, the limit, and the nearest value that would be right."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sublet.apps.model import parameters
from sublet.apps.model import resources as app_resources
from sublet.apps.model.manifest import Manifest, Parameter, ResourceBounds
from sublet.apps.model.request import fit_request
from sublet.apps.model.resources import Sized, size_run, wrong
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.shape import Amounts, Shape

GIB = 1 << 30
MANIFEST = Manifest(
    "flood",
    "sublet.yaml",
    (),
    parameters=(
        Parameter(
            "years", {"type": "integer", "minimum": 10, "maximum": 50, "multipleOf": 10, "default": 10}, unit="a"
        ),
        Parameter("mode", {"enum": ["fast", "exact"], "default": "fast"}),
        Parameter("depth", {"type": "number", "minimum": 0, "default": 0}),
        Parameter("quiet", {"type": "boolean", "default": False}),
        Parameter("label", {"type": "string", "default": "", "pattern": "^[a-z]*$"}),
        Parameter("day", {"type": "string", "default": "2026-01-01", "format": "date"}),
    ),
    resources={
        "nodes": ResourceBounds(1, 4, 1),
        "tasks": ResourceBounds(1, 64, 8),
        "memory_per_core": ResourceBounds(GIB, 4 * GIB, GIB),
        "time": ResourceBounds(600, 7200, 600),
    },
)


@pytest.mark.parametrize(
    ("given", "words", "nearest"),
    [
        ({"years": 60}, "within 10 to 50 a, not 60", "50"),
        ({"years": 9}, "within 10 to 50 a", "10"),
        ({"years": 24}, "multiple of 10", "20"),
        ({"years": "20"}, "of type integer", "20"),
        ({"years": True}, "of type integer", "10"),
        ({"mode": "exakt"}, "one of fast, exact", "exact"),
        ({"depth": -1}, "minimum 0", "0"),
        ({"depth": float("inf")}, "finite", ""),
        ({"quiet": "yes"}, "of type boolean", "true"),
        ({"label": "A b"}, "can't be A b", ""),
        ({"label": "a" * 2000}, "longer than 200", ""),
        ({"day": "tomorrow"}, "can't be tomorrow", "2026-01-01"),
        ({"label": "a\0"}, "NUL", ""),
        ({"yeers": 1}, "no parameter yeers; it has: years, mode", "years"),
    ],
)
def test_a_wrong_value_is_refused_with_its_limit_and_the_nearest_good_one(given: Any, words: str, nearest: str) -> None:
    (reason,) = parameters.check(MANIFEST, given)
    assert words in reason.message
    assert reason.nearest == nearest
    assert reason.field == f"parameters.{next(iter(given))}"


@pytest.mark.parametrize("given", [{}, {"years": 10}, {"depth": 0}, {"quiet": False}, {"label": ""}])
def test_nought_empty_and_false_are_values_like_others(given: dict[str, Any]) -> None:
    assert parameters.check(MANIFEST, given) == []
    full = parameters.fill_parameters(MANIFEST, given)
    assert full == {"years": 10, "mode": "fast", "depth": 0, "quiet": False, "label": "", "day": "2026-01-01"} | given


def test_what_has_no_default_must_be_given() -> None:
    manifest = Manifest("x", "sublet.yaml", (), parameters=(Parameter("a", {"type": "string", "title": "Who"}),))
    (reason,) = parameters.check(manifest, {})
    assert "needs the parameter a (Who)" in reason.message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("years", "20", 20), ("quiet", "true", True), ("label", "20", "20"), ("mode", "fast", "fast"), ("x", "[1]", [1])],
)
def test_a_typed_value_is_what_its_parameter_wants(name: str, text: str, value: Any) -> None:
    assert parameters.read(MANIFEST.parameter(name), text) == value


def test_resources_beyond_the_manifest_are_refused_with_the_nearest() -> None:
    reasons = wrong(MANIFEST, {"tasks": 65, "time": 60, "gpus": 1, "nodes": 4, "cups": 1})
    told = {reason.field: reason.nearest for reason in reasons}
    assert told == {"resources.tasks": "64", "resources.time": "10 min", "resources.gpus": "0", "resources.cups": ""}


def test_what_lies_between_two_steps_is_refused_with_the_nearest() -> None:
    rules = {"type": "integer", "minimum": 1, "maximum": 20, "step": 5, "default": 3}
    odd = Parameter("tenths", {"type": "number", "step": 0.1, "default": 0})
    stepped = {"tasks": ResourceBounds(1, 64, 10, 8), "memory": ResourceBounds(1 << 20, 50 * GIB, GIB, 5 * GIB)}
    manifest = Manifest("flood", "manifest.json", (), parameters=(Parameter("n", rules), odd), resources=stepped)
    for good in (1, 6, 16, 3, 20):
        assert parameters.check(manifest, {"n": good, "tenths": good / 10}) == []
    (reason,) = parameters.check(manifest, {"n": 8, "tenths": 0})
    assert reason.message == "the parameter n goes in steps of 5 from 1, and can't be 8."
    assert (reason.limit, reason.nearest) == ("steps of 5", "6")
    assert parameters.check(manifest, {"n": 19, "tenths": 0})[0].nearest == "20"
    assert parameters.check(manifest, {"n": 1, "tenths": 0.25})[0].field == "parameters.tenths"
    for amounts in ({"tasks": 9}, {"tasks": 16}, {"tasks": 10}, {"tasks": 64}, {"memory": 10 * GIB}):
        assert wrong(manifest, amounts) == []
    [reason] = wrong(manifest, {"tasks": 12})
    assert (reason.message, reason.nearest) == ("flood uses tasks in steps of 8, not 12.", "9")
    [reason] = wrong(manifest, {"memory": 6 * GIB})
    assert reason.limit == "steps of 5GiB"


def test_tasks_and_shares_become_what_each_node_must_have() -> None:
    time = timedelta(minutes=10)
    assert size_run(MANIFEST) == Sized(Amounts(Shape(8, 8 * GIB), 1, time), 8)
    assert size_run(MANIFEST, {"nodes": 4, "tasks": 6}) == Sized(Amounts(Shape(2, 2 * GIB), 4, time), 6)


@pytest.mark.parametrize(
    ("name", "said", "amount"), [("memory", "2GiB", 2 * GIB), ("time", "1 h", 3600), ("tasks", 3, 3)]
)
def test_amounts_are_read_with_their_units_and_shown_again(name: str, said: object, amount: int) -> None:
    assert app_resources.parse(name, said) == amount
    assert app_resources.text(name, amount) == str(said)


@pytest.mark.parametrize(
    ("asked", "tasks"),
    [
        ({"tasks": 1}, 1),
        ({"tasks": 6}, 6),
        ({}, 8),
        ({"cores": 4}, 4),
        ({"cores": 1}, 8),
        ({"cores": 1, "tasks": 2}, 2),
    ],
)
def test_as_many_tasks_run_as_were_asked_for_and_booked(asked: dict[str, int], tasks: int) -> None:
    request = Request(Executable("app", "x", {"resources": asked}))
    found = fit_request(request, MANIFEST)
    assert isinstance(found, Request)
    assert found.executable
    assert (found.executable.fields["tasks"], found.compute.cores.min) == (tasks, tasks)


def test_an_app_whose_memory_is_no_whole_gib_is_told_in_the_kind_that_can_say_so() -> None:
    for memory, kind in ((GIB // 2, "node-compute-resource"), (2 * GIB, "simple-compute-resource")):
        manifest = replace(MANIFEST, resources={"memory": ResourceBounds(memory, memory, memory)})
        found = fit_request(Request(Executable("app", "x")), manifest)
        assert isinstance(found, Request)
        assert found.compute.kind == kind
