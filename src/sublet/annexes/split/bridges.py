"""The bridges of a lease: a bridge runs while its node is alive, and a node ends with its bridge."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from sublet.annexes.pilots.keeping import keep
from sublet.annexes.split.bridge import Bridge
from sublet.annexes.split.ledger import Ledger
from sublet.annexes.split.relay_plan import RelayOrders
from sublet.platforms.htcondor.release import Release


class Bridges:
    """One bridge for each node, if HTCondor is installed here."""

    def __init__(self, directory: Path, plan: RelayOrders, ledger: Ledger, end_node: Callable[[int], None]) -> None:
        """Use a relay's directory; `end_node` makes a node end."""
        self.directory, self.plan, self.ledger, self.end_node = directory / "bridge", plan, ledger, end_node
        self.by_number: dict[int, Bridge] = {}
        self.working: dict[int, asyncio.Task[None]] = {}
        if plan.release:
            release = Release(**{name: Path(path) for name, path in plan.release.items()})
            self.by_number = {number: Bridge(self.directory / str(number), release) for number in range(plan.nodes)}

    def tend(self, now: float) -> None:
        """Start, stop and check bridges, depending on the state of their nodes."""
        for number, bridge in self.by_number.items():
            if bridge.ready and number not in self.working:
                self._tend(number, bridge, now)

    def _tend(self, number: int, bridge: Bridge, now: float) -> None:
        node, alive, was_over = self.ledger.seen.get(number), self.ledger.alive(number, now), bridge.over
        bridge.look()
        if bridge.over and not was_over:
            self.end_node(number)
        elif bridge.running and (alive is False or (node and node.ending)):
            self.working[number] = asyncio.create_task(self._withdraw(number, bridge))
        elif bridge.running:
            bridge.offer(self.ledger.link.up)
        elif node and alive and node.facts and not (bridge.over or node.ending):
            bridge.start(node.facts, int(time.time()))

    async def _withdraw(self, number: int, bridge: Bridge) -> None:
        try:
            await bridge.stop()
        finally:
            del self.working[number]

    async def stop(self) -> None:
        """Stop all bridges."""
        await asyncio.gather(*(bridge.stop() for bridge in self.by_number.values()))

    def over(self, number: int) -> str:
        """Return why a bridge ended by itself, or an empty string."""
        return self.by_number[number].over if number in self.by_number else ""

    def tell(self, now: float | None = None) -> None:
        """Write a file for each bridge with what its startd must know about its node."""
        now = time.monotonic() if now is None else now
        for number in range(self.plan.nodes):
            place = self.directory / str(number)
            with contextlib.suppress(OSError):  # the bridge isn't there, or no room: it is written again every second
                keep(place / "probe.out", self.ledger.probe(number, now, int(time.time())).encode())
