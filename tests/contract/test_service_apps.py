"""Apps: proposed from a real git server, decided on by people, and looked at again before they are run."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sublet.apps.model.app import VersionState
from sublet.apps.run_requests import AppWish
from sublet.booking.model.request import Data
from sublet.booking.model.session import EndKind
from sublet.doors.cybergis.roadmap import read_seed
from sublet.kernel.errors import (
    AppFromElsewhere,
    AppTaken,
    BadManifest,
    NotAsReviewed,
    NotDecidable,
    NotFound,
    NotYours,
    OwnProposal,
    ReviewersOnly,
)
from sublet.movers.port import SignsIn
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.proposals import ANN, BOB, DIGEST, MANIFEST, REVIEWER, approved, begun, trusting
from tests.contract.services import OPERATOR, allow, over, serving
from tests.git_server import GitServer, Repository, program
from tests.real.images import oci_archive
from tests.real.notebooks import notebook
from tests.registries import registry

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(git: GitServer) -> Repository:
    """A repository with an app in it."""
    return begun(git)


@pytest.fixture
async def service(git: GitServer, tmp_path: Path) -> AsyncIterator[Service]:
    """A gateway that trusts that server."""
    async with trusting(git, tmp_path / "home") as running:
        yield running


async def audited(service: Service, action: str) -> list[dict[str, object]]:
    """What the audit log has of an action."""
    return [dict(entry.detail) for entry in await service.store.read(lambda tx: tx.audit.list(action=action))]


async def test_a_proposal_pins_all_that_will_run(service: Service, repository: Repository) -> None:
    version = await service.apps.proposing.propose(ANN, repository.url, host="192.0.2.1")
    assert (version.name, version.state, version.branch) == ("hello_world@1", VersionState.PROPOSED, "main")
    assert (version.commit, version.author) == (repository.tip(), "Ann Author <ann@example.org>")
    assert (version.image, version.digest) == ("docker://ghcr.io/ann/hello", DIGEST)
    archive = service.apps.catalogue.archives / f"{version.tree}.tar"
    assert [oct(path.stat().st_mode)[-3:] for path in (archive, archive.parent)] == ["600", "700"]
    assert (await audited(service, "app.propose"))[0]["tree"] == version.tree
    assert await service.apps.proposing.propose(ANN, repository.url) == version  # asking again is the same
    seen = await service.apps.reviewing.review(version.name, REVIEWER)
    assert [file.path for file in seen.files] == ["hello.sh", "sublet.yaml"]
    assert seen.base is None


async def test_two_repositories_with_one_name_are_not_versions_of_one_app(
    service: Service, repository: Repository, git: GitServer
) -> None:
    first = await service.apps.proposing.propose(ANN, repository.url)
    files = {"sublet.yaml": MANIFEST, "hello.sh": program("from mpi4py import MPI  # elsewhere\n")}
    other = git.repository("ann/another")
    other.commit(files, "Begin")
    with pytest.raises(AppFromElsewhere, match=f"{first.app} already exists, from {repository.url}") as refused:
        await service.apps.proposing.propose(ANN, other.url)
    assert f"--name {first.app}" in refused.value.advice
    assert (await service.apps.proposing.propose(ANN, other.url, name="another")).name == "another@1"
    moved = await service.apps.proposing.propose(ANN, other.url, name=first.app)
    assert moved.number == 2
    assert any("another repository than hello_world@1" in finding for finding in moved.findings)
    assert any("it needs MPI: it uses mpi4py (hello.sh:" in finding for finding in moved.findings)
    assert any("here no platform has Slurm" in finding for finding in moved.findings), "whether it is had here"


async def test_exactly_what_was_seen_is_approved(service: Service, repository: Repository) -> None:
    version = await service.apps.proposing.propose(ANN, repository.url, name="hello")
    for person in (ANN, BOB):
        with pytest.raises(ReviewersOnly):
            await service.apps.reviewing.approve("hello@1", person, version.tree)
    for other in ("0" * 64, "", version.tree[:15], version.tree + "0"):
        with pytest.raises(NotAsReviewed):
            await service.apps.reviewing.approve("hello@1", REVIEWER, other)
    done = await service.apps.reviewing.approve("hello@1", REVIEWER, version.tree, "fine")
    assert (done.state, done.decided_by, done.why) == (VersionState.APPROVED, REVIEWER.name, "fine")
    with pytest.raises(NotDecidable, match="can't be approved"):
        await service.apps.reviewing.approve("hello@1", REVIEWER, version.tree)
    entry = (await audited(service, "app.approve"))[0]
    assert (entry["commit"], entry["digest"], entry["why"]) == (version.commit, DIGEST, "fine")


async def test_a_reviewer_does_not_approve_their_own(git: GitServer, repository: Repository, tmp_path: Path) -> None:
    apps: dict[str, object] = {"private": [f"{git.url}/*"]}
    async with serving(tmp_path / "one", mode="gateway", apps=apps, loop=False) as service:
        version = await service.apps.proposing.propose(REVIEWER, repository.url, name="own")
        with pytest.raises(OwnProposal):
            await service.apps.reviewing.approve("own@1", REVIEWER, version.tree)
        operators = await service.apps.proposing.propose(OPERATOR, repository.url, name="theirs")
        with pytest.raises(OwnProposal):
            await service.apps.reviewing.approve("theirs@1", OPERATOR, operators.tree)
    async with serving(tmp_path / "two", mode="gateway", apps={**apps, "own_review": True}, loop=False) as service:
        version = await service.apps.proposing.propose(REVIEWER, repository.url, name="own")
        assert (await service.apps.reviewing.approve("own@1", REVIEWER, version.tree)).state is VersionState.APPROVED


async def test_an_update_is_reviewed_by_what_is_new(service: Service, repository: Repository) -> None:
    await approved(service, repository)
    changed = MANIFEST.replace("max: 4", "max: 8")
    repository.commit({"sublet.yaml": changed, "hello.sh": "echo <b>bye</b>\n", "new.bin": b"\0"}, "Change")
    with pytest.raises(AppTaken):
        await service.apps.proposing.propose(BOB, repository.url, name="hello")
    second = await service.apps.proposing.propose(ANN, repository.url, name="hello")
    assert second.number == 2
    assert any("new.bin" in finding and "binary" in finding for finding in second.findings)
    seen = await service.apps.reviewing.review("hello@2", REVIEWER)
    assert seen.base is not None
    assert seen.base.number == 1
    told = {change.path: change for change in seen.changes}
    assert {path: change.how for path, change in told.items()} == {
        "hello.sh": "changed",
        "new.bin": "added",
        "sublet.yaml": "changed",
    }
    assert "-(may be executed)" in told["hello.sh"].diff
    assert "+echo <b>bye</b>" in told["hello.sh"].diff
    assert '+      "max": 8,' in seen.manifest_diff
    current = (await service.apps.catalogue.app("hello", REVIEWER)).current
    assert current is not None
    assert current.number == 1  # until the new one is approved
    await service.apps.reviewing.refuse("hello@2", REVIEWER, "It shouts.")
    with pytest.raises(NotDecidable):
        await service.apps.reviewing.approve("hello@2", REVIEWER, second.tree)
    assert (await service.apps.catalogue.version_of("hello@2", ANN)).why == "It shouts."


async def test_people_see_what_they_may_run(service: Service, repository: Repository) -> None:
    await service.apps.proposing.propose(ANN, repository.url, name="hello")
    assert [one.app.name for one in await service.apps.catalogue.apps(ANN)] == ["hello"]
    assert [one.app.name for one in await service.apps.catalogue.apps(REVIEWER)] == ["hello"]
    assert await service.apps.catalogue.apps(BOB) == []
    with pytest.raises(NotFound):
        await service.apps.reviewing.review("hello@1", BOB)
    await allow(service, BOB.name, noun="app", name="hello")
    assert await service.apps.catalogue.apps(BOB) == []  # nothing of it is approved yet
    version = await service.apps.catalogue.version_of("hello@1", REVIEWER)
    await service.apps.reviewing.approve("hello@1", REVIEWER, version.tree)
    assert [one.app.name for one in await service.apps.catalogue.apps(BOB)] == ["hello"]
    repository.commit({"sublet.yaml": MANIFEST, "hello.sh": "echo 2\n"})
    await service.apps.proposing.propose(ANN, repository.url, name="hello")
    assert [one.number for one in (await service.apps.catalogue.app("hello", BOB)).versions] == [1]
    with pytest.raises((NotYours, NotFound)):
        await service.apps.reviewing.review("hello@2", BOB)


async def test_what_happens_upstream_changes_nothing_but_is_told(service: Service, repository: Repository) -> None:
    tree = await approved(service, repository)
    assert (await service.apps.proposing.check_upstream("hello", REVIEWER)).words == "it is where it was"
    repository.commit({"sublet.yaml": MANIFEST, "hello.sh": "rm -rf ~\n"}, "Moved on")
    assert (await service.apps.proposing.check_upstream("hello", REVIEWER)).words == "it has moved on"
    repository.commit({"sublet.yaml": MANIFEST, "hello.sh": "rm -rf /\n"}, "Forced", orphan=True)
    assert "rewritten" in (await service.apps.proposing.check_upstream("hello", REVIEWER)).words
    seen = await service.apps.reviewing.review("hello@1", REVIEWER)
    assert seen.version.tree == tree
    assert {file.path: file.content for file in seen.files}["hello.sh"] == b"echo hello\n"


async def test_a_moved_tag_is_told_too(service: Service, repository: Repository) -> None:
    repository.tag("v1", repository.tip())
    version = await service.apps.proposing.propose(ANN, repository.url, branch="v1", name="tagged")
    assert version.branch == "tags/v1"
    repository.tag("v1", repository.commit({"sublet.yaml": MANIFEST, "hello.sh": "x"}, orphan=True, branch="other"))
    assert "rewritten" in (await service.apps.proposing.check_upstream("tagged@1", REVIEWER)).words


async def test_an_image_that_is_not_pinned_keeps_an_app_from_being_approved(service: Service, git: GitServer) -> None:
    simple = git.repository("ann/simple")
    simple.commit({"entry.sh": program("#!/bin/sh\n"), "params.json": '{"a": 1}'})
    bare = await service.apps.proposing.propose(ANN, simple.url, name="bare")
    assert any("no image" in finding for finding in bare.findings)
    with pytest.raises(NotDecidable, match="which image"):
        await service.apps.reviewing.approve("bare@1", REVIEWER, bare.tree)
    generic = await service.apps.proposing.propose(ANN, simple.url, name="generic", maintainer="python")
    assert (generic.image, generic.digest) == ("docker://ghcr.io/sublet/python", DIGEST)
    assert generic.as_manifest().systems == ("trial",)
    await service.apps.reviewing.approve("generic@1", REVIEWER, generic.tree)
    with pytest.raises(NotFound, match="maintainer"):
        await service.apps.proposing.propose(ANN, simple.url, maintainer="nobody")
    broken = git.repository("ann/broken")
    broken.commit({"sublet.yaml": "name: x\nimage: [\n"})
    with pytest.raises(BadManifest, match=r"sublet\.yaml:"):
        await service.apps.proposing.propose(ANN, broken.url)
    local = git.repository("ann/local-image")
    local.commit({"sublet.yaml": MANIFEST.replace("docker://ghcr.io/ann/hello", "/etc/passwd.sif")})
    with pytest.raises(BadManifest):
        await service.apps.proposing.propose(ANN, local.url)


async def test_code_without_a_manifest_is_what_its_maintainers_kind_makes_of_it(
    service: Service, git: GitServer
) -> None:
    code = git.repository("ann/flood-map")
    text = json.dumps(notebook("years = 1", "print(years)"))
    code.commit({"flood.ipynb": text, "main.py": "print(1)\n"})
    with pytest.raises(BadManifest, match=r"the kind jupyter would run flood\.ipynb; .* python would run main\.py"):
        await service.apps.proposing.propose(ANN, code.url)
    with pytest.raises(NotFound) as nobody:
        await service.apps.proposing.propose(ANN, code.url, maintainer="nobody")
    assert "cybergisx (kind jupyter)" in nobody.value.advice
    version = await service.apps.proposing.propose(ANN, code.url, maintainer="cybergisx")
    assert (version.name, version.image, version.digest) == ("flood-map@1", "docker://ghcr.io/sublet/python", DIGEST)
    assert "flood.ipynb:1: warning: there is no manifest: a maintainer of the kind jupyter" in version.findings[0]
    manifest = version.as_manifest()
    assert (manifest.notebook, manifest.systems, manifest.image.name) == ("flood.ipynb", ("trial",), "cybergisx")
    program = await service.apps.proposing.propose(ANN, code.url, name="program", maintainer="python")
    assert program.as_manifest().stages[0].argv == ("python3", "main.py")
    for one in (version, program):
        await service.apps.reviewing.approve(one.name, REVIEWER, one.tree)
        await allow(service, BOB.name, noun="app", name=one.app)
    await allow(service, BOB.name)
    for maintainer, app in (("cybergisx", "flood-map"), ("python", "program")):
        wish = read_seed({"maintainer": maintainer, "file": code.url, "app": {"years": 2}})
        assert (await service.apps.runs.runnable(BOB, wish)).app == app
    with pytest.raises(NotFound, match="flood-map@1 was not approved for the maintainer python"):
        await service.apps.runs.runnable(BOB, read_seed({"maintainer": "python", "file": "flood-map"}))
    for person, names in ((BOB, ["flood-map"]), (Person("eve@example.net"), [])):
        offered = {one.name: one for one in await service.apps.maintainers.maintainers(person)}
        assert {name: one.kind for name, one in offered.items()} == {"python": "python", "cybergisx": "jupyter"}
        assert offered["cybergisx"].apps == dict.fromkeys(names, code.url)
    wrong = await service.apps.runs.ask_app(BOB, AppWish(app="flood-map", set={"years; import os": 2}))
    assert [reason.field for reason in wrong.reasons] == ["executable.parameters"]
    code.commit({"flood.ipynb": text, "second.ipynb": text})
    with pytest.raises(BadManifest, match=r"flood\.ipynb, second\.ipynb: keep one of them at the top, or say in"):
        await service.apps.proposing.propose(ANN, code.url, maintainer="cybergisx")
    found = await service.apps.runs.ask_app(BOB, AppWish(app="flood-map", set={"years": 2}))
    (service.apps.catalogue.archives / f"{version.tree}.tar").write_bytes(b"something else")
    session = await service.sessions.accept(found.offers[0].id, BOB)
    ended = await over(service, session.id, BOB)
    assert ended.end is not None
    assert ended.end.kind is EndKind.NOT_APPROVED


async def test_a_tag_becomes_the_digest_that_it_means_now(git: GitServer, tmp_path: Path) -> None:
    oci_archive(tmp_path / "box.tar")
    with registry() as images:
        digest = images.push("ann/tool", "v1", tmp_path / "box.tar")
        named = f"docker://{images.address}/ann/tool:v1"
        tagged = git.repository("ann/tagged-image")
        tagged.commit({"sublet.yaml": f"name: tagged\nimage: {{location: '{named}'}}\nrun: sh a.sh\n", "a.sh": ""})
        gone = git.repository("ann/no-image")
        gone.commit({"sublet.yaml": f"name: gone\nimage: {{location: '{named}9'}}\nrun: sh a.sh\n", "a.sh": ""})
        settings = {"mode": "gateway", "private_data": True, "loop": False}
        async with serving(tmp_path / "home", **settings) as service:  # type: ignore[arg-type]
            version = await service.apps.proposing.propose(ANN, tagged.url)
            assert (version.image, version.digest) == (named, digest)
            assert version.as_manifest().image.digest == digest
            lost = await service.apps.proposing.propose(ANN, gone.url)
            assert any("has no such image" in finding for finding in lost.findings)
            with pytest.raises(NotDecidable, match="which image"):
                await service.apps.reviewing.approve("gone@1", REVIEWER, lost.tree)


async def test_the_operators_logins_are_for_the_operators_images_and_for_what_was_approved(
    git: GitServer, tmp_path: Path
) -> None:
    oci_archive(tmp_path / "box.tar")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    with registry(login="op:secret") as images:
        digest = images.push("op/tool", "v1", tmp_path / "box.tar")
        named = f"docker://{images.address}/op/tool:v1"
        own = git.repository("ann/own-private")
        own.commit({"sublet.yaml": f"name: own\nimage: {{location: '{named}'}}\nrun: sh a.sh\n", "a.sh": ""})
        simple = git.repository("ann/simple-private")
        simple.commit({"entry.sh": "echo\n"})
        settings = {
            "mode": "gateway",
            "private_data": True,
            "loop": False,
            "maintainers": {"tool": {"image": named}},
            "registries": {f"{images.address}/op": {"user": "op", "password_file": secret}},
        }
        async with serving(tmp_path / "home", **settings) as service:  # type: ignore[arg-type]
            version = await service.apps.proposing.propose(ANN, simple.url, maintainer="tool")
            assert (version.image, version.digest) == (named, digest)
            peeping = await service.apps.proposing.propose(ANN, own.url)
            assert peeping.digest == ""
            assert any("those who sign in" in finding for finding in peeping.findings)
            data = Data("image", "simple-data-resource", named)
            movers = [service.movers.choose(data, reviewed=reviewed) for reviewed in (True, False)]
            assert [isinstance(mover, SignsIn) and mover.signs_in(data) for mover in movers] == [True, False]


async def test_an_archive_that_was_altered_is_neither_shown_nor_approved(
    service: Service, repository: Repository
) -> None:
    version = await service.apps.proposing.propose(ANN, repository.url, name="hello")
    (service.apps.catalogue.archives / f"{version.tree}.tar").write_bytes(b"something else")
    with pytest.raises(NotDecidable, match="not what was proposed"):
        await service.apps.reviewing.approve("hello@1", REVIEWER, version.tree)
    with pytest.raises(NotDecidable, match="not what was proposed"):
        await service.apps.reviewing.review("hello@1", REVIEWER)


async def test_code_that_nobody_needs_is_removed(service: Service, repository: Repository) -> None:
    tree = await approved(service, repository)
    stray = service.apps.catalogue.archives / f"{'f' * 64}.tar"
    stray.write_bytes(b"")
    for file in (stray, service.apps.catalogue.archives / f"{tree}.tar"):
        os.utime(file, (0, 0))
    assert await service.apps.catalogue.sweep_apps(service.now()) == ["f" * 64]
    assert (service.apps.catalogue.archives / f"{tree}.tar").exists()
