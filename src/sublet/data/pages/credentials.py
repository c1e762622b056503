"""The page of the visitor's credentials: a list without secrets, a form to add one, and removal."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import host_of, service_of
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import SubletError
from sublet.web.confirming import Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

KINDS = {
    "s3": "S3 keys: an access key and its secret",
    "login": "A login: a user name and a password",
    "token": "A token, without a user name",
}


async def look(request: Request) -> Response:
    """Show the visitor's credentials."""
    return await _draw(request, await visitor(request), {})


async def _draw(
    request: Request, who: Visitor, form: dict[str, str], wrong: SubletError | None = None, done: str = ""
) -> Response:
    kept = await service_of(request).credentials.list(who.person)
    status = wrong.status if wrong else 200
    return page(
        request, "credentials.html", who, status, credentials=kept, kinds=KINDS, form=form, wrong=wrong, done=done
    )


async def add(request: Request) -> Response:
    """Store a credential; its secret is never shown again, not even in the form after an error."""
    who, form = await read_form(request)
    typed = {name: form.get(name, "").strip() for name in ("place", "user", "endpoint", "region")}
    kind = CredentialKind(form["kind"]) if form.get("kind") in KINDS else CredentialKind.S3
    new = Credential(kind=kind, secret=form.get("secret", "").strip(), **typed)
    try:
        token = form.get("session_token", "").strip()
        await service_of(request).credentials.add(who.person, new, host_of(request), session_token=token)
    except SubletError as error:
        return await _draw(request, who, {**typed, "kind": kind.value}, error)
    return await _draw(request, who, {}, done=f"Kept, for addresses that begin with {new.place}.")


async def remove(request: Request) -> Response:
    """Remove a credential, after confirmation."""
    who, form = await read_form(request)
    place = form.get("place", "")
    if not is_confirmed(form):
        effects = (f"Data at {place} can't be read, and results can't be sent there, until you add it again.",)
        return confirm_page(request, who, Confirmation(f"Forget {place}?", effects, "Forget", "/web/credentials"), form)
    try:
        await service_of(request).credentials.remove(who.person, place, host_of(request))
    except SubletError as error:
        return await _draw(request, who, {}, error)
    return RedirectResponse("/web/credentials", 303)
