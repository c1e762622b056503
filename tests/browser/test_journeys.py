"""What people do on the pages, from the first look to the result."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Visit, Wish, looked_at

Ask = Callable[[Page, Wish], None]


def accept_first(page: Page) -> None:
    page.get_by_role("button", name=re.compile("Accept offer 1,")).click()
    expect(page).to_have_url(re.compile("/web/sessions/[0-9a-f-]{36}$"))


def go_on(page: Page, name: str) -> None:
    """By keyboard alone: press Tab until something of that name, or id, has the focus."""
    named = "e => (e.getAttribute('aria-label') || e.id || e.textContent).trim()"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(f"({named})(document.activeElement)").startswith(name):
            return
    raise AssertionError(f"{name} can't be reached by the Tab key")


def test_from_a_form_to_a_result_with_the_log_live(visit: Visit, ask: Ask) -> None:
    page = visit()
    script = "for i in 1 2 3 4; do echo step $i; sleep 0.5; done; echo mind this >&2; echo 42 > answer.txt"
    name = "<script>alert(1)</script>;$(id)"
    ask(page, Wish(script, platform="here", start="within 4h", name=name))
    expect(page.get_by_role("heading", level=1)).to_contain_text("offers")
    expect(page.get_by_role("img", name=re.compile("^Calendar of here"))).to_be_visible()
    expect(page.locator(".bar")).to_have_count(page.get_by_role("button", name=re.compile("^Accept offer")).count())
    accept_first(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    log = page.get_by_role("log", name="What it printed")
    expect(log).to_contain_text("step 1")
    expect(page.locator(".stages [aria-current]")).to_have_text("running")
    expect(log).to_contain_text("step 4")
    expect(page.locator(".stages [aria-current]")).to_have_text("completed")
    expect(page.get_by_role("log", name="Its errors")).to_have_text("mind this\n")
    expect(page.get_by_text("It exited with code 0.")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download answer.txt").click()
    assert saved.value.path().read_text() == "42\n"
    with page.expect_download() as saved:
        page.get_by_role("link", name="All files as one archive").click()
    assert saved.value.suggested_filename.endswith(".tar.gz")


@pytest.mark.parametrize("name", ["fit", "a fit of all spectra of the night with the new calibration"])
def test_the_first_offer_can_be_accepted_without_scrolling(name: str, visit: Visit, ask: Ask) -> None:
    page = visit()
    ask(page, Wish("true", cores="1-4", start="within 9h", name=name))
    assert page.locator(".offer").count() > 1
    for width, height in ((375, 667), (1280, 800)):
        page.set_viewport_size({"width": width, "height": height})
        box = page.get_by_role("button", name=re.compile("Accept offer 1,")).bounding_box()
        assert box
        assert box["y"] + box["height"] <= height, (width, height, box)


def test_a_no_tells_each_reason_and_asking_with_the_nearest_is_a_yes(visit: Visit, ask: Ask) -> None:
    page = visit()
    ask(page, Wish("true", cores="64", name="too much"))
    expect(page.get_by_role("heading", level=1)).to_have_text("No, not as it was asked")
    reason = page.locator(".reason").first
    for said in ("compute.cores.min", "64", "16", "Nearest yes"):
        expect(reason).to_contain_text(said)
    page.get_by_role("link", name="Ask with that").click()
    expect(page.get_by_label("Cores")).to_have_value("16")
    expect(page.get_by_label("Name")).to_have_value("too much")
    page.get_by_role("button", name="See the offers").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("offer")


HELD = """() => {
  window.sent = 0; // platforms that never answer: what would be sent is counted, and the page stays
  document.addEventListener("submit", (event) => {
    if (!event.defaultPrevented) window.sent += 1;
    event.preventDefault();
  });
}"""


def test_while_platforms_are_asked_the_page_says_so_and_asks_once(visit: Visit) -> None:
    page = visit()
    page.goto("/web/ask")
    page.get_by_label("Command or script", exact=True).last.fill("true")
    page.evaluate(HELD)
    page.get_by_role("button", name="See the offers").click()
    expect(page.get_by_role("status").filter(has_text="Asking the platforms.")).to_be_visible()
    page.get_by_role("button", name="Asking…").click()
    assert page.evaluate("window.sent") == 1, "a second click asks nothing twice"
    page.reload()
    page.get_by_label("Command or script", exact=True).last.fill("true")
    page.get_by_role("button", name="See the offers").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("offer")


def test_what_was_typed_comes_back_with_what_is_wrong_beside_it(visit: Visit) -> None:
    page = visit()
    page.goto("/web/ask")
    page.get_by_label("Cores").fill("many")
    page.get_by_label("For how long").fill("P1H")
    page.get_by_label("Memory").fill("3GiB")
    page.get_by_role("button", name="See the offers").click()
    expect(page.get_by_role("alert")).to_contain_text("3 things are not right yet.")
    expect(page.locator("#time-wrong")).to_contain_text("PT1H or 1h")
    assert page.get_by_label("Cores").get_attribute("aria-invalid") == "true"
    values = [page.get_by_label(name).input_value() for name in ("Cores", "For how long", "Memory")]
    assert values == ["many", "P1H", "3GiB"]
    page.get_by_label("Cores").fill("2-4")
    page.get_by_role("button", name="Go on in YAML").click()
    document = page.get_by_label("The request, in the short or the full form")
    expect(document).to_have_value(re.compile("cores: 2-4\nmemory: 3GiB\ntime: P1H"))
    document.fill("run: 'true'\ncroes: 2\n")
    page.get_by_role("button", name="See the offers").click()
    expect(page.locator("#document-wrong")).to_contain_text("Did you mean cores?")
    expect(document).to_have_value("run: 'true'\ncroes: 2\n")
    document.fill("run: 'true'\nplatform: cluster\ntime: 5m\n")
    page.get_by_role("button", name="See the offers").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("offer")


def test_a_scheduler_is_asked_in_the_form_for_what_a_platform_takes(visit: Visit, ask: Ask) -> None:
    page = visit()
    page.goto("/web/ask")
    page.get_by_label("Command or script", exact=True).last.fill("true")
    page.get_by_text("Data, name and place").click()
    page.get_by_label("Platform").select_option("cluster")
    page.get_by_text("Scheduler options").click()
    page.get_by_label("Queue").fill("short")
    page.get_by_label("Nice value").fill("5")
    page.get_by_label("Share its nodes").check()
    page.get_by_label("Other options").fill("switches=1\ncontiguous")
    looked_at(page, "scheduler")
    page.get_by_role("button", name="See the offers").click()
    accept_first(page)
    expect(page.get_by_text("queue short, nice 5, exclusive")).to_be_visible()
    page.get_by_role("link", name="Ask again").click()
    values = [page.get_by_label(name).input_value() for name in ("Queue", "Nice value", "Other options")]
    assert values == ["short", "5", "switches=1\ncontiguous"]
    expect(page.get_by_label("Share its nodes")).to_be_checked()
    page.get_by_label("Platform").select_option("here")
    page.get_by_role("button", name="See the offers").click()
    expect(page.locator(".reason").first).to_contain_text("A queue can't be chosen on here")


def test_a_running_session_is_extended_paused_and_cancelled_by_keyboard_alone(visit: Visit) -> None:
    page = visit()
    page.goto("/web/ask")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    for name, text in (("script", "echo up; sleep 600"), ("cores", "1"), ("time", "30m")):
        go_on(page, name)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)
    go_on(page, "Data, name and place")
    page.keyboard.press("Enter")
    go_on(page, "name")
    page.keyboard.type("by hand")
    go_on(page, "platform")
    page.keyboard.type("here")
    go_on(page, "See the offers")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("offer")
    go_on(page, "Accept offer 1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log", name="What it printed")).to_contain_text("up")
    go_on(page, "Extend")
    page.keyboard.press("Enter")
    go_on(page, "Extend it")
    page.keyboard.press("Enter")
    expect(page.locator("#facts")).to_contain_text("1 h")
    go_on(page, "Pause")
    page.keyboard.press("Enter")
    go_on(page, "Yes, pause it")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("paused: stopped on its node; its time runs on")
    go_on(page, "Resume")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pause", exact=True)).to_be_visible()
    go_on(page, "Cancel")
    page.keyboard.press("Enter")
    go_on(page, "Yes, cancel it")
    page.keyboard.press("Enter")
    expect(page.locator(".stages [aria-current]")).to_have_text("cancelled")
    expect(page.locator("#said")).to_contain_text("It was cancelled by")
    expect(page.get_by_text("Extend", exact=True)).to_have_count(0)


def test_the_list_is_filtered_by_phase_kind_and_name(visit: Visit, ask: Ask) -> None:
    page = visit(PHONE)
    for name in ("early bird", "night owl"):
        ask(page, Wish("sleep 1", name=name, start="tomorrow 09:00-12:00 Europe/London"))
        accept_first(page)
    page.goto("/web/sessions?name=nobody")
    expect(page.get_by_text("No session matches.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("link", name="early bird").first).to_be_visible()
    page.get_by_label("Phase").select_option("WAITING")
    page.get_by_label("What").select_option("command")
    page.get_by_label("Name").fill("night owl")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="night owl")).to_have_count(1)
    expect(page.get_by_role("link", name="early bird")).to_have_count(0)
    page.get_by_label("Phase").select_option("COMPLETED")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No session matches.")).to_be_visible()


def test_without_javascript_everything_can_be_read_and_done(visit: Visit, ask: Ask) -> None:
    page = visit(java_script_enabled=False)
    expect(page.locator("footer")).to_contain_text("UTC")
    ask(page, Wish("echo plain; sleep 600", platform="here", name="no script"))
    expect(page.get_by_role("img", name=re.compile("^Calendar of here"))).to_be_visible()
    page.get_by_text("The same as a table").click()
    expect(page.get_by_role("cell", name=re.compile("^Offer 1:"))).to_be_visible()
    accept_first(page)
    for _ in range(40):
        if page.get_by_role("log", name="What it printed").inner_text() == "plain\n":
            break
        page.wait_for_timeout(100)
        page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_role("log", name="What it printed")).to_have_text("plain\n")
    page.get_by_text("Cancel", exact=True).click()
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.locator(".stages [aria-current]")).to_have_text("cancelled")
    page.get_by_text("Delete", exact=True).click()
    page.get_by_role("button", name="Yes, delete it").click()
    expect(page).to_have_url(re.compile("/web/sessions$"))


def test_times_are_in_the_browsers_zone_and_told_in_utc_too(visit: Visit) -> None:
    page = visit()
    expect(page.locator("footer")).to_contain_text("Asia/Tehran (UTC+3:30)")
    page.goto("/web/sessions")
    for told in page.locator("time").all()[:3]:
        assert (told.get_attribute("title") or "").endswith(" UTC")


def test_signing_out_ends_the_visit_and_a_link_works_once(visit: Visit) -> None:
    page = visit()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto("/web/sessions")
    expect(page).to_have_url(re.compile("/web/login"))
    page.get_by_label("Token").fill("sublet_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#secret-wrong")).to_be_visible()
