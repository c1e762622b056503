"""Data that IVOA and the SKAO name is found: by a resolver, tables of links, or the replicas of a request."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from sublet.booking.model.request import Data
from sublet.booking.model.session import OfferSet
from sublet.data.executables import Movers
from sublet.data.resolving import bring_files, find_files, look_up
from sublet.kernel.errors import DataNotThere
from sublet.movers import ivo
from sublet.movers.http import HttpMover
from sublet.movers.ivo import IvoMover
from sublet.movers.port import SIMPLE, UNLIMITED, Policy, Resolves
from sublet.movers.skao import SkaoMover
from sublet.service import Service
from tests import threads
from tests.contract.services import ME, serving

pytestmark = pytest.mark.anyio
BODY = b"SIMPLE  =                    T" * 100
DATALINK = "application/x-votable+xml;content=datalink"
LINKS = """<?xml version="1.0"?>
<VOTABLE xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE type="results"><TABLE>
<FIELD name="ID"/><FIELD name="access_url"/><FIELD name="semantics"/><FIELD name="content_length"/>
<FIELD name="error_message"/>
<DATA><TABLEDATA>
<TR><TD>ivo://x/y</TD><TD>{server}/preview.png</TD><TD>#preview</TD><TD>7</TD><TD/></TR>
<TR><TD>ivo://x/y</TD><TD>{server}/gone.fits</TD><TD>#this</TD><TD/><TD/></TR>
<TR><TD>ivo://x/y</TD><TD>{server}/cube.fits</TD><TD>#this</TD><TD>{size}</TD><TD/></TR>
<TR><TD>ivo://x/y</TD><TD/><TD>#this</TD><TD/><TD>NotFoundFault: no such file</TD></TR>
</TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>
"""
OBSCORE = """<VOTABLE><RESOURCE><TABLE><FIELD name="access_url"/><FIELD name="access_format"/>
<DATA><TABLEDATA><TR><TD>{server}/links</TD><TD>application/x-votable+xml;content=datalink</TD></TR></TABLEDATA></DATA>
</TABLE></RESOURCE></VOTABLE>"""


class Observatory(BaseHTTPRequestHandler):
    """Has a file, tables of links to it, and a resolver that answers in every way."""

    def do_GET(self) -> None:
        host = f"http://{self.headers['Host']}"
        texts = {
            "/links": (DATALINK, LINKS.format(server=host, size=len(BODY))),
            "/resolve/ivo://vo.example/obscore": ("text/xml", OBSCORE.format(server=host)),
            "/resolve/ivo://vo.example/json": (
                "application/json",
                json.dumps({"replicas": [{"dataurl": f"{host}/gone.fits"}, {"dataurl": f"{host}/cube.fits"}]}),
            ),
            "/resolve/ivo://vo.example/page": ("text/plain", "Welcome"),
            "/resolve/ivo://vo.example/here": (
                "application/json",
                '[{"access_url": "file:///etc/passwd"}, "/etc/passwd"]',
            ),
            "/resolve/ivo://vo.example/none": ("application/json", "[]"),
            "/resolve/ivo://vo.example/loop": (
                "application/json",
                json.dumps([{"access_url": f"{host}/again", "content_type": DATALINK}]),
            ),
            "/again": ("application/json", json.dumps([{"access_url": f"{host}/again", "content_type": DATALINK}])),
        }
        path = unquote(self.path)
        if path == "/cube.fits":
            return self._answer(200, "application/fits", BODY)
        if path == "/resolve/ivo://vo.example/redirect?a=b":
            return self._answer(302, "", b"", location="/cube.fits")
        if path in texts:
            kind, text = texts[path]
            return self._answer(200, kind, text.encode())
        return self._answer(403 if "locked" in path else 404, "text/plain", b"no")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, code: int, kind: str, body: bytes, location: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        return


@dataclass(frozen=True)
class Known:
    """The address of the observatory."""

    address: str

    @property
    def policy(self) -> Policy:
        return Policy(public_only=False, ivo_resolver=f"{self.address}/resolve/{{ivoid}}")


@pytest.fixture(scope="module")
def known() -> Iterator[Known]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Observatory)
    with threads.serving(server):
        yield Known(f"http://127.0.0.1:{server.server_port}")


def movers(policy: Policy) -> Movers:
    return Movers([IvoMover(policy), SkaoMover(policy), HttpMover(policy)])


async def bring(data: Data, target: Path, policy: Policy) -> dict[str, bytes]:
    usual = movers(policy)
    resolver = usual.choose(data)
    assert isinstance(resolver, Resolves)
    await bring_files(data, await find_files(usual, resolver, data), target, lambda done, total: None)
    return seen(target)


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["redirect?a=b", "obscore", "json"])
async def test_an_ivoid_is_looked_up_by_a_redirection_a_table_or_json(known: Known, tmp_path: Path, name: str) -> None:
    data = Data("cube", "ivoa-data-resource", f"ivo://vo.example/{name}")
    assert IvoMover(known.policy).check(data) == []
    assert await bring(data, tmp_path, known.policy) == {"cube.fits": BODY}


async def test_a_table_of_links_leads_to_the_data_itself_and_its_size(known: Known, tmp_path: Path) -> None:
    data = Data("cube", "ivoa-data-resource", f"datalink+{known.address}/links")
    assert await bring(data, tmp_path, UNLIMITED) == {"cube.fits": BODY}
    mover = IvoMover(UNLIMITED)
    resolved = await mover.resolve(data)
    assert [(replica.location.rpartition("/")[2], replica.size) for replica in resolved[0].replicas] == [
        ("gone.fits", None),
        ("cube.fits", len(BODY)),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("page", "a VOTable or JSON was expected"),
        ("none", "nothing is known of it there"),
        ("loop", "nothing is known of it there"),
        ("here", "files of this machine"),
        ("nothing", "answered 404"),
        ("locked", "answered 403"),
    ],
)
async def test_what_the_resolver_does_not_tell_is_told(known: Known, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(DataNotThere, match=words):
        await bring(Data("x", SIMPLE, f"ivo://vo.example/{name}"), tmp_path, known.policy)


async def test_a_dead_or_silent_resolver_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivo, "PATIENCE", 0.3)
    data = Data("x", SIMPLE, "ivo://vo.example/x")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # nobody takes what comes in
        resolver = f"http://127.0.0.1:{silent.getsockname()[1]}/{{ivoid}}"
        with pytest.raises(DataNotThere, match="not told within"):
            await bring(data, tmp_path, Policy(public_only=False, ivo_resolver=resolver))
    monkeypatch.undo()
    with pytest.raises(DataNotThere, match="can't be asked"):
        await bring(data, tmp_path, Policy(public_only=False, ivo_resolver="http://127.0.0.1:9/{ivoid}"))


async def test_for_others_a_resolver_leads_to_no_private_address(known: Known, tmp_path: Path) -> None:
    gateway = Policy(ivo_resolver=known.policy.ivo_resolver)  # the operator's own may be private
    for name in ("redirect?a=b", "obscore"):
        with pytest.raises(DataNotThere, match="not a public address"):
            await bring(Data("x", SIMPLE, f"ivo://vo.example/{name}"), tmp_path, gateway)
    assert seen(tmp_path) == {}


def test_without_a_resolver_an_ivoid_is_a_no_that_says_what_to_do() -> None:
    reason = IvoMover(UNLIMITED).check(Data("x", SIMPLE, "ivo://vo.example/x"))[0]
    assert "ivo_resolver" in reason.message
    assert "access_url" in reason.nearest
    for wrong in ("ivo://", "ivo://vo.example/x' OR 1=1", "ivo://vo.example/x\n"):
        assert "no IVOID" in IvoMover(UNLIMITED).check(Data("x", SIMPLE, wrong))[0].message


def skao(*addresses: str, **block: object) -> Data:
    named = {"namespace": "testing", "objectname": "m51.fits", "replicas": [{"dataurl": url} for url in addresses]}
    checksum = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    fields = {"skao": named | block}
    return Data("m51", "skao-data-resource", "skao:testing:m51.fits", size=len(BODY), checksum=checksum, fields=fields)


async def test_the_skaos_data_comes_from_the_first_replica_that_has_it_and_is_checked(
    known: Known, tmp_path: Path
) -> None:
    data = skao("gsiftp://old.example.org/x", f"{known.address}/gone.fits", f"{known.address}/cube.fits")
    assert await bring(data, tmp_path, UNLIMITED) == {"m51.fits": BODY}
    dead = skao(*(f"{known.address}/{name}" for name in ("links", "gone.fits", "locked.fits")))
    with pytest.raises(DataNotThere, match=r"came from none of its 3.*links.*expected.*gone.*404.*locked.*403"):
        await bring(dead, tmp_path / "no", UNLIMITED)


async def test_the_skaos_data_without_a_usable_replica_is_a_no_that_says_why() -> None:
    mover = SkaoMover(UNLIMITED)
    assert "rucio_server" in mover.check(skao())[0].message
    assert mover.check(skao("https://data.example.org/x")) == []
    _, reasons = await look_up(
        movers(UNLIMITED), mover, skao("gsiftp://old.example.org/x", "srm://older.example.org/x")
    )
    assert "gsiftp: addresses" in reasons[0].message
    assert "srm: addresses" in reasons[0].message


KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
EVERY_KIND: dict[str, dict[str, object]] = {
    "simple-data-resource": {"location": "https://data.example.org/x"},
    "S3-data-resource": {
        "endpoint": "https://s3.example.org",
        "template": "{endpoint}/{bucket}/{object}",
        "bucket": "sky",
    },
    "rucio-data-resource": {"rucio": {"scope": "ska", "object": "m51.fits", "type": "DATASET"}},
    "ivoa-data-resource": {"ivoa": {"ivoid": "ivo://vo.example/x"}},
    "skao-data-resource": {"skao": {"namespace": "testing", "objectname": "m51.fits", "objecttype": "FILE"}},
}


async def answer(service: Service, kind: str) -> OfferSet:
    executable = {"kind": "urn:sublet:kind:executable:command", "argv": ["true"]}
    data = {"kind": f"{KINDS}/data/{kind}.yaml", "meta": {"name": "sky"}, **EVERY_KIND[kind]}
    document = json.dumps({"executable": executable, "data": [data]}).encode()
    return await service.asking.ask(ME, await service.asking.read(document, "application/json", ME))


async def test_every_kind_of_ivoas_data_is_offered_where_it_can_be_found(tmp_path: Path) -> None:
    known = {"rucio_server": "https://rucio.example.org", "ivo_resolver": "https://vo.example.org/{ivoid}"}
    async with serving(tmp_path, platforms={"trial": {"kind": "memory"}}, loop=False, **known) as service:
        answers = {kind: (await answer(service, kind)).result for kind in EVERY_KIND}
    assert answers == dict.fromkeys(EVERY_KIND, "YES")


async def test_data_that_nobody_here_can_find_is_a_no_that_says_what_is_missing(tmp_path: Path) -> None:
    missing = {
        "rucio-data-resource": "rucio_server",
        "ivoa-data-resource": "ivo_resolver",
        "skao-data-resource": "rucio_server",
    }
    async with serving(tmp_path, platforms={"trial": {"kind": "memory"}}, loop=False) as service:
        for kind, setting in missing.items():
            refused = await answer(service, kind)
            assert refused.result == "NO"
            assert setting in refused.reasons[0].message
            assert refused.reasons[0].nearest
