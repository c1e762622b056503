"""A line that names an annex, in a job or in a DAG: what is read of it, what follows it, and what counts more."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.annexes.pilots.dag_moves import Manager, find_parts, inherit
from sublet.annexes.pilots.marking import mark_for
from sublet.annexes.pilots.naming import NamingJob, choose_whole, follow_line, read_look, read_naming

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ad(**values: Any) -> dict[str, Any]:
    """A job as condor_q tells it."""
    return {"ClusterId": 12, "ProcId": 3, "JobStatus": 1, "JobUniverse": 5, **values}


@pytest.mark.parametrize("attribute", ["AnnexName", "TargetAnnexName"])
def test_a_line_is_read_whichever_word_it_uses(attribute: str) -> None:
    job = read_naming(ad(**{attribute: "example"}))
    assert (job.id, job.cluster, job.attribute, job.name) == ("12.3", "12", attribute, "example")
    assert (job.written, job.problem, job.is_new) == ('"example"', "", True)


def test_sublets_own_word_counts_more_than_htcondors() -> None:
    assert read_naming(ad(TargetAnnexName="theirs", AnnexName="ours")).name == "ours"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (
            "/Expr(example)/",
            'MY.AnnexName = example is no text. Write the name of the annex in quotes: MY.AnnexName = "ex',
        ),
        ('/Expr(strcat("a","b"))/', 'MY.AnnexName = strcat("a","b") is no text.'),
        (5, "MY.AnnexName = 5 is no text."),
        ("two words", 'MY.AnnexName = "two words": '),
        ("", "MY.AnnexName"),
        ("example#2", 'MY.AnnexName = "example#2": '),
    ],
)
def test_a_line_that_can_name_no_annex_says_what_is_wrong(value: object, says: str) -> None:
    assert read_naming(ad(AnnexName=value)).problem.startswith(says)


def test_a_dag_is_heard_once_and_not_if_something_else_counts_more() -> None:
    def heard(**values: Any) -> bool:
        look = read_look([ad(JobUniverse=7, **values)])
        assert len(look.managers) == 1
        return bool(look.dags)

    assert heard(AnnexName="a")
    assert heard(AnnexName="b", SubletTaken='"a"', SubletTarget="id")
    assert not heard()
    assert not heard(AnnexName="a", SubletTaken='"a"', SubletTarget="id")
    assert not heard(AnnexName="a", SubletTarget="submitted for another")
    assert not heard(AnnexName="a", SubletTaken="/Expr(unparse(AnnexName))/")
    assert not heard(AnnexName="a", SubletMoved=5)


def test_a_cluster_is_marked_as_one_only_where_all_of_it_says_the_same() -> None:
    jobs = [NamingJob(f"{cluster}.{number}", "AnnexName", '"a"', "a") for cluster in (7, 8) for number in (0, 1)]
    assert choose_whole(jobs, Counter({"7": 2, "8": 3})) == ["7", "8.0", "8.1"]


def test_a_job_that_follows_its_line_remembers_it_and_still_follows_its_dag() -> None:
    marks = follow_line(mark_for("id", "ann@x", NOW, timedelta(minutes=2)), '"example"')
    assert marks.changes["SubletTaken"] == '"\\"example\\""'
    assert "SubletFollowed" not in marks.changes


def test_the_parts_of_a_dag_are_found_however_deep() -> None:
    dags = [Manager("1"), Manager("2", parent="1"), Manager("3", parent="2"), Manager("4")]
    assert [one.id for one in find_parts(dags, {"1"})] == ["1", "2", "3"]
    assert [one.id for one in find_parts(dags, {"3"})] == ["3"]


def test_a_sub_dag_that_begins_later_goes_where_its_dag_was_moved_to() -> None:
    first, later = Manager("1", annex="new", moved=50), Manager("2", parent="1", annex="old", submitted=60)
    assert inherit([first, later]) == [Manager("2", parent="1", annex="new", moved=50, submitted=60)]
    assert inherit([first, Manager("2", parent="1", annex="own", moved=70)]) == []


def test_a_sub_dag_without_a_line_follows_the_line_of_its_dag() -> None:
    named = Manager("1", annex="a", is_named=True)
    assert inherit([named, Manager("2", parent="1")]) == [Manager("2", parent="1", annex="a", is_named=True)]
    assert inherit([named, Manager("2", parent="1", annex="b", is_named=True)]) == []
    assert inherit([Manager("1", annex="a"), Manager("2", parent="1")]) == [], "who submitted it for a said so to all"
