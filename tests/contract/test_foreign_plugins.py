"""A platform, a kind and a mover of another package are as good as Sublet's own, here and on a gateway."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sublet.access.calls import rules
from sublet.access.views.access import RuleAsk
from sublet.client import Client
from sublet.kernel.errors import NoOffers, SubletError
from tests.databases import put_database

PACKAGE = Path(__file__).parents[1] / "foreign" / "lodger"
SETTINGS = 'mode = "{}"\nlargest_data = 1000\npoll = "1s"\n[platforms.inn]\nkind = "lodging"\nbeds = 3\n'
PATIENCE = 60.0
PUBLIC, PRIVATE = "poem://8.8.8.8/rose", "poem://127.0.0.1/rose"  # nobody is asked anything there


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as an installer leaves it: its modules, and what says what they are."""
    target = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, target / "lodger", ignore=shutil.ignore_patterns("__pycache__", "*.txt"))
    facts = target / "lodger-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lodger\nVersion: 1.0\n")
    shutil.copy(PACKAGE / "entry_points.txt", facts)
    return target


@contextmanager
def served(home: Path, mode: str, installed: Path) -> Iterator[Client]:
    """A service of its own that begins out of nothing, since plug-ins are looked for when it begins."""
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(SETTINGS.format(mode))
    put_database(home / "sublet.db")
    environment = {**os.environ, "SUBLET_HOME": str(home), "PYTHONPATH": str(installed)}
    log = home.parent / f"{home.name}.log"
    with log.open("wb") as opened:
        words = [sys.executable, "-m", "sublet", "serve"]
        process = subprocess.Popen(words, env=environment, stdout=opened, stderr=subprocess.STDOUT)
    try:
        yield _reach(Client(socket=home / "run" / "sublet.sock"), process, log)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _reach(client: Client, process: subprocess.Popen[bytes], log: Path) -> Client:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            client.health()
            return client
        except SubletError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)


def recital(location: str, **fields: Any) -> dict[str, Any]:
    return {
        "executable": {"kind": "urn:lodger:kind:executable:recital", "title": "An evening", **fields},
        "data": [{"kind": "simple-data-resource", "meta": {"name": "poem"}, "location": location}],
        "schedule": {"requested": {"duration": "PT1M"}},
    }


def test_on_a_persons_own_machine_all_three_are_used(installed: Path, tmp_path: Path) -> None:
    with served(tmp_path / "home", "personal", installed) as client:
        (inn,) = client.platforms()
        assert (inn.name, inn.kind) == ("inn", "lodging")
        assert inn.working, inn.problem
        assert sum(node.cores for node in inn.nodes) == 3
        session = client.run(recital(PRIVATE), timeout=PATIENCE)
        assert (session.platform, session.exit_code) == ("inn", 0)
        assert "".join(session.logs()) == "An evening\na poem; largest 0; file roots any\n"
        assert session.result("encore.txt").text() == "done\n"
        with pytest.raises(NoOffers, match="needs a title"):
            client.run(recital(PRIVATE, title=""))


def test_on_a_gateway_they_keep_to_its_policy(installed: Path, tmp_path: Path) -> None:
    with served(tmp_path / "gate", "gateway", installed) as client:
        client.do(rules.add(RuleAsk(effect="allow", who="*", noun="system", name="inn")))
        session = client.run(recital(PUBLIC), timeout=PATIENCE)
        assert (session.platform, session.exit_code) == ("inn", 0)
        assert "".join(session.logs()) == "An evening\na poem; largest 1000; file roots 0\n"
        refused = client.run(recital(PRIVATE), timeout=PATIENCE)
        assert refused.end is not None
        assert refused.end.kind == "staging-failed"
        assert "the policy refuses it: 127.0.0.1 is not a public address" in refused.end.detail
        with pytest.raises(NoOffers, match="containers only"):
            client.run(run=["true"])
