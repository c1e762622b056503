"""Who looks at a page: signed cookies, links that let someone in once, and proof that a form is ours."""

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
KNOWN_COOKIE = "sublet_known"  # of a browser that has signed in: it shows that, and opens nothing
HOST = "__Host-"  # before their names, by https: no other host, and nothing that came unprotected, can have set them
STAY = timedelta(hours=12)
KNOWN_LASTS = timedelta(days=365)
CODE_LASTS = timedelta(minutes=5)
MOST_SEALED = 2048
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "sublet", "")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Someone who may see pages, and the secret part of their cookie."""

    person: Person
    cookie: str  # empty by the Unix socket, where nobody signs in
    token: str = ""  # the id of the token that it was given for


@dataclass(frozen=True, slots=True)
class Sealed:
    """Who a sealed text is for, and the token that it was given for; a revoked token ends the visit too."""

    person: Person
    token: str  # empty for what a link has brought


@dataclass
class UsedCodes:
    """Codes that have let someone in; each is remembered until it would have expired anyway."""

    until: dict[str, datetime] = field(default_factory=dict)

    def first_use(self, code: str, now: datetime) -> bool:
        """Whether this is the first time that the code is shown."""
        self.until = {used: end for used, end in self.until.items() if end > now}
        if code in self.until:
            return False
        self.until[code] = now + CODE_LASTS
        return True


def seal(service: Service, purpose: str, sealed: Sealed, lasts: timedelta) -> str:
    """A text that only this service can have made: who it is for, and until when it counts."""
    until = int((service.now() + lasts).timestamp())
    once = secrets.token_urlsafe(12)
    content = json.dumps([sealed.person.name, sealed.person.operator, sealed.token, until, once], separators=(",", ":"))
    body = base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    return f"{body}.{_sign(service, purpose, body)}"


def unseal(service: Service, purpose: str, text: str) -> Sealed | None:
    """What such a text says, if it is genuine, made for this purpose, and still counts."""
    body, _, signature = text[:MOST_SEALED].partition(".")
    if not hmac.compare_digest(_sign(service, purpose, body).encode(), signature.encode()):
        return None
    try:
        name, operator, token, until, _ = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return None
    return Sealed(Person(name, operator), token) if service.now().timestamp() < until else None


def issue_code(service: Service, person: Person) -> str:
    """A code that lets this person in once, within five minutes."""
    return seal(service, "code", Sealed(person, ""), CODE_LASTS)


async def visitor_of(request: Request) -> Visitor:
    """Who looks at this page, or NotSignedIn."""
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
    return Visitor(person, cookie, sealed.token)


def let_in(request: Request, sealed: Sealed, stay: timedelta, to: str) -> Response:
    """Give a browser its cookie: new each time, and of no use to scripts and other sites' forms.

    A gateway's comes along when a link in a mail is followed; forms have their proof.
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
    """Let a browser show later that someone has signed in there by this address, which its cookie does not name."""
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
    """Whether this browser shows that someone has signed in there by this address."""
    shown = request.cookies.get(_prefix_cookie(KNOWN_COOKIE, _by_https(request)), "")
    try:
        genuine = _sign(service_of(request), "known", service_of(request).authority.check_address(address))
    except BadAddress:
        return False
    return hmac.compare_digest(shown.encode(), genuine.encode())


def next_of(form: Mapping[str, str]) -> str:
    """Where to go after signing in: a page of ours, whatever was sent."""
    path = form.get("next", "")
    ours = path.startswith("/web/") and "\\" not in path and path.isprintable()
    return path if ours else "/web/"


def cookie_name(request: Request) -> str:
    """What the cookie is called on the way that this request came."""
    return _prefix_cookie(COOKIE, _by_https(request))


def _prefix_cookie(name: str, https: bool) -> str:
    return f"{HOST}{name}" if https else name


def delete_cookie(request: Request, response: Response) -> None:
    """Let a browser in no more."""
    https = _by_https(request)
    response.delete_cookie(cookie_name(request), path="/" if https else "/web", secure=https, httponly=True)


def _by_https(request: Request) -> bool:
    return base_of(request).startswith("https:")


def form_token(service: Service, cookie: str, path: str) -> str:
    """The proof that a form to this path was on a page that this visitor was shown."""
    return _sign(service, "form", f"{cookie} {path}")


def check_post(request: Request, cookie: str, token: str, path: str = "") -> None:
    """Refuse a form that another site sent, or that carries no proof; a script's requests have that of one `path`."""
    service = service_of(request)
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin", "null")  # our pages send no referrer, so browsers may say null
    ours = origin == "null" or origin.partition("://")[2] == request.headers.get("host", "")
    genuine = hmac.compare_digest(form_token(service, cookie, path or request.url.path).encode(), token.encode())
    if site not in ("same-origin", "none") or not ours or not genuine:
        raise Forged


def check_host(request: Request) -> None:
    """By the Unix socket only its owner comes; a name other than this machine's is a trick or a careless proxy."""
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if on_socket(request.scope) and name not in LOOPBACK:
        raise Forged("The Unix socket is for its owner alone.", hint="Others come by TCP, with a token.")


def _sign(service: Service, purpose: str, text: str) -> str:
    key = service.secrets.of(f"web {purpose}").encode()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
