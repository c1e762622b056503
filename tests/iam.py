"""An IAM for the tests: its configuration and keys over HTTP, and tokens, made by jwcrypto."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jwcrypto.jwk import JWK
from jwcrypto.jwt import JWT

from tests.threads import serving

AUDIENCE = "https://broker.example.org"


@dataclass
class Iam:
    """One that runs; its first key signs."""

    issuer: str
    keys: list[Any] = field(default_factory=lambda: [new_key("first")])
    asked: list[str] = field(default_factory=list)  # the paths that were asked for
    is_down: bool = False

    def token(
        self, subject: str = "u-ann", *, key: Any = None, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token for the broker of the tests, unless the claims say otherwise; None leaves a claim out."""
        now = int(time.time())
        usual = {"iss": self.issuer, "sub": subject, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 3600}
        given = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        signer = key or self.keys[0]
        made = JWT(header={"alg": "RS256", "typ": "at+jwt", "kid": signer.get("kid"), **(header or {})}, claims=given)
        made.make_signed_token(signer)
        return str(made.serialize())

    def rotate(self, name: str) -> None:
        """Sign with a new key; the old one is gone."""
        self.keys = [new_key(name)]


def new_key(name: str) -> Any:
    """A key of RSA."""
    return JWK.generate(kty="RSA", size=2048, kid=name)


@contextlib.contextmanager
def iam_server() -> Iterator[Iam]:
    """One, for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            iam.asked.append(self.path)
            answers = {
                "/.well-known/openid-configuration": {"issuer": iam.issuer, "jwks_uri": f"{iam.issuer}keys"},
                "/keys": {"keys": [json.loads(key.export_public()) for key in iam.keys]},
            }
            content = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(503 if iam.is_down else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    iam = Iam(f"http://127.0.0.1:{server.server_port}/")
    with serving(server):
        yield iam
