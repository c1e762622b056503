"""The archive of an app is the same for the same files, and nothing in it leads out of it."""

import hashlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.apps.model import tree
from sublet.apps.model.tree import TreeFile, archive_of, files_of, hash_of, location_of, tree_of
from sublet.apps.model.tree_links import without_links
from sublet.kernel.errors import BadTree

FILES = [
    TreeFile("run.sh", b"#!/bin/sh\n", executable=True),
    TreeFile("lib/a.py", b"1"),
    TreeFile("b", link="lib/a.py"),
]


def packed(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def entry(name: str, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def test_the_same_files_in_another_order_are_the_same_archive() -> None:
    assert archive_of(FILES) == archive_of(reversed(FILES))
    assert hash_of(archive_of(FILES)) != hash_of(archive_of(FILES[1:]))


def test_an_archive_never_changes_its_bytes_between_releases() -> None:
    told = hashlib.sha256(archive_of([TreeFile("entry.sh", b"echo hi\n", executable=True)])).hexdigest()
    assert told == "a650eac9e116b90c5b39a4802d605c4b092a1799f404854e4c3f12f7a8efc865"


names = st.text("ab.-_ ü中", min_size=1, max_size=20)


@given(st.dictionaries(names.filter(lambda name: name not in (".", "..")), st.binary(max_size=50), max_size=8))
def test_what_is_packed_comes_out_again(contents: dict[str, bytes]) -> None:
    files = [TreeFile(f"d/{name}", content) for name, content in contents.items()]
    assert sorted(files_of(archive_of(files)), key=lambda file: file.path) == sorted(files, key=lambda file: file.path)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\nb", "a\0", "x" * 1001]
)
def test_a_path_that_is_not_plainly_below_the_tree_is_refused(path: str) -> None:
    with pytest.raises(BadTree):
        archive_of([TreeFile(path, b"")])


@pytest.mark.parametrize("link", ["/etc/passwd", "..", "../x", "a/../../x", "d/../../d/x", "../d/../..", "a\nb"])
def test_a_link_out_of_the_tree_is_refused(link: str) -> None:
    with pytest.raises(BadTree, match="leads out"):
        archive_of([TreeFile("d/x", b""), TreeFile("l", link=link)])


def test_a_link_that_would_leave_the_tree_by_way_of_another_is_refused() -> None:
    up = TreeFile("d/e/up", link="../..")
    with pytest.raises(BadTree, match="leads out"):
        archive_of([up, TreeFile("d/e/out", link="up/../secret")])


def test_nothing_is_below_a_link() -> None:
    with pytest.raises(BadTree, match="both"):
        archive_of([TreeFile("d", link="e"), TreeFile("d/x", b"")])


def test_no_file_is_there_twice() -> None:
    with pytest.raises(BadTree, match="twice"):
        archive_of([TreeFile("x", b"1"), TreeFile("x", b"2")])


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_devices_pipes_and_hard_links_are_no_part_of_an_archive(kind: bytes) -> None:
    with pytest.raises(BadTree, match="neither"):
        files_of(packed((entry("x", type=kind, linkname="y"), b"")))


def test_an_archive_that_names_a_way_out_is_refused() -> None:
    with pytest.raises(BadTree, match="plain path"):
        files_of(packed((entry("../x"), b"1")))


def test_an_archive_that_is_cut_off_is_refused() -> None:
    with pytest.raises(BadTree, match="whole archive"):
        files_of(b"no tar at all" * 100)


def test_more_files_or_bytes_than_a_tree_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_FILES", 2)
    with pytest.raises(BadTree, match="more than 2 files"):
        archive_of(TreeFile(str(number), b"") for number in range(3))
    monkeypatch.setattr(tree, "MOST_BYTES", 10)
    with pytest.raises(BadTree, match="MiB"):
        archive_of([TreeFile("x", b"x" * 11)])


def test_a_location_is_the_hash_and_nothing_else() -> None:
    assert tree_of(location_of("a" * 64)) == "a" * 64
    assert not any(map(tree_of, ["app:../x", "app:" + "A" * 64, "file:" + "a" * 64, "app:"]))


def test_links_become_what_they_lead_to_also_by_way_of_others() -> None:
    files = [
        TreeFile("lib/a.py", b"1", executable=True),
        TreeFile("now", link="lib"),
        TreeFile("one", link="now/a.py"),
        TreeFile("deep/er/two", link="../../one"),
        TreeFile("nowhere", link="absent"),
    ]
    found = {file.path: (file.content, file.executable, file.link) for file in without_links(files)}
    assert found == dict.fromkeys(("lib/a.py", "now/a.py", "one", "deep/er/two"), (b"1", True, ""))


@pytest.mark.parametrize("links", [{"a": "b", "b": "a"}, {"d/l": ".."}, {"d/l": "."}, {"d/l": "../e", "e/l": "../d"}])
def test_links_that_never_end_are_refused(links: dict[str, str]) -> None:
    files = [TreeFile("d/x", b"1"), TreeFile("e/x", b"1"), *(TreeFile(path, link=to) for path, to in links.items())]
    with pytest.raises(BadTree):
        without_links(files)


def test_links_that_double_at_every_step_are_given_up() -> None:
    links = [TreeFile(f"d{n}/{side}", link=f"../d{n + 1}") for n in range(30) for side in "ab"]
    with pytest.raises(BadTree):
        without_links(links)
