"""An IAM for the tests: its configuration and keys over HTTP, tokens, made by jwcrypto, and sign-in by a code."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

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
    forms: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # paths, and what was sent there
    replies: list[str] = field(default_factory=list)  # errors with which it answers before it gives a token
    lasts: int = 3600  # seconds, of a token that it gives
    interval: float = 0.02
    refreshing: set[str] = field(default_factory=set)  # refresh tokens that count
    claims: dict[str, Any] = field(default_factory=dict)  # of the tokens that it gives
    code: dict[str, Any] = field(default_factory=dict)  # what it answers otherwise to who asks for a code

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

    def answer_form(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """What a form gets: a code, tokens for it or for a refresh token, which counts once, or the end of one."""
        self.forms.append((path, form))
        if path == "/device":
            page = f"{self.issuer}enter"
            answer = {"device_code": "secret-of-device", "user_code": "WDJB-MJHT", "verification_uri": page}
            complete = f"{page}?user_code=WDJB-MJHT"
            times = {"expires_in": 600, "interval": self.interval}
            return 200, {**answer, "verification_uri_complete": complete, **times, **self.code}
        if path == "/revoke":
            self.refreshing.discard(form["token"])
            return 200, {}
        if self.replies:
            return 400, {"error": self.replies.pop(0)}
        if form["grant_type"] == "refresh_token" and form["refresh_token"] not in self.refreshing:
            return 400, {"error": "invalid_grant"}
        self.refreshing.discard(form.get("refresh_token", ""))
        refresh = f"refresh-{len(self.forms)}"
        self.refreshing.add(refresh)
        claims = {"aud": form.get("audience", AUDIENCE), "exp": int(time.time()) + self.lasts, **self.claims}
        access = self.token(jti=str(len(self.forms)), **claims)
        return 200, {"access_token": access, "refresh_token": refresh, "expires_in": self.lasts}

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
            answers: dict[str, dict[str, Any]] = {
                "/.well-known/openid-configuration": {
                    "issuer": iam.issuer,
                    "jwks_uri": f"{iam.issuer}keys",
                    "device_authorization_endpoint": f"{iam.issuer}device",
                    "token_endpoint": f"{iam.issuer}token",
                    "revocation_endpoint": f"{iam.issuer}revoke",
                },
                "/keys": {"keys": [json.loads(key.export_public()) for key in iam.keys]},
            }
            self.reply(200, answers.get(self.path, {}))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"])).decode()
            self.reply(*iam.answer_form(self.path, dict(parse_qsl(content))))

        def reply(self, status: int, answer: dict[str, Any]) -> None:
            content = json.dumps(answer).encode()
            self.send_response(503 if iam.is_down else status)
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
