"""Someone signs in to a gateway with the code from a mail, and ends another visit on the page of their account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, SECONDS, ZONE
from tests.serving import Serving
from tests.smtp import Mailbox, running_smtp

LOOK = Path(__file__).with_name("look.js").read_text()
SETTINGS = 'mode = "gateway"\n\n[platforms.trial]\nkind = "memory"\n\n'
NO_WAY_ON = "no nav[aria-label]"  # until one is signed in
ANNA = f"anna.{'long' * 12}@example.org"


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> Iterator[str]:
    """The address of a gateway."""
    home = tmp_path_factory.mktemp("gateway")
    (home / "sublet.toml").write_text(SETTINGS + mailbox.toml)
    serving = Serving(home, "--port", "0")
    serving.start()
    try:
        yield json.loads((home / "run" / "service.json").read_text())["url"]
    finally:
        serving.stop()


@pytest.fixture
def contexts(browser: Browser, gateway: str) -> Iterator[list[BrowserContext]]:
    """Two browsers of one person: without and with scripts."""
    view = {"width": DESKTOP[0], "height": DESKTOP[1]}
    opened = [
        browser.new_context(viewport=view, timezone_id=ZONE, base_url=gateway, java_script_enabled=scripts)  # type: ignore[arg-type]
        for scripts in (False, True)
    ]
    yield opened
    for context in opened:
        context.close()


def comes(context: BrowserContext, mailbox: Mailbox, number: int) -> Page:
    """Sign in as a person does: with a wrong code first."""
    page = context.new_page()
    page.set_default_timeout(15 * SECONDS)
    page.goto("/web/account")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("E-mail address").fill(ANNA)
    page.get_by_role("button", name="Send me a code").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Type the code")
    page.get_by_label("Code", exact=True).fill("0000 0000")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This code is wrong")).to_be_visible()
    page.get_by_label("Code", exact=True).fill(mailbox.code(ANNA, number))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(ANNA)
    return page


def looked_at(page: Page, picture: Path, *known: str) -> None:
    """As a careful reader would, at both widths and in both colours; what is known is no objection."""
    for size, colours in ((DESKTOP, "light"), (PHONE, "dark")):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
        page.screenshot(path=picture.with_name(f"{picture.name}-{colours}.png"), full_page=True)
        assert page.evaluate(f"({LOOK})({json.dumps(size == PHONE)})") == list(known), picture.name


def test_a_person_signs_in_by_mail_and_ends_another_visit(
    contexts: list[BrowserContext], mailbox: Mailbox, tmp_path: Path
) -> None:
    plain = comes(contexts[0], mailbox, 1)
    page = comes(contexts[1], mailbox, 2)
    expect(page.get_by_role("row", name="Chrome on Linux")).to_have_count(2)
    looked_at(page, tmp_path / "account")
    other = page.get_by_role("row", name="Chrome on Linux").filter(has_not_text="this one")
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("row", name="Chrome on Linux")).to_have_count(1)
    plain.reload()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.locator("header").get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.locator("summary").click()
    looked_at(page, tmp_path / "sign-in", NO_WAY_ON)
    page.get_by_label("E-mail address").fill("ben@example.org")
    page.get_by_role("button", name="Send me a code").click()
    expect(page.get_by_text("ben@example.org")).to_be_visible()
    looked_at(page, tmp_path / "code", NO_WAY_ON)
