"""The path at which data is seen: a file's own, or a folder that holds it; the same if it may be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.booking.model.request import Compute, Data, Request, Volume
from sublet.data.layout import lay_out
from sublet.data.staging import mounts_of
from sublet.movers.port import SIMPLE


def see(place: Path, data: Data, path: str, *, read_only: bool) -> str:
    """What a session sees, below its working directory, of data that was brought."""
    request = Request(None, data=(data,), compute=Compute(volumes=(Volume("v", path, data.name, read_only),)))
    if read_only:
        [mount] = mounts_of(request, place)
        source = place / mount.source
        return mount.target if source.is_file() else "".join(f"{mount.target}/{file.name}" for file in source.iterdir())
    lay_out(request, place)
    return "".join(str(file.relative_to(place / "work")) for file in (place / "work").rglob("*") if file.is_file())


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("location", "path", "seen"),
    [
        ("https://example.org/x.csv", "x.csv", "x.csv"),
        ("https://example.org/x.csv", "deep/in.csv", "deep/in.csv"),
        ("/home/ada/x.csv", "in.csv", "in.csv"),
        ("https://example.org/x.csv", "in", "in/x.csv"),
        ("s3://results/set/", "in.csv", "in.csv/x.csv"),
        ("git+https://example.org/tables", "tables", "tables/x.csv"),
        ("git+https://example.org/tables", "in.csv", "in.csv/x.csv"),
        ("session:first/out", "out", "out/x.csv"),
        ("upload:forcing/days", "days", "days/x.csv"),
    ],
)
def test_a_path_with_the_files_name_or_one_that_ends_like_it_is_the_files_and_any_other_a_folder(
    tmp_path: Path, location: str, path: str, seen: str, *, read_only: bool
) -> None:
    (tmp_path / "data/rain").mkdir(parents=True)
    (tmp_path / "data/rain/x.csv").write_text("9")
    assert see(tmp_path, Data("rain", SIMPLE, location), path, read_only=read_only) == seen
