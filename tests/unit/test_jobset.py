"""Job sets: how their files are read, and what condor_submit is given."""

from __future__ import annotations

import pytest

from sublet.annexes.model.jobset import JobSet, parse_jobset
from sublet.kernel.errors import BadJobSet

TEXT = """
# from the manual
name = MyJobSet   # its name

iterator = table inputfile, foo,bar {
    input A.txt, 0,0   # the first
    input_B.txt,0,1

}
job x=foo,Y=bar my-job.sub
job {
    executable = a.out
    arguments = $(inputfile) $(foo:7) $(bar)
    queue 3
}
"""
FILES = {
    "my-job.sub": "executable = b.out\narguments = $(X) $(y) $(xy)\nQueue n from (\n 1\n 2\n)\n",
    "table.txt": "one\n# none\ntwo\n",
}


def read(text: str) -> JobSet:
    return parse_jobset(text, FILES.__getitem__, "my.set")


def test_a_set_has_one_description_for_each_job_queued_once_for_each_row() -> None:
    found = read(TEXT)
    assert (found.name, found.columns) == ("MyJobSet", ("inputfile", "foo", "bar"))
    assert found.rows == (("input A.txt", "0", "0"), ("input_B.txt", "0", "1"))
    first, second = found.descriptions()
    assert first.splitlines()[:2] == ["executable = b.out", "arguments = $(foo) $(bar) $(xy)"]
    told = ['MY.JobSetName = "MyJobSet"', "MY.InJobSet = true", "queue inputfile,foo,bar from ("]
    assert first.splitlines()[2:] == [*told, "input A.txt\x1f0\x1f0", "input_B.txt\x1f0\x1f1", ")"]
    assert "arguments = $(inputfile) $(foo:7) $(bar)\n" in second
    assert "queue 3" not in second


def test_a_table_may_be_a_file_of_its_own() -> None:
    found = read("name=a\niterator = table item table.txt\njob my-job.sub\n")
    assert found.rows == (("one",), ("two",))
    odd = read("name=a\niterator = table item {\none\u2028line\r\npage\x0cfeed\n}\njob my-job.sub\n")
    assert odd.rows == (("one\u2028line",), ("page\x0cfeed",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("iterator = table a table.txt\njob my-job.sub", "no name"),
        ("name = a\njob my-job.sub", "no iterator"),
        ("name = a\niterator = table a table.txt", "no job"),
        ("name = a\nname = b", "line 2 can't be read as a job set: there is a second name"),
        ("name = a\niterator = foreach a table.txt", "table NAMES FILE"),
        ("name = a\niterator = table a {\nx", "never closed"),
        ("name = a\niterator = table a,b {\nx\n}", "1 values for 2 names"),
        ("name = a\niterator = table a {\n}", "no rows"),
        ('name = a"b\niterator = table a table.txt\njob my-job.sub', "can't be its name"),
        ("name = a\niterator = table a table.txt\njob x my-job.sub", "write x=foo"),
        ("executable = a", "executable is none of"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, why: str) -> None:
    with pytest.raises(BadJobSet) as caught:
        read(text)
    assert why in caught.value.message
