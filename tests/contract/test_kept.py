"""Files that many sessions share are sent to a system once, protected while they are needed, and go when not."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.image import ImageArchive
from sublet.kernel.errors import PlatformRefused
from sublet.kinds.images import ArchiveFile
from sublet.kinds.inside.container_images import NoImage, with_apptainer, with_charliecloud, with_podman_or_docker
from sublet.kinds.inside.container_mounts import can_lay_over
from sublet.kinds.inside.container_unpacked import name_link
from sublet.platforms.batch.kept import KeptFiles, digest_of
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from sublet.reach.port import Progress
from tests.real import images

pytestmark = pytest.mark.anyio
SIZE = 700_000  # more than travels in one piece


class Counted(LocalReach):
    """This machine, with what is sent to it counted."""

    def __init__(self) -> None:
        super().__init__("far")
        self.sent: list[str] = []
        self.before_sending: Callable[[], int] = lambda: 0

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        self.sent.append(target)
        self.before_sending()
        await super().send(source, target, progress)


def writable(path: str) -> bool:
    return bool(Path(path).stat().st_mode & 0o222)


@pytest.fixture
def reach() -> Counted:
    return Counted()


@pytest.fixture
async def slurm(tmp_path: Path, reach: Counted) -> AsyncIterator[Slurm]:
    platform = Slurm(name="far", directory=str(tmp_path / "far"))
    platform.use(reach)
    (tmp_path / "home").mkdir()
    await platform.open(tmp_path / "home")
    yield platform
    await platform.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "tool.sif"
    file.write_bytes(b"x" * SIZE)
    return file


async def test_many_who_need_a_file_at_once_have_it_sent_once(slurm: Slurm, reach: Counted, image: Path) -> None:
    steps: list[int] = []
    places = await asyncio.gather(
        *(slurm.keep(image, user=f"session-{n}", progress=lambda done, total: steps.append(done)) for n in range(5))
    )
    assert len(set(places)) == len(reach.sent) == 1
    assert digest_of(Path(places[0])) == digest_of(image)
    assert not writable(places[0])
    assert steps[-1] == SIZE
    [kept] = await slurm.list_kept()
    assert (kept.digest, kept.size) == (digest_of(image), SIZE)
    assert set(kept.users) == {f"session-{n}" for n in range(5)}


async def test_a_file_that_is_not_the_one_that_was_meant_is_refused_and_not_sent(
    slurm: Slurm, reach: Counted, image: Path
) -> None:
    with pytest.raises(PlatformRefused, match="is not the file that was meant"):
        await slurm.keep(image, "sha256:" + "0" * 64, "session")
    assert not reach.sent
    assert not await slurm.list_kept()


async def test_a_file_that_changes_while_it_is_sent_is_shared_with_nobody(
    slurm: Slurm, reach: Counted, image: Path
) -> None:
    digest = digest_of(image)
    reach.before_sending = lambda: image.write_bytes(b"y" * SIZE)
    with pytest.raises(PlatformRefused, match="changed while it was sent"):
        await slurm.keep(image, digest, "session")
    assert not await slurm.list_kept()
    reach.before_sending = lambda: 0
    assert digest_of(Path(await slurm.keep(image))) == digest_of(image) != digest


async def test_what_a_session_needs_stays_and_what_nobody_needs_goes(slurm: Slurm, image: Path, tmp_path: Path) -> None:
    digest = digest_of(image)
    await slurm.keep(image, digest, "session")
    assert await slurm.let_go(digest) == []
    assert await slurm.let_go() == []
    (tmp_path / "far" / "sessions").mkdir(exist_ok=True)
    (tmp_path / "far" / "incoming" / "session").rename(tmp_path / "far" / "sessions" / "session")  # it is submitted
    assert await slurm.let_go() == []
    shutil.rmtree(tmp_path / "far" / "sessions" / "session")  # it is cleaned away
    assert await slurm.let_go(idle=timedelta(hours=1)) == [], "it may be needed again soon"
    assert [kept.users for kept in await slurm.list_kept()] == [()]
    assert await slurm.let_go() == [digest]
    assert not (tmp_path / "far").exists(), "what is empty goes too"


async def test_one_that_was_let_go_is_sent_again(slurm: Slurm, reach: Counted, image: Path) -> None:
    await slurm.keep(image)
    assert await slurm.let_go(digest_of(image)) == [digest_of(image)]
    assert digest_of(Path(await slurm.keep(image))) == digest_of(image)
    assert len(reach.sent) == 2


def apptainer_of(tmp_path: Path, code: int = 0) -> str:
    """What stands in for Apptainer, which this machine may not have: it writes down what it is asked for."""
    tool = tmp_path / f"apptainer-{code}"
    tool.write_text(f'#!/bin/sh\necho "$6" >>{tmp_path}/asked\n[ {code} = 0 ] && echo made >"$5"\nexit {code}\n')
    tool.chmod(0o700)
    return str(tool)


async def test_an_archive_is_made_into_an_image_once_and_goes_with_it(
    slurm: Slurm, reach: Counted, tmp_path: Path
) -> None:
    archive = tmp_path / "tool.tar"
    digest = images.oci_archive(archive)
    content = await slurm.keep(archive)
    kept, root, tool = KeptFiles("far", "me"), str(tmp_path / "far"), apptainer_of(tmp_path)

    def describe() -> ImageArchive | None:
        return ArchiveFile(str(archive)).describe()

    done = await asyncio.gather(*(kept.make_image(reach, root, content, tool, describe) for _ in range(3)))
    assert done == [True] * 3
    assert not len(kept._turns), "no lock is kept"
    assert (tmp_path / "asked").read_text() == f"oci-archive:{content}\n", "once, however many need it"
    beside = Path(content).parent
    assert (beside / "image.sif").read_text() == "made\n"
    assert digest in (beside / "image.names").read_text().split()
    assert digest_of(archive) in (beside / "image.names").read_text().split()
    assert sorted(path.name for path in beside.iterdir() if path.name.startswith("pull")) == []
    assert await slurm.let_go(digest_of(archive)) == [digest_of(archive)]
    assert not beside.exists()


async def test_an_archive_that_only_the_system_has_is_read_there(slurm: Slurm, reach: Counted, tmp_path: Path) -> None:
    archive, other = tmp_path / "tool.tar", tmp_path / "other.tar"
    digest = images.oci_archive(archive)
    other.write_bytes(b"no archive at all" * 100)
    kept, root, tool = KeptFiles("far", "me"), str(tmp_path / "far"), apptainer_of(tmp_path)
    content = await slurm.keep(archive)
    assert await kept.make_image(reach, root, content, tool, None)
    assert (tmp_path / "asked").read_text() == f"oci-archive:{content}\n"
    assert digest in (Path(content).parent / "image.names").read_text().split()
    assert not await kept.make_image(reach, root, await slurm.keep(other), tool, None)


async def test_where_no_image_can_be_made_the_session_is_left_to_it_and_it_is_not_tried_again_at_once(
    slurm: Slurm, reach: Counted, tmp_path: Path, image: Path
) -> None:
    archive = tmp_path / "tool.tar"
    images.docker_archive(archive)
    kept, root = KeptFiles("far", "me"), str(tmp_path / "far")
    content = await slurm.keep(archive)
    for _ in range(2):
        made = await kept.make_image(
            reach, root, content, apptainer_of(tmp_path, 1), lambda: ArchiveFile(str(archive)).describe()
        )
        assert not made
    assert (tmp_path / "asked").read_text() == f"docker-archive:{content}\n"
    beside = Path(content).parent
    assert [name for name in ("content", "image.sif") if (beside / name).exists()] == ["content"]
    other = await slurm.keep(image)
    assert not await kept.make_image(
        reach, root, other, apptainer_of(tmp_path), lambda: ArchiveFile(str(image)).describe()
    )
    assert len((tmp_path / "asked").read_text().splitlines()) == 1, "what is no archive is none's to make"


async def test_a_session_runs_the_image_that_was_made_before_it_and_else_makes_it_for_all(
    slurm: Slurm, reach: Counted, tmp_path: Path
) -> None:
    archive, link = tmp_path / "tool.tar", tmp_path / "link"
    digest = images.oci_archive(archive)
    content = await slurm.keep(archive)
    link.symlink_to(content)
    paths = {"apptainer": apptainer_of(tmp_path)}
    plan = {
        "tool": "apptainer",
        "paths": paths,
        "name": "mine",
        "digest": digest,
        "private": str(tmp_path),
        "image": str(tmp_path / "own"),
    }
    source = {"how": "archive", "path": str(link)}
    beside = Path(content).parent
    for _ in range(2):
        assert with_apptainer(source, plan).reference == str(beside / "image.sif")
    assert len((tmp_path / "asked").read_text().splitlines()) == 1, "the first makes it for all"

    (beside / "image.sif").unlink()
    described = ArchiveFile(str(archive)).describe()
    assert await KeptFiles("far", "me").make_image(
        reach, str(tmp_path / "far"), content, paths["apptainer"], lambda: described
    )
    assert with_apptainer(source, plan).reference == str(beside / "image.sif")
    assert len((tmp_path / "asked").read_text().splitlines()) == 2, "what was made before is run as it is"
    with pytest.raises(NoImage, match="its digest is not"):
        with_apptainer(source, {**plan, "digest": "sha256:" + "0" * 64})


async def test_an_image_is_unpacked_there_once_and_sessions_of_charliecloud_and_podman_run_in_it(
    slurm: Slurm, reach: Counted, tmp_path: Path
) -> None:
    archive, link = tmp_path / "tool.tar", tmp_path / "brought" / "tool.tar"
    digest = images.oci_archive(archive)
    content, kept, root = await slurm.keep(archive, user="session"), KeptFiles("far", "me"), str(tmp_path / "far")
    done = await asyncio.gather(*(kept.unpack_image(reach, root, content, "") for _ in range(2)))
    assert done == [True, True]
    beside = Path(content).parent
    assert [path.name for path in beside.iterdir() if path.name.startswith("unpack")] == ["unpacked"]
    [listed] = await slurm.list_kept()
    assert listed.size > 2 * archive.stat().st_size, "what is unpacked counts, too"
    link.parent.mkdir()
    link.symlink_to(content)
    plan = {"tool": "charliecloud", "paths": {}, "digest": digest, "image": str(tmp_path / "own"), "entrypoint": None}
    image = with_charliecloud({"how": "archive", "folder": str(link.parent)}, plan)
    assert image.directory == str(beside / "unpacked" / "root")
    assert (Path(image.directory) / "app" / "doc").read_text() == "made for tests\n"
    if can_lay_over(image.directory):
        by_podman = plan | {"tool": "podman", "paths": {"podman": "podman"}}
        assert with_podman_or_docker({"how": "archive", "folder": str(link.parent)}, by_podman) == image
        wrong = by_podman | {"digest": "sha256:" + "0" * 64}
        with pytest.raises(NoImage, match="its digest is not"):
            with_podman_or_docker({"how": "archive", "folder": str(link.parent)}, wrong)
    shutil.rmtree(tmp_path / "far" / "incoming" / "session")
    assert await slurm.let_go() == [digest_of(archive)]
    assert not beside.exists()


async def test_an_image_file_of_the_system_is_unpacked_once_and_a_session_that_names_it_finds_it(
    slurm: Slurm, reach: Counted, tmp_path: Path
) -> None:
    archive, session = tmp_path / "centre" / "tool.tar", tmp_path / "session"
    archive.parent.mkdir()
    session.mkdir()
    digest = images.oci_archive(archive)
    (tmp_path / "tool.tar").symlink_to(archive)
    kept, root = KeptFiles(slurm.failures, "me"), str(tmp_path / "far")
    found = await asyncio.gather(*(kept.unpack_file(reach, root, str(tmp_path / "tool.tar"), {}, key) for key in "ab"))
    assert found[0] == found[1]
    [(name, content)] = found[0].items()
    assert name == f"image-{name_link(str(archive))}", "both sides know the same name"
    (session / name).symlink_to(content)
    plan = {"tool": "charliecloud", "paths": {}, "digest": digest, "image": str(session / "image"), "entrypoint": None}
    source = {"how": "archive", "path": str(tmp_path / "tool.tar")}
    image = with_charliecloud(source, plan)
    assert image.shared
    assert image.directory == str(Path(content).parent / "unpacked" / "root")
    [listed] = await slurm.list_kept()
    assert listed.label.endswith("tool.tar, unpacked")
    assert listed.size > archive.stat().st_size // 2
    assert await kept.unpack_file(reach, root, str(tmp_path / "none.tar"), {}, "a") == {}
    (tmp_path / "odd.tar").write_bytes(b"no image")
    assert await kept.unpack_file(reach, root, str(tmp_path / "odd.tar"), {}, "a") == {}, "the session says why"
    images.oci_archive(archive, Env=["OTHER=1"])
    assert await kept.unpack_file(reach, root, str(archive), {}, "a") != found[0], "another file by the same path"


async def test_on_this_machine_a_file_is_where_it_is(image: Path) -> None:
    assert await MemoryPlatform(name="here").keep(image) == str(image)
