"""A person signs in to a cluster with a second factor on their own page, and what waited goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from sublet.client import Client
from tests.browser.conftest import Site as Served
from tests.browser.conftest import comes_with, looked_at
from tests.real.researchers import Researcher, at
from tests.serving import eventually
from tests.sites import Site, running


@pytest.fixture(scope="module")
def cluster(swept: None) -> Iterator[Site]:
    with running("--nodes", "1") as one:
        yield one


@pytest.fixture(scope="module")
def researcher(cluster: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Researcher]:
    with at(cluster, tmp_path_factory.mktemp("own") / "home") as person:
        yield person


@pytest.fixture(scope="module")
def client(researcher: Researcher) -> Client:
    return researcher.serving.start()


@pytest.fixture
def page(browser: Browser, client: Client, researcher: Researcher) -> Iterator[Page]:
    """The first page, signed in to Sublet itself by a link."""
    home = researcher.serving.home
    served = Served(home, json.loads((home / "run" / "service.json").read_text())["url"])
    context = comes_with(browser, served.url)
    page = context.new_page()
    page.goto(served.way_in())
    yield page
    context.close()


def answer(page: Page, question: str, text: str) -> None:
    page.get_by_label(question).fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_password_and_a_code_are_typed_on_the_page_and_what_waited_goes_on(
    page: Page, client: Client, cluster: Site, researcher: Researcher
) -> None:
    page.get_by_role("link", name=cluster.name, exact=True).click()
    expect(page.get_by_role("button", name="Sign in to")).to_be_visible()
    looked_at(page, "closed")
    page.get_by_role("button", name="Sign in to").click()
    expect(page.get_by_text("You have not met this host before.")).to_be_visible()
    expect(page.get_by_text(cluster.facts["fingerprint"]).first).to_be_visible()
    looked_at(page, "host-key")
    page.get_by_role("button", name="It is the same: continue").click()
    expect(page.get_by_label("Password:")).to_be_focused()
    looked_at(page, "password")
    answer(page, "Password:", cluster.facts["password"])
    answer(page, "Verification code:", "000000")  # a wrong code: the centre asks again
    answer(page, "Password:", cluster.facts["password"])
    code = cluster.fresh_code()
    answer(page, "Verification code:", code)
    expect(page.get_by_role("button", name="Sign out of")).to_be_visible()
    looked_at(page, "open")

    eventually(lambda: client.ask(run=["true"], platform=cluster.name).result == "YES", "an offer", 90)
    offers = client.ask(run=["hostname"], platform=cluster.name, time="2m", memory="64MiB")
    page.get_by_role("button", name="Sign out of").click()
    session = offers[0].accept()
    eventually(lambda: "login" in session.refresh().condition, "a session that waits for a login", 60)
    page.goto(f"/web/sessions/{session.id}")
    page.get_by_role("link", name=f"Sign in to {cluster.name}").click()
    expect(page.get_by_role("link", name=session.name)).to_be_visible()
    looked_at(page, "waiting")
    page.get_by_role("button", name="Sign in to").click()
    answer(page, "Password:", cluster.facts["password"])
    answer(page, "Verification code:", cluster.fresh_code())
    expect(page.get_by_role("button", name="Sign out of")).to_be_visible()
    expect(page.get_by_text("Nothing waits for a login.")).to_be_visible()
    assert session.wait(timeout=120).phase == "COMPLETED"
    log = researcher.serving.log()
    assert "login.opened" in log
    assert not re.search(f"{cluster.facts['password']}|{code}", log)


def test_a_site_that_sends_a_push_is_waited_for(page: Page, cluster: Site, researcher: Researcher) -> None:
    known = ("--ssh", f"UserKnownHostsFile={cluster.facts['known_hosts']}", "--ssh", f"HostKeyAlias={cluster.name}")
    added = researcher.types("system", "add", "pushing", "--host", cluster.host, "--user", "pusher", *known)
    assert added.returncode == 0, added.stderr
    eventually(lambda: "pushing" in researcher.types("platform", "list").stdout, "a platform")
    page.goto("/web/systems/pushing")
    page.get_by_role("button", name="Sign in to").click()
    answer(page, "Password:", cluster.facts["password"])
    expect(page.get_by_text("confirm it there")).to_be_visible()
    cluster.on("login", "sh", "-c", "echo yes >/tmp/push")
    expect(page.get_by_role("button", name="Sign out of")).to_be_visible()
    page.get_by_role("button", name="Sign out of").click()
    expect(page.get_by_role("button", name="Sign in to")).to_be_visible()
