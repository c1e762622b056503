"""A program that is to be started on each of several nodes is offered only where something starts it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.services import ask, serving

pytestmark = pytest.mark.anyio
TWO = {"trial": {"kind": "memory", "nodes": 2}}


async def test_where_programs_are_started_once_several_nodes_for_each_are_a_no_that_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TWO) as service:
        assert (await ask(service, nodes=2)).result == "YES"
        assert (await ask(service, nodes=1, each_node=True)).result == "YES"
        for nodes in (2, "1-2"):
            refused = await ask(service, nodes=nodes, each_node=True)
            assert refused.result == "NO"
            (reason,) = refused.reasons
            assert (reason.field, reason.platform) == ("executable.each_node", "trial")
            assert reason.message == "trial starts a program only on the first of its nodes."
            assert reason.nearest.startswith("nodes: 1")
