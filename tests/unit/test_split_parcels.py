"""What a node is given and sends back is unpacked with any Python, and what it sends leads nowhere else."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from sublet.annexes.split.far_half import unpack
from sublet.annexes.split.near_half import remove_output
from sublet.annexes.split.parcels import disguise, unpack_safely


def archive_of(*members: tuple[str, bytes, str]) -> tarfile.TarFile:
    """A stream with members of these names, types and links, as it comes from a node."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode, member.uid = kind, link, 0o4777, 12345
            member.size = 3 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"abc") if member.size else None)
    return tarfile.open(fileobj=io.BytesIO(target.getvalue()), mode="r|")


def test_files_directories_and_links_inside_are_unpacked_as_ours(tmp_path: Path) -> None:
    inside = [("a", tarfile.DIRTYPE, ""), ("a/b", tarfile.REGTYPE, ""), ("a/c", tarfile.SYMTYPE, "../a/b")]
    unpack_safely(archive_of(*inside), tmp_path)
    assert (tmp_path / "a" / "c").read_text() == "abc"
    found = (tmp_path / "a" / "b").stat()
    assert (found.st_mode & 0o7777, found.st_uid) == (0o777, tmp_path.stat().st_uid), (
        "as on any node, but never set-uid"
    )


def test_what_nobody_could_read_there_is_unreadable_here_too(tmp_path: Path) -> None:
    """HTCondor then holds the job, with the reason, instead of forgetting a file."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        member = tarfile.TarInfo("unreadable")
        member.mode = 0
        tar.addfile(member)
    target.seek(0)
    with tarfile.open(fileobj=target, mode="r|") as archive:
        unpack_safely(archive, tmp_path)
    assert (tmp_path / "unreadable").stat().st_mode & 0o777 == 0


@pytest.mark.parametrize(
    "members",
    [
        [("../b", tarfile.REGTYPE, "")],
        [("/tmp/b", tarfile.REGTYPE, "")],
        [("a", tarfile.SYMTYPE, "/etc")],
        [("a", tarfile.SYMTYPE, "../..")],
        [("a", tarfile.LNKTYPE, "../secret")],
        [("a", tarfile.FIFOTYPE, "")],
        [("a", tarfile.CHRTYPE, "")],
    ],
)
def test_what_leads_out_or_is_no_file_is_refused(members: list[tuple[str, bytes, str]], tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(ValueError, match=r"leads out|neither"):
        unpack_safely(archive_of(*members), place)
    assert list(tmp_path.rglob("b")) == []


def test_what_a_node_is_given_is_unpacked_in_the_same_way_by_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer ones refuse links that lead out, as a virtual environment has them, and change modes; older ones warn."""
    data_filter = staticmethod(getattr(tarfile, "data_filter", None))
    monkeypatch.setattr(tarfile.TarFile, "extraction_filter", data_filter, raising=False)
    given = [
        ("s", tarfile.DIRTYPE, ""),
        ("s/python", tarfile.SYMTYPE, "/usr/bin/python3"),
        ("s/a", tarfile.REGTYPE, ""),
    ]
    unpack(archive_of(*given), str(tmp_path))
    assert (tmp_path / "s" / "python").readlink() == Path("/usr/bin/python3")
    assert (tmp_path / "s" / "a").stat().st_mode & 0o777 == 0o777


def test_how_a_job_ended_looks_like_the_empty_file_before_so_that_it_is_not_transferred_with_its_files(
    tmp_path: Path,
) -> None:
    (before := tmp_path / "before").write_bytes(b"\n" * 64)
    os.utime(before, (1000, 1000))
    for text, size in (("ExitCode = 5\n", 64), ("ExitCode = 6\n" * 9, 117)):
        (ad := tmp_path / "ad").write_text(text)
        disguise(ad, before)
        assert (ad.read_text().rstrip("\n"), ad.stat().st_size) == (text.rstrip("\n"), size)
        assert (int(ad.stat().st_mtime) == 1000) is (size == 64)
    disguise(ad, tmp_path / "none")


def test_what_htcondor_leaves_beside_a_scratch_directory_goes_with_its_job(tmp_path: Path) -> None:
    (tmp_path / "execute").mkdir()
    left = [tmp_path / "execute" / f"dir_{pid}.worker_stdout" for pid in (41, 42)]
    for file in left:
        file.touch()
    remove_output(str(tmp_path), "slot1_1-42")
    assert [file.exists() for file in left] == [True, False]
