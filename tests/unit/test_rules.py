"""The operator's rules refuse or cap any field of a request, for everyone or for some."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.request import read_request
from sublet.booking.documents.short import full_document
from sublet.booking.model.rules import REFUSED, Rule, apply_rules

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)
DOCUMENT = full_document(
    {
        "image": "docker.io/library/python:3.12",
        "run": "python sim.py",
        "cores": "2-32",
        "memory": "4GiB-64GiB",
        "time": "12h",
        "data": ["https://example.org/a.fits", "http://elsewhere.org/b.fits"],
    }
)


def test_a_value_that_matches_a_pattern_is_refused_with_the_operators_reason() -> None:
    rule = Rule("executable.image.locations", "docker.io/*", refuse="use our own registry")
    document, reasons, notes = apply_rules([rule], DOCUMENT, "ann")
    assert document is DOCUMENT
    assert not notes
    assert [(reason.kind, reason.field) for reason in reasons] == [(REFUSED, "executable.image.locations[0]")]
    assert "use our own registry" in reasons[0].message


def test_a_rule_that_only_says_why_refuses_whatever_is_there() -> None:
    ports = {"executable": {"kind": "docker-container", "network": {"ports": []}, "privileged": True}}
    rules = [Rule("executable.network", refuse="no ports"), Rule("executable.privileged", "true")]
    reasons = apply_rules(rules, full_document(ports), "ann").reasons
    assert [reason.field for reason in reasons] == ["executable.network", "executable.privileged"]
    assert not apply_rules(rules, DOCUMENT, "ann").reasons


def test_a_path_reaches_into_every_item_of_a_list() -> None:
    reasons = apply_rules([Rule("data.location", "http:*")], DOCUMENT, "ann").reasons
    assert [reason.field for reason in reasons] == ["data[1].location"]


def test_patterns_take_letters_of_any_case() -> None:
    document = full_document({"image": "DOCKER.io/x"})
    assert apply_rules([Rule("executable.image.locations", "docker.io/*")], document, "ann").reasons


def test_what_only_is_allowed_refuses_all_else_and_names_what_is() -> None:
    rule = Rule("executable.image.locations", only=("ghcr.io/ours/*", "quay.io/ours/*"))
    (reason,) = apply_rules([rule], DOCUMENT, "ann").reasons
    assert reason.limit == "ghcr.io/ours/*, quay.io/ours/*"
    assert not apply_rules([rule], full_document({"image": "quay.io/ours/x"}), "ann").reasons


def test_a_cap_lowers_the_most_and_says_so() -> None:
    document, reasons, notes = apply_rules([Rule("compute.cores.max", cap=16)], DOCUMENT, "ann")
    assert not reasons
    assert document["compute"]["cores"] == {"min": 2, "max": 16}
    assert DOCUMENT["compute"]["cores"]["max"] == 32
    assert notes == ("compute.cores.max was 32 and is now 16: the operator allows no more.",)


@pytest.mark.parametrize("field", ["compute.memory", "compute.memory.max"])
def test_a_cap_on_memory_compares_gib_with_text(field: str) -> None:
    document = apply_rules([Rule(field, cap="16GiB")], DOCUMENT, "ann").document
    assert read_request(document, NOW).compute.memory.max == 16 * 1024**3


def test_a_cap_on_time_shortens_it_even_where_nobody_said_how_long() -> None:
    rule = Rule("schedule.requested.duration", cap="1h")
    for asked in (DOCUMENT, full_document({"run": "x"}), full_document({"executable": {"kind": "command"}})):
        document = apply_rules([rule], asked, "ann").document
        assert read_request(document, NOW).duration.total_seconds() == 3600


def test_a_minimum_above_the_cap_is_refused_with_the_nearest_yes() -> None:
    document = full_document({"run": "x", "cores": 32})
    capped, reasons, notes = apply_rules([Rule("compute.cores.max", cap=16)], document, "ann")
    assert capped is document
    assert not notes
    assert [(r.field, r.wanted, r.limit, r.nearest) for r in reasons] == [("compute.cores.min", "32", "16", "16")]


def test_a_rule_is_for_those_whom_it_names() -> None:
    rule = Rule("compute.cores.max", cap=4, person=("guest-*", "bob"))
    assert apply_rules([rule], DOCUMENT, "ann").document is DOCUMENT
    for person in ("guest-7", "bob"):
        assert apply_rules([rule], DOCUMENT, person).notes


def test_rules_are_applied_one_after_another() -> None:
    rules = [Rule("compute.cores.max", cap=16), Rule("compute.cores.max", cap=8), Rule("compute.cores.max", cap=12)]
    assert apply_rules(rules, DOCUMENT, "ann").document["compute"]["cores"]["max"] == 8


def test_older_shapes_are_no_way_around_a_rule() -> None:
    older = {
        "request": {
            "executable": {"type": "uri:docker-container-1.0", "spec": {"image": "x/y", "repository": "docker.io"}},
            "resources": {"compute": [{"cores": {"requested": {"min": 32}}}]},
        }
    }
    rules = [Rule("executable.image.locations", "docker.io/*"), Rule("compute.cores.max", cap=16)]
    fields = [reason.field for reason in apply_rules(rules, full_document(older), "ann").reasons]
    assert fields == ["executable.image.locations[0]", "compute.cores.min"]


@pytest.mark.parametrize(
    "fields",
    [
        {"field": "", "cap": 1},
        {"field": "compute..cores", "cap": 1},
        {"field": "compute.cores"},
        {"field": "compute.memory.max", "cap": "lots"},
        {"field": "schedule.requested.duration", "cap": "P1H"},
    ],
)
def test_a_rule_that_could_do_nothing_is_a_mistake(fields: dict) -> None:
    with pytest.raises(ValueError, match=r"rule|amount"):
        Rule(**fields)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "min", "max"]), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["a", "b"]), values), st.sampled_from(["a", "a.b", "*.max", "a.max", "*.*"]))
def test_rules_never_fail_and_never_change_what_they_were_given(document: dict, field: str) -> None:
    before = repr(document)
    apply_rules([Rule(field, "x*", only="y*", cap=3), Rule(field, cap="1h")], document, "ann")
    assert repr(document) == before
