"""An aggregator, or a broker below it, that is killed between any two messages leaves no hold, and no session twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.kernel.errors import SubletError
from sublet.kernel.faults import BROKER_POINTS, CANCEL_POINTS, LENGTHEN_POINTS, REJECT_POINTS
from tests.broker_processes import BrokerProcess
from tests.serving import eventually

pytestmark = pytest.mark.engines
SITE = '[platforms.{name}]\nkind = "memory"\ntakes = "1s"\n'
NONE = "[platforms]\n"


@dataclass
class Federation:
    """Two sites, and an aggregator above them."""

    one: BrokerProcess
    two: BrokerProcess
    top: BrokerProcess

    def list_sessions(self) -> list[str]:
        """The sessions at the sites that anyone accepted."""
        return [
            each.id
            for site in (self.one, self.two)
            for each in site.client.sessions()
            if each.phase not in ("OFFERED", "REJECTED", "EXPIRED")
        ]

    def wait_until_nothing_is_held(self) -> None:
        eventually(lambda: not self.one.count_offers() + self.two.count_offers(), "giving back what the sites hold")


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    with contextlib.ExitStack() as stack:

        def start(name: str, settings: str) -> BrokerProcess:
            process = BrokerProcess.start(tmp_path / name, settings)
            stack.callback(process.serving.stop)
            return process

        one, two = (start(name, SITE.format(name=name)) for name in ("one", "two"))
        top = start("top", NONE)
        top.add("one", one)
        top.add("two", two)
        yield Federation(one, two, top)


@pytest.mark.parametrize("point", ["passing.recorded", "passing.answered"])
def test_an_aggregator_that_dies_while_it_asks_leaves_nothing_held(federation: Federation, point: str) -> None:
    top = federation.top
    top.restart(SUBLET_CRASH_AT=point)
    with contextlib.suppress(SubletError):
        top.client.ask(run=["true"], time="2m")
    assert top.serving.died() == -9
    assert bool(federation.one.count_offers()) == (point == "passing.answered"), "the sites have answered by then"
    top.restart()
    federation.wait_until_nothing_is_held()
    assert federation.list_sessions() == []


@pytest.mark.parametrize("point", ["accept.before", "accept.after", *BROKER_POINTS[2:]])
def test_an_aggregator_that_dies_while_it_accepts_has_one_session_and_nothing_held(
    federation: Federation, point: str
) -> None:
    top = federation.top
    top.restart(SUBLET_CRASH_AT=point)
    offer = top.client.ask(run=["true"], time="2m")[0]
    with contextlib.suppress(SubletError):
        offer.accept()
    assert top.serving.died() == -9
    top.restart()
    session = top.client.session(offer.id)
    if session.phase == "OFFERED":
        session = session.accept()
    assert session.wait(timeout=40).phase == "COMPLETED"
    federation.wait_until_nothing_is_held()
    assert len(federation.list_sessions()) == 1


@pytest.mark.parametrize("point", ["accept.before", "accept.after", "submit.after"])
def test_a_broker_that_dies_while_it_is_asked_to_accept_has_the_session_once(
    federation: Federation, point: str
) -> None:
    offers = federation.top.client.ask(run=["true"], time="2m")
    for site in (federation.one, federation.two):
        site.restart(SUBLET_CRASH_AT=point)
    session = offers[0].accept()
    died = next(site for site, name in ((federation.one, "one"), (federation.two, "two")) if name == session.platform)
    assert died.serving.died() == -9
    died.restart()
    assert session.wait(timeout=60).phase == "COMPLETED"
    federation.wait_until_nothing_is_held()
    assert len(federation.list_sessions()) == 1


def test_a_broker_that_dies_between_holding_and_answering_holds_nothing_when_it_is_back(federation: Federation) -> None:
    federation.one.restart(SUBLET_CRASH_AT="ask.held")
    offers = federation.top.client.ask(run=["true"], time="2m")
    assert {offer.platform for offer in offers} == {"two"}, "it costs its own answer only"
    assert federation.one.serving.died() == -9
    federation.one.restart()
    assert federation.one.count_offers(), "what it held is recorded there"
    eventually(lambda: not federation.one.count_offers(), "giving back what nobody was told of")
    assert offers[0].accept().wait(timeout=40).phase == "COMPLETED"
    federation.wait_until_nothing_is_held()
    assert len(federation.list_sessions()) == 1


@pytest.mark.parametrize("point", REJECT_POINTS)
def test_a_broker_that_dies_while_it_is_told_to_give_back_holds_nothing_when_it_is_back(
    federation: Federation, point: str
) -> None:
    offers = federation.top.client.ask(run=["true"], time="2m")
    chosen = offers[0]
    other = federation.two if chosen.platform == "one" else federation.one
    other.restart(SUBLET_CRASH_AT=point)
    session = chosen.accept()
    assert other.serving.died() == -9
    other.restart()
    assert session.wait(timeout=60).phase == "COMPLETED"
    federation.wait_until_nothing_is_held()
    assert len(federation.list_sessions()) == 1


@pytest.mark.parametrize("point", REJECT_POINTS)
def test_an_aggregator_that_dies_while_it_rejects_leaves_nothing_held(federation: Federation, point: str) -> None:
    top = federation.top
    top.restart(SUBLET_CRASH_AT=point)
    offers = top.client.ask(run=["true"], time="2m")
    with contextlib.suppress(SubletError):
        offers.reject()
    assert top.serving.died() == -9
    top.restart()
    assert bool(top.count_offers()) == (point == "reject.before"), "what it was told and recorded counts"
    for left in top.client.open_offers():
        left.reject()
    federation.wait_until_nothing_is_held()
    assert federation.list_sessions() == []


@pytest.mark.parametrize("who_dies", ["aggregator", "broker"])
@pytest.mark.parametrize("point", CANCEL_POINTS)
def test_what_was_cancelled_is_cancelled_at_its_site_whoever_dies_meanwhile(
    federation: Federation, point: str, who_dies: str
) -> None:
    top = federation.top
    session = top.client.ask(run=["true"], time="1h", env={"SUBLET_PLAY_TAKES": "1h"})[0].accept()
    eventually(lambda: session.refresh().phase == "RUNNING", "running")
    site = federation.one if session.platform == "one" else federation.two
    victim = top if who_dies == "aggregator" else site
    victim.restart(SUBLET_CRASH_AT=point)
    with contextlib.suppress(SubletError):
        top.client.session(session.id).cancel()
    assert victim.serving.died() == -9
    victim.restart()
    assert top.client.session(session.id).wait(timeout=60).phase == "CANCELLED"
    phases = lambda: {each.phase for each in site.client.sessions()} - {"REJECTED"}  # noqa: E731
    eventually(lambda: phases() == {"CANCELLED"}, "being cancelled at the site")
    federation.wait_until_nothing_is_held()


@pytest.mark.parametrize("point", ["passing.answered", "submit.before", "submit.after"])
def test_a_broker_in_the_middle_that_dies_leaves_one_session_and_nothing_held(
    federation: Federation, tmp_path: Path, point: str
) -> None:
    middle = federation.top
    above = BrokerProcess.start(tmp_path / "above", NONE)
    try:
        above.add("middle", middle)
        middle.restart(SUBLET_CRASH_AT=point)
        offers = above.client.ask(run=["true"], time="2m")
        if point == "passing.answered":
            assert not offers, "it costs its own answer only"
            assert middle.serving.died() == -9
            middle.restart()
        else:
            session = offers[0].accept()
            assert middle.serving.died() == -9
            middle.restart()
            assert session.wait(timeout=60).phase == "COMPLETED"
        federation.wait_until_nothing_is_held()
        eventually(lambda: not middle.count_offers(), "giving back what the middle holds")
        assert len(federation.list_sessions()) == (0 if point == "passing.answered" else 1)
    finally:
        above.serving.stop()


def test_a_site_that_is_away_while_another_is_accepted_gives_back_when_it_returns(federation: Federation) -> None:
    offers = federation.top.client.ask(run=["true"], time="2m")
    chosen = offers[0]
    other = federation.two if chosen.platform == "one" else federation.one
    other.serving.kill()
    session = chosen.accept()
    assert session.wait(timeout=40).phase == "COMPLETED"
    other.restart()
    assert other.count_offers(), "it still holds what nobody has told it to give back"
    federation.wait_until_nothing_is_held()


@pytest.mark.parametrize("point", LENGTHEN_POINTS)
def test_an_aggregator_that_dies_while_it_extends_knows_the_end_that_counts(federation: Federation, point: str) -> None:
    top = federation.top
    session = top.client.ask(run=["true"], time="1h", env={"SUBLET_PLAY_TAKES": "1h"})[0].accept()
    eventually(lambda: session.refresh().phase == "RUNNING", "running")
    before = session.view.until
    top.restart(SUBLET_CRASH_AT=point)
    with contextlib.suppress(SubletError):
        top.client.session(session.id).extend(by="30m")
    assert top.serving.died() == -9
    again = top.restart().session(session.id)
    site = federation.one if session.platform == "one" else federation.two
    (inner,) = [each for each in site.client.sessions() if each.phase == "RUNNING"]
    assert (inner.view.until > before) == (point == "lengthen.after")
    eventually(lambda: again.refresh().view.until == inner.view.until, "knowing when its time is over")
    longer = again.extend(until=before + timedelta(minutes=45))
    assert inner.refresh().view.until == longer.view.until == before + timedelta(minutes=45), "and it is extended once"
    again.cancel()
