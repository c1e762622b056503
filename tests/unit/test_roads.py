"""What data is called in a cache, what makes room for it, and when a transfer is tried again."""

from __future__ import annotations

from dataclasses import replace

from sublet.data.model.links import FileLink, LinkedFiles, name_entry
from sublet.data.model.retries import TransferRetries
from sublet.data.model.roads import CachedItem, Road, TakenRoad, choose_evictions

SUM = "sha256:" + "ab" * 32
OPEN = FileLink("cube", "https://example.org/cube", size=5, version='"v1"')


def name(*links: FileLink, person: str = "ann", session: str = "s", is_folder: bool = False) -> str:
    return name_entry(LinkedFiles(links, is_folder), person, session)


def test_what_anybody_may_read_has_one_name_for_all_and_what_credentials_opened_one_for_each_person() -> None:
    assert name(OPEN) == name(OPEN, person="bob", session="t")
    for private in (
        replace(OPEN, headers={"Authorization": "Bearer x"}),
        replace(OPEN, url="https://example.org/cube?X-Amz-Signature=1", source=OPEN.url),
        replace(OPEN, url="https://ann:pw@example.org/cube"),
        replace(OPEN, url="file:///data/cube"),
    ):
        assert name(private) == name(private, session="t")
        assert name(private) != name(private, person="bob")


def test_a_name_changes_with_the_content_and_not_with_a_signature() -> None:
    signed = [replace(OPEN, url=f"https://example.org/cube?X-Amz-Signature={n}", source=OPEN.url) for n in range(2)]
    assert name(signed[0]) == name(signed[1])
    assert len({name(OPEN), name(replace(OPEN, version='"v2"')), name(replace(OPEN, size=6))}) == 3
    assert name(replace(OPEN, checksum=SUM)) == SUM.replace(":", "-")
    assert name(OPEN, is_folder=True) != name(OPEN)


def test_what_can_not_be_known_again_is_one_sessions() -> None:
    for link in (
        replace(OPEN, version=""),
        replace(OPEN, size=None),
        replace(OPEN, version="", checksum="md5:" + "0" * 32),
    ):
        assert name(link) == name(link, person="bob")
        assert name(link) != name(link, session="t")


def test_what_was_not_needed_for_the_longest_time_goes_first_and_what_is_needed_never() -> None:
    items = [CachedItem("new", 10, 9.0, False), CachedItem("old", 10, 1.0, False), CachedItem("used", 10, 0.0, True)]
    assert choose_evictions(items, 10, 40) == []
    assert choose_evictions(items, 10, 30) == ["old"]
    assert choose_evictions(items, 100, 30) == ["old", "new"]
    assert choose_evictions(items, 100, 0) == []


def test_pauses_grow_until_there_is_progress_or_no_patience() -> None:
    retries = TransferRetries(most=4)
    assert [retries.note_failure(has_progress=False) for _ in range(4)] == [0.5, 1.0, 2.0, None]
    assert retries.note_failure(has_progress=True, wanted=7) == 7
    assert retries.note_failure(has_progress=False, wanted=99) == 30.0


def test_a_road_is_told_with_its_size_its_time_and_why_it_was_not_a_better_one() -> None:
    road = TakenRoad("cube", Road.STREAMED, "example.org", 3 << 30, 12.34, "far can't reach it")
    assert road.describe("far") == "cube was streamed from example.org to far (3.0 GiB in 12.3 s); far can't reach it"
