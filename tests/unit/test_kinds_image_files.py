"""Image archives read without a tool: layers in order, whiteouts, and nothing outside of the image's own directory."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from sublet.kinds.inside.image_files import Archive, NotAnImage, squashfs_offset


def layer(*members: tuple[str, str, str]) -> bytes:
    """A layer from (kind, name, content or link)."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for kind, name, content in members:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            data = content.encode() if kind == "file" else b""
            member.type = {
                "file": tarfile.REGTYPE,
                "dir": tarfile.DIRTYPE,
                "sym": tarfile.SYMTYPE,
                "hard": tarfile.LNKTYPE,
            }[kind]
            member.linkname = content if kind in ("sym", "hard") else ""
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return target.getvalue()


def archive(path: Path, *layers: bytes) -> Archive:
    ids = ["sha256:" + hashlib.sha256(data).hexdigest() for data in layers]
    config = json.dumps({"config": {}, "rootfs": {"diff_ids": ids}}).encode()
    members = {f"{n}/layer.tar": data for n, data in enumerate(layers)}
    table = json.dumps([{"Config": "c.json", "Layers": list(members)}]).encode()
    with tarfile.open(path, "w") as tar:
        for name, data in {"manifest.json": table, "c.json": config, **members}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return Archive(str(path))


def unpack(tmp_path: Path, *layers: bytes) -> Path:
    opened = archive(tmp_path / "a.tar", *layers)
    opened.verify_layers()
    opened.unpack(str(tmp_path / "root"))
    opened.close()
    return tmp_path / "root"


def test_a_later_layer_replaces_adds_and_takes_away(tmp_path: Path) -> None:
    first = layer(("file", "a", "old"), ("file", "b", "gone"), ("dir", "d", ""), ("file", "d/x", "hidden"))
    second = layer(("file", "a", "new"), ("file", ".wh.b", ""), ("file", "d/.wh..wh..opq", ""), ("file", "d/y", "seen"))
    root = unpack(tmp_path, first, second)
    assert (root / "a").read_text() == "new"
    assert not (root / "b").exists()
    assert [path.name for path in (root / "d").iterdir()] == ["y"]


def test_a_link_to_an_absolute_path_stays_inside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    first = layer(("sym", "var", str(outside)), ("sym", "up", "../../../.."))
    second = layer(("file", "var/new", "caught"), ("file", "up/other", "caught"))
    root = unpack(tmp_path, first, second)
    assert list(outside.iterdir()) == []
    assert (root / str(outside).lstrip("/") / "new").read_text() == "caught"
    assert (root / "other").read_text() == "caught"


def test_hard_links_are_of_files_inside(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    root = unpack(tmp_path, layer(("file", "a", "text"), ("hard", "b", "a")))
    assert (root / "b").read_text() == "text"
    with pytest.raises((NotAnImage, OSError)):
        unpack(tmp_path, layer(("hard", "stolen", str(secret))))


def test_a_path_that_climbs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnImage):
        unpack(tmp_path, layer(("file", "../evil", "x")))


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnImage):
        unpack(tmp_path, layer(("sym", "a", "b"), ("sym", "b", "a")), layer(("file", "a/x", "")))


def test_a_file_that_is_no_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "no.tar").write_bytes(b"nothing")
    with pytest.raises(NotAnImage, match="not an image archive"):
        Archive(str(tmp_path / "no.tar"))


@pytest.mark.parametrize("before", [0, 5, 32768, (1 << 20) - 2, (1 << 20) - 29])
def test_the_file_system_of_a_singularity_image_is_found_wherever_it_begins(tmp_path: Path, before: int) -> None:
    superblock = b"hsqs" + b"\1" * 24 + b"\4\0" + b"\0" * 66
    path = tmp_path / "a.sif"
    path.write_bytes(b"h" * before + superblock)
    assert squashfs_offset(str(path)) == before
