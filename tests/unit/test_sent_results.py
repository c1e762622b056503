"""Which results go where, and how long data takes to be there."""

from __future__ import annotations

import pytest

from sublet.booking.documents.outputs import read_outputs
from sublet.booking.model.request import SentResults
from sublet.data.model.credentials import Credential, CredentialKind, credential_for
from sublet.kernel.errors import SubletError


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("out/*.csv", {"out/a.csv": "a.csv", "out/deep/b.csv": "deep/b.csv", "out/a.txt": None, "a.csv": None}),
        ("out", {"out/a.csv": "a.csv", "out/deep/b.csv": "deep/b.csv", "output": None, "out": "out"}),
        ("out/", {"out/a.csv": "a.csv", "other/a.csv": None}),
        ("model.pt", {"model.pt": "model.pt", "x/model.pt": None}),
        ("runs/1/model.pt", {"runs/1/model.pt": "model.pt"}),
        ("*", {"a": "a", "b/c": "b/c"}),
        ("**/*.csv", {"a.csv": "a.csv", "x/y/b.csv": "x/y/b.csv", "x/a.txt": None}),
        ("out/**/sum.txt", {"out/sum.txt": "sum.txt", "out/a/b/sum.txt": "a/b/sum.txt", "out/a/xsum.txt": None}),
        ("**/a/**/b", {"a/b": "a/b", "x/a/y/z/b": "x/a/y/z/b", "a/xb": None, "xa/b": None}),
        ("out/[b]/", {"out/[b]/x": "x", "out/b/x": None}),
        ("out/[b]/x.txt", {"out/[b]/x.txt": "x.txt"}),
        ("r?/x[12].dat", {"r1/x1.dat": "r1/x1.dat", "r1/x3.dat": None}),
    ],
)
def test_a_result_goes_to_its_path_below_what_the_pattern_names_whole(
    pattern: str, places: dict[str, str | None]
) -> None:
    results = SentResults(pattern, "s3://bucket/x/")
    assert {path: results.place(path) for path in places} == places


@pytest.mark.parametrize(
    ("path", "to", "becomes"),
    [("out/*", "s3://b/x", "s3://b/x/"), ("a.csv", "s3://b/x", "s3://b/x"), ("out/", "s3://b/x", "s3://b/x/")],
)
def test_what_may_be_many_files_goes_into_a_folder(path: str, to: str, becomes: str) -> None:
    assert read_outputs({path: to}) == (SentResults(path, becomes),)


@pytest.mark.parametrize(
    "wrong",
    [
        [{"path": "../x", "to": "s3://b/"}],
        [{"path": "/etc/passwd", "to": "s3://b/"}],
        [{"path": "x"}],
        [{"path": "x", "to": "s3://b/", "when": "never"}],
        [{"path": "x", "to": "s3://b/", "glob": "y"}],
        "x",
        [{"path": "x", "to": "s3://b/"}] * 101,
    ],
)
def test_outputs_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(SubletError):
        read_outputs(wrong)


@pytest.mark.parametrize(
    ("place", "location", "fits"),
    [
        ("https://data.example.org", "https://data.example.org/x/y", True),
        ("https://data.example.org", "https://data.example.org:443/x", True),
        ("https://data.example.org", "davs://data.example.org/x", True),
        ("https://data.example.org", "http://data.example.org/x", False),
        ("https://data.example.org", "https://data.example.org.evil.org/x", False),
        ("https://data.example.org/team", "https://data.example.org/team/x", True),
        ("https://data.example.org/team", "https://data.example.org/teams/x", False),
        ("https://data.example.org/team", "https://data.example.org/team/../other/x", False),
        ("https://data.example.org/team", "https://data.example.org/team/%2e%2E/other/x", False),
        ("https://data.example.org", "https://data.example.org/team/../other/x", True),
        ("s3://bucket", "s3://bucket/x", True),
        ("s3://bucket", "s3://bucket2/x", False),
        ("s3+https://s3.example.org/bucket", "s3+https://s3.example.org/bucket/k", True),
        ("s3+https://s3.example.org:9000", "s3+https://s3.example.org/bucket/k", False),
    ],
)
def test_a_credential_is_for_one_place_alone(place: str, location: str, fits: bool) -> None:
    assert Credential(place, CredentialKind.LOGIN).covers(location) is fits


def test_the_credential_that_is_meant_most_of_all_is_taken() -> None:
    wide, narrow = (Credential(place, CredentialKind.LOGIN) for place in ("https://a.org", "https://a.org/team"))
    assert credential_for([wide, narrow], "https://a.org/team/x") is narrow
    assert credential_for([wide, narrow], "https://a.org/x") is wide
    assert credential_for([wide, narrow], "https://b.org/x") is None
