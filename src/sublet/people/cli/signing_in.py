"""`login` and `logout`: a gateway's token is stored in SUBLET_HOME, and used by later commands."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

import click

from sublet.cli.command import command
from sublet.cli.output import Output, pairs
from sublet.cli.prompts import ask_for
from sublet.client.address import Address, find_address, gateway_at
from sublet.client.gateways import forget, keep, login_to
from sublet.client.link import Link
from sublet.kernel.errors import NoAnswer, NotAGateway, NotFound, NotPrivate, NotSignedIn, SubletError
from sublet.kernel.home import sublet_home
from sublet.kernel.kept_logins import KeptLogin
from sublet.people.calls import factors, people, profiles, signing_in
from sublet.people.cli.codes import ask_until_right
from sublet.people.cli.device_login import find_issuer, give_back, sign_in_by_device
from sublet.people.views.people import PersonView, TokenView, WhoView

NEAR = ("localhost", "127.0.0.1", "::1")
NOT_TYPED = (
    "Nobody is signed in. Type `sublet login` again where the code can be typed; a program shows a token instead: "
    "`sublet login URL --token < token.txt`."
)


@command(
    "login",
    "sublet login https://gateway.example.org",
    "sublet login https://gateway.example.org --issuer iam",
    "sublet login https://gateway.example.org --oidc campus",
    "sublet login https://gateway.example.org --token < token.txt",
)
@click.argument("url", required=False)
@click.option("--address", metavar="ADDRESS", help="Your e-mail address; else it is asked for.")
@click.option("--issuer", metavar="NAME", help="Sign in by this issuer of the gateway, if there are several.")
@click.option("--oidc", metavar="NAME", help="Sign in by an OpenID provider of the gateway, in a browser.")
@click.option("--token", "by_token", is_flag=True, help="Read a token from standard input, in place of a code.")
def login(
    out: Output, url: str | None, address: str | None, issuer: str | None, oidc: str | None, by_token: bool
) -> None:
    """Sign in to a gateway or broker, with a code that you type at its IAM, receive by e-mail, or see on a page.

    Later commands go there, until you sign out. Without a URL it is the gateway that you are signed in to, or
    SUBLET_URL. Tokens are stored in SUBLET_HOME, readable by you alone; those of an IAM are renewed automatically.
    With SUBLET_URL=own a command goes to your own service instead.
    """
    there = _gateway(url)
    require_private(there)
    home = sublet_home()
    secret: str | KeptLogin
    if by_token:
        secret = sys.stdin.readline().strip()
        if not secret:
            raise NoAnswer("There is no token on standard input.", hint="sublet login URL --token < token.txt")
    else:
        secret = _sign_in(out, Link(there), address, issuer, oidc)
    shown = secret if isinstance(secret, str) else secret.access
    who = Link(replace(there, token=shown)).do(people.whoami())
    if who.mode != "gateway":
        raise NotAGateway
    keep(home, there.text, secret)
    answer = {"gateway": there.text, "person": who.person, "role": who.role}
    out.show(answer, lambda: [f"You are signed in to {there.text} as {who.person}."], lambda: [who.person])
    out.note("Commands go there from now on. `sublet logout` ends it.")
    if who.pending_role:
        out.note(f"Your role is {_describe_role(who)}")


def require_private(there: Address) -> None:
    """Raise NotPrivate if a code or token would be sent unencrypted."""
    if there.scheme == "http" and there.host not in NEAR:
        raise NotPrivate("Your code and your token would travel unprotected.", hint=f"Use https://{there.host}.")


def _sign_in(out: Output, link: Link, address: str | None, issuer: str | None, oidc: str | None) -> str | KeptLogin:
    """Sign in by the given way, or by the gateway's issuer; return the token or login."""
    way = None if address or oidc else find_issuer(link, issuer)
    if way:
        return sign_in_by_device(way)
    if oidc:
        made = _by_page(out, link, oidc)
    else:
        made = _by_code(out, link, address or ask_for("E-mail address", "Give it with --address."))
    return (_second(out, link, made) if made.use.startswith("half-") else made).token


def _by_code(out: Output, link: Link, address: str) -> TokenView:
    out.note(link.do(signing_in.ask(address)).message)
    return ask_until_right(out, lambda: link.do(signing_in.sign_in(address, _code(), _client())))


def _by_page(out: Output, link: Link, name: str) -> TokenView:
    """Sign in by a provider of the gateway: a browser on any machine shows a code that only this terminal can use."""
    import hashlib
    import secrets

    ways = {way.name: way for way in link.do(factors.ways()).items}
    if name not in ways:
        known = ", ".join(ways) or "none"
        raise NotFound(noun="way to sign in", name=name, hint=f"There are: {known}.")
    verifier = secrets.token_urlsafe(32)
    challenge = hashlib.sha256(verifier.encode()).hexdigest()
    page = f"{ways[name].page}?challenge={challenge}"
    out.note(f"Open this in a browser, sign in, and type the code that it shows:\n\n  {page}\n")
    return link.do(factors.once(_code(), verifier, _client()))


def _second(out: Output, link: Link, half: TokenView) -> TokenView:
    """Complete a sign-in with a code of the second factor; in a terminal, ask again after a wrong one."""
    out.note("Now a code of your second factor, or one of your recovery codes.")
    return ask_until_right(out, lambda: link.do(factors.second(half.token, _code())))


def _client() -> str:
    import socket

    return f"sublet on {socket.gethostname()}"


def _code() -> str:
    return ask_for("Code", NOT_TYPED)


@command("logout", "sublet logout")
@click.argument("url", required=False)
def logout(out: Output, url: str | None) -> None:
    """Sign out of a gateway and revoke its token. Commands go to your own service again."""
    there, home = _gateway(url), sublet_home()
    login = login_to(home, there.text)
    if login is None:
        raise NotSignedIn(f"You are not signed in to {there.text}.", hint=f"sublet login {there.text}")
    left = give_back(login) if login.token_endpoint else _end_token(replace(there, token=login.access))
    forget(home, there.text)
    out.show({"gateway": there.text}, lambda: [f"You are signed out of {there.text}."], lambda: [there.text])
    if left:
        out.note(f"The token counts until it expires, as it could not be taken back: {left}")


def _end_token(there: Address) -> str:
    """Revoke one of the gateway's own tokens; return why that failed, or an empty string."""
    try:
        Link(there).do(signing_in.sign_out())
    except NotSignedIn:
        pass  # it was invalid already
    except SubletError as error:
        return error.message
    return ""


@command("whoami", "sublet whoami")
def whoami(out: Output) -> None:
    """Show who you are, at which service, and your role there."""
    link = out.link()
    who = link.do(people.whoami())
    known = _find_person(link, who.person) if who.mode == "gateway" else None
    answer: dict[str, Any] = {"person": who.person, "service": link.address.text, "mode": who.mode, "role": who.role}
    identities, groups = (known.identities, known.groups) if known else ((), ())
    answer |= {"scope": who.scope, "identities": identities, "groups": groups}
    renews = f"{_issuer_of(link)}, and renewed by it" if link.address.token_ends else ""
    names = [(identity.kind, identity.value) for identity in identities]
    lines = [
        ("person", who.person),
        ("service", f"{link.address.text} ({who.mode})"),
        ("role", _describe_role(who) if who.mode == "gateway" else ""),
        ("groups", ", ".join(groups)),
        ("token for", ", ".join(who.scope)),
        ("token of", renews),
        *((kind, value) for kind, value in names if value != who.person),
    ]
    out.show(answer, lambda: pairs(lines), lambda: [who.person])


def _describe_role(who: WhoView) -> str:
    """Return a person's role, and the one that counts once they have a second factor."""
    pending = f"; {who.pending_role} once you have a second factor: sublet person totp on"
    return f"{who.role}{pending if who.pending_role else ''}"


def _issuer_of(link: Link) -> str:
    login = login_to(sublet_home(), link.address.text)
    return login.title if login else ""


def _find_person(link: Link, name: str) -> PersonView | None:
    """Return what the gateway knows of the caller; None for those who use its socket."""
    try:
        return link.do(profiles.person(name))
    except SubletError:
        return None


def _gateway(url: str | None) -> Address:
    if url:
        return gateway_at(url if "://" in url else f"https://{url}")
    address = find_address()
    if address.socket:
        raise NotSignedIn("You are signed in to no gateway.", hint="sublet login https://HOST")
    return replace(address, token=os.environ.get("SUBLET_TOKEN", ""))
