"""Data gets to a real Slurm site by the best road that there is, once, and stays there for later sessions."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import describe_why
from sublet.booking.model.request import SentResults
from sublet.data.journeys import watch_entry
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.sending import SentFile
from sublet.platforms.caching import EntryPhase
from sublet.platforms.port import quietly
from sublet.service import Service
from tests.contract.services import ME
from tests.real import images
from tests.real.clusters import Cluster
from tests.real.container_tools import find_tools
from tests.real.staging import MIB, SUM, begin, check_road, find_files, output, over, roads, run, settings_of, submitted
from tests.registries import registry
from tests.sites import Site
from tests.storage_servers import serve_s3, serve_webdav, sign_address
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio


async def test_the_system_fetches_by_itself_once_and_this_machine_keeps_nothing(
    service: Service, source: WebSource, home: Path
) -> None:
    content = os.urandom(3 * MIB)
    address = source.put("/one/cube.bin", content)
    for road, there in (("fetched by far", ()), ("in the cache of far", ("cube.bin",))):
        session = await run(service, run=SUM, data=[address])
        assert session.offer.staging.there == there
        assert ("it already has cube.bin" in describe_why(session.offer)) == bool(there)
        await check_road(service, session, f"{hashlib.sha256(content).hexdigest()}  -\n", road)
    assert len(source.gets("/one/cube.bin")) == 1
    assert not find_files(home, "cube.bin")


async def test_where_the_system_may_not_fetch_it_is_streamed_past_this_machine_and_changed_data_is_brought_anew(
    service: Service, source: WebSource, home: Path
) -> None:
    for content in (os.urandom(3 * MIB), os.urandom(2 * MIB)):
        address = source.put("/two/cube.bin", content, cut_at=MIB)
        for road in ("streamed from", "in the cache of shut"):
            session = await run(service, platform="shut", run=SUM, data=[address])
            told = await check_road(service, session, f"{hashlib.sha256(content).hexdigest()}  -\n", road)
            assert ("may not fetch data" in told) == (road == "streamed from")
    spans = [headers.get("Range") for headers in source.gets("/two/cube.bin")]
    assert spans[::2] == [None, None]
    assert None not in spans[1::2]
    assert not find_files(home, "cube.bin")


async def test_folders_of_this_machine_are_streamed_with_many_small_and_some_large_files(
    service: Service, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "in")
    for road in ("streamed from this machine", "in the cache of far"):
        look = "cd in; find . -type f | wc -l; cat a/*.txt | sha256sum; sha256sum <big; test -x a/run.sh"
        words = f"{look} && ! echo more 2>/dev/null >>big"
        session = await run(service, run=["sh", "-c", words], data=[{"location": str(folder), "path": "in"}])
        assert session.phase is Phase.COMPLETED, session.end
        small = hashlib.sha256("".join(map(str, sorted(range(300), key=str))).encode()).hexdigest()
        big = hashlib.sha256(b"b" * 3 * MIB).hexdigest()
        assert (await output(service, session)).split() == ["302", small, "-", big, "-"]
        [told] = await roads(service, session)
        assert road in told, told


def make_folder(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    for number in range(300):
        (folder / "a" / f"{number}.txt").write_text(str(number))
    (folder / "a" / "run.sh").write_text("true")
    (folder / "a" / "run.sh").chmod(0o755)
    (folder / "big").write_bytes(b"b" * 3 * MIB)
    return folder


async def test_what_may_be_changed_is_a_copy_of_its_own_and_the_cache_stays_as_it_was(
    service: Service, source: WebSource
) -> None:
    address = source.put("/three/cube.bin", b"x" * MIB)
    change = ["sh", "-c", "printf changed >>in/cube.bin; wc -c <in/cube.bin"]
    data = [{"location": address, "path": "in", "writable": True}]
    for _ in range(2):
        session = await run(service, run=change, data=data)
        assert session.phase is Phase.COMPLETED, session.end
        assert await output(service, session) == f"{MIB + 7}\n"
    assert len(source.gets("/three/cube.bin")) == 1


async def test_results_of_a_session_on_the_same_system_are_linked_there_and_pass_through_nothing(
    service: Service, home: Path
) -> None:
    make = "mkdir -p out/deep; echo a >out/a.csv; echo b >out/deep/b.csv; echo no >other; printf x >one.bin; sleep 3"
    first = await begin(service, run=["sh", "-c", make])
    await submitted(service, first.id)  # it is in the queue there, so that another job could wait for it there
    data = [
        {"location": f"session:{first.id}/out/", "path": "in"},
        {"location": f"session:{first.id}/one.bin", "path": "one.bin", "writable": True},
    ]
    work = "cat in/a.csv in/deep/b.csv; echo y >>one.bin; cat one.bin; find -L in -type f | wc -l"
    second = await run(service, run=["sh", "-c", work], data=data)
    assert second.phase is Phase.COMPLETED, second.end
    assert (await output(service, second)).split() == ["a", "b", "xy", "2"]
    assert [told.partition(" (")[0].partition(" ")[2] for told in await roads(service, second)] == [
        "was left on far by another session"
    ] * 2
    assert not find_files(home, "a.csv")
    platform = service.platforms.get("far")
    assert b"".join([piece async for piece in platform.read(first.id, "one.bin")]) == b"x"


async def test_what_lies_on_the_system_itself_is_copied_there_and_passes_through_nothing(
    service: Service, site: Site, home: Path
) -> None:
    site.on("researcher@login", "sh", "-c", "mkdir -p mine/deep; echo own >mine/deep/own.csv")
    for road in ("copied on far", "in the cache of far"):
        data = [{"location": "ssh://far/~/mine/", "path": "in"}]
        session = await run(service, run=["cat", "in/deep/own.csv"], data=data)
        await check_road(service, session, "own\n", road)
    assert not find_files(home, "own.csv")
    site.on("researcher@login", "rm", "-rf", "mine")


async def test_two_sessions_that_want_one_file_at_once_have_it_fetched_once(
    service: Service, source: WebSource
) -> None:
    address = source.put("/four/cube.bin", os.urandom(2 * MIB), pace=0.05)
    begun = [await begin(service, run=SUM, data=[address]) for _ in range(2)]
    ends = [await over(service, session.id) for session in begun]
    assert [session.phase for session in ends] == [Phase.COMPLETED] * 2
    assert len(source.gets("/four/cube.bin")) == 1


async def test_secrets_are_in_no_process_list_and_no_file_and_are_not_shown_where_a_redirection_leads(
    service: Service, source: WebSource, site: Site
) -> None:
    secret = "token-that-nobody-sees"
    with serve_source(source.address.partition(":")[0]) as other:
        target = other.put("/five/cube.bin", os.urandom(MIB), held_at=MIB // 2)
        address = source.put("/five/cube.bin", b"", location=target, authorization=f"Bearer {secret}")
        place = f"http://{source.address}/five"
        await service.credentials.add(ME, Credential(place, CredentialKind.TOKEN, secret=secret))
        session = await begin(service, run=SUM, data=[address])
        while not other.gets("/five/cube.bin"):
            await service.signals.wait(0.1)
        seen = [await asyncio.to_thread(site.on, "login", "ps", "-ef", "ww") for _ in range(3)]
        other.files["/five/cube.bin"].let_go.set()
        ended = await over(service, session.id)
        assert ended.phase is Phase.COMPLETED, ended.end
        assert any("fetch." in text for text in seen)
        assert not [text for text in seen if secret in text or "/five/" in text]
        assert all("Authorization" not in headers for _, _, headers in other.asked)
    left = site.on("login", "grep", "-rl", secret, "/home/researcher", check=False)
    assert left == ""


async def test_a_cancelled_session_ends_what_is_fetched_for_it(service: Service, source: WebSource, site: Site) -> None:
    address = source.put("/six/cube.bin", os.urandom(20 * MIB), pace=0.2)
    session = await begin(service, run=SUM, data=[address])
    while not source.gets("/six/cube.bin"):
        await service.signals.wait(0.1)
    await service.sessions.cancel(session.id, ME)
    assert (await over(service, session.id)).phase is Phase.CANCELLED
    await asyncio.to_thread(site.wait, lambda: "fetch." not in site.on("login", "ps", "-ef", "ww"))
    assert source.sent < 20 * MIB


async def test_object_stores_and_webdav_servers_are_read_by_the_system_itself_with_what_opens_them(
    service: Service, site: Site, home: Path, tmp_path: Path
) -> None:
    here, contents = site.facts["here"], {name: os.urandom(MIB) for name in ("kept.bin", "signed.bin", "dav.bin")}
    for place in ("s3/bucket", "dav/team/deep"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("kept.bin", "signed.bin"):
        (tmp_path / "s3" / "bucket" / name).write_bytes(contents[name])
    (tmp_path / "dav" / "team" / "deep" / "dav.bin").write_bytes(contents["dav.bin"])
    with tarfile.open(tmp_path / "dav" / "packed.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "dav" / "team" / "deep", "deep")
    with serve_s3(tmp_path / "s3", here) as s3, serve_webdav(tmp_path / "dav", here) as dav:
        for server in (s3, dav):
            await service.credentials.add(ME, server.credential)
        signed = await asyncio.to_thread(sign_address, s3, "bucket", "signed.bin")
        data = [
            {"location": f"s3+http://{s3.address}/bucket/kept.bin", "path": "kept.bin"},
            {"location": signed, "path": "signed.bin"},
            {"location": f"dav://{dav.address}/team/", "path": "in"},
            {"location": f"dav://{dav.address}/packed.tar.gz", "path": "packed", "unpack": True},
            {"location": f"s3+http://{s3.address}/bucket/", "path": "all"},
        ]
        files = ("kept.bin", "signed.bin", "in/deep/dav.bin", "packed/deep/dav.bin", "all/kept.bin", "all/signed.bin")
        look = ["sh", "-c", "; ".join(f"sha256sum <{file}" for file in files)]
        session = await run(service, run=look, data=data)
        assert session.phase is Phase.COMPLETED, session.end
        digests = [f"{hashlib.sha256(content).hexdigest()}  -" for content in contents.values()]
        assert (await output(service, session)).splitlines() == [*digests, digests[-1], *digests[:2]]
        told = await roads(service, session)
        assert ["fetched by far" in each for each in told] == [True] * 5, told
        assert not [each for each in told if "X-Amz" in each]
    assert not find_files(home, "kept.bin") + find_files(home, "signed.bin") + find_files(home, "dav.bin")
    for secret in (s3.credential.secret, dav.credential.secret, "X-Amz-Signature"):
        assert site.on("login", "grep", "-rl", secret, "/home/researcher", check=False) == ""


async def test_results_are_sent_by_the_system_itself_and_through_this_machine_only_where_it_may_not(
    service: Service, site: Site, home: Path, tmp_path: Path
) -> None:
    here = site.facts["here"]
    for place in ("s3/results", "dav"):
        (tmp_path / place).mkdir(parents=True)
    command = ["sh", "-c", "mkdir out; echo one >out/1.txt; echo two >'out/2 b.txt'; seq 200000 >out/big.txt"]
    with serve_s3(tmp_path / "s3", here) as s3, serve_webdav(tmp_path / "dav", here) as dav:
        for server in (s3, dav):
            await service.credentials.add(ME, server.credential)
        for platform, is_itself in (("far", True), ("shut", False)):
            outputs = [
                {"path": "out/*", "to": f"s3+http://{s3.address}/results/{platform}/"},
                {"path": "out", "to": f"dav://{dav.address}/new/{platform}/"},
            ]
            session = await run(service, platform=platform, run=command, outputs=outputs)
            assert (session.phase, session.condition) == (Phase.COMPLETED, ""), session
            events = await service.store.read(lambda tx, id=session.id: tx.events.after(session=id))
            told = [event.detail for event in events if event.kind is EventKind.SENT]
            assert [f"by {platform} itself" in each for each in told] == [is_itself] * 2, told
            later = SentResults("out/*", f"s3+http://{s3.address}/results/later-{platform}/")
            sent = [each async for each in service.results.send(session.id, ME, later) if isinstance(each, SentFile)]
            assert [each.road for each in sent] == [f"by {platform} itself" if is_itself else ""] * 3, sent
            for root in (tmp_path / "s3" / "results" / platform, tmp_path / "dav" / "new" / platform):
                names = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
                assert sorted(names) == ["1.txt", "2 b.txt", "big.txt"], names
                assert names["2 b.txt"].read_text() == "two\n"
                assert names["big.txt"].read_text().splitlines()[-1] == "200000"
        events = await service.store.read(lambda tx: tx.events.after())
        assert not [event for event in events if "X-Amz" in event.detail or s3.credential.secret in event.detail]
    assert not find_files(home, "big.txt")
    for secret in (s3.credential.secret, dav.credential.secret, "X-Amz-Signature"):
        assert site.on("login", "grep", "-rl", secret, "/home/researcher", check=False) == ""


async def test_an_image_of_a_registry_is_streamed_to_the_system_once_and_this_machine_keeps_nothing(
    service: Service, home: Path, tmp_path: Path
) -> None:
    find_tools("charliecloud")
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar", Entrypoint=[], Env=["PATH=/bin", "BY=road"])
    with registry() as shop:
        shop.push("tools/road", "1", tmp_path / "tool.tar")
        for road, there in (("streamed from", False), ("in the cache of far", True)):
            session = await run(service, image=f"{shop.address}/tools/road:1", run=["sh", "-c", "echo by $BY"])
            assert bool(session.offer.staging.there) is there
            await check_road(service, session, "by road\n", road)
        assert shop.fetched() == 2, "its configuration and its layer, once each"
    assert not find_files(home, "*.tar")


@contextmanager
def data_transfer_host(site: Site, content: bytes) -> Iterator[str]:
    """A machine of the site that the login host reaches by ssh, and alone reaches a web server: on its own loopback."""
    keys = (
        "umask 077; mkdir -p ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519 && "
        "cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys && "
        "echo c1 $(cat /etc/ssh/ssh_host_ed25519_key.pub) >~/.ssh/known_hosts"
    )
    site.on("researcher@login", "sh", "-c", keys)
    options = "-o UsePAM=no -o Port=22 -o PidFile=/run/dtn.pid -h /etc/ssh/ssh_host_ed25519_key"
    site.on("c1", "sh", "-c", f"mkdir -p /run/sshd /srv/dtn && /usr/sbin/sshd -f /dev/null {options}")
    path = Path(site.facts["home"], "researcher", "served")
    path.mkdir()
    (path / "cube.bin").write_bytes(content)
    serve = site.entering(
        "c1", "python3", "-m", "http.server", "--bind", "127.0.0.1", "8765", "-d", "/home/researcher/served"
    )
    process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        look = "import socket; socket.create_connection(('127.0.0.1', 8765)).close()"
        site.wait(lambda: site.does("c1", "python3", "-c", look).returncode == 0)
        yield "http://127.0.0.1:8765/cube.bin"
    finally:
        site.on("c1", "sh", "-c", "kill $(cat /run/dtn.pid)")
        process.terminate()
        process.wait(30)
        site.on("login", "rm", "-rf", "/home/researcher/.ssh", "/home/researcher/served")


async def test_a_data_transfer_host_fetches_in_place_of_the_login_host(site: Site, home: Path) -> None:
    content = os.urandom(MIB)
    with data_transfer_host(site, content) as address:
        async with open_service(settings_of(site, home, transfer_host="c1")) as service:
            session = await run(service, run=SUM, data=[address])
            await check_road(service, session, f"{hashlib.sha256(content).hexdigest()}  -\n", "fetched by far")


PUBLIC = "11.22.33.44"  # an address that is no private one; on the site it is the login host's own
LEADING_ON = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.log_message("asked for %s", self.path)
        self.send_response(302 if self.path == "/leads-on" else 200)
        self.send_header("Location", "http://127.0.0.1:8766/secret")
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")
http.server.HTTPServer(("", 8766), Handler).serve_forever()
"""


async def test_a_public_address_that_leads_on_to_a_private_one_is_not_followed_on_the_system(
    site: Site, home: Path, tmp_path: Path
) -> None:
    site.on("login", "ip", "address", "add", f"{PUBLIC}/32", "dev", "lo")
    words = site.entering("login", "python3", "-c", LEADING_ON)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)  # noqa: ASYNC220 - it is the site's
    try:
        look = f"import socket; socket.create_connection(('{PUBLIC}', 8766)).close()"
        await asyncio.to_thread(site.wait, lambda: site.does("login", "python3", "-c", look).returncode == 0)
        platform = await Cluster(site, home).open("public")
        cache, states = await platform.open_cache(), {}
        for name in ("there", "leads-on"):
            await cache.want(f"data-{name}", "s1")
            link = FileLink("cube", f"http://{PUBLIC}:8766/{name}")
            await cache.fetch(f"data-{name}", LinkedFiles([link]), public_only=True, largest=0)
            states[name] = await watch_entry(cache, f"data-{name}", quietly)
        assert states["there"].phase is EntryPhase.THERE
        assert (states["leads-on"].kind, states["leads-on"].why) == ("private", "127.0.0.1 is not a public address")
        assert "/leads-on" in (tmp_path / "log").read_text()
        assert "/secret" not in (tmp_path / "log").read_text()
        await cache.leave("s1")
        await platform.close()
    finally:
        process.terminate()
        process.wait(30)
        site.on("login", "ip", "address", "del", f"{PUBLIC}/32", "dev", "lo")
