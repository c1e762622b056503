"""Signs requests to S3 servers with AWS Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

import httpx2

from sublet.movers.redirects import SESSION_TOKEN

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"  # TLS protects the content, and a stream can't be hashed in advance


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class SignV4(httpx2.Auth):
    """Signs each request with an access key."""

    access_key: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    service: str = "s3"
    token: str = field(default="", repr=False)  # of temporary keys
    now: Callable[[], datetime] = _utc_now

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the signature headers."""
        when = self.now().strftime("%Y%m%dT%H%M%SZ")
        request.headers["x-amz-date"] = when
        request.headers.setdefault("x-amz-content-sha256", UNSIGNED)
        if self.token:
            request.headers[SESSION_TOKEN] = self.token
        signed = sorted(name for name in request.headers if name == "host" or name.startswith("x-amz-"))
        canonical = "\n".join(
            [
                request.method,
                _encode(request.url.path, safe="/"),
                _query(request.url),
                *(f"{name}:{' '.join(request.headers[name].split())}" for name in signed),
                "",
                ";".join(signed),
                request.headers["x-amz-content-sha256"],
            ]
        )
        scope = f"{when[:8]}/{self.region}/{self.service}/aws4_request"
        request.headers["authorization"] = (
            f"{ALGORITHM} Credential={self.access_key}/{scope}, "
            f"SignedHeaders={';'.join(signed)}, Signature={self._sign(canonical, when, scope)}"
        )
        yield request

    def sign_url(self, url: str, seconds: int, method: str = "GET") -> str:
        """Return a presigned address, which allows reading (or writing, with PUT) for so many seconds."""
        when = self.now().strftime("%Y%m%dT%H%M%SZ")
        scope = f"{when[:8]}/{self.region}/{self.service}/aws4_request"
        asked = httpx2.URL(url)
        params = {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{scope}",
            "X-Amz-Date": when,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
            **({"X-Amz-Security-Token": self.token} if self.token else {}),
        }
        query = "&".join(f"{_encode(name)}={_encode(value)}" for name, value in sorted(params.items()))
        host = asked.netloc.decode()
        canonical = f"{method}\n{_encode(asked.path, safe='/')}\n{query}\nhost:{host}\n\nhost\n{UNSIGNED}"
        return f"{url}?{query}&X-Amz-Signature={self._sign(canonical, when, scope)}"

    def _sign(self, canonical: str, when: str, scope: str) -> str:
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{ALGORITHM}\n{when}\n{scope}\n{digest}"
        return hmac.new(self._key(scope), text.encode(), hashlib.sha256).hexdigest()

    def _key(self, scope: str) -> bytes:
        key = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def _query(url: httpx2.URL) -> str:
    pairs = sorted((_encode(name), _encode(value)) for name, value in url.params.multi_items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _encode(text: str, safe: str = "") -> str:
    return quote(text, safe=f"{safe}-_.~")
