"""Annexes for the synchronous client."""

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
    """An annex: nodes that are leased under a name."""

    def __init__(self, client: Client, view: AnnexView) -> None:
        """Wrap a view of the annex; use `Client.annex` or `Client.create_annex` instead."""
        super().__init__(view)
        self._client = client

    def refresh(self) -> Annex:
        """Update the annex from the service."""
        return self._see(annexes.annex(self.name))

    def wait(self, timeout: float | None = None) -> Annex:
        """Wait until all nodes of all leases have reported; raise NotUpYet after `timeout` seconds."""
        self.view = carry_out(self._client.link, until_up(self.name, timeout))
        return self

    def add(self, *, template: str = "", key: str | None = None, **details: Any) -> LeaseView:
        """Lease more nodes under the same name; details that aren't given are those of the last lease."""
        return self._client.do(annexes.add(lease_ask(self.name, template, "", details), key))

    def shutdown(self, number: int | None = None) -> Annex:
        """Shut down the annex, or one of its leases."""
        self._client.do(annexes.shutdown(lease_name(self.name, number)))
        return self.refresh()

    def cancel(self, number: int | None = None) -> Annex:
        """Cancel the annex's leases that are still queued, or one of them."""
        self._client.do(annexes.cancel(lease_name(self.name, number)))
        return self.refresh()

    def rename(self, name: str) -> Annex:
        """Rename the annex."""
        return self._see(annexes.rename(self.name, name))

    def open(self) -> Annex:
        """Let the annex run all of its owner's jobs."""
        return self._see(annexes.open_(self.name))

    def close(self, to_jobs: bool = False) -> Annex:
        """Let the annex run only jobs that name it or, with `to_jobs`, no jobs but only booked sessions."""
        return self._see(annexes.close(self.name, to_jobs))

    def share(self, guest: str) -> Annex:
        """Let a guest run contained jobs on the annex, under its owner's account."""
        return self._see(annexes.share(self.name, guest))

    def unshare(self, guest: str) -> Annex:
        """Stop sharing the annex with a guest."""
        return self._see(annexes.unshare(self.name, guest))

    def history(self) -> AnnexHistory:
        """Return all leases that the annex ever had, and their events."""
        return self._client.do(annexes.history(self.name))

    def _see(self, call: Call[AnnexView]) -> Annex:
        self.view = self._client.do(call)
        return self
