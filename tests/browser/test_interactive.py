"""Interactive sessions in a browser: accepted, waited for, opened with an origin of their own, warned and extended."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as TooLate

from tests.browser.conftest import PHONE, SECONDS, Site, comes_with
from tests.ports import free_port
from tests.serving import Serving

# How many points of a desktop have a colour, and where the middle of them is.
FIND = """([r, g, b]) => {
  const canvas = document.querySelector("canvas");
  if (!canvas?.width) return [0, 0, 0];
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0, x = 0, y = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) > 60) continue;
    count++;
    x += (i / 4) % canvas.width;
    y += Math.floor(i / 4 / canvas.width);
  }
  return [count, x / count, y / count];
}"""
MANY = 20_000  # points: most of a terminal
WHITE, RED = [255, 255, 255], [255, 0, 0]


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service whose sessions have hosts of their own: browsers know every name below localhost as this machine."""
    home, port = tmp_path_factory.mktemp("apart"), free_port()
    own = f'sessions_url = "http://{{session}}.localhost:{port}"'
    (home / "sublet.toml").write_text(f'{own}\n[platforms.here]\nkind = "local"\ngrace = "1s"\n')
    serving = Serving(home, "--port", str(port))
    serving.start()
    try:
        yield Site(home, json.loads((home / "run" / "service.json").read_text())["url"])
    finally:
        serving.stop()


@pytest.fixture
def person(apart: Site, browser: Browser) -> Iterator[Page]:
    """Somebody who is signed in."""
    context = comes_with(browser, apart.url)
    page = context.new_page()
    page.goto(apart.way_in())
    yield page
    context.close()


def ask_for(page: Page, interface: str, time: str = "5m", idle: str = "", memory: str = "512MiB") -> None:
    """Fill in the form for something to open."""
    page.goto("/web/ask")
    page.locator("label", has_text="Interactive").click()
    page.get_by_label("Open", exact=True).select_option(interface)
    page.get_by_label("End it when nobody").fill(idle)
    page.get_by_label("For how long").fill(time)
    page.get_by_label("Memory").fill(memory)
    page.get_by_role("button", name="See the offers").click()


def accept(page: Page) -> str:
    """Take the first offer; its session."""
    page.get_by_role("button", name="Accept").first.click()
    match = re.search(r"/web/sessions/([0-9a-f-]{36})/open|//([0-9a-f-]{36})\.localhost", page.url)
    assert match, page.url
    return match[1] or match[2]


def wait_for_colour(page: Page, colour: list[int], seconds: float = 90) -> list[float]:
    """How much of this colour there is on a desktop, and where, once it is much."""
    is_there = f"(colour) => ({FIND})(colour)[0] > {MANY}"
    often = SECONDS / 2  # each look costs a lot
    page.wait_for_function(is_there, arg=colour, polling=often, timeout=seconds * SECONDS)
    found: list[float] = page.evaluate(FIND, colour)
    return found


def end(page: Page, session: str) -> None:
    """Cancel it on its page, which says what is lost."""
    page.goto(f"/web/sessions/{session}")
    page.locator("summary", has_text="Cancel").click()
    expect(page.get_by_text("unsaved work is lost")).to_be_visible()
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.get_by_text("It was cancelled by")).to_be_visible()


@pytest.mark.engines
def test_a_desktop_is_accepted_opened_and_typed_into_and_a_second_person_is_refused(
    person: Page, browser: Browser
) -> None:
    if not all(map(shutil.which, ("Xvnc", "xterm", "openbox"))) or not Path("/usr/share/novnc/vnc.html").exists():
        pytest.skip("TigerVNC, noVNC, openbox or xterm is not installed: no desktop was looked at")
    ask_for(person, "desktop")
    session = accept(person)
    person.wait_for_url(re.compile(rf"//{session}\.localhost.*vnc\.html"))
    assert "token=" not in person.url, "the secret stays in no address"
    _, x, y = wait_for_colour(person, WHITE)  # the terminal
    assert person.evaluate(FIND, RED)[0] < MANY
    for tries in reversed(range(4)):  # a click before the window manager minds it gives the terminal no focus
        person.locator("canvas").first.click(position={"x": x, "y": y})
        person.keyboard.type("printf '\\033]11;#ff0000\\007'\n", delay=20)
        try:
            wait_for_colour(person, RED, 90 if not tries else 15)
            break
        except TooLate:
            assert tries
    person.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    person.wait_for_function("document.querySelector('canvas')?.width <= 400")
    assert person.evaluate("document.scrollingElement.scrollWidth") <= PHONE[0]

    stranger: BrowserContext = browser.new_context()
    page = stranger.new_page()
    answer = page.goto(person.url)
    assert answer is not None
    assert answer.status == 401
    expect(page.get_by_role("heading")).to_have_text("This session's own secret is needed.")
    stranger.close()
    end(person, session)


def test_what_is_accepted_is_waited_for_without_a_script_too(apart: Site, browser: Browser) -> None:
    context = comes_with(browser, apart.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(apart.way_in())
    ask_for(page, "shell")
    session = accept(page)
    page.wait_for_url(re.compile(rf"//{session}\.localhost.*/connect/{session}/$"))
    expect(page).to_have_title("Shell")
    end(page, session)
    context.close()


def test_before_its_end_a_session_is_warned_and_one_click_extends_it(person: Page) -> None:
    ask_for(person, "shell", time="40s")
    session = accept(person)
    person.wait_for_url(re.compile(rf"//{session}\.localhost"))
    expect(person.get_by_role("alert")).to_contain_text("This session ends at", timeout=60 * SECONDS)
    own = person.get_by_role("link", name="Extend it on its page")
    with person.context.expect_page() as opened:
        own.click()
    page = opened.value
    expect(page.locator("[data-warning]")).to_contain_text("Unsaved work is lost")
    page.get_by_role("button", name="Extend it by 30 minutes").click()
    expect(page.locator("[data-warning]")).to_have_count(0)
    expect(person.get_by_role("alert")).to_have_count(0, timeout=60 * SECONDS)
    end(page, session)


def test_a_session_that_nobody_has_open_any_more_is_ended_and_its_page_says_why(person: Page) -> None:
    ask_for(person, "shell", idle="6s")
    session = accept(person)
    person.wait_for_url(re.compile(rf"//{session}\.localhost"))
    page = person.context.new_page()
    page.goto(f"/web/sessions/{session}")
    page.wait_for_timeout(8 * SECONDS)  # longer than nobody may have it open; but someone has
    expect(page.get_by_text("It is up and can be connected to")).to_be_visible()
    person.goto("/web/")
    expect(page.get_by_text("nobody had it open for 6 s")).to_be_visible()
