"""`sublet cache`, and which roads `sublet status` tells of, as people see them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from sublet.booking.views.events import EventPage, EventView
from sublet.booking.views.quotes import StagingView
from sublet.data.views.caches import CacheEntryView, CacheList, CacheRemoval, CacheView
from tests.canned import NOW, Said, a_session
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
NONE = timedelta(0)
CUBE = CacheEntryView(
    digest=f"data:{'ab' * 32}",
    short="abababababab",
    label="cube.fits from example.org",
    size=3 << 30,
    used=NOW - timedelta(days=2),
    needed_by=("3f2a0000-0000-4000-8000-000000000000",),
)
KEPT = CacheList(
    items=(
        CacheView(platform="anvil", quota=100 << 30, size=3 << 30, entries=(CUBE,)),
        CacheView(platform="frontera", quota=0, size=0, trouble="Sign in to frontera first."),
    )
)


def test_what_is_kept_is_listed_with_who_needs_it_and_what_can_not_be_asked(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/caches": Said(KEPT)})
    said = type_in("cache", "ls")
    assert said.out.splitlines()[1].split()[:6] == ["anvil", "abababababab", "cube.fits", "from", "example.org", "3"]
    assert said.out.rstrip().endswith("3f2a0000")
    assert said.err == "anvil: 1 entry, 3 GiB of 100 GiB\nfrontera: Sign in to frontera first.\n"
    assert type_in("cache", "ls", "--quiet").out == "abababababab\n"
    assert json.loads(type_in("cache", "ls", "--json").out)["items"][0]["entries"][0]["size"] == 3 << 30
    info = type_in("cache", "info").out
    assert [line.split()[0] for line in info.splitlines()] == ["ON", "anvil", "frontera"]
    assert "no limit" in info


def test_entries_are_removed_by_name_age_or_all_and_on_trial_only_shown(type_in: Type, canned: Serve) -> None:
    gone = CacheRemoval(platform="anvil", size=3 << 30, entries=(CUBE,))
    asked = canned({"DELETE /v1/caches/anvil": Said(gone)})
    assert type_in("cache", "rm", "anvil", "cube.fits").err == "1 entry, 3 GiB, removed from anvil.\n"
    assert asked.heard[-1].target.endswith("?name=cube.fits")
    said = type_in("cache", "rm", "anvil", "--unused", "3d", "--dry-run")
    assert "would be removed" in said.err
    assert asked.heard[-1].target.endswith("?idle=259200.0&dry_run=true")
    for words in ((), ("cube.fits", "--all"), ("--all", "--unused", "3d")):
        assert type_in("cache", "rm", "anvil", *words).code == 2


def test_nothing_to_remove_is_said(type_in: Type, canned: Serve) -> None:
    canned({"DELETE /v1/caches/anvil": Said(CacheRemoval(platform="anvil", size=0, entries=()))})
    assert "Nothing to remove from anvil" in type_in("cache", "rm", "anvil", "--all").err


def test_status_tells_by_which_road_data_came(type_in: Type, canned: Serve) -> None:
    staging = StagingView(low=NONE, likely=NONE, high=NONE, sentence="predicted under 1 s")
    event = EventView(
        id=1, time=NOW, session="s", person="ada", kind="session.staged", detail="cube was fetched by far"
    )
    session = a_session(staging=staging)
    canned({f"GET /v1/sessions/{session.id}": Said(session), "GET /v1/events": Said(EventPage(items=(event,)))})
    assert [line.split() for line in type_in("status", session.id).out.splitlines() if line.startswith("data")] == [
        ["data", "cube", "was", "fetched", "by", "far"]
    ]
