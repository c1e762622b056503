"""What a real site's Slurm offers, refuses and is asked for: its queues, limits, reservations and manners."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.offer import Predicted
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import LoginNeeded, QueueFull
from sublet.platforms.slurm.platform import Slurm
from tests.real.clusters import Cluster, ended, logged_in, opening, running, small
from tests.real.test_slurm_site import GIB, key, output
from tests.sites import Site

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def cluster(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with logged_in(site, home):
        yield Cluster(site, home)


@pytest.fixture
async def slurm(cluster: Cluster) -> AsyncIterator[Slurm]:
    async with opening(cluster) as platform:
        yield platform


async def test_offers_are_slurms_own_plan_in_each_queue_that_fits(cluster: Cluster) -> None:
    slurm = await cluster.open("all", queue="")
    now = datetime.now(UTC)
    compute = Compute(cores=Range(2, 2), memory=Range(GIB, GIB))
    request = Request(Executable("command"), compute, duration=timedelta(minutes=4))
    answer = await slurm.offers(request, ["sh"], now)
    assert {offer.queue for offer in answer.offers} == {"compute", "shared", "debug", "gpu"}
    assert all(isinstance(offer.terms, Predicted) and offer.terms.samples == 0 for offer in answer.offers)
    assert all(offer.shape == Shape(2, GIB) and offer.start >= now for offer in answer.offers)
    later = Window(now + timedelta(hours=5), now + timedelta(hours=6))
    (first, *_) = (await slurm.offers(Request(Executable("command"), compute, windows=(later,)), ["sh"], now)).offers
    assert later.start <= first.start < first.latest_start < later.end
    assert first.begin == later.start
    evening = Window(now + timedelta(hours=9), now + timedelta(hours=10))
    both = replace(request, windows=(evening, later), scheduler=SchedulerOptions(queue="compute"))
    offers = (await slurm.offers(both, ["sh"], now)).offers
    assert [offer.begin for offer in offers] == [later.start, evening.start]
    assert evening.start <= offers[1].start < offers[1].latest_start < evening.end
    await slurm.close()


async def test_what_is_asked_of_the_scheduler_is_what_slurm_has_of_the_job(slurm: Slurm, cluster: Cluster) -> None:
    now, far = datetime.now(UTC), ("AvailableFeatures=fast", "ActiveFeatures=fast")
    cluster.site.on("ctl", "scontrol", "update", "NodeName=c2", *far)
    slurm.expire_survey()
    free = ("comment=for class", "contiguous")
    asked = SchedulerOptions("debug", "", "", "fast", 100, "", "matlab:2", exclusive=True, mail="end", options=free)
    request = Request(Executable("command"), Compute(), duration=timedelta(minutes=2), scheduler=asked)
    assert not slurm.unfit(request)
    assert (await slurm.offers(request, ["sh"], now)).offers
    none = await slurm.offers(replace(request, scheduler=replace(asked, constraint="slow")), ["sh"], now)
    assert not none.offers
    assert none.reasons[0].message == "far has no node with the feature slow; it has: fast."
    for licenses, why in (
        ("stata", "far has no license stata; it has: matlab:4."),
        ("matlab:9", "far has 4 licenses of matlab in all; 9 were asked for."),
    ):
        short = await slurm.offers(replace(request, scheduler=replace(asked, licenses=licenses)), ["sh"], now)
        assert [reason.message for reason in short.reasons] == [why]
    assert {"features of nodes: fast", "licenses: matlab:4"} <= {*(await slurm.survey()).notes}
    live = await slurm.probe({})
    assert (live.choices.features, live.choices.licenses) == (("fast",), {"matlab": 4})
    job = await slurm.submit(small("sleep", "20", scheduler=asked), key())
    await running(slurm, job)
    shown = cluster.site.on("ctl", "scontrol", "show", "job", slurm.find_own_id(job))
    for word in ("Nice=100", "Features=fast", "Licenses=matlab:2", "OverSubscribe=NO", "Contiguous=1", "NodeList=c2"):
        assert word in shown, shown
    assert f"session={job}" in shown
    assert "for class" in shown, "its own comment stands behind Sublet's"
    await slurm.cancel([job], "me")


async def test_a_no_names_the_limit_of_the_queue(slurm: Slurm) -> None:
    now = datetime.now(UTC)
    for compute, duration, field, nearest in (
        (Compute(cores=Range(9, 9)), timedelta(minutes=2), "compute.cores.min", "8"),
        (Compute(nodes=Range(2, 2)), timedelta(minutes=2), "compute.nodes.min", "1"),
        (Compute(gpus=Range(1, 1)), timedelta(minutes=2), "compute.gpus.min", "0"),
        (Compute(), timedelta(hours=2), "schedule.duration", "5m"),
    ):
        answer = await slurm.offers(Request(Executable("command"), compute, duration=duration), ["sh"], now)
        assert not answer.offers
        assert (answer.reasons[0].field, answer.reasons[0].nearest) == (field, nearest)


async def test_a_reservation_of_our_own_is_booked_on_its_exact_nodes(cluster: Cluster) -> None:
    words = ("ReservationName=ours", "Users=researcher", "Nodes=c3", "StartTime=now", "Duration=10")
    cluster.site.on("ctl", "scontrol", "create", "reservation", *words)
    slurm = await cluster.open("ours", terms="booked", reservation="ours")
    assert [node.name for node in (await slurm.survey()).nodes] == ["c3"]
    job = await slurm.submit(small("hostname", nodes=("c3",)), key())
    await ended(slurm, job)
    assert await output(slurm, job) == "c3\n"
    await slurm.clean(job)
    await slurm.close()
    cluster.site.on("ctl", "scontrol", "delete", "ReservationName=ours")


async def test_a_site_can_ask_its_guests_to_be_modest(cluster: Cluster) -> None:
    lines = ["poll 1s", "sessions 1", "interactive no"]
    cluster.site.on("login", "sh", "-c", 'mkdir -p /etc/sublet && printf "%s\n" "$@" >/etc/sublet/site', "sh", *lines)
    try:
        slurm = await cluster.open("modest", fresh=0)
        notes = (await slurm.survey()).notes
        assert "the site's settings: the queue is asked for at most every 1 s" in notes
        assert "the site's settings: at most 1 of your sessions wait or run at once" in notes
        lab = Request(Executable("interactive"), duration=timedelta(minutes=2))
        assert "own settings" in (await slurm.offers(lab, ["shell"], datetime.now(UTC))).reasons[0].message
        first = await slurm.submit(small("sleep", "60"), str(uuid4()))
        with pytest.raises(QueueFull, match="no more than 1"):
            await slurm.submit(small("true"), str(uuid4()))
        await slurm.cancel([first], "ann")
        await ended(slurm, first)
        second = await slurm.submit(small("true"), str(uuid4()))
        await ended(slurm, second)
        for key in (first, second):
            await slurm.clean(key)
        await slurm.close()
    finally:
        cluster.site.on("login", "rm", "-r", "/etc/sublet")


async def test_tools_are_found_where_the_settings_say(cluster: Cluster) -> None:
    script = (
        "mkdir -p 'my tools' && cd 'my tools' && printf '#!/bin/sh\\necho found\\n' >papermill && chmod +x papermill"
    )
    cluster.site.on("researcher@login", "sh", "-c", script)
    slurm = await cluster.open("tools", path=["~/my tools"], tool_modules={"apptainer": "not/here"})
    tools = (await slurm.survey()).tools
    assert tools["papermill"] == "/home/researcher/my tools/papermill"
    assert tools["apptainer"] == "module:not/here"
    job = await slurm.submit(small("papermill"), key())
    await ended(slurm, job)
    assert await output(slurm, job) == "found\n"
    await slurm.clean(job)
    await slurm.close()
    cluster.site.on("researcher@login", "rm", "-r", "my tools")


async def test_without_a_login_the_last_survey_answers_and_says_how_old_it_is(
    slurm: Slurm, cluster: Cluster, tmp_path: Path
) -> None:
    await slurm.survey()
    kept = (cluster.home / "platforms" / "far" / "survey.json").read_text()
    elsewhere = Cluster(cluster.site, tmp_path)
    lapsed = await elsewhere.open(fresh=0)
    with pytest.raises(LoginNeeded):
        await lapsed.survey()
    (tmp_path / "platforms" / "far" / "survey.json").write_text(kept)
    lapsed = await elsewhere.open(fresh=0)
    survey = await lapsed.survey()
    assert [node.name for node in survey.nodes] == ["c1", "c2", "c3"]
    assert "sublet system login far" in survey.notes[0]
    answer = await lapsed.offers(
        Request(Executable("command"), duration=timedelta(minutes=2)), ["sh"], datetime.now(UTC)
    )
    assert "as seen on " in answer.offers[0].why
    assert lapsed.login
    assert not await lapsed.login.check(), "which the service says of its offers"
    with pytest.raises(LoginNeeded):
        await lapsed.submit(small("true"), key())
