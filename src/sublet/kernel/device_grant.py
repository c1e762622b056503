"""Signing in by another device (RFC 8628): a code is shown here, typed in a browser anywhere, and asked after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.issuer_calls import call_issuer, check_address, discover, printable, unreachable

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
USUAL_INTERVAL = 5.0  # seconds between two questions, where the issuer says nothing
SLOWER = 5.0  # more seconds, each time that it asks for patience
LONGEST_INTERVAL = 60.0
LONGEST_CODE = 3600.0
AGAIN = "Type the command again for another code."


@dataclass(frozen=True, slots=True)
class IssuerClient:
    """An issuer, and by which of its clients this program asks for tokens."""

    title: str  # what people know it as
    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ()
    device_endpoint: str = ""  # empty: where its configuration says
    audience: str = ""  # the service that the tokens are to be for
    audience_parameter: str = ""  # how that is told; empty: it isn't

    @property
    def target(self) -> Mapping[str, str]:
        """The words of a form that say which service a token is for."""
        return {self.audience_parameter: self.audience} if self.audience_parameter and self.audience else {}


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where an issuer is asked."""

    device: str
    token: str
    revocation: str = ""  # empty: it takes no token back


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a person types in a browser, and what this program asks after meanwhile."""

    secret: str = field(repr=False)
    user_code: str
    page: str
    page_with_code: str = ""  # the same page, which knows the code already
    interval: float = USUAL_INTERVAL
    seconds: float = 600.0  # for which it counts


def find_endpoints(client: IssuerClient) -> Endpoints:
    """Where it is asked, by its own configuration; the service may say where the first step is."""
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
    """Ask for a code."""
    form = {"client_id": client.client_id, "scope": " ".join(client.scopes), **client.target}
    status, answer = call_issuer(client.title, endpoints.device, {name: value for name, value in form.items() if value})
    if status != 200:
        raise _refuse(client, answer, status)
    secret, code = answer.get("device_code"), answer.get("user_code")
    page = answer.get("verification_uri") or answer.get("verification_url")  # Google's older word
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
    """What the issuer gives once the person has agreed; NotConfirmed if they decline, or not in time.

    `wait` sleeps for so many seconds, `now` is a clock that only goes forward.
    """
    form = {"grant_type": GRANT, "device_code": code.secret, "client_id": client.client_id, **client.target}
    interval, deadline = code.interval, now() + code.seconds
    while now() + interval < deadline:
        wait(interval)
        try:
            status, answer = call_issuer(client.title, endpoints.token, form)
        except ProviderUnreachable:
            interval = min(max(interval, 1.0) * 2, LONGEST_INTERVAL)  # as RFC 8628 has it: ask less often
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
