"""The short path to a session's temporary files: nobody else can replace it, and nothing of it is left."""

import os
from pathlib import Path

from sublet.platforms.local.shim import scratch


def session(home: Path, key: str = "a" * 36) -> Path:
    place = home / "sessions" / key / "tmp"
    place.mkdir(parents=True)
    return place


def test_a_long_path_gets_a_short_link_and_a_short_one_stays(tmp_path: Path) -> None:
    long = str(session(tmp_path))
    link = scratch.shorten(long)
    try:
        assert len(link) <= scratch.SHORT
        assert os.readlink(link) == long
    finally:
        scratch.remove_link(link, long)
    assert not os.path.lexists(link)
    assert scratch.shorten("/a/b") == "/a/b"


def test_a_place_where_others_could_replace_it_is_passed_over(tmp_path: Path) -> None:
    long, shared, own = str(session(tmp_path)), tmp_path / "shared", tmp_path / "own"
    for place, mode in ((shared, 0o777), (own, 0o700)):
        place.mkdir()
        place.chmod(mode)
    assert scratch.shorten(long, ["/nowhere", str(shared)]) == long, "the session goes on with the long path"
    assert scratch.shorten(long, [str(shared), str(own)]).startswith(f"{own}/sublet-")
    shared.chmod(0o1777)
    assert scratch.shorten(long, [str(shared)]).startswith(f"{shared}/sublet-")


def test_a_place_that_takes_nothing_is_passed_over(tmp_path: Path) -> None:
    long = str(session(tmp_path))
    (tmp_path / "own").mkdir(mode=0o700)
    assert scratch.shorten(long, ["/proc", str(tmp_path / "own")]).startswith(f"{tmp_path}/own/")


def test_only_links_of_sessions_that_are_over_or_gone_are_swept(tmp_path: Path) -> None:
    places = [str(tmp_path / "short")]
    (tmp_path / "short").mkdir(mode=0o700)
    homes = {name: str(session(tmp_path / name)) for name in ("over", "runs", "gone")}
    made = {name: scratch.shorten(place, places) for name, place in homes.items()}
    os.symlink("/etc", tmp_path / "short" / "sublet-other")
    Path(homes["gone"]).rmdir()
    scratch.sweep(lambda place: place == homes["over"], places)
    assert sorted(os.listdir(places[0])) == sorted([os.path.basename(made["runs"]), "sublet-other"])


def test_a_link_that_was_removed_for_its_age_is_made_again(tmp_path: Path) -> None:
    long = str(session(tmp_path))
    (tmp_path / "own").mkdir(mode=0o700)
    link = scratch.shorten(long, [str(tmp_path / "own")])
    os.utime(link, (1, 1), follow_symlinks=False)
    scratch.refresh(link, long)
    assert os.lstat(link).st_mtime > 1
    os.unlink(link)
    scratch.refresh(link, long)
    assert os.readlink(link) == long


def test_a_link_that_leads_elsewhere_is_left_alone(tmp_path: Path) -> None:
    long = str(session(tmp_path))
    other = tmp_path / "link"
    other.symlink_to("/etc")
    scratch.remove_link(str(other), long)
    scratch.remove_link(long, long)
    assert other.is_symlink()
    assert os.path.isdir(long)
