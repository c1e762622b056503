"""Repositories, from a real git server: what is read of them, and what no repository can do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.apps.model.repository import read_address
from sublet.apps.model.tree import archive_of
from sublet.apps.repositories import Repositories, good
from sublet.kernel.errors import BadRepository, BadTree, RepositoryUnreachable, ServiceFull
from sublet.kernel.settings_tables import AppSettings
from sublet.reach.git import Said
from tests.git_server import Entry, GitServer, link, program, submodule

pytestmark = pytest.mark.anyio


def reading(home: Path, git: GitServer, **settings: object) -> Repositories:
    """A reader whose operator trusts that server."""
    return Repositories(AppSettings(private=(f"{git.url}/*",), **settings), home / "fetching")  # type: ignore[arg-type]


async def test_a_repository_is_read_at_the_tip_of_its_branch(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("ann/hello")
    first = repository.commit({"entry.sh": program("#!/bin/sh\necho hello\n"), "a/b.txt": "1\n"}, "Begin")
    files = {
        ".gitattributes": "a/hidden export-ignore\n* text eol=crlf\n",
        "a/hidden": "$Id$\n",
        "entry.sh": program("#!/bin/sh\necho héllo\n"),
        "again": link("a/hidden"),
        "data.bin": b"\0\1",
    }
    second = repository.commit(files, "Say it\n\nat length")
    repository.tag("v1", first)
    reader = reading(tmp_path, git)
    found = await reader.fetch(repository.url)
    assert (found.branch, found.commit, found.subject) == ("main", second, "Say it")
    assert (found.author, found.written) == ("Ann Author <ann@example.org>", "2026-01-02T03:04:05+00:00")
    by_path = {file.path: file for file in found.files}
    assert list(by_path) == sorted(files)
    assert by_path["a/hidden"].content == b"$Id$\n"  # nothing that an attribute says changes what is read
    assert [path for path, file in by_path.items() if file.executable] == ["entry.sh"]
    assert by_path["again"].link == "a/hidden"
    tagged = await reader.fetch(repository.url, "v1")
    assert (tagged.branch, tagged.commit) == ("tags/v1", first)
    older = await reader.fetch(f"{repository.url}/", "main", first.upper())
    assert (older.branch, older.commit) == ("main", first)
    assert await reader.tip(repository.url, "main") == second
    assert await reader.has(repository.url, "main", first)
    assert os.listdir(tmp_path / "fetching") == []


async def test_a_commit_has_to_be_on_the_branch_that_is_named(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("ann/branches")
    repository.commit({"a": "1"})
    other = repository.commit({"a": "2"}, branch="other", orphan=True)
    reader = reading(tmp_path, git)
    with pytest.raises(BadRepository, match="not on the branch main"):
        await reader.fetch(repository.url, "main", other)
    with pytest.raises(BadRepository, match="has no branch elsewhere"):
        await reader.fetch(repository.url, "elsewhere")
    assert not await reader.has(repository.url, "main", other)


@pytest.mark.parametrize(
    "branch",
    [
        "--upload-pack=touch pwned",
        "-c",
        "a..b",
        "a b",
        "a\nb",
        "refs/heads/*",
        "a:b",
        "x.lock",
        "$(id)~1",
        "a@{1}",
        "/a",
    ],
)
async def test_a_branch_that_reads_as_something_else_is_refused(branch: str, git: GitServer, tmp_path: Path) -> None:
    with pytest.raises(BadRepository, match="can't be the name of a branch"):
        await reading(tmp_path, git).fetch(f"{git.url}/ann/none", branch)


async def test_a_shell_in_a_branch_name_stays_a_name(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("ann/shell")
    name = f"x$(touch${{IFS}}{tmp_path}/pwned);`id`&&'"
    made = repository.commit({"a": "1"}, branch=name)
    assert (await reading(tmp_path, git).fetch(repository.url, name)).commit == made
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a": "1", "lib": submodule()}, "submodule"),
        ({"out": link("../../etc/passwd")}, ""),
        ({"out": link("/etc/passwd")}, ""),
        ({"../up": "x"}, "'..'"),
        ({".git/hooks/post-checkout": program("#!/bin/sh\n")}, "'.git'"),
        ({"a/.GiT/config": "[core]"}, "'.git'"),
        ({"a/GIT~1/config": "[core]"}, ""),
        ({"a\nb": "x"}, ""),
        ({"a": Entry(b"x", "100644"), "b\x7f": "x"}, ""),
        ({}, "empty"),
    ],
)
async def test_a_tree_that_could_do_harm_is_refused(
    files: dict[str, str | bytes | Entry], why: str, git: GitServer, tmp_path: Path
) -> None:
    repository = git.repository(f"eve/{len(git.asked)}")
    repository.commit(files)
    with pytest.raises(BadTree, match=why or None):
        archive_of((await reading(tmp_path, git).fetch(repository.url)).files)
    assert os.listdir(tmp_path / "fetching") == []


async def test_what_is_large_is_refused_before_it_fills_the_disk(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("eve/large")
    repository.commit({"noise": os.urandom(3 << 20)})
    with pytest.raises(BadTree, match="more than 1 MiB would have to be fetched"):
        await reading(tmp_path, git, largest_fetch=1 << 20).fetch(repository.url)
    zeros = git.repository("eve/zeros")  # little to fetch, much to unpack
    zeros.commit({f"zeros{number}": bytes(2 << 20) for number in range(4)})
    with pytest.raises(BadTree, match="more than 4 MiB"):
        await reading(tmp_path, git, largest=4 << 20).fetch(zeros.url)
    many = git.repository("eve/many")
    many.commit({f"{number:03}": "x" for number in range(20)})
    with pytest.raises(BadTree, match="more than 10 files"):
        await reading(tmp_path, git, most_files=10).fetch(many.url)
    bomb = git.repository("eve/bomb")  # ten trees, each ten times in the one above: 10^10 files out of eleven objects
    below = bomb.git("hash-object", "-w", "--stdin", stdin=b"x")
    for depth in range(10):
        mode, kind = ("100644", "blob") if not depth else ("040000", "tree")
        below = bomb.git("mktree", stdin="".join(f"{mode} {kind} {below}\t{name}\n" for name in range(10)).encode())
    bomb.git("update-ref", "refs/heads/main", bomb.git("commit-tree", "-m", "Boom", below))
    with pytest.raises(BadTree, match="more than 5000 files"):
        await reading(tmp_path, git).fetch(bomb.url)
    assert os.listdir(tmp_path / "fetching") == []


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/a/b",
        "https://localhost/a/b",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/a/b",
        "https://2130706433/a/b",
        "https://0x7f.1/a/b",
        "https://10.0.0.1/a/b",
        "https://[::ffff:127.0.0.1]/a/b",
        "http://example.org/a/b",
        "file:///etc",
        "github://owner",
        "github://owner/name/tree/main",
        "git@github.com:owner/name",
        "ssh://github.com/owner/name",
        "ext::sh -c id",
        "git://example.org/a",
        "https://me:secret@example.org/a",
        "https://example.org/a/../b",
        "--upload-pack=id",
        "https://",
        "/srv/git/a",
    ],
)
async def test_an_address_that_leads_inside_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(BadRepository) as told:
        await Repositories(AppSettings(), tmp_path).fetch(address)
    assert "secret" not in told.value.message


async def test_only_trusted_addresses_lead_to_private_networks(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("ann/private")
    made = repository.commit({"a": "1"})
    with pytest.raises(BadRepository, match="http: address can't be trusted"):
        await Repositories(AppSettings(repositories=("*",)), tmp_path).fetch(repository.url)
    with pytest.raises(BadRepository, match=r"may come from https://\*\.example\.org"):
        await Repositories(AppSettings(repositories=("https://*.example.org/*",)), tmp_path).fetch("https://a.b/c")
    local = Repositories(AppSettings(private=(f"file://{repository.path.parent}/*",)), tmp_path)
    assert (await local.fetch(f"file://{repository.path}")).commit == made


async def test_a_redirection_is_not_followed(git: GitServer, tmp_path: Path) -> None:
    repository = git.repository("ann/secret")
    repository.commit({"a": "1"})
    git.redirects["/ann/moved"] = repository.url
    with pytest.raises(RepositoryUnreachable, match=r"redirect|302"):
        await reading(tmp_path, git).fetch(f"{git.url}/ann/moved")
    assert not any(path.startswith("/ann/secret") for path in git.asked)


async def test_what_is_not_there_is_told_in_gits_words(git: GitServer, tmp_path: Path) -> None:
    with pytest.raises(RepositoryUnreachable, match="not found"):
        await reading(tmp_path, git).fetch(f"{git.url}/ann/nothing")
    empty = git.repository("ann/empty")
    with pytest.raises(BadRepository, match="names no branch"):
        await reading(tmp_path, git).fetch(empty.url)


async def test_settings_of_the_service_are_not_read(
    git: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = git.repository("ann/plain")
    made = repository.commit({"a": "1"})
    home = tmp_path / "home"
    home.mkdir()
    hostile = f'[url "file:///nowhere"]\n\tinsteadOf = {git.url}\n[core]\n\tsshCommand = touch {tmp_path}/pwned\n'
    (home / ".gitconfig").write_text(hostile)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "http.proxy")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "http://127.0.0.1:1")
    assert (await reading(tmp_path, git).fetch(repository.url)).commit == made


def test_a_disk_of_ours_that_is_full_is_not_the_repositorys_fault() -> None:
    said = Said(128, b"", "fatal: unable to write symref for HEAD: No space left on device")
    with pytest.raises(ServiceFull):
        good(said, read_address("https://github.com/owner/name"))
