"""Tables on narrow terminals: whatever is typed elsewhere is there whole, and no line is wider than the terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.access.views.access import LimitsView, RuleList, RuleView
from sublet.access.views.audit import AuditPage, AuditView
from sublet.access.views.usage import UsageReport, UsedView
from sublet.annexes.views.annexes import AnnexList
from sublet.annexes.views.jobs import JobList, JobView
from sublet.booking.views.offers import OfferSetPage
from sublet.booking.views.platforms import NodeView, PlatformList, PlatformView
from sublet.booking.views.sessions import SessionPage
from sublet.cli.screen import width_of
from sublet.people.views.people import PersonList, PersonView, TokenList, TokenView
from tests.canned import ID, NOW, Said, a_session, a_yes, an_end, an_offer
from tests.cli.conftest import Serve
from tests.cli.test_annexes import ANNEX
from tests.cli.test_terminal import at_terminal

OTHER, THIRD = ID.replace("3f2a", "4e1b"), ID.replace("3f2a", "5d0c")
NAME = "calibration-of-the-western-basin"
WHO = "wilhelmina.featherstone@hydrology.example.edu"
SENTENCE = "its inputs are on their way from the archive, which answers slowly today"
LAST = datetime.now(UTC) - timedelta(minutes=7)

SESSIONS = SessionPage(
    items=(
        replace(a_session(), name=NAME, kind="jupyter-notebook", phase="RUNNING", platform="expanse-shared"),
        replace(
            a_session(),
            id=OTHER,
            short=OTHER[:8],
            name=NAME,
            phase="FAILED",
            started=LAST - timedelta(minutes=46, seconds=26),
            ended=LAST,
            end=an_end(code=137),
        ),
        replace(a_session(), id=THIRD, short=THIRD[:8], name=NAME, phase="WAITING", condition=SENTENCE),
    )
)
AUDIT = AuditPage(
    items=(
        AuditView(
            id=1,
            time=NOW,
            person=WHO,
            action="sign-in.refused",
            noun="session",
            name=ID,
            host="2001:db8:85a3::8a2e:370:7334",
            detail={"why": "the code was wrong", "address": WHO},
        ),
    )
)
JOBS = JobList(
    items=(
        JobView(id="1234.567", state="held", name=NAME, annex="western-basin", submitted=NOW, since=NOW, why=SENTENCE),
    )
)
PEOPLE = PersonList(
    items=(
        PersonView(
            name=WHO,
            role="operator",
            created=NOW,
            seen=LAST,
            groups=("hydrology", "western-basin"),
            blocked=True,
            why=SENTENCE,
        ),
    )
)
RULES = RuleList(
    items=(
        RuleView(
            id=ID,
            effect="allow",
            who=WHO,
            noun="system",
            name="expanse-shared",
            limits=LimitsView(cores=128, time=timedelta(hours=12), jobs=5),
            created=NOW,
            expires=NOW,
            note=SENTENCE,
        ),
    )
)
TOKENS = TokenList(
    items=(TokenView(id=ID[:8], person=WHO, note=NAME, created=LAST, expires=LAST + timedelta(days=8), used=LAST),)
)
PLATFORMS = PlatformList(
    items=(
        PlatformView(
            name="expanse-shared",
            kind="slurm",
            terms="predicted",
            nodes=(NodeView(name="n1", cores=128, memory=256 << 30, gpus=4),) * 99,
            working=False,
            problem=SENTENCE,
        ),
    )
)
USAGE = UsageReport(
    since=NOW,
    until=NOW,
    items=(UsedView(quarter="2026Q4", platform="expanse-shared", person=WHO, sessions=9999, core_hours=123456.78),),
    totals=(),
)
OFFERS = OfferSetPage(items=(a_yes(an_offer(platform="expanse-shared", why=SENTENCE)),))

TABLES: dict[tuple[str, ...], tuple[dict[str, Any], tuple[str, ...]]] = {
    ("ps",): ({"GET /v1/sessions": SESSIONS}, (OTHER[:8], NAME, "RUNNING", "FAILED", "46 min 26 s", "exit code 137")),
    ("ps", "--all"): ({"GET /v1/sessions": SESSIONS}, (ID[:8], NAME, "WAITING", "expanse-shared", SENTENCE)),
    ("audit",): ({"GET /v1/audit": AUDIT}, (WHO, "sign-in.refused", ID, "the code was wrong")),
    ("annex", "status"): ({"GET /v1/annexes": AnnexList(items=(ANNEX,))}, ("example", "queued", "up", "3 run, 7 wait")),
    ("job", "list"): ({"GET /v1/jobs": JOBS}, ("1234.567", "held", "western-basin", NAME, SENTENCE)),
    ("person", "list"): ({"GET /v1/people": PEOPLE}, (WHO, "operator", "hydrology", "western-basin", SENTENCE)),
    ("rule", "list"): ({"GET /v1/rules": RULES}, (ID[:8], "allow", WHO, "expanse-shared", "128 cores", "12 h")),
    ("token", "list"): ({"GET /v1/tokens": TOKENS}, (ID[:8], WHO, NAME)),
    ("platform", "list"): ({"GET /v1/platforms": PLATFORMS}, ("expanse-shared", "slurm", SENTENCE)),
    ("usage",): ({"GET /v1/usage": USAGE}, ("2026Q4", "expanse-shared", WHO, "9999", "123456.78")),
    ("offers",): ({"GET /v1/offersets": OFFERS}, (ID[:8], "expanse-shared", SENTENCE)),
    ("system", "list"): ({}, ("expanse", "perlmutter", "slurm")),
}


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_a_table_on_a_narrow_terminal_cuts_nothing(words: tuple[str, ...], columns: int, canned: Serve) -> None:
    answers, whole = TABLES[words]
    canned({path: Said(view) for path, view in answers.items()})
    shown = at_terminal("-m", "sublet", *words, columns=columns, NO_COLOR="1", TZ="UTC")
    lines = shown.splitlines()
    assert [line for line in lines if width_of(line) > columns] == []
    assert "…" not in shown
    assert [text for text in whole if not is_shown(text, lines)] == [], shown


def is_shown(text: str, lines: list[str]) -> bool:
    """Whether every word of it is in one piece there; the words of a sentence may be in several lines."""
    drawn = set(re.split(r"[\s,]+", " ".join(lines)))
    return all(word in drawn for word in re.split(r"[\s,]+", text))
