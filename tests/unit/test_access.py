"""Access rules: whom they are about, how they combine, and what they leave of a wish."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.access.model.access import (
    AMOUNTS,
    NO_LIMITS,
    AccessRule,
    Decision,
    Limits,
    Use,
    Who,
    decide,
    matches_person,
    month_of,
)
from sublet.access.model.access_words import cap_request, excesses, limits_text, refusal, why
from sublet.booking.model.offer import Offer
from sublet.booking.model.request import GIB, Compute, Range, Request
from sublet.booking.model.shape import Shape, TotalAmounts
from sublet.kernel.errors import BadAmount, BadRequest

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ANNA = "anna@illinois.edu"
STAFF = frozenset({"staff"})


def rule(effect: Any = "allow", who: str = "*@illinois.edu", **more: Any) -> AccessRule:
    given: dict[str, Any] = {"id": "r1", "noun": "account", "name": "keeling", "created": NOW - DAY, **more}
    return AccessRule(effect=effect, who=who, **given)


def asked(*rules: AccessRule, person: str = ANNA, others: tuple[str, ...] = (), name: str = "keeling") -> Decision:
    return decide(rules, Who(frozenset({person, *others}), STAFF), "account", name, NOW)


@pytest.mark.parametrize(
    ("pattern", "person", "matches"),
    [
        ("*@illinois.edu", "anna@illinois.edu", True),
        ("*@illinois.edu", "Anna@Illinois.EDU", True),
        ("*@ILLINOIS.edu", "anna@illinois.edu", True),
        ("*@illinois.edu", "anna@illinois.edu.evil.org", False),
        ("*@illinois.edu", "anna@notillinois.edu", False),
        ("*@illinois.edu", "anna@cs.illinois.edu", False),
        ("*@*.illinois.edu", "anna@cs.illinois.edu", True),
        ("*@illinois.edu", "anna@illinois.edu\n", False),
        ("*@illinois.edu", "anna@illinoisxedu", False),
        ("*@illinois.edu", "eve@evil.org,anna@illinois.edu", False),
        ("*@illinois.edu", "anna@illino\u0131s.edu", False),
        ("*@keeling.org", "anna@\u212aeeling.org", False),
        ("anna@illinois.edu", "anna@illinois.edu", True),
        ("anna@illinois.edu", "xanna@illinois.edu", False),
        ("anna@*", "anna@anywhere.org", True),
        ("anna@*", "anna@x@evil.org", False),
        ("*", "anyone at all", True),
        (".*@illinois.edu", "anna@illinois.edu", False),
        ("[ae]*@illinois.edu", "anna@illinois.edu", False),
    ],
)
def test_a_pattern_is_anchored_and_plain(pattern: str, person: str, matches: bool) -> None:
    assert matches_person(pattern, person) is matches


def test_a_rule_is_about_whoever_has_an_address_that_it_fits() -> None:
    anna, ben = ("anna@home.org", "ben@illinois.edu")
    assert not asked(rule(), person=anna).allowed
    assert asked(rule(), person=anna, others=(ben,)).allowed
    assert not asked(rule(), rule("deny", anna, id="r2"), person=ben, others=(anna,)).allowed


def test_without_a_rule_nobody_gets_anywhere() -> None:
    assert not asked().allowed
    reason = refusal(asked())
    assert reason
    assert (reason.kind, reason.nearest) == ("urn:not-allowed", "sublet access ask keeling --reason TEXT")
    assert reason.message == "You may not use the account keeling: no rule allows it."


def test_a_rule_is_about_its_noun_and_its_names_alone() -> None:
    assert asked(rule()).allowed
    assert asked(rule(name="k*g")).allowed
    assert not asked(rule(noun="system")).allowed
    assert not asked(rule(name="keeling2")).allowed
    assert not asked(rule(name="Keeling")).allowed
    assert asked(rule(who="group:staff")).allowed
    assert not asked(rule(who="group:Staff")).allowed


def test_a_deny_wins_and_says_which_it_was() -> None:
    no = rule("deny", "anna@illinois.edu", id="deadbeef99", note="left in May")
    decision = asked(rule(), no, rule(who=ANNA))
    assert not decision.allowed
    assert why(decision) == "rule deadbeef denies it (left in May)"


def test_access_that_expired_is_told_with_its_date() -> None:
    decision = asked(rule(expires=NOW))
    assert not decision.allowed
    assert why(decision) == "your access expired on 2026-11-16"
    assert not asked(rule(), rule("deny", expires=NOW - DAY)).lapsed
    assert asked(rule(), rule("deny", expires=NOW - DAY)).allowed


def test_limits_are_the_most_generous_of_what_allows_and_capped_by_what_denies() -> None:
    small = rule(id="small", limits=Limits(cores=8, jobs=2, hours_month=10.0))
    large = rule(id="large", who="group:staff", limits=Limits(cores=64, jobs=1, time=timedelta(hours=1)))
    cap = rule("deny", "*", id="cap", limits=Limits(cores=32))
    decision = asked(small, large, cap)
    assert decision.limits == Limits(cores=32, jobs=2)
    assert [found.id if (found := decision.sets(name)) else "" for name in ("cores", "jobs", "time")] == [
        "cap",
        "small",
        "",
    ]
    assert limits_text(decision.limits) == "32 cores, 2 sessions at once"


LIMITS = st.builds(
    Limits,
    cores=st.none() | st.integers(0, 9),
    time=st.none() | st.integers(0, 9).map(lambda hours: timedelta(hours=hours)),
    hours=st.none() | st.integers(0, 9).map(float),
    jobs=st.none() | st.integers(0, 9),
)
RULES = st.builds(
    AccessRule,
    id=st.text("abc", min_size=1, max_size=3),
    effect=st.sampled_from(["allow", "deny"]),
    who=st.sampled_from(["*", "*@illinois.edu", ANNA, "eve@evil.org", "group:staff", "group:other"]),
    noun=st.sampled_from(["account", "system"]),
    name=st.sampled_from(["*", "keeling", "k*", "other"]),
    created=st.just(NOW - DAY),
    limits=st.just(NO_LIMITS) | LIMITS,
    expires=st.sampled_from([None, NOW - DAY, NOW, NOW + DAY]),
)


def at_least(limits: Limits, others: Limits) -> bool:
    pairs = ((getattr(limits, name), getattr(others, name)) for name in AMOUNTS)
    return all(mine is None or (theirs is not None and mine >= theirs) for mine, theirs in pairs)


@given(st.lists(RULES, max_size=6), st.randoms())
def test_the_order_of_rules_does_not_matter(rules: list[AccessRule], random: Any) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)
    first, second = asked(*rules), asked(*shuffled)
    assert (first.allowed, first.limits) == (second.allowed, second.limits)


@given(st.lists(RULES, max_size=6), RULES)
def test_an_allow_never_takes_and_a_deny_never_gives(rules: list[AccessRule], more: AccessRule) -> None:
    before, after = asked(*rules), asked(*rules, more)
    if more.effect == "allow" and before.allowed:
        assert after.allowed
        assert at_least(after.limits, before.limits)
    if more.effect == "deny" and after.allowed:
        assert before.allowed
        assert at_least(before.limits, after.limits)


@given(st.lists(RULES, max_size=6))
def test_who_is_let_in_is_let_in_by_a_live_allow_and_no_live_deny(rules: list[AccessRule]) -> None:
    live = [
        one
        for one in rules
        if (one.expires is None or one.expires > NOW)
        and one.noun == "account"
        and one.name != "other"
        and one.who not in ("eve@evil.org", "group:other")
    ]
    allowed = any(one.effect == "allow" for one in live)
    denied = any(one.effect == "deny" and one.limits == NO_LIMITS for one in live)
    decision = asked(*rules)
    assert decision.allowed is (allowed and not denied)
    for one in live:
        if one.effect == "deny" and decision.allowed:
            assert at_least(one.limits, decision.limits)


def test_what_is_too_much_names_the_limit_and_what_would_do() -> None:
    limits = Limits(cores=64, time=timedelta(hours=2), jobs=2, hours_month=100.0)
    decision = asked(rule(limits=limits))
    fits = TotalAmounts(cores=64, time=timedelta(hours=1))
    assert not list(excesses(decision, fits, Use(1, 36.0)))
    [cores] = excesses(decision, TotalAmounts(cores=65, time=timedelta(hours=1)), Use())
    assert (cores.field, cores.limit, cores.wanted) == ("compute.cores.min", "64 cores", "65 cores")
    [jobs] = excesses(decision, fits, Use(2))
    assert "2 sessions under way" in jobs.message
    [one] = excesses(asked(rule(limits=Limits(jobs=1))), fits, Use(1))
    assert "You have 1 session under way" in one.message
    [month] = excesses(decision, fits, Use(0, 37.0))
    assert "100 core-hours a month; 37 core-hours are used or reserved, and this needs 64" in month.message
    assert month.nearest.startswith("63 core-hours")


def test_an_offer_counts_with_all_its_nodes_and_parts() -> None:
    offer = Offer("k", "sh", NOW, NOW, timedelta(hours=2), (), Shape(4, GIB, 1), count=3, parts=2)
    assert offer.amounts.total == TotalAmounts(24, 6 * GIB, 6, 6, timedelta(hours=2))
    assert offer.amounts.total.hours == 48


def test_the_more_that_would_be_welcome_stays_within_the_limits() -> None:
    request = Request(None, Compute(nodes=Range(2, 8), cores=Range(4, 32), memory=Range(GIB, 9 * GIB)))
    compute = cap_request(request, Limits(cores=16, nodes=4)).compute
    assert (compute.nodes, compute.cores, compute.memory) == (Range(2, 4), Range(4, 8), Range(GIB, 9 * GIB))
    assert cap_request(request, Limits(cores=1)).compute.cores == Range(4, 4), (
        "what it must have is for the reason to say"
    )
    assert cap_request(request, NO_LIMITS) is request


def test_a_month_begins_in_utc() -> None:
    assert month_of(NOW) == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize("wrong", [{"who": ""}, {"who": "group:"}, {"who": "a b"}, {"name": ""}, {"noun": "node"}])
def test_a_rule_that_can_not_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        rule(**wrong)
    with pytest.raises(BadAmount):
        Limits(cores=-1)
    with pytest.raises(BadAmount):
        Limits(hours=float("nan"))
    assert replace(rule(), limits=Limits(gpus=0)).limits.list_given() == [("gpus", 0)]
