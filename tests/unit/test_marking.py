"""Which edits mark jobs for an annex: clusters as one, with what a job factory has yet to make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sublet.annexes.pilots.marking import MarkTerms, mark_for, plan_edits, read_terms, unmark
from sublet.annexes.pilots.submitting import KEPT_TO
from sublet.kernel.errors import NotMarkable

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ARCH = 'TARGET.Arch == "X86_64"'
KEPT = f"({ARCH}) && {KEPT_TO}"
MARKS = mark_for("a", "ann@x", NOW, timedelta(minutes=2))


def test_a_cluster_is_edited_as_one() -> None:
    jobs = [MarkTerms(f"12.{number}", ARCH, 2400) for number in range(5000)]
    [edit] = plan_edits(["12"], jobs, [], MARKS)
    assert edit.jobs == ("12",)
    assert (edit.changes["Requirements"], edit.changes["SubletTarget"]) == (KEPT, '"a"')


def test_a_factory_is_edited_even_before_it_has_made_a_job() -> None:
    [edit] = plan_edits(["12"], [], [MarkTerms("12", ARCH)], MARKS)
    assert (edit.jobs, edit.changes["Requirements"]) == (("12",), KEPT)
    [edit] = plan_edits(["12"], [], [MarkTerms("12", KEPT)], unmark(NOW))
    assert (edit.jobs, edit.changes["SubletTarget"], edit.changes["SubletSupplier"]) == (("12",), *["undefined"] * 2)
    assert "Requirements" not in edit.changes


def test_marking_by_hand_counts_more_than_the_line_that_a_job_has() -> None:
    for marks in (MARKS, unmark(NOW)):
        assert "unparse(AnnexName)" in marks.changes["SubletTaken"]
        assert marks.changes["SubletFollowed"] == str(int(NOW.timestamp()))


def test_a_factory_whose_jobs_each_require_something_else_is_refused() -> None:
    with pytest.raises(NotMarkable, match="one after another"):
        plan_edits(["12"], [MarkTerms("12.0", "false"), MarkTerms("12.1", "true")], [MarkTerms("12", ARCH)], MARKS)


def test_jobs_that_require_something_else_than_their_cluster_keep_that() -> None:
    jobs = [MarkTerms("12.0", ARCH), MarkTerms("12.1", ARCH), MarkTerms("12.2", "Good"), MarkTerms("12.3", KEPT)]
    cluster, other, done = plan_edits(["12"], jobs, [], MARKS)
    assert (cluster.jobs, cluster.changes["Requirements"]) == (("12",), KEPT)
    assert (other.jobs, other.changes["Requirements"]) == (("12.2",), f"(Good) && {KEPT_TO}")
    assert (done.jobs, done.changes["Requirements"]) == (("12.3",), KEPT)


def test_single_jobs_are_edited_together_as_far_as_they_need_the_same() -> None:
    jobs = [MarkTerms("1.0", ARCH), MarkTerms("1.1", "Good"), MarkTerms("2.0", ARCH)]
    first, second = plan_edits(["1.0", "1.1", "2.0"], jobs, [], MARKS)
    assert (first.jobs, first.changes["Requirements"]) == (("1.0", "2.0"), KEPT)
    assert (second.jobs, second.changes["Requirements"]) == (("1.1",), f"(Good) && {KEPT_TO}")


@pytest.mark.parametrize(
    ("lease", "usual", "then"),
    [(2400, "", "120"), (None, "", "120"), (900, "900", "120"), (7200, "", None), (60, "", None), (120, "120", None)],
)
def test_a_job_gets_the_lease_of_annex_jobs_unless_it_said_one(lease: int | None, usual: str, then: str | None) -> None:
    marks = mark_for("a", "ann@x", NOW, timedelta(minutes=2), usual)
    [edit] = plan_edits(["12"], [MarkTerms("12.0", ARCH, lease)], [], marks)
    assert edit.changes.get("JobLeaseDuration") == then


def test_what_the_tools_say_is_read() -> None:
    ads = [
        {"ClusterId": 1, "ProcId": 0, "Requirements": f"/Expr({ARCH})/", "JobLeaseDuration": 2400},
        {"ClusterId": 2, "Requirements": "/Expr(true)/"},
    ]
    assert read_terms(ads) == [MarkTerms("1.0", ARCH, 2400), MarkTerms("2", "true")]
