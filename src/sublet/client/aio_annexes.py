"""Annexes for the asynchronous client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import AnnexHistory, AnnexView, LeaseView
from sublet.client.annex_facts import AnnexFacts, lease_ask, lease_name, until_up
from sublet.client.call import Call

if TYPE_CHECKING:
    from sublet.client.aio import AsyncClient


class AsyncAnnex(AnnexFacts):
    """An annex: nodes that are leased under a name."""

    def __init__(self, client: AsyncClient, view: AnnexView) -> None:
        """Wrap a view of the annex; use `AsyncClient.annex` or `AsyncClient.create_annex` instead."""
        super().__init__(view)
        self._client = client

    async def refresh(self) -> AsyncAnnex:
        """Update the annex from the service."""
        return await self._see(annexes.annex(self.name))

    async def wait(self, timeout: float | None = None) -> AsyncAnnex:  # noqa: ASYNC109 - as in the other client
        """Wait until all nodes of all leases have reported; raise NotUpYet after `timeout` seconds."""
        self.view = await self._client.carry_out(until_up(self.name, timeout))
        return self

    async def add(self, *, template: str = "", key: str | None = None, **details: Any) -> LeaseView:
        """Lease more nodes under the same name; details that aren't given are those of the last lease."""
        return await self._client.do(annexes.add(lease_ask(self.name, template, "", details), key))

    async def shutdown(self, number: int | None = None) -> AsyncAnnex:
        """Shut down the annex, or one of its leases."""
        await self._client.do(annexes.shutdown(lease_name(self.name, number)))
        return await self.refresh()

    async def cancel(self, number: int | None = None) -> AsyncAnnex:
        """Cancel the annex's leases that are still queued, or one of them."""
        await self._client.do(annexes.cancel(lease_name(self.name, number)))
        return await self.refresh()

    async def rename(self, name: str) -> AsyncAnnex:
        """Rename the annex."""
        return await self._see(annexes.rename(self.name, name))

    async def open(self) -> AsyncAnnex:
        """Let the annex run all of its owner's jobs."""
        return await self._see(annexes.open_(self.name))

    async def close(self, to_jobs: bool = False) -> AsyncAnnex:
        """Let the annex run only jobs that name it or, with `to_jobs`, no jobs but only booked sessions."""
        return await self._see(annexes.close(self.name, to_jobs))

    async def share(self, guest: str) -> AsyncAnnex:
        """Let a guest run contained jobs on the annex, under its owner's account."""
        return await self._see(annexes.share(self.name, guest))

    async def unshare(self, guest: str) -> AsyncAnnex:
        """Stop sharing the annex with a guest."""
        return await self._see(annexes.unshare(self.name, guest))

    async def history(self) -> AnnexHistory:
        """Return all leases that the annex ever had, and their events."""
        return await self._client.do(annexes.history(self.name))

    async def _see(self, call: Call[AnnexView]) -> AsyncAnnex:
        self.view = await self._client.do(call)
        return self
