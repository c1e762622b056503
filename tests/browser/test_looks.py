"""Every page, at desktop and phone width, light and dark, as a careful reader would look at it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from tests.browser.conftest import Visit, Wish, objections

LONG = "w" * 150  # a name that no line is wide enough for
PLACES = {
    "overview": "/web/",
    "form": "/web/ask",
    "yaml": "/web/ask?form=yaml",
    "list": "/web/sessions",
    "annexes": "/web/annexes",
    "annex": f"/web/annexes/{'a' * 60}",
}


def test_every_page_is_labelled_readable_and_no_wider_than_the_screen(
    visit: Visit, ask: Callable[[Page, Wish], None]
) -> None:
    page = visit()
    ask(page, Wish("true", name=LONG, cores="1-4", start="within 9h"))
    found = objections(page, "offers")
    ask(page, Wish("true", cores="64", name=LONG))
    found |= objections(page, "no")
    ask(page, Wish(f"echo {LONG}", name=LONG, start="within 9h"))
    page.get_by_role("button", name="Accept offer 1,").click()
    page.wait_for_url("**/web/sessions/*")
    found |= objections(page, "session")
    for name, address in PLACES.items():
        page.goto(address)
        found |= objections(page, name)
    page.goto("/web/ask")
    page.locator("#what-steps").check(force=True)
    found |= objections(page, "form for steps")
    page.get_by_role("button", name="See the offers").click()
    page.get_by_role("alert").wait_for()
    found |= objections(page, "form with a complaint")
    assert {name: said for name, said in found.items() if said} == {}
