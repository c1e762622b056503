"""Names of Rucio are read as they are written, and so are a real server's recorded answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.movers.port import SIMPLE, UNLIMITED
from sublet.movers.rucio import RucioMover, RucioName, name_files, read_name, read_place
from sublet.movers.rucio_api import RucioFailed, RucioFile, read_files, read_lines, read_refusal

RECORDED = Path(__file__).parents[1] / "recorded" / "rucio"
OWN = "https://rucio.own.example"


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("rucio://rucio.example.org/ska:map.fits", RucioName("https://rucio.example.org", "ska", "map.fits")),
        (
            "rucio+http://localhost:8080/api/v1/user.me:/store/a%20b?account=me",
            RucioName("http://localhost:8080/api/v1", "user.me", "/store/a b", "me"),
        ),
        ("rucio:ska:map.fits", RucioName(OWN, "ska", "map.fits")),
        ("rucio:ska:a:b", RucioName(OWN, "ska", "a:b")),
    ],
)
def test_an_address_is_a_server_a_scope_and_a_name(location: str, name: RucioName) -> None:
    assert read_name(location, OWN) == name


@pytest.mark.parametrize(
    "location",
    [
        "rucio:map.fits",
        "rucio://host/",
        "rucio://host/ska",
        "rucio://me:pw@host/ska:x",
        "rucio:ska:../x",
        "rucio:a/b:c",
    ],
)
def test_what_is_no_name_is_refused(location: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_name(location, OWN)
    assert "no name that Rucio could know" in RucioMover(UNLIMITED).check(Data("x", SIMPLE, location))[0].message


def test_a_name_without_a_server_needs_one_in_the_settings() -> None:
    reasons = RucioMover(UNLIMITED).check(Data("x", SIMPLE, "rucio:ska:map.fits"))
    assert "rucio_server" in reasons[0].message


def test_recorded_replicas_are_read_with_disk_before_tape_and_the_better_checksum() -> None:
    files = read_files(read_lines((RECORDED / "replicas-dataset.jsonl").read_bytes()))
    one, other = files["ska", "map.fits"], files["ska", "b.fits"]
    assert (one.size, one.checksum) == (10, "adler32:0000000a")
    assert [place.is_tape for place in one.places] == [False, True]
    assert one.places[0].address == "davs://127.0.0.1:8443/data/ska/90/d2/map.fits"
    assert other.checksum == "md5:" + "0" * 32
    listed = read_files(read_lines((RECORDED / "files-dataset.jsonl").read_bytes()))
    assert set(listed) == set(files)
    assert not any(file.places for file in listed.values())


def test_a_recorded_refusal_is_told_in_the_servers_words() -> None:
    refusal = (RECORDED / "not-found.json").read_bytes()
    assert read_refusal(refusal) == "Data identifier 'ska:nothing' not found"
    assert read_refusal(b"<html>") == read_refusal(b"[]") == ""


@pytest.mark.parametrize("answer", [b"<html>", b'{"name": "x"}', b'["x"]', b'{"scope": "a", "name": "b", "pfns": 3}'])
def test_an_answer_that_is_something_else_is_an_error(answer: bytes) -> None:
    with pytest.raises(RucioFailed, match="can't be read"):
        read_files(read_lines(answer))


def test_files_of_the_same_name_are_put_below_their_scopes() -> None:
    files = [RucioFile(scope, "a.fits", 1, "") for scope in ("x", "y")] + [RucioFile("x", "/store/b", 1, "")]
    assert [file.path for file in name_files(files)] == ["x/a.fits", "y/a.fits", "store/b"]


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("s3s://s3.example.org:443/bucket/k", "s3+https://s3.example.org:443/bucket/k"),
        ("s3://s3.example.org:9000/bucket/k", "s3+http://s3.example.org:9000/bucket/k"),
        ("file://localhost:0/data/x", "file:///data/x"),
        ("root://eos.example.org:1094//data/x", "root://eos.example.org:1094//data/x"),
    ],
)
def test_addresses_of_rucio_are_written_as_they_are_here(address: str, here: str) -> None:
    assert read_place(address) == here
