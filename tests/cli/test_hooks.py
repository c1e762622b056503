"""`sublet notify`, as people see it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sublet.notices.views.hooks import HookList, HookTestView, HookView, ToldView
from tests.canned import ID, NOW, Said
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
HOOK = HookView(
    id="1c0e5d1a-0000-4000-8000-000000000000",
    session=ID,
    address="https://example.org/told",
    on=("ended",),
    created=NOW,
    expires=NOW + timedelta(days=30),
)


def told(**facts: Any) -> HookView:
    return HookView(**{**{name: getattr(HOOK, name) for name in HOOK.__dataclass_fields__}, **facts})


def test_the_secret_is_printed_when_a_hook_is_made(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/hooks": Said(told(secret="s3cret"))})
    typed = type_in("notify", "add", ID[:8], "--url", HOOK.address, "--on", "ended")
    assert typed.out == "1c0e5d1a tells https://example.org/told on ended.\nsecret: s3cret\n"
    assert type_in("notify", "add", "--all", "--url", HOOK.address, "-q").out == f"{HOOK.id}\ns3cret\n"


@pytest.mark.parametrize(
    "words",
    [("3f2a",), ("--url", "https://x"), ("3f2a", "--all", "--mail", "a@b"), ("3f2a", "--url", "x", "--mail", "y")],
)
def test_one_session_or_all_and_one_address(type_in: Type, words: tuple[str, ...]) -> None:
    assert type_in("notify", "add", *words).code == 2


def test_the_list_says_how_it_went(type_in: Type, canned: Serve) -> None:
    failed = ToldView(event=7, tries=2, tried=NOW, next=NOW, answer="503 Service Unavailable")
    well = ToldView(event=8, tries=1, tried=NOW, answer="200 OK")
    hooks = [told(told=(failed,)), told(told=(well,), session=""), told(trouble="9 tries failed, the last so: 503")]
    canned({"GET /v1/hooks": Said(HookList(items=tuple(hooks)))})
    lines = type_in("notify", "list").out.splitlines()
    assert lines[1].endswith("failed 2 times, is tried again: 503 Service Unavailable")
    assert lines[2].endswith("told: 200 OK")
    assert lines[3].endswith("given up: 9 tries failed, the last so: 503")


def test_a_hook_is_tried(type_in: Type, canned: Serve) -> None:
    canned({f"POST /v1/hooks/{HOOK.id[:8]}/test": Said(HookTestView(answer="200 OK"))})
    assert type_in("notify", "test", HOOK.id[:8]).out == "1c0e5d1a took it: 200 OK.\n"
