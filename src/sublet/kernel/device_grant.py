"""Signing in with another device (RFC 8628): shows a code to type in any browser, and polls until it was confirmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.issuer_calls import call_issuer, check_address, discover, printable, unreachable

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
USUAL_INTERVAL = 5.0  # seconds between polls, if the issuer names no interval
SLOWER = 5.0  # seconds added each time that the issuer answers `slow_down`
LONGEST_INTERVAL = 60.0
LONGEST_CODE = 3600.0
AGAIN = "Type the command again for another code."


@dataclass(frozen=True, slots=True)
class IssuerClient:
    """An issuer, and the OAuth client of it with which this program asks for tokens."""

    title: str  # the issuer's name for people
    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ()
    device_endpoint: str = ""  # empty: as the issuer's configuration says
    audience: str = ""  # the service that will accept the tokens
    audience_parameter: str = ""  # the form field for the audience; empty: none is sent

    @property
    def target(self) -> Mapping[str, str]:
        """The form fields that name the service which will accept the token."""
        return {self.audience_parameter: self.audience} if self.audience_parameter and self.audience else {}


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of an issuer's endpoints."""

    device: str
    token: str
    revocation: str = ""  # empty: the issuer can't revoke tokens


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The code that a person types in a browser, and the secret with which this program polls meanwhile."""

    secret: str = field(repr=False)
    user_code: str
    page: str
    page_with_code: str = ""  # the same page with the code filled in; may be empty
    interval: float = USUAL_INTERVAL
    seconds: float = 600.0  # how long the code is valid


def find_endpoints(client: IssuerClient) -> Endpoints:
    """Return the issuer's endpoints from its OpenID configuration; the client may override the device endpoint."""
    metadata = discover(client.title, client.issuer)

    def find(name: str, address: object) -> str:
        return check_address(client.title, client.issuer, address, name)

    device = client.device_endpoint or metadata.get("device_authorization_endpoint")
    if not device:
        raise unreachable(client.title, "it has no sign-in by a code (device_authorization_endpoint)")
    revocation = metadata.get("revocation_endpoint")
    return Endpoints(
        find("device_authorization_endpoint", device),
        find("token_endpoint", metadata.get("token_endpoint")),
        find("revocation_endpoint", revocation) if revocation else "",
    )


def begin_device_grant(client: IssuerClient, endpoints: Endpoints) -> DeviceCode:
    """Request a device code from the issuer."""
    form = {"client_id": client.client_id, "scope": " ".join(client.scopes), **client.target}
    status, answer = call_issuer(client.title, endpoints.device, {name: value for name, value in form.items() if value})
    if status != 200:
        raise _refuse(client, answer, status)
    secret, code = answer.get("device_code"), answer.get("user_code")
    page = answer.get("verification_uri") or answer.get("verification_url")  # Google's older name for it
    if not all(isinstance(text, str) and text for text in (secret, code, page)):
        raise unreachable(client.title, "its answer has no code")
    complete = answer.get("verification_uri_complete")
    return DeviceCode(
        str(secret),
        printable(code, 40),
        printable(page, 500),
        printable(complete, 600) if isinstance(complete, str) else "",
        _between(answer.get("interval"), 0.0, LONGEST_INTERVAL, USUAL_INTERVAL),
        _between(answer.get("expires_in"), 1.0, LONGEST_CODE, 600.0),
    )


def await_device_grant(
    client: IssuerClient,
    endpoints: Endpoints,
    code: DeviceCode,
    wait: Callable[[float], None],
    now: Callable[[], float],
) -> dict[str, Any]:
    """Poll until the person has confirmed and return the issuer's answer; NotConfirmed if declined or too late.

    `wait` sleeps for a number of seconds, `now` is a monotonic clock.
    """
    form = {"grant_type": GRANT, "device_code": code.secret, "client_id": client.client_id, **client.target}
    interval, deadline = code.interval, now() + code.seconds
    while now() + interval < deadline:
        wait(interval)
        try:
            status, answer = call_issuer(client.title, endpoints.token, form)
        except ProviderUnreachable:
            interval = min(max(interval, 1.0) * 2, LONGEST_INTERVAL)  # RFC 8628: back off if the connection times out
            continue
        if status == 200:
            return answer
        match answer.get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                interval = min(interval + SLOWER, LONGEST_INTERVAL)
            case "expired_token":
                break
            case "access_denied":
                raise NotConfirmed(provider=client.title, why="it was declined there.", hint=AGAIN)
            case _ if status >= 500 or status == 429:
                interval = min(max(interval, 1.0) * 2, LONGEST_INTERVAL)
            case _:
                raise _refuse(client, answer, status)
    raise NotConfirmed(provider=client.title, why="the code was not typed in time.", hint=AGAIN)


def _refuse(client: IssuerClient, answer: Mapping[str, Any], status: int) -> NotConfirmed:
    words = printable(answer.get("error_description") or answer.get("error") or f"status {status}").rstrip(".")
    hint = f"Its client `{client.client_id}` may not do this: ask the operator of the service that you sign in to."
    return NotConfirmed(provider=client.title, why=f"it refused ({words}).", hint=hint)


def _between(value: object, least: float, most: float, usual: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return usual
    return min(max(float(value), least), most)
