"""What `run` takes: the best offer, and nothing that waits for a login unless that was named."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.offer import HINT
from sublet.booking.views.offers import OfferView, PendingList, PendingView, ReasonView, RejectedView
from sublet.booking.views.quotes import TermsView
from tests.canned import ID, NOW, Heard, Said, a_no, a_session, a_yes, an_end, an_offer
from tests.cli.conftest import Serve, Type
from tests.real.terminal import Terminal

pytestmark = pytest.mark.usefixtures("in_utc")
MINE = "2222aaaa-0000-4000-8000-000000000000"


def mine(**changes: Any) -> OfferView:
    terms = TermsView(kind="predicted", p10=NOW, p50=NOW, p90=NOW + timedelta(hours=1))
    return an_offer(**{"id": MINE, "short": MINE[:8], "platform": "mine", "nodes": (), "terms": terms, **changes})


def here(**changes: Any) -> OfferView:
    return an_offer(is_here=True, **changes)


def answers(view: Any) -> dict[str, Any]:
    done = {"phase": "COMPLETED", "end": an_end(kind="exited", code=0, sentence="It exited with 0.")}
    sessions = {
        f"POST /v1/sessions/{id}/accept": Said(a_session(id=id, short=id[:8], platform=name, **done))
        for id, name in ((ID, "here"), (MINE, "mine"))
    }
    return {"POST /v1/offersets": Said(view), **sessions}


Take = Callable[..., tuple[int, str, str]]


@pytest.fixture
def take(type_in: Type, canned: Serve) -> Take:
    """Types `run` for such an answer: the exit code, which offer was accepted, and what was said."""
    service = canned({})

    def typed(view: Any, *words: str) -> tuple[int, str, str]:
        service.answers = answers(view)
        service.heard.clear()
        done = type_in("run", "-d", *words, "--", "true")
        accepted = [one.target for one in service.heard if one.target.endswith("/accept")]
        return done.code, accepted[0].split("/")[3] if accepted else "", done.err

    return typed


def test_what_is_booked_here_is_taken_before_a_guess_for_the_same_time(take: Take) -> None:
    code, id, said = take(a_yes(here(), mine()))
    assert (code, id) == (0, ID)
    assert "on here starts" in said
    assert "(booked; preferred over mine: predicted)" in said


def test_another_preference_takes_another_one_and_says_so(take: Take) -> None:
    later = here(start=NOW + timedelta(hours=5))
    code, id, said = take(a_yes(mine(), later))
    assert (code, id) == (0, MINE)
    assert "(predicted; preferred over here: later)" in said
    code, id, said = take(a_yes(mine(), later), "--prefer", "here")
    assert (code, id) == (0, ID)
    assert "(booked; preferred over mine: not this machine)" in said


@pytest.mark.parametrize(("prefer", "id"), [((), MINE), (("--prefer", "here"), ID)], ids=["soonest", "here"])
def test_a_sweep_takes_what_is_preferred_and_names_the_table_of_what_it_took(
    prefer: tuple[str, ...], id: str, type_in: Type, canned: Serve
) -> None:
    service = canned(answers(a_yes(mine(), here(start=NOW + timedelta(hours=5)))))
    service.answers[f"GET /v1/sessions/{id}/logs"] = Said(b"", headers={"Sublet-Ended": "true"})
    done = type_in("sweep", "--grid", "n=1,2", *prefer, "--", "echo", "{n}")
    assert f"/v1/sessions/{id}/accept" in [one.target for one in service.heard]
    assert f"Its table: sublet result --table {id[:8]}\n" in done.err


def test_what_needs_a_login_is_skipped_however_soon_it_is(take: Take) -> None:
    shut = mine(needs_login=True)
    for prefer in ("soonest", "here", "cheapest"):
        view = a_yes(shut, here(start=NOW + timedelta(hours=5)))
        code, id, said = take(view, "--prefer", prefer)
        assert (code, id) == (0, ID)
        assert "mine: login needed" in said


def test_where_only_a_login_would_help_that_is_said_with_exit_code_4(take: Take) -> None:
    code, id, said = take(a_yes(mine(needs_login=True)))
    assert (code, id) == (4, "")
    expected = "error: Only mine could run it, and you are not signed in there.\n\nhint: sublet system login mine\n"
    assert said == expected


def test_what_was_named_may_wait_for_a_login_and_that_is_said(take: Take) -> None:
    view = a_yes(mine(needs_login=True), platform="mine")
    code, id, said = take(view, "--platform", "mine")
    assert (code, id) == (0, MINE)
    assert "mine: it waits until you sign in: sublet system login mine" in said


def test_ask_says_which_offers_need_a_login(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets": Said(a_yes(here(), mine(needs_login=True)))})
    typed = type_in("ask", "--", "true")
    assert "predicted, login needed" in typed.out
    assert "note: mine: login needed: sublet system login mine" in typed.err


def test_ask_sorts_by_what_is_preferred(type_in: Type, canned: Serve) -> None:
    canned({"POST /v1/offersets": Said(a_yes(mine(), here(start=NOW + timedelta(hours=5))))})
    assert type_in("ask", "-q", "--", "true").out.split() == [MINE[:8], ID[:8]]
    assert type_in("ask", "-q", "--prefer", "here", "--", "true").out.split() == [ID[:8], MINE[:8]]
    assert type_in("ask", "--prefer", "nicest", "--", "true").code == 2


def late(**changes: Any) -> ReasonView:
    said = "web1 did not answer within 3 s."
    return ReasonView(
        **{"kind": "urn:platform-timed-out", "field": "platform", "message": said, "platform": "web1", **changes}
    )


def test_who_did_not_answer_is_told_below_the_offers_and_in_a_no(type_in: Type, canned: Serve) -> None:
    service = canned({"POST /v1/offersets": Said(a_yes(here(), reasons=(late(),), unanswered=("web1",)))})
    assert "note: web1 did not answer within 3 s.\n" in type_in("ask", "--", "true").err
    assert '"unanswered": [\n    "web1"\n  ]' in type_in("ask", "--json", "--", "true").out
    service.answers["POST /v1/offersets"] = Said(a_no(late(nearest="Try again."), unanswered=("web1",)))
    assert "  web1 did not answer within 3 s.\n" in type_in("ask", "--", "true").out


def test_a_no_tells_how_old_what_it_knows_is(type_in: Type, canned: Serve) -> None:
    seen = late(kind="urn:resource-limit", message="web1 has 8 cores.", as_of=NOW - timedelta(hours=3))
    canned({"POST /v1/offersets": Said(a_no(seen))})
    said = type_in("ask", "--", "true").out
    assert "  web1 has 8 cores. (as seen " in said
    assert " ago; refresh with: sublet system probe web1)" in said


def in_terminal(*words: str) -> Terminal:
    sublet = [sys.executable, "-m", "sublet.cli", *words]
    return Terminal(sublet, {**os.environ, "TERM": "xterm", "COLUMNS": "200"})


def test_on_a_terminal_those_who_are_waited_for_are_named(canned: Serve, type_in: Type) -> None:
    shown = threading.Event()

    def slowly(_: Heard) -> Said:
        shown.wait(30)
        return Said(a_yes(here()))

    waiting = PendingList(items=(PendingView(since=NOW, waiting=("keeling", "web1")),))
    canned({"GET /v1/offersets/pending": Said(waiting), "POST /v1/offersets": slowly})
    with in_terminal("ask", "--", "true") as terminal:
        terminal.reads("waiting for keeling, web1")
        shown.set()
        terminal.reads("1 offer")
        assert terminal.ends() == 0


def test_on_a_terminal_a_login_is_offered_and_no_is_exit_code_4(canned: Serve, type_in: Type, tmp_path: Path) -> None:
    canned(answers(a_yes(mine(needs_login=True))))
    with in_terminal("run", "--", "true") as terminal:
        terminal.reads("mine needs you to sign in. Sign in now?")
        terminal.types("n")
        terminal.reads("sublet system login mine")
        assert terminal.ends() == 4


def test_on_a_terminal_one_key_takes_a_hint_and_what_was_offered_before_is_given_back(
    canned: Serve, type_in: Type
) -> None:
    hint = ReasonView(kind=HINT, field="memory", message="80 % used under 2.5GiB of 8GiB.", nearest="3GiB")
    first, better = a_yes(here(), reasons=(hint,)), a_yes(here())
    rejected = Said(RejectedView(offers=1))
    service = canned({"POST /v1/offersets": [Said(first), Said(better)], f"DELETE /v1/offersets/{first.id}": rejected})
    with in_terminal("ask", "--memory", "8GiB", "--", "true") as terminal:
        terminal.reads("Take a hint? [1, any other key: none]")
        terminal.presses("1")
        terminal.reads("1 offer")
        assert terminal.ends() == 0
    asked = [json.loads(heard.body)["memory"] for heard in service.heard if heard.target == "/v1/offersets"]
    assert asked == ["8GiB", "3GiB"]
    assert [heard.method for heard in service.heard if first.id in heard.target] == ["DELETE"]
