"""Authentication of visitors: signed cookies, single-use sign-in links, and tokens against forged forms."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import base_of, on_socket, service_of
from sublet.kernel.errors import BadAddress, Forged, NotSignedIn
from sublet.people.model.person import Person
from sublet.service import Service

COOKIE = "sublet_web"
KNOWN_COOKIE = "sublet_known"  # shows that someone has signed in with this browser before; grants no access
HOST = "__Host-"  # cookie prefix for https: only this host can set such a cookie, and only securely
STAY = timedelta(hours=12)
KNOWN_LASTS = timedelta(days=365)
CODE_LASTS = timedelta(minutes=5)
MOST_SEALED = 2048
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "sublet", "")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who may see pages, and their cookie."""

    person: Person
    cookie: str  # empty on the Unix socket, where nobody signs in
    token: str = ""  # the id of the token that the cookie was issued for


@dataclass(frozen=True, slots=True)
class Sealed:
    """The person that a signed text is for, and the token behind it; revoking the token ends the visit, too."""

    person: Person
    token: str  # empty if it came from a sign-in link


@dataclass
class UsedCodes:
    """The sign-in codes that were used, each remembered until it would have expired."""

    until: dict[str, datetime] = field(default_factory=dict)

    def first_use(self, code: str, now: datetime) -> bool:
        """Record the use of a code; return whether it is the first."""
        self.until = {used: end for used, end in self.until.items() if end > now}
        if code in self.until:
            return False
        self.until[code] = now + CODE_LASTS
        return True


def seal(service: Service, purpose: str, sealed: Sealed, lasts: timedelta) -> str:
    """Return a text, signed by this service, that names a person and an expiry."""
    until = int((service.now() + lasts).timestamp())
    once = secrets.token_urlsafe(12)
    content = json.dumps([sealed.person.name, sealed.person.operator, sealed.token, until, once], separators=(",", ":"))
    body = base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    return f"{body}.{_sign(service, purpose, body)}"


def unseal(service: Service, purpose: str, text: str) -> Sealed | None:
    """Return the content of such a text if it is genuine, made for this purpose, and not expired; otherwise None."""
    body, _, signature = text[:MOST_SEALED].partition(".")
    if not hmac.compare_digest(_sign(service, purpose, body).encode(), signature.encode()):
        return None
    try:
        name, operator, token, until, _ = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return None
    return Sealed(Person(name, operator), token) if service.now().timestamp() < until else None


def issue_code(service: Service, person: Person) -> str:
    """Return a code that signs this person in once, within five minutes."""
    return seal(service, "code", Sealed(person, ""), CODE_LASTS)


async def visitor_of(request: Request) -> Visitor:
    """Return the visitor of this page; raise NotSignedIn if there is none."""
    if on_socket(request.scope):
        owner: Person = request.app.state.owner
        return Visitor(owner, "")
    service = service_of(request)
    cookie = request.cookies.get(cookie_name(request), "")
    sealed = unseal(service, "cookie", cookie) if cookie else None
    if sealed is None:
        raise NotSignedIn
    personal_link = not service.people.signing_in.knows_people and not sealed.token
    person = sealed.person if personal_link else await service.people.signing_in.visit(sealed.token)
    if person is None:
        raise NotSignedIn
    request.state.person = person
    return Visitor(person, cookie, sealed.token)


def let_in(request: Request, sealed: Sealed, stay: timedelta, to: str) -> Response:
    """Set the session cookie, new each time and hidden from scripts and other sites' forms, and redirect.

    A gateway's cookie is SameSite=Lax, so that it is sent when a link in a mail is followed; forms are protected by
    tokens.
    """
    service, https = service_of(request), _by_https(request)
    response = RedirectResponse(to, 303)
    response.set_cookie(
        cookie_name(request),
        seal(service, "cookie", sealed, stay),
        max_age=int(stay.total_seconds()),
        path="/" if https else "/web",
        secure=https,
        httponly=True,
        samesite="lax" if service.people.signing_in.knows_people else "strict",
    )
    return response


def remember(request: Request, response: Response, address: str) -> None:
    """Set a cookie that shows later that this address has signed in with this browser, without naming the address."""
    https = _by_https(request)
    response.set_cookie(
        _prefix_cookie(KNOWN_COOKIE, https),
        _sign(service_of(request), "known", service_of(request).authority.check_address(address)),
        max_age=int(KNOWN_LASTS.total_seconds()),
        path="/" if https else "/web",
        secure=https,
        httponly=True,
        samesite="strict",
    )


def is_known(request: Request, address: str) -> bool:
    """Whether this browser has the cookie that shows that this address has signed in with it before."""
    shown = request.cookies.get(_prefix_cookie(KNOWN_COOKIE, _by_https(request)), "")
    try:
        genuine = _sign(service_of(request), "known", service_of(request).authority.check_address(address))
    except BadAddress:
        return False
    return hmac.compare_digest(shown.encode(), genuine.encode())


def next_of(form: Mapping[str, str]) -> str:
    """Return the page to go to after signing in, which is always one of this service's."""
    path = form.get("next", "")
    ours = path.startswith("/web/") and "\\" not in path and path.isprintable()
    return path if ours else "/web/"


def cookie_name(request: Request) -> str:
    """Return the cookie's name for the protocol of this request."""
    return _prefix_cookie(COOKIE, _by_https(request))


def _prefix_cookie(name: str, https: bool) -> str:
    return f"{HOST}{name}" if https else name


def delete_cookie(request: Request, response: Response) -> None:
    """Delete the session cookie."""
    https = _by_https(request)
    response.delete_cookie(cookie_name(request), path="/" if https else "/web", secure=https, httponly=True)


def _by_https(request: Request) -> bool:
    return base_of(request).startswith("https:")


def form_token(service: Service, cookie: str, path: str) -> str:
    """Return the token that proves that a form for this path was on a page shown to this visitor."""
    return _sign(service, "form", f"{cookie} {path}")


def check_post(request: Request, cookie: str, token: str, path: str = "") -> None:
    """Raise Forged for a form from another site or without a valid token; scripts' requests use the token of `path`."""
    service = service_of(request)
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin", "null")  # our pages send no referrer, so browsers may send null
    ours = origin == "null" or origin.partition("://")[2] == request.headers.get("host", "")
    genuine = hmac.compare_digest(form_token(service, cookie, path or request.url.path).encode(), token.encode())
    if site not in ("same-origin", "none") or not ours or not genuine:
        raise Forged


def check_host(request: Request) -> None:
    """Raise Forged if a request on the owner's Unix socket has a foreign host name, by an attack or a bad proxy."""
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if on_socket(request.scope) and name not in LOOPBACK:
        raise Forged("Only its owner can use the Unix socket.", hint="Others connect by TCP, with a token.")


def _sign(service: Service, purpose: str, text: str) -> str:
    key = service.secrets.of(f"web {purpose}").encode()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
