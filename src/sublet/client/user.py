"""`User`: a person who signs in to a gateway by a mailed code, and is restored from a file later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from sublet.client import kept
from sublet.client.job import Job
from sublet.client.sync import Client
from sublet.client.sync_sessions import Session
from sublet.kernel.errors import BadRequest, NoAnswer, NotSignedIn
from sublet.people.calls import signing_in
from sublet.people.views.people import WhoView

AskCode = Callable[[str], str]


def by_prompt(address: str) -> str:
    """Prompt for the code on the terminal."""
    question = f"The code that was sent to {address}"
    try:
        return input(f"{question}: ")
    except EOFError:
        raise NoAnswer(
            question=question, hint="Sign in where it can be typed, or give a token: User(token=…)."
        ) from None


class User:
    """A person of a gateway, who runs `Job`s."""

    def __init__(
        self,
        email: str = "",
        url: str = "",
        *,
        token: str = "",
        file: str | os.PathLike[str] | None = None,
        code: AskCode = by_prompt,
    ) -> None:
        """Sign in with the given token, or else a stored one, or else a code that is sent by mail.

        `file` is where the token is stored, as private JSON; by default below SUBLET_HOME.
        """
        url = (url or os.environ.get("SUBLET_URL") or "").rstrip("/")
        if not url:
            raise BadRequest(detail="which gateway?", hint='User("me@example.org", url="https://gateway.example.org")')
        self.url = url if "://" in url else f"https://{url}"
        self.file = os.fspath(file) if file is not None else kept.usual_file(self.url)
        token_kept = kept.KeptToken(self.url, email, token) if token else self._find_token(email)
        self._kept_now = token_kept or self._sign_in(email, code)
        self.client = Client(self.url, self._kept_now.token)

    @property
    def email(self) -> str:
        """The person's e-mail address."""
        return self._kept_now.email

    @property
    def token(self) -> str:
        """The token, which has to be kept secret."""
        return self._kept_now.token

    def _find_token(self, email: str) -> kept.KeptToken | None:
        """Return the stored token for this gateway and person, if it is still valid."""
        token = kept.read(self.file)
        if token is None or token.url != self.url or (email and token.email != email.strip().lower()):
            return None
        try:
            Client(token.url, token.token).whoami()
        except NotSignedIn:
            return None
        return token

    def _sign_in(self, email: str, code: AskCode) -> kept.KeptToken:
        if not email:
            raise NotSignedIn("You are not signed in, and gave no address.", hint='User("me@example.org", url=…)')
        stranger = Client(self.url, "")
        stranger.do(signing_in.ask(email))
        made = stranger.do(signing_in.sign_in(email, code(email).strip(), "sublet.client.User"))
        token = kept.KeptToken(self.url, made.person, made.token)
        kept.write(self.file, token)
        return token

    def whoami(self) -> WhoView:
        """Return the person's identity, as the gateway sees it."""
        return self.client.whoami()

    def job(self, maintainer: str | None = None, hpc: str | None = None, **fields: Any) -> Job:
        """Return a new job that isn't submitted yet; `fields` are those of `Job.set`."""
        made = Job(hpc=hpc, maintainer=maintainer, user=self)
        return made.set(**fields) if fields else made

    def jobs(self, **filters: Any) -> Iterator[Session]:
        """Yield the person's sessions, newest first."""
        return self.client.sessions(**filters)

    def logout(self) -> None:
        """Revoke the token, and delete the stored one."""
        self.client.do(signing_in.sign_out())
        kept.forget(self.file)

    def __repr__(self) -> str:
        """Return a short description, without the token."""
        return f"<user {self.email} of {self.url}>"
