"""`sublet again`: what is changed is shown and sent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.canned import ID, Said, a_session, a_yes, an_offer
from tests.cli.conftest import Serve, Type

AGAIN = f"POST /v1/sessions/{ID}/again"


def test_changes_are_sent_told_and_then_it_is_accepted(type_in: Type, canned: Serve) -> None:
    view = replace(a_yes(an_offer()), notes=("cores: 2 → 8",))
    offer = min(view.offers, key=lambda one: one.start)
    service = canned({AGAIN: Said(view, 201), f"POST /v1/sessions/{offer.id}/accept": Said(a_session())})
    words = ("--cores", "8", "--set", "a=2", "--set-json", "b=[1, 2]")
    typed = type_in("again", ID, *words, "--detach", "--yes")
    assert (typed.code, "changed: cores: 2 → 8" in typed.err) == (0, True)
    assert json.loads(service.heard[0].body) == {"cores": "8", "set": {"b": [1, 2]}, "words": {"a": "2"}}
    assert type_in("again", ID, "--ask", "-q").out.split() == [offer.short for offer in view.offers]


def test_what_is_asked_of_the_scheduler_can_be_changed(type_in: Type, canned: Serve) -> None:
    service = canned({AGAIN: Said(a_yes(an_offer()), 201)})
    type_in("again", ID, "--queue", "short", "--nice", "5", "--option", "switches=1", "--ask")
    sent = json.loads(service.heard[0].body)
    assert (sent["queue"], sent["scheduler"]) == ("short", {"nice": 5, "options": {"switches": "1"}})


@pytest.mark.parametrize("words", [("--set", "a"), ("--set", "=1"), ("--set-json", "a=[")])
def test_what_is_no_name_and_value_is_a_mistake(type_in: Type, words: tuple[str, ...]) -> None:
    assert type_in("again", ID, *words).code == 2
