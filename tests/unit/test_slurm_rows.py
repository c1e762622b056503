"""What Slurm's commands print of jobs and of the parts of arrays, in the dialects of several versions."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sublet.booking.model.together import Joined
from sublet.platforms.batch import looks as looks_of
from sublet.platforms.slurm import rows as read

RECORDED = Path(__file__).parent.parent / "recorded" / "slurm"
VERSIONS = sorted(path.name for path in RECORDED.iterdir())
WITH_ARRAYS = sorted(path.parent.name for path in RECORDED.glob("*/array-squeue.txt"))


def recorded(version: str, name: str) -> str:
    return (RECORDED / version / f"{name}.txt").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_alike_from_every_version(version: str) -> None:
    jobs = read.read_jobs(recorded(version, "jobs"))
    waiting = jobs["wrap"]
    assert waiting.code == 0
    assert waiting.queue in ("compute", "shared")
    assert waiting.start


def test_the_queue_is_read_by_the_names_of_the_jobs() -> None:
    rows = read.read_queue(recorded("22.05.8", "squeue"))
    assert rows["held-job"].state == "PENDING"
    assert rows["held-job"].reason == "JobHeldUser"
    assert rows["held-job"].start is None
    assert rows["odd|name"].state == "FAILED"
    assert rows["odd|name"].start == datetime(2026, 11, 15, 23, 54, 28, tzinfo=UTC)


def test_of_two_jobs_with_one_name_the_one_that_is_there_counts() -> None:
    rows = read.read_queue("1|N/A|RUNNING|None|N/A|N/A|q|c1|k\n2|N/A|COMPLETED|None|N/A|N/A|q|c1|k\n")
    assert rows["k"].id == "1"


def test_accounting_says_who_cancelled() -> None:
    rows = read.read_past("5|CANCELLED by 20003|0:15|2026-11-15T23:54:11|2026-11-15T23:54:12|debug|c1|key\n")
    assert (rows["key"].state, rows["key"].by, rows["key"].code, rows["key"].signal) == ("CANCELLED", "20003", 0, 15)


def test_accounting_that_is_disabled_says_nothing() -> None:
    assert read.read_past("Slurm accounting storage is disabled\n") == {}


def test_a_record_that_was_cut_off_is_none() -> None:
    assert looks_of.read_record('{"kind":"exited","code":0,"by":""') is None
    assert looks_of.read_record("") is None


def test_looks_are_told_apart_by_key() -> None:
    end = (
        '{"kind":"exited","code":3,"by":"","detail":"","started":10.5,"ended":12.0,"job":"7","node":"c1",'
        '"times":"0m1.25s 0m0.25s","peak":1048576,"oom":false}'
    )
    text = f'a\tcr\t7\t60\t7\t10.5\t\t\t\t{end}\t\t\turi:shell c1:20000\nb\nc\tc\t8\t60\t\t\t\t"it\'s me"\t\t\t\t\t\n'
    looks = looks_of.read_looks(text, ["a", "b", "c", "d"])
    assert looks["a"].record
    assert looks["a"].record.code == 3
    assert looks["a"].connector == "uri:shell c1:20000"
    assert looks["a"].record.usage.cpu == 1.5
    assert looks["a"].ends == datetime.fromtimestamp(70.5, UTC)
    assert not looks["b"].claimed
    assert looks["c"].cancel == "it's me"
    assert not looks["d"].claimed


ARRAY = {"20.11.4": 3, "22.05.8": 1, "26.05": 1}  # its number, as it was recorded
STATES = ["COMPLETED", "FAILED", "FAILED", "RUNNING", "CANCELLED", *["RUNNING"] * 4, "PENDING"]


@pytest.mark.parametrize("form", ["array-squeue", "array-squeue-each"])
@pytest.mark.parametrize("version", WITH_ARRAYS)
def test_the_parts_of_an_array_are_read_from_either_form_of_squeue(version: str, form: str) -> None:
    rows = read.read_queue(recorded(version, form))
    assert [rows[f"test-array/{number}"].state for number in range(10)] == STATES
    assert [rows[f"test-held/{number}"].reason for number in range(4)] == ["BeginTime"] * 4
    assert rows["test-array/3"].id == f"{ARRAY[version]}_3"
    assert rows["test-array/9"].reason == "JobArrayTaskLimit"
    assert rows["test-one"].id == "2"
    assert len(rows) == 15


@pytest.mark.parametrize("version", WITH_ARRAYS)
def test_an_array_that_was_cancelled_while_it_waited_is_one_row_for_all_parts(version: str) -> None:
    rows = read.read_queue(recorded(version, "array-over"))
    assert rows["test-held"].state == "CANCELLED"
    rest = rows.get("test-array/9") or rows["test-array"]  # what waited of an array that ran can be one row too
    assert rest.state == "CANCELLED"


@pytest.mark.parametrize("version", WITH_ARRAYS)
def test_what_slurm_remembers_of_parts_is_read_by_their_numbers(version: str) -> None:
    jobs = read.read_jobs(recorded(version, "array-jobs"))
    assert [jobs[f"test-array/{number}"].state for number in range(10)] == STATES
    assert (jobs["test-array/1"].code, jobs["test-array/2"].signal) == (3, 9)
    assert [jobs[f"test-held/{number}"].state for number in range(4)] == ["PENDING"] * 4
    past = read.read_past(recorded(version, "array-sacct"))
    assert (past["test-array/4"].state, past["test-array/4"].by) == ("CANCELLED", "20001")
    assert (past["test-array/1"].id, past["test-array/1"].code) == (f"{ARRAY[version]}_1", 3)
    assert past["test-one"].state == "RUNNING"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("N/A", ()),
        ("", ()),
        ("7", (7,)),
        ("0-3", (0, 1, 2, 3)),
        ("9%5", (9,)),
        ("[0,2,4-6%2]", (0, 2, 4, 5, 6)),
        ("0-9:4", (0, 4, 8)),
        ("0,2,4...", (0, 2)),
    ],
)
def test_the_numbers_of_parts_are_read_in_each_of_their_forms(text: str, numbers: tuple[int, ...]) -> None:
    assert read.elements(text) == numbers


def test_a_list_of_parts_that_was_cut_off_speaks_of_the_rest_too() -> None:
    rows = read.read_queue("15|0,2,4...|PENDING|Priority|N/A|N/A|q||k\n")
    assert set(rows) == {"k", "k/0", "k/2"}


def test_parts_have_looks_of_their_own() -> None:
    lines = [
        "a\tc\t7\t60\t\t\t\t\t\t\t2\t75 3 have no result: 1-3\t",
        "a/0\tcr\t7\t60\t8\t10.5\t\t\t\t\t2\t\t",
        "a/1\tc\t7\t60\t\t\t\t\t\t\t2\t\t",
        "b\tc\t9\t60\t\t\t\t\t\t\t\t\t",
        "other/0\tc\t7\t60\t\t\t\t\t\t\t2\t\t",
    ]
    looks = looks_of.read_looks("\n".join(lines), ["a", "b"])
    assert set(looks) == {"a", "a/0", "a/1", "b"}
    assert (looks["a"].parts, looks["a"].joined) == (2, Joined(75, "3 have no result: 1-3"))
    assert [looks[f"a/{number}"].ran for number in (0, 1)] == [True, False]
    assert (looks["b"].parts, looks["b"].joined) == (1, None)
    assert looks_of.read_joined("- \n") == Joined()
