"""Sessions whose names, words, variables, data, files and output were written to do harm: all of it stays text."""

from __future__ import annotations

import io
import tarfile
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.entry import issue_code
from tests.api.conftest import Callers
from tests.api.test_again import run

pytestmark = pytest.mark.anyio
SECRET = "what only the service's own user may read"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    """This machine: what runs here leaves real files."""
    return {"here": {"kind": "local"}}


def words(touched: Path) -> list[str]:
    """Names and values that a shell would act upon."""
    return [
        f"$(touch {touched})",
        f"`touch {touched}`",
        f"x; touch {touched} #",
        f"'; touch {touched}; '",
        f"\n{touched}",
    ]


async def test_names_words_and_variables_are_never_a_shells(ann: httpx2.AsyncClient, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    brought = tmp_path / f"in $(touch {tmp_path.name}) ; x"
    brought.write_text("brought")
    hurt = words(touched)
    values = {f"V{number}": word for number, word in enumerate(hurt)}
    names = {f"A;touch {touched};B": "1", f"$(touch {touched})": "2", "BASH_FUNC_ls%%": f"() {{ touch {touched}; }}"}
    script = 'for word in "$@"; do printf "%s\\0" "$word"; done; env -0 > env; cat data/*/* > brought'
    id = await run(
        ann,
        run=["sh", "-c", script, "sh", *hurt],
        env=values | names,
        name=f"x;$(touch {touched})",
        data=[{"name": f"d $(touch {touched})", "location": f"file://{quote(str(brought))}"}],
        time="5m",
    )
    printed = (await ann.get(f"/v1/sessions/{id}/logs")).content
    assert printed.decode().split("\0")[:-1] == hurt
    seen = dict(
        one.split("=", 1) for one in (await ann.get(f"/v1/sessions/{id}/results/env")).text.split("\0") if "=" in one
    )
    assert {name: seen[name] for name in values} == values
    assert (await ann.get(f"/v1/sessions/{id}/results/brought")).text == "brought"
    assert not touched.exists()
    assert not (tmp_path / tmp_path.name).exists()


async def test_no_path_and_no_link_leads_out_of_a_session(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    other = await run(bob, run=["sh", "-c", f"printf '{SECRET}' > secret"], time="5m")
    script = """
        printf mine > f; mkdir d; ln -s "$1/secret" link; ln -s "$1" d/folder; ln -s ../../.. up; mkfifo pipe
        printf odd > "$2"; printf odd > "$(printf 'a\\r\\nset-cookie: x=1')"
    """
    odd = "x\".html'$(id)"
    id = await run(ann, run=["sh", "-c", script, "sh", str(tmp_path), odd], time="5m")
    listed = [file["path"] for file in (await ann.get(f"/v1/sessions/{id}/results")).json()["items"]]
    assert {"f", odd, "a\r\nset-cookie: x=1"} <= set(listed)
    assert {"link", "d/folder", "d/folder/secret", "up", "pipe"} & set(listed) == set()
    home = service.settings.home
    ways = [
        "link",
        "d/folder/secret",
        "up/sublet.db",
        "../stdout",
        "..%2fstdout",
        "%2e%2e/%2e%2e/%2e%2e/sublet.db",
        "..%252f..%252fsublet.db",
        "f/../../job.json",
        f"../../{other}/work/secret",
        "%2fetc%2fpasswd",
        f"{quote(str(home / 'sublet.db'), safe='')}",
        "//etc/passwd",
        "f%00",
        "..\\..\\sublet.db",
        "pipe",
    ]
    for way in ways:
        answer = await ann.get(f"/v1/sessions/{id}/results/{way}")
        assert answer.status_code == 404, (way, answer.status_code)
        assert SECRET not in answer.text
    for file in (odd, "a\r\nset-cookie: x=1"):
        answer = await ann.get(f"/v1/sessions/{id}/results/{quote(file, safe='')}")
        assert (answer.status_code, answer.text) == (200, "odd")
        assert "set-cookie" not in answer.headers
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"] == "application/octet-stream"
    packed = (await ann.get(f"/v1/sessions/{id}/archive")).content
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
        assert all(member.isfile() and member.name.startswith(f"{id[:8]}/") for member in members)
        assert not any(".." in member.name.split("/") for member in members)
        assert not any(SECRET.encode() in (archive.extractfile(member) or io.BytesIO()).read() for member in members)


async def test_what_sessions_print_leave_and_are_called_is_text_on_every_page(
    ann: httpx2.AsyncClient, callers: Callers, service: Service
) -> None:
    visitor = await callers.with_headers()
    await visitor.get("/web/login", params={"code": issue_code(service, Person("ann"))})
    _, secret = await service.people.tokens.make_token(Person("ann"))
    owner = await callers.with_headers({"authorization": f"Bearer {secret}"})
    script = 'printf "%s\\033]0;x\\007" "$1"; printf "%s" "$1" >&2; printf x > "$2"; exit 3'
    id = await run(owner, run=["sh", "-c", script, "sh", EVIL, EVIL.replace("/", "-")], time="5m", name=EVIL[:60])
    for path in (
        "/web/",
        "/web/sessions",
        f"/web/sessions/{id}",
        f"/web/sessions/{id}/log",
    ):
        answer = await visitor.get(path)
        assert answer.status_code == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            assert "<script>alert" not in answer.text, path
            assert "<img src=x" not in answer.text, path
    assert EVIL.replace("/", "-") in unescape((await visitor.get(f"/web/sessions/{id}")).text)
    log = await visitor.get(f"/web/sessions/{id}/log")
    assert "html" not in log.headers["content-type"]
    assert log.headers["x-content-type-options"] == "nosniff"
    said = await owner.get(f"/v1/sessions/{id}/logs")
    assert "html" not in said.headers["content-type"]
