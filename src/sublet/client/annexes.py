"""Annexes for programs that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import AnnexHistory, AnnexView, LeaseView
from sublet.client.annex_facts import AnnexFacts, lease_ask, lease_name, until_up
from sublet.client.call import Call
from sublet.client.waiting import carry_out

if TYPE_CHECKING:
    from sublet.client.sync import Client


class Annex(AnnexFacts):
    """Nodes that are leased under a name."""

    def __init__(self, client: Client, view: AnnexView) -> None:
        """Made by `Client.annex` and `Client.create_annex`."""
        super().__init__(view)
        self._client = client

    def refresh(self) -> Annex:
        """Look again."""
        return self._see(annexes.annex(self.name))

    def wait(self, timeout: float | None = None) -> Annex:
        """Until all nodes of all its leases have reported; NotUpYet after `timeout` seconds."""
        self.view = carry_out(self._client.link, until_up(self.name, timeout))
        return self

    def add(self, *, template: str = "", key: str | None = None, **details: Any) -> LeaseView:
        """More nodes under the same name; what isn't said is as it was the last time."""
        return self._client.do(annexes.add(lease_ask(self.name, template, "", details), key))

    def shutdown(self, number: int | None = None) -> Annex:
        """End it, or one of its leases."""
        self._client.do(annexes.shutdown(lease_name(self.name, number)))
        return self.refresh()

    def cancel(self, number: int | None = None) -> Annex:
        """Take back what still waits."""
        self._client.do(annexes.cancel(lease_name(self.name, number)))
        return self.refresh()

    def rename(self, name: str) -> Annex:
        """Call it otherwise."""
        return self._see(annexes.rename(self.name, name))

    def open(self) -> Annex:
        """Let it run all its owner's jobs."""
        return self._see(annexes.open_(self.name))

    def close(self, to_jobs: bool = False) -> Annex:
        """Let it run only the jobs that name it; or none, but sessions, at booked times."""
        return self._see(annexes.close(self.name, to_jobs))

    def share(self, guest: str) -> Annex:
        """Let someone run contained jobs on it, as its owner's account."""
        return self._see(annexes.share(self.name, guest))

    def unshare(self, guest: str) -> Annex:
        """Let them no longer."""
        return self._see(annexes.unshare(self.name, guest))

    def history(self) -> AnnexHistory:
        """All leases that it ever had, and what happened to them."""
        return self._client.do(annexes.history(self.name))

    def _see(self, call: Call[AnnexView]) -> Annex:
        self.view = self._client.do(call)
        return self
