"""A real Rucio server tells where its files are, and they come from there: from XRootD, over HTTP, from a directory."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.booking.model.request import Data
from sublet.data.calls import credentials
from sublet.data.executables import Movers
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.resolving import bring_files, find_files, look_up
from sublet.data.views.credentials import CredentialAsk
from sublet.kernel.errors import DataNotThere
from sublet.movers.port import SIMPLE, UNLIMITED, Policy, Resolves
from sublet.movers.registry import survey_movers
from sublet.movers.rucio import RucioMover
from sublet.movers.skao import SkaoMover
from tests.engines.environments import have_environment
from tests.engines.rucio_server import PASSWORD, USER, RucioServer, serve_rucio
from tests.serving import Serving
from tests.xrootd_servers import XrootdTestServer, serve_xrootd

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
BODY = os.urandom(300_000)
UPLOAD = """
import sys
from rucio.client import Client
from rucio.client.uploadclient import UploadClient
item = {"path": sys.argv[1], "rse": sys.argv[2], "did_scope": "ska", "did_name": "uploaded.fits"}
UploadClient(_client=Client()).upload([item])
"""
DEAD = 9  # the port of discard, on which nobody listens


@dataclass(frozen=True)
class Archive:
    """A catalogue, and the server that has the files."""

    rucio: RucioServer
    storage: XrootdTestServer

    def named(self, name: str, **fields: Any) -> Data:
        return replace(Data("cube", SIMPLE, f"rucio+http://{self.rucio.address}/ska:{name}"), **fields)

    @property
    def login(self) -> Credential:
        return Credential(f"rucio+http://{self.rucio.address}", CredentialKind.LOGIN, USER, PASSWORD)


def protocol(scheme: str, address: str, prefix: str) -> dict[str, Any]:
    host, _, port = address.partition(":")
    reads = {"read": 1, "write": 1, "delete": 1}
    domains = {"lan": reads, "wan": reads | {"third_party_copy_read": 1, "third_party_copy_write": 1}}
    implementation = "rucio.rse.protocols.webdav.Default"
    return {
        "scheme": scheme,
        "hostname": host,
        "port": int(port or 0),
        "prefix": prefix,
        "impl": implementation,
        "domains": domains,
    }


def described(name: str) -> dict[str, Any]:
    return {"scope": "ska", "name": name, "bytes": len(BODY), "adler32": f"{zlib.adler32(BODY):08x}"}


def attach(name: str, *members: str) -> tuple[str, dict[str, Any]]:
    """The call that puts names into a dataset or a container."""
    dids = [{"scope": "ska", "name": member} for member in members]
    return "attach_dids", {"scope": "ska", "name": name, "dids": dids}


def place(storage: str, protocols: Sequence[dict[str, Any]], files: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that make a storage element and tell Rucio what it has."""
    calls: list[tuple[str, dict[str, Any]]] = [("add_rse", {"rse": storage, "deterministic": True})]
    calls += [("add_protocol", {"rse": storage, "params": params}) for params in protocols]
    return [*calls, ("add_replicas", {"rse": storage, "files": [described(name) for name in files]})]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    home = tmp_path_factory.mktemp("rucio") / "home"
    with serve_xrootd() as storage, serve_rucio(have_environment("rucio"), home) as rucio:
        rucio.fill(
            ("add_scope", {"account": "root", "scope": "ska"}),
            *place("XROOTD", [protocol("root", storage.address, "//xrd/")], ["map.fits", "short.fits"]),
            *place("WEB", [protocol("http", storage.web, "/web/")], ["map.fits", "short.fits", "wrong.fits"]),
            *place("GONE", [protocol("http", f"127.0.0.1:{DEAD}", "/gone/")], ["dead.fits"]),
            *place("GRIDFTP", [protocol("gsiftp", "old.example.org:2811", "/old/")], ["old.fits"]),
            ("add_dataset", {"scope": "ska", "name": "survey"}),
            attach("survey", "map.fits", "old.fits"),
            ("add_dataset", {"scope": "ska", "name": "night"}),
            attach("night", "map.fits", "short.fits"),
            ("add_container", {"scope": "ska", "name": "all"}),
            attach("all", "night"),
            ("add_dataset", {"scope": "ska", "name": "empty"}),
        )
        yield Archive(rucio, storage)


def movers(archive: Archive, policy: Policy = UNLIMITED) -> Movers:
    return Movers(survey_movers(replace(policy, credentials=[archive.login])).found)


async def bring(archive: Archive, data: Data, target: Path, policy: Policy = UNLIMITED) -> dict[str, bytes]:
    known = movers(archive, policy)
    resolver = known.choose(data)
    assert isinstance(resolver, Resolves)
    await bring_files(data, await find_files(known, resolver, data), target, lambda done, total: None)
    return seen(target)


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def store(archive: Archive, top: str, name: str, content: bytes = BODY) -> None:
    digits = hashlib.md5(f"ska:{name}".encode(), usedforsecurity=False).hexdigest()  # as Rucio lays files out
    archive.storage.put(f"{top}/ska/{digits[:2]}/{digits[2:4]}/{name}", content)


async def test_a_file_comes_from_the_next_replica_when_one_is_gone_and_is_checked(
    archive: Archive, tmp_path: Path
) -> None:
    store(archive, "xrd", "map.fits")  # Rucio believes that the web server has it, too
    assert await bring(archive, archive.named("map.fits"), tmp_path) == {"map.fits": BODY}
    known = movers(archive)
    resolver = known.choose(archive.named("map.fits"))
    assert isinstance(resolver, Resolves)
    assert await look_up(known, resolver, archive.named("map.fits")) == (len(BODY), [])
    assert await look_up(known, resolver, archive.named("night")) == (2 * len(BODY), [])


async def test_a_dataset_and_a_container_come_with_all_their_files(archive: Archive, tmp_path: Path) -> None:
    store(archive, "xrd", "map.fits")
    store(archive, "web", "short.fits", BODY[:-1])  # shorter than promised
    store(archive, "xrd", "short.fits")
    for name in ("night", "all"):
        brought = await bring(archive, archive.named(name), tmp_path / name)
        assert brought == {"map.fits": BODY, "short.fits": BODY}


async def test_when_all_replicas_are_dead_or_wrong_the_reason_names_them(archive: Archive, tmp_path: Path) -> None:
    store(archive, "web", "wrong.fits", b"x" + BODY[1:])
    with pytest.raises(DataNotThere, match=r"its checksum is adler32:\w+, and adler32:\w+ was expected"):
        await bring(archive, archive.named("wrong.fits"), tmp_path)
    with pytest.raises(DataNotThere, match=rf"http://127\.0\.0\.1:{DEAD}/gone/ska/\S+/dead\.fits.*tries"):
        await bring(archive, archive.named("dead.fits"), tmp_path)
    with pytest.raises(DataNotThere, match=r"gsiftp://old\.example\.org.*nothing here brings gsiftp: addresses"):
        await bring(archive, archive.named("survey"), tmp_path)
    assert not any(name.endswith(".fits") for name in seen(tmp_path))


async def test_what_rucio_does_not_know_or_tell_is_told_in_its_words(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(DataNotThere, match="Data identifier 'ska:nothing' not found"):
        await bring(archive, archive.named("nothing"), tmp_path)
    with pytest.raises(DataNotThere, match="it has no files"):
        await bring(archive, archive.named("empty"), tmp_path)
    data = archive.named("map.fits")
    nobody = RucioMover(UNLIMITED)
    with pytest.raises(DataNotThere, match=r"Token must be set.*sublet credential add http://"):
        await nobody.resolve(data)
    wrong = RucioMover(replace(UNLIMITED, credentials=[replace(archive.login, secret="polonium")]))
    with pytest.raises(DataNotThere, match="401: Cannot authenticate") as refused:
        await wrong.resolve(data)
    assert "polonium" not in str(refused.value)
    elsewhere = replace(data, location=f"{data.location}?account=pierre")
    with pytest.raises(DataNotThere, match="Cannot authenticate to account pierre"):
        await RucioMover(replace(UNLIMITED, credentials=[archive.login])).resolve(elsewhere)


async def test_a_token_opens_it_and_the_settings_may_name_the_server(archive: Archive) -> None:
    async with httpx2.AsyncClient() as client:
        login = {"X-Rucio-Username": USER, "X-Rucio-Password": PASSWORD, "X-Rucio-Account": "root"}
        answer = await client.get(f"http://{archive.rucio.address}/auth/userpass", headers=login)
    server = f"http://{archive.rucio.address}"
    token = Credential(server, CredentialKind.TOKEN, secret=answer.headers["X-Rucio-Auth-Token"])
    own = RucioMover(Policy(rucio_server=server, credentials=[token]))  # a gateway's own may be on a private network
    named = Data("cube", SIMPLE, "rucio:ska:map.fits")
    assert [file.path for file in await own.resolve(named)] == ["map.fits"]
    skao = Data("cube", "skao-data-resource", "skao:ska:map.fits")
    assert [file.path for file in await SkaoMover(own.policy).resolve(skao)] == ["map.fits"]
    with pytest.raises(DataNotThere, match="not a public address"):
        await RucioMover(Policy(credentials=[token])).resolve(archive.named("map.fits"))


async def test_for_others_no_replica_is_brought_from_a_private_network_and_none_that_is_too_large(
    archive: Archive, tmp_path: Path
) -> None:
    gateway = Policy(rucio_server=f"http://{archive.rucio.address}")
    named = Data("cube", SIMPLE, "rucio:ska:map.fits")
    with pytest.raises(DataNotThere, match=r"none of its 2 addresses.*127\.0\.0\.1 is not a public address"):
        await bring(archive, named, tmp_path, gateway)
    with pytest.raises(DataNotThere, match="more than 1000 bytes"):
        await bring(archive, named, tmp_path, replace(gateway, largest=1000))


async def test_a_file_that_rucios_own_client_put_there_is_brought(archive: Archive, tmp_path: Path) -> None:
    disk, source = tmp_path / "disk", tmp_path / "cube 1.fits"
    disk.mkdir()
    source.write_bytes(BODY)
    params = protocol("file", "localhost", f"{disk}/") | {"impl": "rucio.rse.protocols.posix.Default"}
    archive.rucio.fill(
        ("add_rse", {"rse": "DISK", "deterministic": True}),
        ("add_protocol", {"rse": "DISK", "params": params}),
        ("set_local_account_limit", {"account": "root", "rse": "DISK", "bytes_": -1}),
    )
    archive.rucio.run(UPLOAD, str(source), "DISK")
    assert await bring(archive, archive.named("uploaded.fits"), tmp_path / "there") == {"uploaded.fits": BODY}
    with pytest.raises(DataNotThere, match="Files of this machine are not allowed as data"):
        await bring(archive, Data("x", SIMPLE, "rucio:ska:uploaded.fits"), tmp_path / "no", strict(archive))


def strict(archive: Archive) -> Policy:
    return Policy(rucio_server=f"http://{archive.rucio.address}")


def test_a_session_has_a_dataset_before_it_starts_and_tells_why_another_can_not_come(
    archive: Archive, tmp_path: Path
) -> None:
    store(archive, "xrd", "map.fits")
    store(archive, "xrd", "short.fits")
    (tmp_path / "sublet.toml").write_text('[platforms.here]\nkind = "local"\ncores = 4\nmemory = "4GiB"\n')
    serving = Serving(tmp_path)
    try:
        client = serving.start()
        known = archive.login
        ask = CredentialAsk(place=known.place, kind="login", user=known.user, secret=known.secret)
        client.do(credentials.add(ask))
        whole = {"location": archive.named("night").location, "path": "night", "writable": True}
        count = f"test $(cat night/*.fits | wc -c) = {2 * len(BODY)}"
        session = client.run(run=["sh", "-c", count], data=[whole], time="1m", timeout=120)
        assert session.phase == "COMPLETED", session.end
        lost = {"location": archive.named("nothing").location, "path": "x", "writable": True, "size": 1}
        failed = client.run(run=["true"], data=[lost], time="1m", timeout=120)
        assert failed.phase == "FAILED"
        assert "Data identifier 'ska:nothing' not found" in repr(failed)
        assert not [file for file in tmp_path.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    finally:
        serving.stop()
