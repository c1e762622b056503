"""Patterns and schemas that strangers write keep nobody busy, and lead nowhere."""

from __future__ import annotations

import json
import re

import pytest

from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.manifest import Manifest, Parameter
from sublet.apps.model.parameters import _wrong, check, schema_problems
from sublet.kernel.patterns import LONGEST, pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[A-Za-z0-9_-]+$",
        "[a-z]+",
        r"\d{4}-\d{2}-\d{2}",
        "^(yes|no|maybe)$",
        r"^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$",
        r"^[^@]+@[^@]+\.[a-z]+$",
        r"^([A-Z]{2}\d{2}){1,4}$",
        r"^(?:[a-z]+)$",
        "^a*b*c*$",
    ],
)
def test_what_people_write_is_taken_and_the_worst_text_for_it_is_soon_over(pattern: str) -> None:
    assert pattern_problem(pattern) == ""
    for worst in ("a" * LONGEST, "a" * (LONGEST - 1) + "!", "1." * (LONGEST // 2), "@." * (LONGEST // 2)):
        re.search(pattern, worst)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(a?){30}$",
        "^(.*)*$",
        "^((a{1,9}){1,9}){1,9}$",
        "a*a*a*$",
        "^" + "a?" * 30 + "$",
        r"^(a)\1*$",
        "^(?=a*)b$",
        "(?<!a)b",
        "(" * 5000 + ")" * 5000,
        "(unclosed",
    ],
)
def test_what_could_take_years_is_refused_before_it_is_tried(pattern: str) -> None:
    assert pattern_problem(pattern)
    text = {"type": "string", "pattern": pattern, "default": "a" * 60 + "!"}
    assert schema_problems(Parameter("x", text))[0][0] == "pattern"
    lists = {"type": "array", "items": {"type": "array", "items": text}, "default": [["a" * 60 + "!"]]}
    assert schema_problems(Parameter("x", lists))[0][0] == "items"


def test_texts_that_have_to_match_are_short() -> None:
    plain = {"type": "string", "pattern": "^[a-z]+$"}
    assert _wrong(Parameter("x", plain), "a" * LONGEST) is None
    assert _wrong(Parameter("x", plain), "a" * (LONGEST + 1))
    assert _wrong(Parameter("x", {"type": "array", "items": plain}), ["a"] * 20) is None
    assert _wrong(Parameter("x", {"type": "array", "items": plain}), ["a" * 100] * 100)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$id", "$schema", "allOf", "if", "properties"])
def test_no_schema_leads_elsewhere_however_deep(keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *words, **_: opened.append(words))
    inside = {keyword: "http://169.254.169.254/latest/meta-data"}
    for schema in (inside, {"items": inside}, {"items": {"items": {"items": inside}}}):
        parameter = Parameter("x", {**schema, "default": [[[1]]]})
        assert any(keyword in why for _, why in schema_problems(parameter))
    with pytest.raises(Exception, match="Unresolvable"):  # and if one was there, nothing would be fetched
        _wrong(Parameter("x", {"$ref": "http://169.254.169.254/"}), 1)
    assert opened == []


def test_an_app_has_so_many_parameters_and_no_more() -> None:
    many = {f"p{number}": {"type": "integer", "default_value": 1} for number in range(20_000)}
    rules = {"name": "x", "container": "python", "execution_stage": "true", "param_rules": many}
    own = {"name": "x", "run": "true", "parameters": {name: {"type": "integer"} for name in many}}
    for files in (
        {"sublet.yaml": json.dumps(own)},
        {"manifest.json": json.dumps(rules)},
        {"entry.sh": "true", "params.json": json.dumps(dict.fromkeys(many, 1))},
    ):
        read = read_manifest({name: text.encode() for name, text in files.items()})
        assert any("up to 500 parameters, not 20000" in str(error) for error in read.errors)
    (reason,) = check(Manifest("x", "entry.sh", (), any_parameters=True), many)
    assert (reason.field, reason.limit) == ("parameters", "500")
