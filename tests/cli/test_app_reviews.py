"""`sublet app propose`, `review`, `approve` and the rest, typed against a real service and a real git server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.git_server import GitServer, git_server, program
from tests.serving import Serving

MANIFEST = f"""
name: flood
image: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"c" * 64}"}}
run: sh flood.sh
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path / "git") as running:
        yield running


@pytest.fixture
def gateway(type_in: Type, tmp_path: Path, server: GitServer) -> Iterator[Type]:
    """A gateway, and its owner's terminal."""
    home = tmp_path / "home"
    home.mkdir()
    trial = '[platforms.trial]\nkind = "memory"\n'
    apps = f'[apps]\nprivate = ["{server.url}/*"]\nown_review = true\n'
    generic = '[maintainers.cybergisx]\nimage = "docker://ghcr.io/cybergis/x:1"\nkind = "jupyter"\n'
    (home / "sublet.toml").write_text(f'mode = "gateway"\n{apps}{generic}{trial}')
    service = Serving(home)
    service.start()
    try:
        yield type_in
    finally:
        service.stop()


def test_an_app_is_proposed_read_compared_and_decided_on(gateway: Type, server: GitServer) -> None:
    repository = server.repository("ann/flood")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 1\x1b[2J\n")})
    assert "no apps for you yet" in gateway("app", "list").err
    _, offered = gateway("app", "maintainers").out.splitlines()
    assert offered.split() == ["cybergisx", "jupyter", "docker://ghcr.io/cybergis/x:1", "anywhere"]
    made = gateway("app", "propose", repository.url)
    assert (made.code, "It waits for a reviewer" in made.err) == (0, True)
    seen = gateway("app", "review", "flood")
    assert all(words in seen.out for words in ("--- flood.sh", "echo 1\\u001b[2J", repository.tip()))
    assert "\x1b" not in seen.out
    assert gateway("app", "review", "flood@1", "--file", "flood.sh").out == "echo 1\\u001b[2J\n"
    assert gateway("app", "diff", "flood").out.startswith("flood@1 is the first")
    unnumbered = gateway("app", "approve", "flood", "--tree", "0" * 64)
    assert (unnumbered.code, "shows its number" in unnumbered.err) == (2, True)
    stale = gateway("app", "approve", "flood@1", "--tree", "0" * 64)
    assert (stale.code, "is not what you reviewed" in stale.err) == (1, True)
    tree = json.loads(gateway("app", "show", "flood@1", "--json").out)["tree"]
    assert gateway("app", "approve", "flood@1", "--tree", tree).out.startswith("flood@1 is approved")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": "echo 2\n"})
    assert "it has moved on" in gateway("app", "check-upstream", "flood").out
    assert gateway("app", "propose", repository.url, "--quiet").out == "flood@2\n"
    assert "+echo 2" in gateway("app", "diff", "flood").out
    assert gateway("app", "refuse", "flood", "--reason", "No.").out == "flood@2 is refused.\n"
    assert gateway("app", "revoke", "flood", "--why", "Old.").out == "flood@1 is revoked; 0 sessions were told.\n"
    shown = gateway("app", "show", "flood").out
    assert all(words in shown for words in ("nothing is approved", "flood@2", "refused", "revoked", "Old."))
    refused = gateway("app", "propose", "git@github.com:ann/flood")
    assert (refused.code, "no key for ssh" in refused.err) == (2, True)
