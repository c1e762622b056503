"""One ask gets offers of two real Slurm sites, an annex and this machine; accepting one frees the rest at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.access_points import SITE, Person, at_ap
from tests.broker_processes import BrokerProcess
from tests.passages import passage
from tests.serving import eventually
from tests.sites import Site, running

pytestmark = [pytest.mark.engines, pytest.mark.htcondor, pytest.mark.slurm]
SOON = 5.0  # seconds: one is what it takes on a machine with nothing else to do
ANNEX = "annex-work"
OWN = 'answer_within = "30s"\npoll = "1s"\n'
SLURM = """\
poll = "2s"
[platforms.slurm]
kind = "slurm"
host = "{host}"
user = "service"
key = "{key}"
ssh = {{ UserKnownHostsFile = "{known}", HostKeyAlias = "{name}" }}
"""
ASK = ("ask", "--memory", "64MiB", "--time", "2m", "--json", "--", "sh", "-c", "hostname; echo 42 >answer.txt")


@dataclass
class Federation:
    """Two sites with a broker each, and an aggregator above them on a machine that has an annex."""

    cam: BrokerProcess
    man: BrokerProcess
    sites: dict[str, Site]
    aggregator: Person

    def ask(self) -> list[dict[str, Any]]:
        """What one `sublet ask` shows, in its order."""
        offers: list[dict[str, Any]] = json.loads(self.aggregator.typed(*ASK))["offers"]
        return offers

    def time_freeing(self, id: str) -> tuple[dict[str, Any], float]:
        """Accept an offer: the session, and how long it takes until nothing else is offered anywhere."""
        began = monotonic()
        session = json.loads(self.aggregator.typed("accept", id, "--json"))
        eventually(lambda: not self.count_offers(), "freeing the rest")
        return session, monotonic() - began

    def count_offers(self) -> int:
        """How many offers can still be accepted, here and at the sites."""
        own = sum(len(list(offers)) for offers in self.aggregator.client().open_offers())
        return own + self.cam.count_offers() + self.man.count_offers()


def start_broker(home: Path, site: Site) -> BrokerProcess:
    """The broker of a site, which uses a service account there."""
    facts = {"host": site.host, "key": site.key, "known": site.facts["known_hosts"], "name": site.name}
    return BrokerProcess.start(home, SLURM.format(**facts))


def lease_annex(person: Person) -> None:
    """Sign in to the site, and have an annex of one node of it."""
    person.kept("sublet.toml").write_text(OWN)
    person.starts_service()
    assert person.signs_in() == 0, person.said
    lease = ("--system", person.site.name, "--queue", "compute", "--nodes", "1", "--lifetime", "30m", "--idle", "20m")
    person.typed("annex", "create", "work", *lease, "--yes", "--wait")
    names = lambda: {platform.name for platform in person.client().platforms() if platform.nodes}  # noqa: E731
    person.site.wait(lambda: ANNEX in names(), 60)


@pytest.fixture(scope="module")
def federation(swept: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    home = tmp_path_factory.mktemp("federation")
    with ExitStack() as stack:
        sites = {"cam": stack.enter_context(running(*SITE)), "man": stack.enter_context(running())}
        person = stack.enter_context(at_ap(sites["cam"], "federation"))
        lease_annex(person)
        stack.callback(lambda: (person.types("annex", "shutdown", "work"), person.types("annex", "setup", "--stop")))
        brokers = {}
        for name, site in sites.items():
            broker = brokers[name] = start_broker(home / name, site)
            stack.callback(broker.serving.stop)
            stack.enter_context(passage(person.site, "ap", int(broker.url.rpartition(":")[2])))
            person.file(f"{name}.token").write_text(broker.token)
            add = 'exec sublet broker add "$1" "$2" --token <"$HOME/$1.token"'
            person.did("sh", "-c", add, "sh", name, broker.url)
        yield Federation(brokers["cam"], brokers["man"], sites, person)


@pytest.fixture
def offers(federation: Federation) -> Iterator[dict[str, dict[str, Any]]]:
    """The best offer of each place, by the way to it; what is left of them is given back."""
    listed = federation.ask()
    yield {offer["terms"]["route"] or offer["platform"]: offer for offer in reversed(listed)}
    federation.aggregator.typed("reject", "--all")


def test_one_ask_gets_offers_of_two_sites_an_annex_and_this_machine(
    federation: Federation, offers: dict[str, dict[str, Any]]
) -> None:
    assert {"here", ANNEX, "cam/slurm", "man/slurm"} <= set(offers)
    for place, url in (("cam/slurm", federation.cam.url), ("man/slurm", federation.man.url)):
        terms = offers[place]["terms"]
        assert (terms["kind"], terms["inner"]) == ("remote", "predicted"), "what that broker said stays so"
        assert terms["url"].startswith(url)
        assert terms["p10"] <= terms["p50"] <= terms["p90"]
    assert offers["here"]["terms"]["kind"] == "booked"
    assert offers[ANNEX]["terms"]["kind"] == "predicted"
    assert offers[ANNEX]["terms"]["p10"] <= offers[ANNEX]["terms"]["p90"]
    ranked = [offer["platform"] for offer in federation.ask()]
    assert ranked[0] == "here", "what is held, and starts now, comes first"


@pytest.mark.parametrize("place", ["man/slurm", "cam/slurm", ANNEX, "here"])
def test_accepting_one_frees_the_rest_and_runs_where_it_was_offered(
    federation: Federation, offers: dict[str, dict[str, Any]], place: str, record: Callable[[str, object], None]
) -> None:
    session, seconds = federation.time_freeing(offers[place]["id"])
    record("seconds until all else was free", round(seconds, 2))
    assert seconds < SOON
    ended = federation.aggregator.client().session(session["id"]).wait(120)
    assert ended.phase == "COMPLETED", ended.view.end
    printed = "".join(ended.logs()).strip()
    if place.endswith("/slurm"):
        assert printed in federation.sites[place.partition("/")[0]].facts["machines"]
    assert ended.result("answer.txt").text() == "42\n"


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Callable[[str, object], None]:
    """Writes a figure down where it is seen with `-s`, and in the report."""

    def write(name: str, value: object) -> None:
        record_property(name, value)
        print(f"{name}: {value}")

    return write
