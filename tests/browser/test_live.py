"""Pages that are open: lists that follow, and a service that is started again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SETTINGS, Site, Visit, Wish, comes_with
from tests.browser.test_journeys import accept_first
from tests.serving import Serving

Ask = Callable[[Page, Wish], None]


def test_a_list_follows_and_keeps_what_has_the_focus(visit: Visit, ask: Ask) -> None:
    page = visit()
    page.goto("/web/sessions")
    other = page.context.new_page()
    ask(other, Wish("true", platform="here", name="newcomer"))
    accept_first(other)
    expect(page.get_by_role("link", name="newcomer")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="newcomer"))
    page.get_by_role("link", name="newcomer").focus()
    expect(row).to_contain_text("completed")
    expect(page.get_by_role("link", name="newcomer")).to_be_focused()
    expect(page.locator("#announced")).to_have_text("The list of sessions was updated.")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A service that is started again."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "sublet.toml").write_text(SETTINGS)
    started = Serving(home)
    started.start()
    yield started
    started.stop()


def test_an_open_page_goes_on_after_the_service_was_started_again(serving: Serving, browser: Browser) -> None:
    record = serving.home / "run" / "service.json"
    site = Site(serving.home, json.loads(record.read_text())["url"])
    context = comes_with(browser, site.url, asks_first=True)
    page = context.new_page()
    page.goto(site.way_in())
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    other = context.new_page()
    other.goto("/web/ask")
    other.get_by_text("Data, name and place").click()
    other.get_by_label("Command or script", exact=True).last.fill("true")
    other.get_by_label("Name").fill("typed")
    serving.stop()
    expect(page.get_by_text("Reconnecting…")).to_be_visible()
    other.get_by_role("button", name="See the offers").click()
    expect(other.get_by_text("Nothing was sent")).to_be_visible()
    expect(other.get_by_label("Name")).to_have_value("typed")
    serving.start()
    assert json.loads(record.read_text())["url"] == site.url
    expect(page.get_by_text("Reconnecting…")).to_have_count(0)
    page.get_by_role("link", name="Sessions", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sessions")
    other.get_by_label("Command or script", exact=True).last.fill("true")
    other.get_by_role("button", name="See the offers").click()
    expect(other.get_by_text("Nothing was sent")).to_have_count(0)
    expect(other.get_by_role("heading", level=1)).to_contain_text("offer")
    context.close()
