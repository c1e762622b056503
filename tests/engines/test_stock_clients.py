"""IVOA's own client reads what a service says of itself, and a policy in Rego decides as its guide says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sublet.people.model.person import Person
from tests.brokers import running_broker
from tests.contract.services import OPERATOR, allow, ask, serving
from tests.engines.environments import have_environment
from tests.policy_server import policy_server

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
CHECKS = Path(__file__).with_name("stock_checks.py")
GUIDE = Path(__file__).parents[2] / "docs" / "policy.md"


@pytest.fixture(scope="module")
def python() -> Path:
    return have_environment("stock") / "bin" / "python"


async def test_pyvo_reads_the_capabilities_and_the_availability(tmp_path: Path, python: Path) -> None:
    import asyncio

    async with running_broker(tmp_path / "site") as site:
        words = [python, CHECKS, "vosi", site.url]
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert read["available"] is True
    assert read["urls"]["ivo://ivoa.net/std/VOSI#capabilities"] == f"{site.url}/capabilities"
    assert f"{site.url}/requests" in read["urls"].values()


@contextmanager
def rego(python: Path, policy: Path) -> Iterator[Any]:
    """Decides by a policy, one input after the other."""
    with subprocess.Popen([python, CHECKS, "decide", policy], stdin=-1, stdout=-1, text=True) as process:

        def decide(document: dict[str, Any]) -> Any:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps(document) + "\n")
            process.stdin.flush()
            return {"result": json.loads(process.stdout.readline())}

        yield decide
        assert process.stdin
        process.stdin.close()


async def test_the_policy_of_the_guide_decides_who_computes_here(tmp_path: Path, python: Path) -> None:
    [text] = re.findall(r"```rego\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    policy = tmp_path / "sublet.rego"
    policy.write_text(text)
    ann = Person("ann@x.org")
    trial = {"trial": {"kind": "memory", "nodes": 4, "cores": 200}}
    with rego(python, policy) as decide, policy_server(decide) as (url, _):
        settings = {"mode": "gateway", "platforms": trial, "policy": {"url": url, "timeout": "20s"}, "loop": False}
        async with serving(tmp_path / "home", **settings) as service:
            await allow(service)
            wish: dict[str, Any] = {"run": None, "image": "docker://busybox", "time": "1h"}
            [reason] = (await ask(service, ann, **wish)).reasons
            assert reason.message == "You may not use trial: only members of SRCNet compute here."
            until = service.now().replace(year=2099)
            await service.people.directory.add_person(OPERATOR, ann.name)
            await service.store.write(lambda tx: tx.groups.confirm(ann.name, "iam", ["iam:/srcnet/uk"], until))
            assert (await ask(service, ann, **wish, cores=128)).offers
            assert not (await ask(service, ann, **wish, cores=129)).offers
