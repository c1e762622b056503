"""`Job`: an app on a gateway, in the terms of CyberGIS' roadmap; made by a `User` or directly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sublet.apps.calls import runs as app_runs
from sublet.booking.calls import results
from sublet.booking.views.events import EventView
from sublet.booking.views.results import ResultFileView
from sublet.booking.views.sessions import SessionView
from sublet.client.fetching import choose_results, fetch, find_files_there
from sublet.client.sync import Client
from sublet.client.sync_sessions import Session
from sublet.kernel.errors import AlreadySubmitted, BadRequest, NoOwnLogins, NotSubmitted

if TYPE_CHECKING:
    from sublet.client.user import User

FIELDS = ("maintainer", "hpc", "file", "data_file", "app", "slurm", "name", "version")


class Job:
    """An app to run and, once it is submitted, its session."""

    def __init__(
        self,
        hpc: str | None = None,
        maintainer: str | None = None,
        id: str | None = None,
        user: User | str | None = None,
        password: str | None = None,
        url: str = "",
        port: int = 443,
        isJupyter: bool = False,  # noqa: N803 - as the roadmap has it
        protocol: str = "HTTPS",
        *,
        token: str = "",
    ) -> None:
        """Make a new job or, with an `id`, load a submitted one. `token` is the person's, or the job's own.

        `user` is a `User`. A user name and password for a centre are refused: a gateway takes nobody's password.
        """
        if password or isinstance(user, str):
            raise NoOwnLogins(platform=hpc or "a centre")
        self.isJupyter = isJupyter
        self.client = user.client if user else Client(_address(url, port, protocol) or None, token or None)
        self.token = token  # the job's own token, once it is submitted
        self.fields: dict[str, Any] = {}
        self._session: Session | None = self.client.session(id) if id else None
        self.set(hpc=hpc, maintainer=maintainer)

    @property
    def id(self) -> str:
        """The session's id; empty until the job is submitted."""
        return self._session.id if self._session else ""

    @property
    def session(self) -> Session:
        """The job's session; raises NotSubmitted before it is submitted."""
        if self._session is None:
            raise NotSubmitted
        return self._session

    def set(self, **fields: Any) -> Job:
        """Set `hpc`, `file`, `data_file`, `app` (its parameters), `slurm`, `name` or `version`; None changes nothing.

        `file` is an approved app: its name, or `github://owner/repository`. In `app`, 0, "" and False are values.
        """
        if self._session is not None and any(value is not None for value in fields.values()):
            raise AlreadySubmitted(job=self.id)
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            raise BadRequest(detail=f"a job has no {unknown[0]}.", hint=f"It has: {', '.join(FIELDS)}.")
        self.fields |= {name: value for name, value in fields.items() if value is not None}
        return self

    def submit(self, *, key: str | None = None) -> Job:
        """Run the job on the best offer; raise NoOffers with the reasons if there is none. A `key` prevents repeats."""
        if self._session is not None:
            raise AlreadySubmitted(job=self.id)
        started = self.client.do(app_runs.start(self.fields, key))
        self.token = started.token
        self._session = Session(self.client, started.session)
        return self

    def status(self) -> SessionView:
        """Return the session's current state."""
        return self.session.refresh().view

    def events(self) -> Iterator[EventView]:
        """Yield the job's events so far, oldest first."""
        return self.client.events(self.session.id)

    def logs(self, *, stream: str = "stdout", follow: bool = False) -> Iterator[str]:
        """Yield the job's output in pieces; with `follow`, continue until it has ended."""
        return self.session.logs(stream=stream, follow=follow)

    def result_folder_content(self) -> tuple[ResultFileView, ...]:
        """Return the job's result files, with their sizes."""
        return self.session.results()

    def download(
        self, directory: str | os.PathLike[str] = ".", paths: Sequence[str] = (), *, overwrite: bool = False
    ) -> list[str]:
        """Download the results, or those that are named, in a named directory or match a pattern; resume partial files.

        Raise InTheWay, without downloading anything, if other files with the same names exist, unless `overwrite`.
        """
        stream, id, to = self.client.stream, self.session.id, os.fspath(directory)
        left = choose_results(self.client.do(results.results(id)), paths)
        return fetch(stream, id, left, to, find_files_there(stream, id, left, to, overwrite=overwrite))

    def cancel(self) -> Job:
        """Cancel the job."""
        self.session.cancel()
        return self

    def pause(self) -> str:
        """Pause the job; return how."""
        return self.session.pause()

    def resume(self) -> str:
        """Resume the job; return how."""
        return self.session.resume()

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended; raise NotOverYet after `timeout` seconds."""
        self.session.wait(timeout)
        return self

    def __repr__(self) -> str:
        """Return a short description, without any token."""
        if self._session is None:
            return f"<job {self.fields.get('file') or self.fields.get('maintainer') or ''}: not submitted>"
        return f"<job {self._session.view.short}: {self._session.phase}>"


def _address(url: str, port: int, protocol: str) -> str:
    """Return the gateway's URL; empty to use SUBLET_URL."""
    if not url or "://" in url:
        return url
    return f"{protocol.lower()}://{url}:{port}"
