"""Images of a real registry are fetched whole, every part checked, and the same image is always the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.links import name_entry
from sublet.kernel.errors import DataNotThere
from sublet.kinds.inside.image_files import Archive
from sublet.movers.logins import ImageLogin
from sublet.movers.oci import OciMover
from sublet.movers.port import UNLIMITED, Policy, SourceChanged
from sublet.movers.registries import read_reference
from tests.real import images
from tests.registries import Registry, registry

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not images.made_busybox(), reason="busybox-static is not installed"),
]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that is away is asked again soon."""
    monkeypatch.setattr("sublet.movers.registries.PAUSES", (0.01, 0.02))


@pytest.fixture(params=["", "a-token"], ids=["open", "with a token"])
def server(request: pytest.FixtureRequest) -> Iterator[Registry]:
    with registry(token=request.param) as one:
        yield one


@pytest.fixture
def pushed(server: Registry, tmp_path: Path) -> str:
    """The digest of the manifest of `tools/box:1`."""
    images.oci_archive(tmp_path / "box.tar")
    return server.push("tools/box", "1", tmp_path / "box.tar")


def image(location: str) -> Data:
    return Data("image", "simple-data-resource", f"docker://{location}")


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


async def test_an_image_comes_as_an_archive_that_is_known_by_its_digest(
    server: Registry, pushed: str, tmp_path: Path
) -> None:
    first, second = folder(tmp_path, "first"), folder(tmp_path, "second")
    steps: list[tuple[int, int | None]] = []
    await OciMover(UNLIMITED).bring(image(f"{server.address}/tools/box:1"), first, lambda *step: steps.append(step))
    await OciMover(UNLIMITED).bring(image(f"{server.address}/tools/box@{pushed}"), second, lambda *step: None)
    assert [path.name for path in first.iterdir()] == ["image.tar"]
    assert (first / "image.tar").read_bytes() == (second / "image.tar").read_bytes()
    assert steps[-1][0] == steps[-1][1]
    archive = Archive(str(first / "image.tar"))
    archive.verify_layers()
    archive.close()
    assert pushed in archive.list_digests()


async def read_all(mover: OciMover, box: Data, offset: int = 0) -> bytes:
    [link] = (await mover.links(box)).links
    return b"".join([piece async for piece in mover.read(box, link, offset)])


async def test_an_image_is_read_as_the_same_archive_from_where_any_of_its_parts_begins(
    server: Registry, pushed: str, tmp_path: Path
) -> None:
    mover, box = OciMover(UNLIMITED), image(f"{server.address}/tools/box:1")
    await mover.bring(box, folder(tmp_path, "whole"), lambda *step: None)
    whole = (tmp_path / "whole" / "image.tar").read_bytes()
    files = await mover.links(box)
    [link] = files.links
    assert (link.size, link.version, link.path) == (len(whole), pushed, "box.tar")
    assert name_entry(files, "ann", "s1") == name_entry(
        await mover.links(image(link_by_digest(server, pushed))), "b", "s2"
    )
    assert await read_all(mover, box) == whole
    half = len(whole) // 2
    start = await mover.find_start(box, link, half)
    assert 0 < start <= half, "a layer that broke off is read from its beginning, and what is before it is not"
    assert await read_all(mover, box, start) == whole[start:]
    with pytest.raises(SourceChanged):
        await read_all(mover, box, half + 1 if start == half else half)


def link_by_digest(server: Registry, digest: str) -> str:
    return f"{server.address}/tools/box@{digest}"


async def test_a_layer_that_is_not_what_its_digest_says_is_never_read_whole(server: Registry, pushed: str) -> None:
    mover, box = OciMover(UNLIMITED), image(f"{server.address}/tools/box:1")
    [link] = (await mover.links(box)).links
    layer = max(server.blobs, key=lambda digest: len(server.blobs[digest]))
    wrong = server.blobs[layer] = b"x" * len(server.blobs[layer])
    read = bytearray()

    async def drain() -> None:
        async for piece in mover.read(box, link, 0):
            read.extend(piece)

    with pytest.raises(DataNotThere, match=f"what .* has as {layer} is sha256:"):
        await drain()
    assert wrong not in read, "the last of it was held back"


async def test_an_image_for_many_machines_is_known_by_the_digest_that_it_was_asked_for_with(
    server: Registry, pushed: str, tmp_path: Path
) -> None:
    index = server.push_index("tools/many", "2", pushed)
    server.manifests["tools/many", pushed] = server.manifests["tools/box", pushed]
    pinned = await OciMover(UNLIMITED).pin(image(f"{server.address}/tools/many:2"))
    assert pinned.location == f"docker://{server.address}/tools/many@{index}"
    target = folder(tmp_path, "many")
    await OciMover(UNLIMITED).bring(pinned, target, lambda *step: None)
    archive = Archive(str(target / "image.tar"))
    archive.close()
    assert {index, pushed} <= set(archive.list_digests())


async def test_what_is_not_there_or_is_something_else_is_not_brought(
    server: Registry, pushed: str, tmp_path: Path
) -> None:
    mover, target = OciMover(UNLIMITED), folder(tmp_path, "wrong")
    for location, why in (
        (f"{server.address}/tools/nothing:1", "no such image"),
        (f"{server.address}/tools/box@sha256:{'1' * 64}", "no such image"),
        ("127.0.0.1:9/tools/box:1", "onnect"),
    ):
        with pytest.raises(DataNotThere, match=why):
            await mover.bring(image(location), target, lambda *step: None)
    other = "sha256:" + "2" * 64
    server.manifests["tools/box", other] = server.manifests["tools/box", pushed]
    with pytest.raises(DataNotThere, match=f"what .* has as {other} is {pushed}"):
        await mover.bring(image(f"{server.address}/tools/box@{other}"), target, lambda *step: None)
    for digest in server.blobs:
        server.blobs[digest] = b"x" * len(server.blobs[digest])
    with pytest.raises(DataNotThere, match="its checksum is"):
        await mover.bring(image(f"{server.address}/tools/box:1"), target, lambda *step: None)
    assert not (target / "image.tar").exists()


async def test_a_strangers_image_is_not_fetched_from_a_private_registry(
    server: Registry, pushed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sublet.movers.registries.PAUSES", (3600.0,))  # nor tried again, as that wouldn't help
    mover = OciMover(Policy())
    for name in ("tools/box:1", f"tools/box@{pushed}"):
        with pytest.raises(DataNotThere, match="not a public address"):
            await mover.pin(image(f"{server.address}/{name}"))
    assert not server.served


@pytest.mark.parametrize("token", ["", "a-token"], ids=["by each request", "for a token"])
async def test_an_image_that_is_shown_to_an_account_alone_is_fetched_by_its_login(token: str, tmp_path: Path) -> None:
    images.oci_archive(tmp_path / "box.tar")
    secret = tmp_path / "secret"
    secret.write_text("pass word\n")
    secret.chmod(0o600)
    with registry(token=token, login="ann:pass word") as server:
        digest = server.push("tools/box", "1", tmp_path / "box.tar")
        server.push("toolshed/box", "1", tmp_path / "box.tar")
        login = ImageLogin(f"{server.address}/tools", "ann", secret)
        mover, box = OciMover(replace(UNLIMITED, logins=[login])), image(f"{server.address}/tools/box:1")
        target = folder(tmp_path, "target")
        await mover.bring(box, target, lambda *step: None)
        assert (target / "image.tar").exists()
        assert (await mover.pin(box)).location.endswith(digest)
        assert mover.signs_in(box)
        for other in (f"{server.address}/toolshed/box:1", "registry.example/tools/box:1"):
            assert not mover.signs_in(image(other))
        with pytest.raises(DataNotThere, match=r"sign in|strangers"):
            await mover.pin(image(f"{server.address}/toolshed/box:1"))
        with pytest.raises(DataNotThere, match=r"sign in|this login"):
            await OciMover(replace(UNLIMITED, logins=[ImageLogin(server.address, "bob", secret)])).pin(box)
        secret.chmod(0o644)
        with pytest.raises(DataNotThere, match="others can read"):
            await mover.pin(box)
        secret.unlink()
        with pytest.raises(DataNotThere, match="can't be read"):
            await mover.pin(box)


@pytest.mark.parametrize(
    ("text", "registry", "name", "which"),
    [
        ("alpine", "registry-1.docker.io", "library/alpine", "latest"),
        ("docker://docker.io/owner/tool:2", "registry-1.docker.io", "owner/tool", "2"),
        ("ghcr.io/a/b/c:v1", "ghcr.io", "a/b/c", "v1"),
        ("localhost:5000/x", "localhost:5000", "x", "latest"),
        ("localhost/x", "localhost", "x", "latest"),
    ],
)
def test_a_reference_means_what_it_means_to_every_tool(text: str, registry: str, name: str, which: str) -> None:
    found = read_reference(text)
    assert found
    assert (found.registry, found.name, found.tag) == (registry, name, which)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<h1>hello</h1>", "can't be read"),
        (b'{"config": 5}', "something else"),
        (b"[" * 100_000, "can't be read"),
        (b" " * (8 << 20), "very large"),
    ],
)
async def test_what_is_no_manifest_is_neither_pinned_nor_read_for_ever(body: bytes, words: str) -> None:
    with registry() as server:
        server.manifests["tools/odd", "1"] = ("application/json", body)
        with pytest.raises(DataNotThere, match=words):
            await OciMover(UNLIMITED).pin(image(f"{server.address}/tools/odd:1"))


@pytest.mark.parametrize("digest", ["/etc/passwd", "sha256:../../../x", "sha256:" + "A" * 64])
async def test_a_part_that_is_named_by_a_path_is_not_written_there(digest: str, tmp_path: Path) -> None:
    part = {"digest": digest, "size": 1}
    with registry() as server:
        text = json.dumps({"schemaVersion": 2, "config": part, "layers": [part]}).encode()
        server.manifests["tools/odd", "1"] = ("application/vnd.oci.image.manifest.v1+json", text)
        with pytest.raises(DataNotThere, match="no manifest there that can be read"):
            await OciMover(UNLIMITED).bring(
                image(f"{server.address}/tools/odd:1"), folder(tmp_path, "odd"), lambda done, of: None
            )
    assert not server.fetched()
