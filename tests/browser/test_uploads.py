"""Someone drops a folder on a gateway's page, runs an app on it, and finds the results in a bucket of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import comes_with, looked_at
from tests.browser.test_gateway import post
from tests.git_server import GitServer, git_server
from tests.real import images
from tests.real.container_tools import TOOLS, explain_absence
from tests.serving import Serving
from tests.smtp import Mailbox, running_smtp
from tests.storage_servers import StorageServer, serve_s3

BEN = "ben@example.org"
SETTINGS = """
mode = "gateway"
private_data = true
master_key = "{key}"

[platforms.here]
kind = "local"
cores = 4
memory = "4GiB"

[apps]
own_review = true
private = ["{git}/*"]

[images]
busybox = {{location = "docker-archive:{image}", digest = "{digest}"}}

"""
MANIFEST = {
    "name": "Loud",
    "description": "Says it louder.",
    "container": "busybox",
    "execution_stage": "sh loud.sh",
    "require_upload_data": True,
    "supported_hpc": ["here"],
}
PROGRAM = 'mkdir "$result_folder/loud"; cat "$data_folder"/days/* | tr a-z A-Z >"$result_folder/loud/all.txt"'
LARGE = 20 << 20  # bytes: more than one piece


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("s3") / "data"
    (directory / "mine").mkdir(parents=True)
    with serve_s3(directory) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> Iterator[str]:
    """A gateway that runs containers on this machine, with an approved app that wants a folder."""
    if (missing := [why for tool in TOOLS if (why := explain_absence(tool))]) and len(missing) == len(TOOLS):
        pytest.skip(missing[0])
    top = tmp_path_factory.mktemp("uploading")
    digest = images.docker_archive(top / "image.tar")
    home, key = top / "home", top / "key"
    home.mkdir()
    with git_server(top / "git") as git:
        typed_key(key)
        settings = SETTINGS.format(key=key, git=git.url, image=top / "image.tar", digest=digest)
        (home / "sublet.toml").write_text(settings + mailbox.toml)
        serving = Serving(home, "--port", "0")
        serving.start()
        try:
            furnish(home, git)
            yield json.loads((home / "run" / "service.json").read_text())["url"]
        finally:
            serving.stop()


def typed_key(file: Path) -> None:
    """A master key, as `sublet account key` makes one."""
    from sublet.cli.app import run

    assert run(["account", "key", str(file)]) == 0


def furnish(home: Path, git: GitServer) -> None:
    repository = git.repository("ann/loud")
    repository.commit({"manifest.json": json.dumps(MANIFEST), "loud.sh": PROGRAM})
    version = post(home, "/v1/apps", repository=repository.url)
    assert post(home, "/v1/apps/loud/1/approve", tree=version["tree"])["state"] == "approved", version
    for noun in ("app", "system"):
        post(home, "/v1/rules", effect="allow", who=BEN, noun=noun, name="*")


@pytest.fixture(scope="module")
def context(browser: Browser, gateway: str, mailbox: Mailbox) -> Iterator[BrowserContext]:
    """Ben's browser, signed in."""
    context = comes_with(browser, gateway)
    page = context.new_page()
    page.goto("/web/account")
    page.get_by_label("E-mail address").fill(BEN)
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Code", exact=True).fill(mailbox.code(BEN))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(BEN)
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page on which nothing goes wrong."""
    page, errors = context.new_page(), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "my rain"
    (top / "days").mkdir(parents=True)
    (top / "days" / "mon.txt").write_text("rain\n")
    (top / "days" / "tue.txt").write_text("storm\n")
    return top


def drop(page: Page, zone: str, *paths: Path) -> None:
    """Drag folders and files of this machine onto a part of the page, as a file manager does."""
    page.locator(zone).scroll_into_view_if_needed()
    box = page.locator(zone).bounding_box()
    assert box
    devtools = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data, **at})
    devtools.detach()


def test_from_a_folder_in_the_browser_to_results_in_ones_own_bucket(
    page: Page, folder: Path, bucket: StorageServer
) -> None:
    page.goto("/web/credentials")
    page.get_by_label("For addresses that begin with").fill("s3://mine")
    page.get_by_label("User name or access key").fill(bucket.credential.user)
    page.get_by_label("Password, token or secret key").fill(bucket.credential.secret)
    page.get_by_label("S3 server").fill(f"http://{bucket.address}")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("s3://mine")
    assert bucket.credential.secret not in page.content()
    looked_at(page, "credentials")
    page.goto("/web/apps/loud")
    looked_at(page, "app-with-data")
    page.locator("#drop-data-0-folder").set_input_files(folder)
    expect(page.locator("#data-0")).to_have_value("upload:my-rain/")
    page.get_by_label("Send results to").fill("s3://mine/run1")
    page.get_by_role("button", name="See the offers").click()
    page.get_by_role("button", name="Accept offer 1,").click()
    expect(page.locator("#stages .good")).to_have_text("completed", timeout=120_000)
    results = bucket.directory / "mine" / "run1"
    found = {str(file.relative_to(results)): file.read_text() for file in results.rglob("*") if file.is_file()}
    assert found == {"result/loud/all.txt": "RAIN\nSTORM\n"}
    page.get_by_role("link", name="Send to storage").click()
    page.get_by_label("Send results to").fill("s3://mine/later/")
    page.get_by_label("Which files").fill("result/loud/*")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#sending")).to_contain_text("1 file was sent to s3://mine/later/")
    assert (bucket.directory / "mine" / "later" / "all.txt").read_text() == "RAIN\nSTORM\n"
    looked_at(page, "send-to-storage")
    page.get_by_label("Send results to").fill("s3://others/")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("others")


def test_a_folder_that_is_dropped_is_listed_kept_and_removed(page: Page, folder: Path) -> None:
    folder = folder.rename(folder.with_name("dropped"))
    (folder / "large.bin").write_bytes(b"x" * LARGE)
    page.goto("/web/uploads")
    drop(page, ".drop", folder)
    expect(page.get_by_role("row", name="upload:dropped/")).to_contain_text("3")
    looked_at(page, "uploads")
    page.get_by_role("button", name="Keep dropped for 30 days").click()
    page.get_by_role("link", name="upload:dropped/").click()
    expect(page.get_by_role("row", name="large.bin")).to_contain_text("whole")
    looked_at(page, "upload")
    page.goto("/web/uploads")
    page.get_by_role("button", name="Remove dropped").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Remove dropped?")
    page.get_by_role("main").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Data")
    expect(page.get_by_role("row", name="upload:dropped/")).to_have_count(0)


def test_an_upload_that_breaks_off_in_the_browser_goes_on_where_it_stopped(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(b"x" * LARGE)
    sent: list[int] = []

    def cut(route: object) -> None:
        sent.append(int(route.request.headers["upload-offset"]))  # type: ignore[attr-defined]
        if len(sent) == 2:
            route.abort()  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    page.goto("/web/uploads")
    page.route("**/web/tus/*", lambda route: cut(route) if route.request.method == "PATCH" else route.continue_())
    page.locator("#drop-new-files").set_input_files(file)
    expect(page.get_by_role("row", name="upload:large.bin/")).to_contain_text("20", timeout=120_000)
    assert sent == [0, 8 << 20, 8 << 20, 16 << 20]
