"""The short path to a directory with sockets: nobody else can replace it, and it is found again."""

import os
import socket
from pathlib import Path

import pytest

from sublet.kernel import short_paths
from sublet.kernel.short_paths import LONGEST, fits, remove_links, shorten


@pytest.fixture
def long(tmp_path: Path) -> Path:
    place = tmp_path / ("long" * 40) / "s"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def own(tmp_path: Path) -> Path:
    place = tmp_path / "own"
    place.mkdir(mode=0o700)
    return place


def forget() -> None:
    """As another process would begin."""
    short_paths._known.clear()


def test_a_long_path_gets_a_short_link_in_which_sockets_fit_and_a_short_one_stays(long: Path) -> None:
    link = shorten(long)
    try:
        assert len(str(link)) <= LONGEST
        assert os.readlink(link) == str(long)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(link / "one.sock"))
        assert (long / "one.sock").is_socket()
        assert fits(link / "one.sock")
        assert not fits(long / "one.sock")
    finally:
        remove_links(long)
    assert not os.path.lexists(link)
    assert shorten(Path("/tmp")) == Path("/tmp")


def test_it_is_found_again_by_another_process_and_made_again_by_the_same_name(long: Path, own: Path) -> None:
    link = shorten(long, [str(own)])
    forget()
    assert shorten(long, [str(own)]) == link
    link.unlink()
    assert shorten(long, [str(own)]) == link, "who remembers the name still gets there"
    assert os.listdir(own) == [link.name]


def test_what_someone_put_into_its_place_is_not_taken_for_ours(
    long: Path, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = shorten(long, [str(own)])
    link.unlink()
    link.mkdir()
    again = shorten(long, [str(own)])
    assert again != link
    assert os.readlink(again) == str(long)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)  # the same link, as another user sees it
    other = shorten(long, [str(own)])
    assert other not in (link, again)


def test_a_place_where_others_could_replace_it_is_passed_over(long: Path, own: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert shorten(long, ["/nowhere", str(shared)]) == long, "no link there would be safe"
    assert shorten(long, [str(shared), str(own)]).parent == own
    forget()
    shared.chmod(0o1777)
    assert shorten(long, [str(shared)]).parent == shared


def test_a_place_that_takes_nothing_is_passed_over(long: Path, own: Path) -> None:
    assert shorten(long, ["/proc", str(own)]).parent == own


def test_links_that_lead_nowhere_are_removed_when_one_is_made(long: Path, own: Path, tmp_path: Path) -> None:
    gone, there = tmp_path / ("gone" * 40), tmp_path / ("there" * 40)
    for place in (gone, there):
        place.mkdir()
    links = [shorten(place, [str(own)]) for place in (gone, there)]
    gone.rmdir()
    made = shorten(long, [str(own)])
    assert sorted(os.listdir(own)) == sorted([links[1].name, made.name])


def test_nothing_is_made_for_a_directory_that_is_not_there(own: Path, tmp_path: Path) -> None:
    absent = tmp_path / ("absent" * 30)
    assert shorten(absent, [str(own)]) == absent
    assert os.listdir(own) == []
