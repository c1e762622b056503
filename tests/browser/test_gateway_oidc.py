"""Someone signs in to a gateway by an OpenID provider of another site, and sets up a second factor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import comes_with, looked_at
from tests.browser.test_gateway import NO_WAY_ON
from tests.openid import trusting_gateway
from tests.openid_server import PASSWORD
from tests.qr_reader import read_path

ANN = "ann@illinois.edu"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """One whose provider is of another site: `localhost` is another to browsers than 127.0.0.1."""
    with trusting_gateway(tmp_path, "localhost") as (url, _):
        yield url


def test_a_person_comes_by_a_provider_and_then_with_a_second_factor(browser: Browser, gateway: str) -> None:
    context = comes_with(browser, gateway)
    page = context.new_page()
    page.goto("/web/account/factor")
    looked_at(page, "login", NO_WAY_ON)
    page.get_by_role("link", name="Sign in with the campus").click()
    page.locator("[name=username]").fill("ann")
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    looked_at(page, "off")
    page.get_by_role("button", name="Set it up").click()
    secret = page.locator("main code").inner_text().replace(" ", "")
    picture = page.get_by_role("img", name="QR code")
    assert f"secret={secret}&" in read_path(picture.locator("path").get_attribute("d") or "")
    looked_at(page, "begun")
    page.get_by_role("textbox", name="Code").fill(pyotp.TOTP(secret).now())
    page.get_by_role("button", name="Turn it on").click()
    recovery = page.locator("pre").inner_text().split()
    assert len(recovery) == 8
    looked_at(page, "on")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in with the campus").click()  # there one is signed in still
    page.get_by_label("Code of your authenticator").fill(recovery[0])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".who .name")).to_have_text(ANN)
    page.goto("/web/account")
    expect(page.get_by_text("A second factor is asked for")).to_be_visible()
    looked_at(page, "account")
    page.get_by_role("button", name="Sign in by the campus too").click()
    expect(page.get_by_role("link", name="Go on to the campus")).to_be_visible()
    looked_at(page, "leaving")
    context.close()
