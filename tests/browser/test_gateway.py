"""Someone signs in to a gateway with the code from a mail, ends another visit, and runs an app in its form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from sublet.client import Client
from sublet.notices.calls.hooks import add as add_hook
from tests.browser.conftest import Socket, comes_with, looked_at
from tests.git_server import GitServer, Repository, program
from tests.serving import Serving
from tests.smtp import Mailbox, running_smtp

SETTINGS = """
mode = "gateway"

[platforms.trial]
kind = "memory"
takes = "0.2s"

[platforms.other]
kind = "memory"

[apps]
own_review = true
private = ["{git}/*"]

"""
NO_WAY_ON = "no nav[aria-label]"  # until one is signed in
ANNA = f"anna.{'long' * 12}@example.org"
BEN = "ben@example.org"
MANIFEST = f"""
name: flood
description: Where the water goes, year by year, as far as the rain of each of them is known.
estimated_runtime: about ten minutes
image: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"b" * 64}"}}
run: sh flood.sh
parameters:
  years: {{type: integer, minimum: 0, maximum: 50, default: 10, unit: a, title: How many years}}
  rate: {{type: number, minimum: 0, default: 0.5, description: How quickly it seeps away}}
  label: {{type: string, default: here, maxLength: 40, pattern: "^[a-z]*$"}}
  fast: {{type: boolean, default: true, title: Skip what is dry}}
  model: {{enum: [diffusive wave, {"w" * 40}], default: diffusive wave}}
resources:
  nodes: 1
  tasks: {{min: 1, max: 4, default: 2}}
  memory_per_core: 1GiB-4GiB
  time: 10m-2h
data:
  rain: {{description: what fell}}
"""


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture(scope="module")
def flood(git: GitServer) -> Repository:
    """An app's repository."""
    repository = git.repository("ann/flood")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 1\n"), "README.md": "to the right " * 100})
    return repository


def furnish(home: Path, repository: Repository) -> None:
    """An approved app, which Ben may run; Anna is an operator."""
    version = post(home, "/v1/apps", repository=repository.url)
    assert post(home, "/v1/apps/flood/1/approve", tree=version["tree"])["state"] == "approved"
    assert post(home, "/v1/people", address=ANNA, role="operator")["role"] == "operator"
    for noun in ("app", "system"):
        post(home, "/v1/rules", effect="allow", who=BEN, noun=noun, name="*")


def post(home: Path, path: str, **said: Any) -> dict[str, Any]:
    """Ask the service by its own socket, as its owner."""
    connection = Socket(home / "run" / "sublet.sock")
    connection.request("POST", path, json.dumps(said), {"content-type": "application/json"})
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gateway's own directory."""
    return tmp_path_factory.mktemp("gateway")


@pytest.fixture(scope="module")
def gateway(home: Path, mailbox: Mailbox, git: GitServer, flood: Repository) -> Iterator[str]:
    """The address of a gateway."""
    (home / "sublet.toml").write_text(SETTINGS.replace("{git}", git.url) + mailbox.toml)
    serving = Serving(home, "--port", "0")
    serving.start()
    try:
        furnish(home, flood)
        yield json.loads((home / "run" / "service.json").read_text())["url"]
    finally:
        serving.stop()


@pytest.fixture
def contexts(browser: Browser, gateway: str) -> Iterator[list[BrowserContext]]:
    """Two browsers of one person: without and with scripts."""
    opened = [comes_with(browser, gateway, java_script_enabled=scripts) for scripts in (False, True)]
    yield opened
    for context in opened:
        context.close()


def comes(context: BrowserContext, mailbox: Mailbox, number: int, name: str = ANNA) -> Page:
    """Sign in as a person does: with a wrong code first."""
    page = context.new_page()
    page.goto("/web/account")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("E-mail address").fill(name)
    page.get_by_role("button", name="Send me a code").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Type the code")
    page.get_by_label("Code", exact=True).fill("0000 0000")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This code is wrong")).to_be_visible()
    page.get_by_label("Code", exact=True).fill(mailbox.code(name, number))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    return page


def test_a_person_signs_in_by_mail_and_ends_another_visit(contexts: list[BrowserContext], mailbox: Mailbox) -> None:
    plain = comes(contexts[0], mailbox, 1)
    page = comes(contexts[1], mailbox, 2)
    expect(page.get_by_role("row", name="Chrome on Linux")).to_have_count(2)
    looked_at(page, "account")
    other = page.get_by_role("row", name="Chrome on Linux").filter(has_not_text="this one")
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign out Chrome on Linux?")
    looked_at(page, "confirm")
    page.get_by_role("main").get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("row", name="Chrome on Linux")).to_have_count(1)
    plain.reload()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto("/web/people")
    page.get_by_label("E-mail address").fill("dora@example.org")
    page.get_by_role("button", name="Add").click()
    page.locator("summary", has_text="dora").click()
    looked_at(page, "people")
    page.get_by_label("Why dora@example.org is blocked").fill("She left.")
    another = contexts[1].new_page()
    another.goto("/web/people")
    another.get_by_label("E-mail address").fill("emil@example.org")
    another.get_by_role("button", name="Add").click()
    another.get_by_label("Role of dora@example.org", exact=True).select_option("reviewer")
    another.get_by_role("button", name="Set the role of dora@example.org").click()
    expect(page.get_by_role("row", name="emil@example.org")).to_be_visible(timeout=20_000)
    expect(page.get_by_label("Role of dora@example.org", exact=True)).to_have_value("reviewer", timeout=20_000)
    expect(page.get_by_label("Why dora@example.org is blocked")).to_have_value("She left.")
    another.goto("/web/platforms")
    expect(another.get_by_role("row", name="trial")).to_contain_text("working")
    looked_at(another, "platforms")
    another.close()
    page.get_by_role("button", name="Block dora@example.org").click()
    expect(page.get_by_role("row", name="dora@example.org")).to_contain_text("She left.")
    looked_at(page, "blocked")
    page.goto("/web/audit")
    expect(page.get_by_role("row", name="sign-in.ask").first).not_to_contain_text("refused")
    looked_at(page, "audit")
    page.goto("/web/apps/flood/1")
    looked_at(page, "version")
    page.locator("header").get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.locator("summary").click()
    looked_at(page, "sign-in", NO_WAY_ON)
    page.get_by_label("E-mail address").fill("carl@example.org")
    page.get_by_role("button", name="Send me a code").click()
    expect(page.get_by_text("carl@example.org")).to_be_visible()
    looked_at(page, "code", NO_WAY_ON)


def test_a_person_runs_an_app_in_its_form_and_reads_its_log(contexts: list[BrowserContext], mailbox: Mailbox) -> None:
    page = comes(contexts[1], mailbox, 1, BEN)
    page.get_by_role("link", name="Apps", exact=True).click()
    page.get_by_role("link", name="flood", exact=True).click()
    expect(page.get_by_label("How many years")).to_be_visible()
    page.get_by_text("Scheduler options").click()
    expect(page.get_by_label("Queue")).to_have_count(0)
    looked_at(page, "form")
    page.get_by_label("Constraint").fill("gpu")
    page.get_by_label("How many years").fill("0")
    page.get_by_label("Skip what is dry").uncheck()
    page.get_by_label("label", exact=True).fill("")
    page.get_by_label("rain", exact=True).fill("globus://endpoint/rain.nc")
    page.get_by_label("Where", exact=True).select_option("trial")
    page.get_by_role("button", name="See the offers").click()
    expect(page.locator("#data-0-wrong")).to_contain_text("Globus")
    expect(page.get_by_label("How many years")).to_have_value("0")
    expect(page.get_by_label("Skip what is dry")).not_to_be_checked()
    looked_at(page, "no")
    page.get_by_label("rain", exact=True).fill("")
    page.get_by_role("button", name="See the offers").click()
    page.get_by_role("button", name="Accept offer 1,").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("flood")
    expect(page.locator("#stdout")).to_contain_text("trial is a platform that plays")
    expect(page.locator("#stages .good")).to_have_text("completed")
    ran = page.url
    page.get_by_role("link", name="Sessions", exact=True).click()
    page.get_by_role("link", name="Notifications").click()
    page.get_by_label("failed").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("row", name=BEN)).to_contain_text("failed")
    looked_at(page, "told")
    page.goto(ran)
    page.get_by_role("link", name="Ask again").click()
    expect(page.get_by_label("How many years")).to_have_value("0")
    expect(page.get_by_label("Where", exact=True)).to_have_value("trial")
    expect(page.get_by_label("Constraint")).to_have_value("gpu")


def test_an_operator_cancels_others_sessions_drains_a_platform_and_pledges_a_part_on_pages(
    contexts: list[BrowserContext], mailbox: Mailbox, gateway: str, home: Path
) -> None:
    token = post(home, "/v1/tokens", person=BEN)["token"]
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    window = f"{start.isoformat()}/{(start + timedelta(hours=1)).isoformat()}"
    client = Client(gateway, token)
    image = {"image": "docker://busybox", "platform": "other", "time": "10m", "start": window}
    theirs = [client.ask(name=name, **image)[0].accept() for name in ("w" * 80, "small")]
    page = comes(contexts[1], mailbox, len(mailbox.to(ANNA)) + 1)
    page.goto("/web/people")
    page.get_by_role("link", name=f"sessions of {ANNA}").click()
    expect(page.get_by_text("No session matches.")).to_be_visible()
    page.get_by_label("Person").fill(BEN)
    page.get_by_label("Phase").select_option("active")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("row", name=BEN)).to_have_count(2)
    looked_at(page, "operate")
    page.set_viewport_size({"width": 1280, "height": 900})
    brand, account = (page.locator(f".top {part}").bounding_box() for part in (".brand", ".who"))
    assert brand
    assert account
    assert abs(brand["y"] + brand["height"] / 2 - account["y"] - account["height"] / 2) < 2, "in one row"
    page.get_by_role("link", name="Cancel these…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 2 sessions?")
    looked_at(page, "operate-cancel")
    page.get_by_label("Reason").fill("The disks are full.")
    page.get_by_role("button", name="Yes, cancel 2 sessions").click()
    expect(page.get_by_role("status")).to_have_text("2 sessions are being cancelled.")
    assert {client.session(one.id).wait(60).view.end.detail for one in theirs} == {"The disks are full."}
    page.goto(f"/web/sessions/{theirs[0].id}")
    expect(page.get_by_text(f"is for {BEN} alone")).to_be_visible()
    looked_at(page, "session-of-another")
    page.goto("/web/platforms/other")
    looked_at(page, "platform")
    page.get_by_label("Reason").fill("New disks")
    page.get_by_role("button", name="Drain other").click()
    expect(page.get_by_text("draining", exact=True)).to_be_visible()
    looked_at(page, "platform-draining")
    page.goto("/web/")
    expect(page.get_by_text("other is being drained by its operator: New disks.")).to_be_visible()
    page.goto("/web/platforms/other")
    page.get_by_role("button", name="Let it be used again").click()
    expect(page.get_by_role("button", name="Drain other")).to_be_visible()
    fields = {"Name": "courses", "Cores": "4", "Memory": "2GiB", "In force": "nights, weekends", "Title": "w" * 60}
    for label, text in fields.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Add the pledge").click()
    pledge = page.get_by_role("row", name="courses")
    expect(pledge).to_contain_text("nobody yet")
    looked_at(page, "platform-pledges")
    pledge.get_by_role("link", name="Add a rule").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("courses")
    page.get_by_label("Who").fill("*@lab.org")
    page.get_by_role("button", name="Add the rule").click()
    page.goto("/web/platforms/other")
    expect(pledge).to_contain_text("allow *@lab.org")
    pledge.get_by_role("link", name="Change").click()
    expect(page.get_by_label("In force", exact=True)).to_have_value("nights, weekends")
    page.get_by_label("Cores", exact=True).fill("6")
    page.get_by_role("button", name="Save the pledge").click()
    expect(pledge.get_by_role("cell", name="6", exact=True).first).to_be_visible()
    pledge.get_by_role("button", name="Remove the pledge courses").click()
    page.get_by_role("button", name="Remove the pledge").click()
    expect(page.get_by_text("Nothing of other is pledged.")).to_be_visible()


def test_open_pages_follow_what_others_do_and_keep_what_is_typed(
    contexts: list[BrowserContext], mailbox: Mailbox, gateway: str, home: Path, flood: Repository
) -> None:
    first = comes(contexts[1], mailbox, len(mailbox.to(ANNA)) + 1)
    pages = {
        name: contexts[1].new_page() for name in ("platforms/other", "hooks", "audit?action=token.make", "apps/flood")
    }
    for name, page in pages.items():
        page.goto(f"/web/{name}")
    platform, hooks, audit, app = pages.values()
    platform.get_by_label("Reason").fill("New disks")
    hooks.get_by_label("For how long").fill("7d")
    entries = audit.get_by_role("row").count()
    own = Client(gateway, post(home, "/v1/tokens", person=ANNA, note="followed")["token"])
    own.do(add_hook(f"mailto:{ANNA}"))
    client = Client(gateway, post(home, "/v1/tokens", person=BEN)["token"])
    wish = {"image": "docker://busybox", "platform": "other", "time": "10m", "start": "tomorrow"}
    session = client.ask(name="followed", **wish)[0].accept()
    expect(first.get_by_role("row", name="followed")).to_be_visible()
    expect(first.locator("#announced")).to_have_text("Your account was updated.")
    expect(platform.get_by_role("row", name="followed")).to_be_visible()
    expect(platform.get_by_label("Reason")).to_have_value("New disks")
    expect(hooks.get_by_role("row", name=ANNA)).to_be_visible()
    expect(hooks.get_by_label("For how long")).to_have_value("7d")
    expect(audit.get_by_role("row")).not_to_have_count(entries)
    flood.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 2\n")})
    post(home, "/v1/apps", repository=flood.url)
    expect(app.get_by_role("link", name="flood@2")).to_be_visible()
    post(home, "/v1/platforms/other/drain", reason="Its fans")
    expect(platform.get_by_text("Its fans")).to_be_visible()
    session.cancel()
