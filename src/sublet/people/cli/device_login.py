"""Sign-in by a device code of an issuer such as an IAM, typed in a browser on any machine (RFC 8628)."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sublet.cli.output import say
from sublet.client.link import Link
from sublet.kernel.device_grant import (
    DeviceCode,
    IssuerClient,
    await_device_grant,
    begin_device_grant,
    find_endpoints,
)
from sublet.kernel.errors import NotFound, SubletError
from sublet.kernel.issuer_calls import call_issuer, unreachable
from sublet.kernel.kept_logins import KeptLogin, read_grant
from sublet.people.calls import factors
from sublet.people.views.factors import IssuerWayView


def find_issuer(link: Link, name: str | None, *, is_wanted: bool = False) -> IssuerWayView | None:
    """Return the issuer of this name, or the only one that supports device codes; None if there is none."""
    ways: Mapping[str, IssuerWayView] = {way.name: way for way in link.do(factors.ways()).issuers}
    if name is None and len(ways) <= 1 and not (is_wanted and not ways):
        return next(iter(ways.values()), None)
    if name is None or name not in ways:
        known = ", ".join(ways) or "none"
        raise NotFound(noun="issuer", name=name or "to sign in by", hint=f"Name one by --issuer. There are: {known}.")
    return ways[name]


def sign_in_by_device(way: IssuerWayView) -> KeptLogin:
    """Show a code, wait until it is typed in a browser, and return the resulting login."""
    client = IssuerClient(
        title=way.title,
        issuer=way.issuer,
        client_id=way.client_id,
        scopes=way.scopes,
        device_endpoint=way.device_endpoint,
        audience=way.audience,
        audience_parameter=way.audience_parameter,
    )
    endpoints = find_endpoints(client)
    code = begin_device_grant(client, endpoints)
    say("\n".join(describe_code(client, code)))
    answer = await_device_grant(client, endpoints, code, time.sleep, time.monotonic)
    login = KeptLogin(
        access="",
        title=way.title,
        client_id=way.client_id,
        token_endpoint=endpoints.token,
        revocation_endpoint=endpoints.revocation,
        target=client.target,
    )
    login = read_grant(login, answer)
    if not login.access:
        raise unreachable(way.title, "it gave no token")
    return login


def describe_code(client: IssuerClient, code: DeviceCode) -> list[str]:
    """Describe the page, the code, and how long it is valid, for the user."""
    minutes = max(1, round(code.seconds / 60))
    lines = [
        f"Sign in at {client.title}: open this page in a browser, on any machine,",
        "",
        f"  {code.page}",
        "",
        "and type this code there:",
        "",
        f"  {code.user_code}",
        "",
    ]
    if code.page_with_code:
        lines += ["Or open this one, which knows the code:", "", f"  {code.page_with_code}", ""]
    unit = "minute" if minutes == 1 else "minutes"
    return [*lines, f"The code counts for {minutes} {unit}. Waiting for you to agree there …"]


def give_back(login: KeptLogin) -> str:
    """Revoke a login at its issuer (RFC 7009); return why that failed, or an empty string."""
    if not login.revocation_endpoint:
        return "its issuer takes no tokens back" if login.token_endpoint else ""
    for hint, secret in (("refresh_token", login.refresh), ("access_token", login.access)):
        form = {"token": secret, "token_type_hint": hint, "client_id": login.client_id}
        try:
            status, _ = call_issuer(login.title, login.revocation_endpoint, form) if secret else (200, {})
        except SubletError as error:
            return error.message
        if status != 200:
            return f"its issuer answered with {status}"
    return ""
