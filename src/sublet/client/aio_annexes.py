"""Annexes for programs that await."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sublet.annexes.calls import annexes
from sublet.annexes.views.annexes import AnnexHistory, AnnexView, LeaseView
from sublet.client.annex_facts import AnnexFacts, lease_ask, lease_name, until_up
from sublet.client.call import Call

if TYPE_CHECKING:
    from sublet.client.aio import AsyncClient


class AsyncAnnex(AnnexFacts):
    """Nodes that are leased under a name."""

    def __init__(self, client: AsyncClient, view: AnnexView) -> None:
        """Made by `AsyncClient.annex` and `AsyncClient.create_annex`."""
        super().__init__(view)
        self._client = client

    async def refresh(self) -> AsyncAnnex:
        """Look again."""
        return await self._see(annexes.annex(self.name))

    async def wait(self, timeout: float | None = None) -> AsyncAnnex:  # noqa: ASYNC109 - as in the other client
        """Until all nodes of all its leases have reported; NotUpYet after `timeout` seconds."""
        self.view = await self._client.carry_out(until_up(self.name, timeout))
        return self

    async def add(self, *, template: str = "", key: str | None = None, **details: Any) -> LeaseView:
        """More nodes under the same name; what isn't said is as it was the last time."""
        return await self._client.do(annexes.add(lease_ask(self.name, template, "", details), key))

    async def shutdown(self, number: int | None = None) -> AsyncAnnex:
        """End it, or one of its leases."""
        await self._client.do(annexes.shutdown(lease_name(self.name, number)))
        return await self.refresh()

    async def cancel(self, number: int | None = None) -> AsyncAnnex:
        """Take back what still waits."""
        await self._client.do(annexes.cancel(lease_name(self.name, number)))
        return await self.refresh()

    async def rename(self, name: str) -> AsyncAnnex:
        """Call it otherwise."""
        return await self._see(annexes.rename(self.name, name))

    async def open(self) -> AsyncAnnex:
        """Let it run all its owner's jobs."""
        return await self._see(annexes.open_(self.name))

    async def close(self, to_jobs: bool = False) -> AsyncAnnex:
        """Let it run only the jobs that name it; or none, but sessions, at booked times."""
        return await self._see(annexes.close(self.name, to_jobs))

    async def share(self, guest: str) -> AsyncAnnex:
        """Let someone run contained jobs on it, as its owner's account."""
        return await self._see(annexes.share(self.name, guest))

    async def unshare(self, guest: str) -> AsyncAnnex:
        """Let them no longer."""
        return await self._see(annexes.unshare(self.name, guest))

    async def history(self) -> AnnexHistory:
        """All leases that it ever had, and what happened to them."""
        return await self._client.do(annexes.history(self.name))

    async def _see(self, call: Call[AnnexView]) -> AsyncAnnex:
        self.view = await self._client.do(call)
        return self
