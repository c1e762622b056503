"""Features, licences and types of GPU that a site hasn't are a NO that names which there are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sublet.booking.model.choices import Choices, find_featureless, find_lacking, has_features, list_names
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.platforms.slurm.readers import read_licenses, read_nodes
from sublet.systems.model.probe import Live, compare
from sublet.systems.model.system import System

CHOICES = Choices(("a100",), ("fast", "ib"), {"matlab": 4, "stata@db": 1})


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"constraint": "slow"}, "far has no node with the feature slow; it has: fast, ib."),
        ({"constraint": "fast&slow"}, "far has no node with the feature slow; it has: fast, ib."),
        ({"constraint": "[slow*2|old]"}, "far has no node with the feature slow or old; it has: fast, ib."),
        ({"licenses": "matlab,idl"}, "far has no license idl; it has: matlab:4, stata@db:1."),
        ({"licenses": "matlab:5"}, "far has 4 licenses of matlab in all; 5 were asked for."),
    ],
)
def test_what_is_not_there_is_a_no_that_names_what_is(asked: dict[str, str], why: str) -> None:
    reason = find_lacking(SchedulerOptions(**asked), CHOICES, "far")
    assert reason
    assert (reason.message, reason.field) == (why, next(iter(asked)))


@pytest.mark.parametrize(
    "asked",
    [
        {"constraint": "fast&ib"},
        {"constraint": "slow|fast"},
        {"constraint": "(fast|slow)&ib*2"},
        {"licenses": "stata@db:1,matlab"},
        {"licenses": "idl|matlab"},
        {},
    ],
)
def test_what_may_be_there_is_left_to_the_site(asked: dict[str, str]) -> None:
    assert find_lacking(SchedulerOptions(**asked), CHOICES, "far") is None
    assert find_lacking(SchedulerOptions(licenses="idl"), Choices(), "far") is None, "nobody has seen them"


def test_a_site_without_features_says_so_and_many_names_are_cut_short() -> None:
    reason = find_featureless("fast", (), "far")
    assert reason
    assert reason.message == "far has no node with the feature fast; its nodes name no features."
    assert list_names([str(number) for number in range(45)]).endswith("38, 39 and 5 more")
    assert has_features("fast&ib|old", ("old",))
    assert not has_features("fast&ib", ("fast",))


def test_slurm_tells_the_features_of_nodes_and_its_licenses() -> None:
    rows = "c1|batch|8|1:8:1|4000|gpu:a100:2|idle|500|fast,ib\nc2|batch|8|1:8:1|4000|(null)|idle|500|(null)\n"
    assert [node.features for node in read_nodes(rows)] == [("fast", "ib"), ()]
    licenses = "LicenseName=matlab Total=4 Used=0 Free=4 Reserved=0 Remote=no\nNo licenses configured in Slurm.\n"
    assert read_licenses(licenses) == {"matlab": 4}


def test_a_probe_tells_what_can_be_chosen() -> None:
    rows = compare(System("mine"), Live(datetime.now(UTC), choices=CHOICES))
    assert {row.what: row.live for row in rows if row.subject == "system"} == {
        "types of GPU": "a100",
        "features of nodes": "fast, ib",
        "licenses": "matlab:4, stata@db:1",
    }
