"""A real service, and a real browser in front of it."""

from __future__ import annotations

import getpass
import http.client
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from sublet.annexes.model.annex import Annex, Details, Lease, Pilot
from sublet.kernel.settings import Settings
from sublet.store import Store
from tests.serving import Serving

# Without windows that nobody sees: to draw them as well was nearly half of this ring's work.
CHROMIUM = Path(os.environ.get("SUBLET_CHROMIUM", "/usr/lib/chromium/chromium-headless-shell"))
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = (1280, 900), (390, 844)
WAYS: dict[str, tuple[tuple[int, int], Literal["light", "dark"]]] = {
    "desktop-light": (DESKTOP, "light"),
    "desktop-dark": (DESKTOP, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}
ZONE = "Asia/Tehran"  # not UTC, and not a whole hour from it
LOOK = Path(__file__).with_name("look.js").read_text()
PICTURES = os.environ.get("SUBLET_PICTURES")  # a directory for pictures of all pages, for whoever wants to see them
SETTINGS = """
[prices]
core_hour = 0.05

[platforms.here]
kind = "local"

[platforms.cluster]
kind = "memory"
nodes = 3
cores = 16
memory = "64GiB"
takes = "1h"
"""
EXPECTED = (
    "the server responded with a status of 4",  # a form that comes back is not the page's error
    "because the document's frame is sandboxed and the 'allow-scripts' permission is not set",  # a preview runs nothing
    "net::ERR_NETWORK_CHANGED",  # sites of other tests come and go on this machine, and Chromium asks again
)
SECONDS = 1000

expect.set_options(timeout=30 * SECONDS)


class Socket(http.client.HTTPConnection):
    """A connection to the service's own socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


@dataclass
class Site:
    """A service, as a browser sees it."""

    home: Path
    url: str

    def way_in(self) -> str:
        """An address that signs the owner in, once."""
        connection = Socket(self.home / "run" / "sublet.sock")
        connection.request("POST", "/web/code")
        address: str = json.loads(connection.getresponse().read())["url"]
        connection.close()
        return address


def furnish(home: Path) -> None:
    """An annex of the owner's, with a lease and its nodes, which this service finds when it starts."""
    store = Store.open(Settings.load(home).database_url)
    now = datetime.now(UTC)
    annex = Annex("a", getpass.getuser(), "a" * 60, now, guests=("bob",))
    lease = Lease("l", annex.id, 1, Details("cluster", nodes=2, lifetime=timedelta(hours=1)), now)
    store.write_sync(lambda tx: (tx.annexes.add(annex), tx.leases.add(lease)))
    store.write_sync(lambda tx: [tx.pilots.claim(Pilot("l", number, now, "n" * 60)) for number in (0, 1)])
    store.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service on this machine, with a second platform that only plays."""
    home = tmp_path_factory.mktemp("site")
    (home / "sublet.toml").write_text(SETTINGS)
    furnish(home)
    serving = Serving(home, "--port", "0")
    serving.start()
    try:
        yield Site(home, json.loads((home / "run" / "service.json").read_text())["url"])
    finally:
        serving.stop()


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Chromium, as Debian ships it. While it is open, no test of this process can have an event loop of its own."""
    if not CHROMIUM.exists():
        pytest.skip(f"no page was looked at in a browser: there is no {CHROMIUM} (apt-get install {CHROMIUM.name})")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all tests here, which are the same worker's."""
    with open_chromium() as chromium:
        yield chromium


def comes_with(
    browser: Browser, url: str, size: tuple[int, int] = DESKTOP, *, asks_first: bool = False, **options: Any
) -> BrowserContext:
    """Somebody's own cookies and window; nothing moves by itself, which would cost the machine without end.

    Unless it `asks_first`, a form is sent at once: Playwright waits for a page that a click asks for, but not for one
    that a script asks for a moment later.
    """
    view = ViewportSize(width=size[0], height=size[1])
    context = browser.new_context(viewport=view, timezone_id=ZONE, base_url=url, reduced_motion="reduce", **options)
    context.set_default_timeout(30 * SECONDS)
    if not asks_first:
        context.route("**/send.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    return context


def objections(page: Page, name: str) -> dict[str, list[str]]:
    """What a careful reader of a page would object to, at desktop and phone width, light and dark."""
    found = {}
    for way, (size, colours) in WAYS.items():
        page.set_viewport_size(ViewportSize(width=size[0], height=size[1]))
        page.emulate_media(color_scheme=colours)
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{way}.png", full_page=True)
        page.wait_for_load_state()
        page.locator("body").wait_for(state="attached")  # the page that was, may be going only now
        found[f"{name}-{way}"] = page.evaluate(f"({LOOK})({json.dumps(size == PHONE)})")
    return found


def looked_at(page: Page, name: str, *known: str) -> None:
    """Nobody objects to anything but what is known."""
    found = objections(page, name)
    assert found == {way: list(known) for way in found}


Visit = Callable[..., Page]


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    """Signs in and gives the first page; every error that the browser met fails the test."""
    opened: list[BrowserContext] = []
    errors: list[str] = []

    def sign_in(size: tuple[int, int] = DESKTOP, **options: Any) -> Page:
        context = comes_with(browser, site.url, size, **options)
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        answer = page.goto(site.way_in())
        assert answer, "the address that signs in was not opened"
        assert answer.ok, f"{answer.status} {answer.url}: {page.content()}"
        heading = page.get_by_role("heading", level=1)
        expect(heading, f"the page at {page.url}").to_have_text("When, and where, can I run this?")
        return page

    yield sign_in
    for context in opened:
        context.close()
    assert not [error for error in errors if not any(words in error for words in EXPECTED)]


@dataclass(frozen=True)
class Wish:
    """What to type into the form."""

    script: str
    platform: str = "cluster"
    cores: str = "1"
    time: str = "20m"
    start: str = ""
    name: str = ""


@pytest.fixture
def ask() -> Callable[[Page, Wish], None]:
    """Fills in the form as a person would, and sends it."""

    def fill(page: Page, wish: Wish) -> None:
        page.goto("/web/ask")
        page.get_by_label("Command or script", exact=True).last.fill(wish.script)
        page.get_by_label("Cores").fill(wish.cores)
        page.get_by_label("For how long").fill(wish.time)
        page.get_by_label("Start").fill(wish.start)
        page.get_by_text("Data, name and place").click()
        page.get_by_label("Name").fill(wish.name)
        page.get_by_label("Platform").select_option(wish.platform)
        page.get_by_role("button", name="See the offers").click()

    return fill
