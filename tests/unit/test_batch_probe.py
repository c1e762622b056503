"""What batch systems say of themselves when they are probed: queues with their limits, sorts of node, tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch.platform import BatchPlatform
from sublet.platforms.batch.probe import TOOLS, probe_site
from sublet.platforms.gridengine.platform import GridEngine
from sublet.platforms.lsf.platform import Lsf
from sublet.platforms.oar.platform import Oar
from sublet.platforms.pbs.platform import Pbs
from sublet.reach.port import Command, Outcome
from sublet.systems.model.probe import Live

pytestmark = pytest.mark.anyio
RECORDED = Path(__file__).parent.parent / "recorded"


@dataclass
class RecordedReach:
    """Answers each command of a survey with what was recorded; others are not there."""

    platform: BatchPlatform
    has_nodes: bool = True

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """All of them."""
        names = {command: name for name, command in self.platform.scheduler.survey.items()}
        return [self._answer(names.get(command, TOOLS)) for command in commands]

    def _answer(self, name: str) -> Outcome:
        if name == TOOLS:
            return Outcome(0, b"apptainer\t1.4.5\n", b"")
        files = [*(RECORDED / self.platform.kind).glob(f"{name}.*")]
        return Outcome(0, files[0].read_bytes(), b"") if files and self.has_nodes else Outcome(1, b"", b"no such list")


async def probe(platform: BatchPlatform, *, has_nodes: bool = True) -> Live:
    reach: Any = RecordedReach(platform, has_nodes)
    return await probe_site(platform.name, platform.kind, reach, platform.scheduler, {}, platform._read_site)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", [Oar, GridEngine, Pbs, Lsf])
async def test_a_site_tells_its_queues_its_sorts_of_node_and_its_tools(cls: type[BatchPlatform]) -> None:
    live = await probe(cls(name="far"))
    assert live.scheduler == cls.kind
    assert live.tools == {"apptainer": "1.4.5"}
    assert live.queues
    assert any(kind.cores and kind.memory and kind.count for queue in live.queues for kind in queue.nodes)


async def test_oar_tells_nodes_with_gpus_from_those_without() -> None:
    [queue] = (await probe(Oar(name="far"))).queues
    assert (queue.name, {kind.name for kind in queue.nodes}) == ("default", {"2c-2g", "2c-2g-2gpu"})


async def test_a_site_that_does_not_answer_is_told_in_its_words() -> None:
    with pytest.raises(PlatformRefused, match="no such list"):
        await probe(Oar(name="far"), has_nodes=False)
