"""Which addresses strangers may have called."""

from __future__ import annotations

import pytest

from sublet.movers.public import NotPublic, public_addresses

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
    ],
)
async def test_private_addresses_are_known_in_every_writing(address: str) -> None:
    with pytest.raises(NotPublic):
        await public_addresses(address, 443)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::808:808"])
async def test_public_ones_are_called_as_they_are(address: str) -> None:
    assert await public_addresses(address, 443) == [address]
