"""The form of an app: every value that a manifest allows can be typed, and arrives as what it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.apps.model.app import Version, VersionState
from sublet.apps.model.manifest import Input, Manifest, Parameter, ResourceBounds, to_json
from sublet.apps.pages.form import MORE, beside, check, first_values, form_of, key_of, read_typed, values_of, wish_of
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.booking.model.scheduler import SchedulerOptions

PARAMETERS = (
    Parameter("years", {"type": "integer", "minimum": 0, "maximum": 50, "default": 10, "title": "How many"}, "a"),
    Parameter("rate", {"type": "number", "default": 0.5, "multipleOf": 0.25, "minimum": 0.1}),
    Parameter("label", {"type": "string", "default": "x", "maxLength": 40, "pattern": "^[a-z]*$"}),
    Parameter("note", {"type": "string", "default": "one\ntwo"}),
    Parameter("fast", {"type": "boolean", "default": True}),
    Parameter("model", {"enum": ["7", 7, "", False, None], "default": 7}),
    Parameter("cells", {"type": "array", "default": [1, 2]}),
    Parameter("any", {"default": "7"}),
    Parameter("who", {"type": "string"}),
)
MANIFEST = Manifest(
    "flood",
    "sublet.yaml",
    (),
    parameters=PARAMETERS,
    resources={
        "tasks": ResourceBounds(1, 8, 2),
        "nodes": ResourceBounds(1, 1, 1),
        "memory_per_core": ResourceBounds(2**30, 2**32, 2**30),
    },
    data=(Input("rain", required=True), Input("soil")),
    systems=("keeling",),
    default_system="keeling",
)
NOW = datetime(2026, 3, 3, tzinfo=UTC)
VERSION = Version(
    *("1", "flood", 3, "https://example.org/x", "main", "c" * 40, "d" * 64, to_json(MANIFEST), "", "", ""),
    VersionState.APPROVED,
    NOW,
    "ann@example.org",
)
PLACES = ("keeling", "expanse")


def wished(**changed: str) -> dict[str, Any]:
    names = {one.name for one in PARAMETERS}
    values = first_values(MANIFEST, PLACES) | {f"parameters.{name}": said for name, said in changed.items()}
    assert set(changed) <= names
    return dict(wish_of(VERSION, MANIFEST, values).set)


def test_the_defaults_are_typed_already_and_what_has_none_is_left_out() -> None:
    defaults = {one.name: one.schema["default"] for one in PARAMETERS if one.has_default}
    assert wished() == defaults
    wish = wish_of(VERSION, MANIFEST, first_values(MANIFEST, PLACES))
    assert (wish.app, wish.version, wish.hpc, wish.data) == ("flood", "3", "keeling", {})
    assert wish.resources == {"nodes": 1, "tasks": 2, "memory_per_core": "1GiB", "time": "2h"}


def test_zero_false_and_empty_are_values() -> None:
    said = wished(years="0", label="", fast="", model='""', note="", any="0", who="me", cells="[]")
    assert said["fast"] is False
    assert (said["years"], said["label"], said["note"], said["model"]) == (0, "", "", "")
    assert (said["any"], said["who"], said["cells"]) == (0, "me", [])
    assert wished(model="false")["model"] is False
    assert wished(model='"7"')["model"] == "7"
    assert "years" not in wished(years="")
    assert wished(years="many", cells="[" * 100_000)["years"] == "many"


def test_a_box_that_is_not_sent_is_not_ticked_and_foreign_fields_are_dropped() -> None:
    values = read_typed(MANIFEST, {"parameters.label": "a", "token": "t", "parameters.other": "1", "more": "a=1"})
    assert values == {"parameters.label": "a"}
    assert wish_of(VERSION, MANIFEST, values).set == {"label": "a", "fast": False}


def test_a_browser_is_told_the_bounds_as_far_as_it_understands_them() -> None:
    fields = {one.key.removeprefix("parameters."): one for one in form_of(MANIFEST, PLACES).parameters}
    assert fields["years"].attributes == {"min": "0", "max": "50", "step": "1"}
    assert (fields["years"].label, fields["years"].unit, fields["years"].hint) == ("How many", "a", "0 to 50")
    assert fields["rate"].attributes == {"min": "0.1", "step": "any"}, "it would count its steps from the least"
    assert fields["label"].attributes == {"maxlength": "40", "pattern": ".*(?:^[a-z]*$).*"}
    assert [fields[name].control for name in ("note", "fast", "model", "who")] == ["lines", "check", "choice", "text"]
    assert fields["who"].attributes == {"required": ""}
    kept = form_of(MANIFEST, PLACES, {"parameters.years": "many"}).parameters[0]
    assert (kept.control, kept.value) == ("text", "many"), "a field for numbers would not show it"


@pytest.mark.parametrize("step", ["x", 0, -1, float("inf"), [1]])
@pytest.mark.parametrize("least", [0, float("-inf"), 10**400])
def test_whatever_an_author_wrote_there_is_a_form(step: Any, least: Any) -> None:
    odd = Parameter("odd", {"type": "number", "minimum": least, "step": step, "default": 3})
    (field,) = form_of(Manifest("odd", "sublet.yaml", (), parameters=(odd,)), PLACES).parameters
    assert (field.control, field.attributes["step"]) == ("number", "any")


def test_what_can_not_be_chosen_is_told_and_one_place_is_chosen_already() -> None:
    form = form_of(MANIFEST, ("keeling",))
    assert form.fixed == ("Nodes: 1",)
    assert [one.key for one in form.resources] == ["resources.tasks", "resources.memory_per_core", "resources.time"]
    assert form.where.choices == (("keeling", "keeling"),)
    assert [one[0] for one in form_of(MANIFEST, PLACES).where.choices] == ["", *PLACES]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("executable.parameters.years", "parameters.years"),
        ("executable.parameters.nonsense", ""),
        ("resources.memory_per_core", "resources.memory_per_core"),
        ("executable.tasks", "resources.tasks"),
        ("compute.cores.min", "resources.tasks"),
        ("compute.memory", "resources.memory_per_core"),
        ("duration", "resources.time"),
        ("data", "data.rain"),
        ("data[0].location", "data.soil"),
        ("data[soil].location", "data.soil"),
        ("data[nothing]", ""),
        ("platform", "hpc"),
        ("executable.kind", ""),
        ("options.switches", "scheduler.options"),
    ],
)
def test_a_reason_is_put_beside_the_field_that_it_is_about(path: str, key: str) -> None:
    values = {"hpc": "keeling", "data.soil": "https://example.org/soil"}
    assert key_of(MANIFEST, values, path) == key
    wrong, others = beside(MANIFEST, values, [Reason("urn:x", path, "no.", nearest="4")] * 2)
    assert (list(wrong), len(others)) == ([key], 1) if key else ([], 2)


def test_amounts_and_lines_that_can_not_be_read_are_told_at_once() -> None:
    free = Manifest("free", "entry.sh", (), any_parameters=True)
    values = {"resources.time": "soon", "resources.memory": "8GiB", MORE: "a=1\nnonsense"}
    assert set(check(free, values)) == {"resources.time", MORE}
    wish = wish_of(VERSION, free, {MORE: " a=1\nb==x ", "data.data": " https://example.org/d "})
    assert (wish.words, wish.data) == ({"a": "1", "b": "=x"}, {"data": "https://example.org/d"})


def test_an_earlier_request_fills_in_the_same_form() -> None:
    fields = {"app": "flood", "parameters": {"years": 0, "fast": False, "any": "7"}, "resources": {"tasks": 4}}
    request = Request(
        Executable("app", "mine", fields), data=(Data("rain", "", "https://example.org/r"),), platform="expanse"
    )
    request = replace(request, duration=timedelta(minutes=20), scheduler=SchedulerOptions(nice=0, exclusive=True))
    wish = wish_of(VERSION, MANIFEST, values_of(MANIFEST, PLACES, request))
    assert {name: wish.set[name] for name in ("years", "fast", "any")} == {"years": 0, "fast": False, "any": "7"}
    assert (wish.name, wish.hpc, wish.resources["tasks"], wish.resources["time"]) == ("mine", "expanse", 4, "20m")
    assert wish.data == {"rain": "https://example.org/r"}
    assert wish.scheduler == {"nice": 0, "exclusive": True}
