"""Many files: by folder, searched, and shown on pages on which nothing of theirs runs."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, Wish, looked_at
from tests.browser.test_journeys import accept_first

Ask = Callable[[Page, Wish], None]
MAKE = r"""mkdir out nothing
for i in $(seq 1 2500); do echo $i > out/$i.txt; done
printf 'name,count\n<b>one</b>,1\n' > table.csv
printf '<h1 id="t">drawn</h1><script>document.getElementById("t").textContent = "ran"</script>' > page.html
printf '{"cells": [{"cell_type": "code", "source": "6 * 7", "outputs": [{"output_type": "execute_result",' > n.ipynb
printf '"data": {"text/html": "<i id=t>42</i><script>document.title = 1</script>"}}]}]}' >> n.ipynb
printf '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>' > plot.svg
"""
MIDDLES = """(row) => [...row.cells].map((cell) => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const box = text.getBoundingClientRect();
    return Math.round(box.y + box.height / 2);
})"""


def test_thousands_of_files_are_folders_and_pages_and_each_is_shown_safely(visit: Visit, ask: Ask) -> None:
    page = visit()
    ask(page, Wish(MAKE, platform="here", name="files"))
    accept_first(page)
    expect(page.locator(".stages [aria-current]")).to_have_text("completed")
    session = page.url
    files = page.locator("#files")
    expect(files.get_by_role("link", name="out/")).to_be_visible()
    expect(files.get_by_role("row", name="nothing/")).to_contain_text("empty")
    assert len(page.content()) < 60_000
    files.get_by_role("link", name="out/").click()
    expect(page.get_by_text("Page 1 of 25")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("Page 2 of 25")).to_be_visible()
    looked_at(page, "files")
    page.set_viewport_size({"width": 1280, "height": 900})
    heights = page.locator(".files tbody tr").first.evaluate(MIDDLES)
    assert max(heights) - min(heights) <= 2, "a row is one line"
    page.get_by_label("Part of a file's name").fill("out/1234")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="out/1234.txt", exact=True).click()
    expect(page.locator("pre.shown")).to_have_text("1234\n")
    looked_at(page, "preview")
    page.goto(f"{session}/preview/table.csv")
    expect(page.get_by_role("cell", name="<b>one</b>")).to_be_visible()
    page.goto(f"{session}/preview/plot.svg")
    assert page.locator("p.shown img").evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 40
    for name, words in (("page.html", "drawn"), ("n.ipynb", "42")):
        page.goto(f"{session}/preview/{name}")
        frame = page.frame_locator("iframe.shown")
        expect(frame.locator("#t")).to_have_text(words)
    answer = page.request.get(f"{session}/raw/page.html")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert re.search("sandbox", page.content())
