"""A real code-server, opened in Chromium through its connector: a page of many WebSockets with an origin of its own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.browser.conftest import SECONDS, Site, comes_with, open_chromium
from tests.browser.test_interactive import accept, ask_for, end
from tests.engines.code_server import have_code_server
from tests.ports import free_port
from tests.serving import Serving

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for this file alone: tests of others in this process have event loops of their own."""
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture
def person(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Page]:
    """Somebody who is signed in to a service on a machine that has code-server, whose sessions have their own hosts."""
    programs = have_code_server()
    home, port = tmp_path_factory.mktemp("apart"), free_port()
    (home / "sublet.toml").write_text(f'sessions_url = "http://{{session}}.localhost:{port}"\n')
    serving = Serving(home, "--port", str(port))
    serving.start(PATH=f"{programs}:{os.environ['PATH']}")
    site = Site(home, json.loads((home / "run" / "service.json").read_text())["url"])
    context = comes_with(browser, site.url)
    page = context.new_page()
    page.goto(site.way_in())
    yield page
    context.close()
    serving.stop()


def test_vs_code_works_through_its_connector(person: Page) -> None:
    heard: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda _: heard.append(socket.url))

    person.on("websocket", listen)
    ask_for(person, "code", memory="2GiB")
    session = accept(person)
    person.wait_for_url(re.compile(rf"//{session}\.localhost.*folder="), timeout=120 * SECONDS)
    expect(person.locator(".monaco-workbench")).to_be_visible(timeout=120 * SECONDS)
    expect(person.locator(".explorer-folders-view")).to_be_visible(timeout=120 * SECONDS)
    assert heard
    assert all(f"//{session}.localhost" in address for address in heard)
    end(person, session)
