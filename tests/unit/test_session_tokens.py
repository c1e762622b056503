"""Temporary S3 keys have a session token, which is signed as Amazon's own client does, and goes to no other host."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from sublet.data.model.credentials import Credential, CredentialKind, check_secret
from sublet.movers.redirects import hide_session_token
from sublet.movers.sigv4 import SignV4

ADDRESS = "http://s3.example.org/bucket/a%20b%2Bc.txt"
WHEN = datetime(2026, 11, 18, 12, tzinfo=UTC)
# Both made by botocore 1.44.3
SIGNED = "01adc5c3704855f3e8450a4333693dcebe2eb9676f3cd20c578fe9dea05d43b1"
PRESIGNED = "e7e59c62b67f18b41cda3f0af97a037f9dd5945a6cc16a1a7ab72ebfa869b1d3"


def sign() -> SignV4:
    keys = Credential("s3://bucket", CredentialKind.S3, "ASIAKEY", "sec/ret").with_session_token("tok/en+x==")
    secret, token = keys.s3_keys
    return SignV4(keys.user, secret, "eu-west-1", token=token, now=lambda: WHEN)


def test_a_session_token_is_part_of_what_is_signed() -> None:
    request = httpx2.Request("GET", ADDRESS)
    next(sign().auth_flow(request))
    assert request.headers["x-amz-security-token"] == "tok/en+x=="
    assert request.headers["authorization"].endswith(f"x-amz-date;x-amz-security-token, Signature={SIGNED}")


def test_a_signed_address_has_the_session_token() -> None:
    signed = sign().sign_url(ADDRESS, 3600)
    assert "&X-Amz-Security-Token=tok%2Fen%2Bx%3D%3D&" in signed
    assert signed.endswith(f"&X-Amz-Signature={PRESIGNED}")


@pytest.mark.anyio
async def test_a_session_token_is_not_shown_where_a_redirect_leads() -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        is_first = request.url.host == "s3.example.org"
        return httpx2.Response(307 if is_first else 200, headers={"Location": "http://other.example.org/x"})

    client = httpx2.AsyncClient(
        transport=httpx2.MockTransport(answer), auth=sign(), event_hooks={"response": [hide_session_token]}
    )
    async with client:
        await client.get(ADDRESS, follow_redirects=True)
    assert [request.url.host for request in asked] == ["s3.example.org", "other.example.org"]
    assert not {"authorization", "x-amz-security-token"} & set(asked[1].headers)


@pytest.mark.parametrize(("token", "why"), [("tok", ""), ("two words", "spaces"), ("a\nb", "more than one line")])
def test_a_session_token_is_one_word(token: str, why: str) -> None:
    keys = Credential("s3://bucket", CredentialKind.S3, "ASIAKEY", "secret").with_session_token(token)
    assert why in check_secret(keys)
    assert bool(check_secret(keys)) == bool(why)
