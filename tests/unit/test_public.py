"""Which addresses strangers may have called."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from sublet.kernel.public_addresses import NotPublic, PublicOnly, public_addresses

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",  # 127.0.0.1 behind NAT64
        "2002:7f00:1::1",  # and behind 6to4
        "2002:a9fe:a9fe::1",
        "::127.0.0.1",
        "::ffff:224.0.0.1",
        "::ffff:a9fe:a9fe",  # 169.254.169.254
        "fd00:ec2::254",
        "100.100.100.200",
        "192.168.0.1",
        "198.18.0.1",
        "255.255.255.255",
        "2130706433",  # 127.0.0.1 as one number, in base 8, in base 16, and cut short
        "017700000001",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "127.1",
        "0",
        "localhost",
    ],
)
async def test_private_addresses_are_known_in_every_writing(address: str) -> None:
    with pytest.raises(NotPublic):
        await public_addresses(address, 443)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::808:808"])
async def test_public_ones_are_called_as_they_are(address: str) -> None:
    assert await public_addresses(address, 443) == [address]


class Names:
    """Answers of name servers, one after another; the last one stays."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = answers

    async def getaddrinfo(self, host: str, port: int, **_: object) -> list[Any]:
        coming = self.answers.get(host.replace(".", "_"), [[host]])
        found = coming.pop(0) if len(coming) > 1 else coming[0]
        return [(2, 1, 6, "", (address, port)) for address in found]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """What would have been sent to where; each `/from/X` leads to X."""
    calls: list[httpx2.Request] = []

    async def send(_: object, request: httpx2.Request) -> httpx2.Response:
        calls.append(request)
        if leads := request.url.params.get("to"):
            return httpx2.Response(302, headers={"location": leads})
        return httpx2.Response(200)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", send)
    return calls


def client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=PublicOnly(trust_env=False), follow_redirects=True, trust_env=False)


async def test_a_name_that_means_something_else_the_second_time_leads_to_what_it_meant_first(
    called: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(rebinds_example=[["8.8.8.8"], ["127.0.0.1"]], mixed_example=[["8.8.8.8", "10.0.0.1"]])
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    async with client() as asking:
        await asking.get("https://rebinds.example/a")
        assert (called[0].url.host, called[0].headers["host"]) == ("8.8.8.8", "rebinds.example")
        assert called[0].extensions["sni_hostname"] == "rebinds.example"  # and its certificate is checked by that
        for address in ("https://rebinds.example/a", "https://mixed.example/"):
            with pytest.raises(httpx2.UnsupportedProtocol, match="not a public address"):
                await asking.get(address)
    assert len(called) == 1


@pytest.mark.parametrize(
    "inside",
    ["http://127.0.0.1/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/", "//169.254.169.254/latest/meta-data"],
)
async def test_a_redirection_leads_to_no_private_address(
    inside: str, called: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(public_example=[["8.8.8.8"]], **{"0x7f_1": [["127.0.0.1"]]})
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    async with client() as asking:
        with pytest.raises(httpx2.UnsupportedProtocol, match="not a public address"):
            await asking.get("https://public.example/", params={"to": inside})
        assert len(called) == 1
        await asking.get("https://public.example/", params={"to": "/elsewhere"})
    assert (called[-1].url.host, called[-1].headers["host"]) == ("8.8.8.8", "public.example")
    assert called[-1].extensions["sni_hostname"] == "public.example"
