"""Archives are unpacked whole or not at all, and nothing in them leads out, or grows without bound."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.documents.request import read_request
from sublet.booking.model.request import Data
from sublet.data.unpacking import unpack_brought
from sublet.kernel.errors import BadRequest, DataNotThere
from sublet.platforms.batch.far import unpacker
from tests.unit.test_places import NOW

ARCHIVE = Data("cube", "simple-data-resource", "https://example.org/cube.tar.gz", unpack=True)


def member(name: str, content: bytes = b"x", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content) if fields.get("type", tarfile.REGTYPE) == tarfile.REGTYPE else 0
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_in(folder: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    folder.mkdir()
    with tarfile.open(folder / "cube.tar.gz", mode) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return folder


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=to)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_archive_becomes_the_folder_that_is_in_it(tmp_path: Path, mode: str) -> None:
    members = [member("a/b.txt", b"hello", mode=0o4777), member("./c", b""), link("a/d", "b.txt")]
    members += [link("e", "a/b.txt", tarfile.LNKTYPE), member("empty", type=tarfile.DIRTYPE)]
    members += [member("a/b.txt", b"later")]
    folder = tar_in(tmp_path / "data", *members, mode=mode)
    unpack_brought(ARCHIVE, folder)
    found = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert found == {"a/b.txt": "later", "c": "", "a/d": "later", "e": "later"}
    assert (folder / "empty").is_dir()
    assert not any(file.is_symlink() for file in folder.rglob("*"))
    assert not any(file.stat().st_mode & (stat.S_ISUID | stat.S_IWOTH) for file in folder.rglob("*"))
    assert os.listdir(tmp_path) == ["data"], "nothing half unpacked is left"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([member("../x")], "can't be used here"),
        ([member("/etc/x")], "can't be used here"),
        ([member("a\nb")], "can't be used here"),
        ([link("a", "/etc/passwd")], "leads out of the archive"),
        ([link("a/b", "../../x")], "leads out of the archive"),
        ([link("a", "nothing")], "is no file of the archive"),
        ([link("a", "b"), link("b", "a")], "is no file of the archive"),
        ([link("up", "."), member("up/x")], "is no file of the archive"),
        ([member("dev", type=tarfile.CHRTYPE)], "neither a file, a folder nor a link"),
        ([member("pipe", type=tarfile.FIFOTYPE)], "neither a file, a folder nor a link"),
        ([member("a"), member("a/b")], "a file and a folder of one name"),
        ([], "nothing in the archive"),
    ],
)
def test_what_could_do_harm_is_refused_and_leaves_the_archive_as_it_was(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], why: str
) -> None:
    folder = tar_in(tmp_path / "data", *members)
    with pytest.raises(DataNotThere, match=why):
        unpack_brought(ARCHIVE, folder)
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*")] == ["data", "data/cube.tar.gz"]


def test_an_archive_that_grows_without_bound_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacker, "ALWAYS", 1 << 16)
    folder = tar_in(tmp_path / "data", member("zeros", bytes(1 << 24)))
    with pytest.raises(DataNotThere, match="unpacked it has more than"):
        unpack_brought(ARCHIVE, folder)
    many = tar_in(tmp_path / "many", member("x", bytes(1 << 15)), *(link(f"l{n}", "x") for n in range(300)))
    with pytest.raises(DataNotThere, match="unpacked it has more than"):
        unpack_brought(ARCHIVE, many)
    monkeypatch.setattr(unpacker, "MOST_ENTRIES", 3)
    crowd = tar_in(tmp_path / "crowd", *(member(str(number)) for number in range(4)))
    with pytest.raises(DataNotThere, match="more than 3 files"):
        unpack_brought(ARCHIVE, crowd)


def test_a_zip_archive_is_held_to_the_same(tmp_path: Path) -> None:
    def zip_in(name: str, *entries: tuple[str, str, int]) -> Path:
        (tmp_path / name).mkdir()
        with zipfile.ZipFile(tmp_path / name / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content, mode in entries:
                info = zipfile.ZipInfo(path)
                info.external_attr = mode << 16
                archive.writestr(info, content)
        return tmp_path / name

    good = zip_in("good", ("a/b", "1", 0), ("c", "a/b", stat.S_IFLNK | 0o777), ("run", "2", stat.S_IFREG | 0o755))
    unpack_brought(ARCHIVE, good)
    assert ((good / "a" / "b").read_text(), (good / "c").read_text()) == ("1", "1")
    assert (good / "run").stat().st_mode & 0o111
    bad = [(("../x", "1", 0), "can't be used"), (("l", "/etc", stat.S_IFLNK), "leads out")]
    bad += [(("p", "", stat.S_IFIFO), "neither")]
    for number, (entry, why) in enumerate(bad):
        with pytest.raises(DataNotThere, match=why):
            unpack_brought(ARCHIVE, zip_in(f"bad{number}", entry))


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"no archive", "tar .* or zip"), (b"\x28\xb5\x2f\xfd" + b"x" * 600, "zstd"), (b"", "tar .* or zip")],
)
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(content)
    with pytest.raises(DataNotThere, match=why):
        unpack_brought(ARCHIVE, tmp_path / "data")


def test_an_archive_that_is_cut_off_is_told(tmp_path: Path) -> None:
    folder = tar_in(tmp_path / "data", member("x", os.urandom(1 << 16)))
    whole = (folder / "cube.tar.gz").read_bytes()
    (folder / "cube.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataNotThere, match="can't be unpacked"):
        unpack_brought(ARCHIVE, folder)


def test_a_request_says_what_is_to_be_unpacked_and_it_is_called_without_its_ending() -> None:
    request = read_request({"run": ["true"], "data": [{"location": "https://x.org/cube.tar.gz", "unpack": True}]}, NOW)
    assert request.data[0].unpack
    assert [volume.path for volume in request.compute.volumes] == ["cube"]
    with pytest.raises(BadRequest, match="unpack"):
        read_request({"run": ["true"], "data": [{"location": "/x.tar", "unpack": "yes"}]}, NOW)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_an_archive_with_a_damaged_header_is_not_taken_for_a_shorter_one(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    folder = tar_in(tmp_path / "data", *(member(name) for name in "abc"), mode="w")
    content = bytearray((folder / "cube.tar.gz").read_bytes())
    content[2 * tarfile.BLOCKSIZE + 3] ^= 0xFF  # in the name of the second file
    (folder / "cube.tar.gz").write_bytes(compress(bytes(content)))
    with pytest.raises(DataNotThere, match="damaged after 1024 bytes"):
        unpack_brought(ARCHIVE, folder)


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_damaged_content_is_noticed_by_the_checksum_at_the_end_of_a_compressed_archive(
    tmp_path: Path, mode: str
) -> None:
    folder = tar_in(tmp_path / "data", member("x", os.urandom(1 << 17)), mode=mode)
    content = bytearray((folder / "cube.tar.gz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (folder / "cube.tar.gz").write_bytes(content)
    with pytest.raises(DataNotThere, match=r"can't be unpacked|that can be unpacked"):
        unpack_brought(ARCHIVE, folder)


def test_the_directory_of_a_zip_archive_is_not_read_if_it_has_too_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 100_001
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, *[0] * 8, 1, *[0] * 6) + b"a"
    size = len(entry) * count
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, 0)
    end += struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.zip").write_bytes(entry * count + end)
    tracemalloc.start()
    try:
        with pytest.raises(DataNotThere, match="more than 100000 files"):
            unpack_brought(ARCHIVE, tmp_path / "data")
        monkeypatch.setattr(unpacker, "MOST_DIRECTORY", 1 << 20)
        with pytest.raises(DataNotThere, match="directory has more than 1048576 bytes"):
            unpack_brought(ARCHIVE, tmp_path / "data")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_archive_that_could_only_be_unpacked_in_memory_is_refused(tmp_path: Path, method: int) -> None:
    (tmp_path / "data").mkdir()
    with zipfile.ZipFile(tmp_path / "data" / "x.zip", "w", method) as archive:
        archive.writestr("zeros", bytes(1 << 16))
    with pytest.raises(DataNotThere, match="compressed in a way other than deflate"):
        unpack_brought(ARCHIVE, tmp_path / "data")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_header_that_claims_to_be_huge_is_never_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    info, _ = member("long", type=kind)
    info.size = 1 << 26
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data" / "x.tar.gz", "wb") as archive:
        archive.write(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 26))
    tracemalloc.start()
    try:
        with pytest.raises(DataNotThere, match="header that is too large"):
            unpack_brought(ARCHIVE, tmp_path / "data")
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
