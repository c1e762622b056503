"""Every page, at desktop and phone width, light and dark, as a careful reader would look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import DESKTOP, PHONE, Visit, Wish

LOOK = Path(__file__).with_name("look.js").read_text()
LONG = "w" * 150  # a name that no line is wide enough for


@pytest.fixture(scope="module")
def places() -> dict[str, str]:
    """The addresses of one page of each sort, once they have been visited."""
    asking = {"overview": "/web/", "form": "/web/ask", "yaml": "/web/ask?form=yaml", "list": "/web/sessions"}
    return asking | {"annexes": "/web/annexes", "annex": f"/web/annexes/{'a' * 60}"}


@pytest.mark.parametrize(
    ("size", "colours"),
    [
        (DESKTOP, "light"),
        pytest.param(DESKTOP, "dark", marks=pytest.mark.soak),
        pytest.param(PHONE, "light", marks=pytest.mark.soak),
        (PHONE, "dark"),
    ],
    ids=["desktop-light", "desktop-dark", "phone-light", "phone-dark"],
)
def test_every_page_is_labelled_readable_and_no_wider_than_the_screen(
    visit: Visit,
    ask: Callable[[Page, Wish], None],
    places: dict[str, str],
    size: tuple[int, int],
    colours: str,
    tmp_path: Path,
) -> None:
    page = visit(size, color_scheme=colours)
    if "offers" not in places:
        ask(page, Wish("true", name=LONG, cores="1-4", start="within 9h"))
        places["offers"] = page.url
        ask(page, Wish("true", cores="64", name=LONG))
        places["no"] = page.url
        ask(page, Wish(f"echo {LONG}", name=LONG, start="within 9h"))
        page.get_by_role("button", name="Accept offer 1,").click()
        places["session"] = page.url
    objections = {}
    for name, address in places.items():
        page.goto(address)
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        objections[name] = page.evaluate(f"({LOOK})({json.dumps(size == PHONE)})")
    page.goto("/web/ask")
    page.get_by_role("button", name="See the offers").click()
    objections["form with a complaint"] = page.evaluate(f"({LOOK})({json.dumps(size == PHONE)})")
    assert {name: said for name, said in objections.items() if said} == {}
