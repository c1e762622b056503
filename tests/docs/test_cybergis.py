"""`docs/cybergis.md` says what the compatibility layer does, call by call."""

from __future__ import annotations

import re
from pathlib import Path

from sublet.doors.cybergis import api as cybergis
from sublet.doors.cybergis.wire import EVENTS, OPTIONS, SLURM
from sublet.notices.model.hooks import WAITS, WORDS

ROOT = Path(__file__).parents[2] / "docs"
PAGE = (ROOT / "cybergis.md").read_text()


def test_every_call_that_is_answered_is_on_the_page() -> None:
    routes = {route.path.removeprefix(cybergis.PREFIX) for route in cybergis.router.routes}  # type: ignore[attr-defined]
    silent = {"", "/", "/{path:path}"}
    missing = []
    for path in sorted(routes - silent):
        written = path.replace("{id}", ":id").replace("{name}", ":name")
        short = [
            written,
            "…/" + written.rpartition("/")[2],
            "/" + written.rpartition("/")[2],
            written.rpartition("/")[2],
        ]
        if not any(re.search(rf"`(GET |POST |PUT )?{re.escape(one)}`", PAGE) for one in short):
            missing.append(path)
    assert missing == []


def test_every_event_and_setting_is_on_the_page() -> None:
    assert [name for name in (*EVENTS.values(), *SLURM, *OPTIONS) if f"`{name}`" not in PAGE] == []


def test_the_page_on_hooks_has_every_word_and_every_wait() -> None:
    page = (ROOT / "hooks.md").read_text()
    assert [word for word in WORDS if f"`{word}`" not in page] == []
    assert len(WAITS) == 8
    for words in ("30 s", "2 min", "10 min", "30 min", "1 h", "2 h", "4 h", "8 h"):
        assert words in page
