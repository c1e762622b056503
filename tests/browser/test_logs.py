"""A long log: its end at once, the rest by scrolling, searched and saved as a whole, and a page that stays quick."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, Wish, looked_at
from tests.browser.test_journeys import accept_first

Ask = Callable[[Page, Wish], None]
LINES = 300_000  # of 70 bytes: 21 MB
LONG = f"""seq 1 {LINES} | sed 's/$/ of a log that is long, with a line for each number that there is/'
echo done; while [ ! -e stop ]; do sleep 0.2; done"""
LONGEST_TASK = 1000  # milliseconds that the page may be busy at a time: 200 at most, where nothing else runs
OBSERVE = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: "longtask", buffered: true });
}"""
SIZE = "(pre) => pre.textContent.length"


def test_of_a_log_of_twenty_megabytes_the_end_is_there_at_once_and_the_page_is_never_blocked(
    visit: Visit, ask: Ask
) -> None:
    page = visit()
    ask(page, Wish(LONG, platform="here", name="long"))
    accept_first(page)
    page.evaluate(OBSERVE)
    log = page.get_by_role("log", name="What it printed")
    expect(log).to_contain_text("done")
    assert log.evaluate(SIZE) < 1_000_000
    page.reload()
    page.evaluate(OBSERVE)
    expect(log).to_contain_text(f"{LINES} of a log")
    for _ in range(20):  # back, further than is kept on the page
        log.evaluate("(pre) => (pre.scrollTop = 0)")
        page.wait_for_timeout(100)
    assert log.evaluate(SIZE) < 1_000_000
    first = int(re.findall(r"^(\d+) of", log.text_content() or "", re.MULTILINE)[0])
    assert first < LINES - 5_000
    expect(log).not_to_contain_text("done")
    page.get_by_role("link", name="To the end").first.click()
    expect(log).to_contain_text("done")
    blocked = page.evaluate("window.longTasks")
    assert max(blocked, default=0) < LONGEST_TASK, blocked
    looked_at(page, "long log")
    page.get_by_label("Words to find in the log").fill("12345 OF a log")
    page.get_by_role("button", name="Find").click()
    found = page.locator("#found")
    expect(found).to_contain_text("3 lines of stdout")  # 12345, 112345, 212345
    looked_at(page, "found in a log")
    found.get_by_role("link", name=re.compile("^112345 of")).click()
    expect(log).to_contain_text("112345 of a log")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download all of stdout").click()
    assert saved.value.path().read_bytes().count(b"\n") == LINES + 1
    page.get_by_text("Cancel", exact=True).click()
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.locator(".stages [aria-current]")).to_have_text("cancelled")


def test_without_a_script_the_parts_of_a_log_are_pages(visit: Visit, ask: Ask) -> None:
    page = visit(java_script_enabled=False)
    ask(page, Wish("seq 1 30000", platform="here"))
    accept_first(page)
    log = page.get_by_role("log", name="What it printed")
    for _ in range(60):
        if "30000" in log.inner_text():
            break
        page.wait_for_timeout(200)
        page.reload()
    assert re.search(r"\n30000\n?$", log.inner_text())
    page.get_by_role("link", name="From the beginning").click()
    expect(log).to_contain_text(re.compile(r"^1\n2\n"))
    page.get_by_role("link", name="The next part").click()
    expect(log).not_to_contain_text(re.compile(r"^1\n2\n"))
