"""All ways to run something are explained, platform by platform, and an operator's images are used by name."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.ways import OUTSIDE, OWN_IMAGE, SHARING, UNDECLARED, WayFinding
from sublet.doors.ivoa.sessions import session_document
from sublet.kernel.errors import NoOffers
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import allow, ask, serving

pytestmark = pytest.mark.anyio
ME = Person("me", operator=True)
BOB = Person("bob@example.org")
IMAGES = {"jupyter": {"location": "ghcr.io/owner/jupyter:1", "digest": f"sha256:{'a' * 64}"}}
TOOLS = {"python3": "/usr/bin/python3", "papermill": "/usr/bin/papermill", "podman": "/usr/bin/podman"}
PLATFORMS = {"one": {"kind": "memory"}, "two": {"kind": "memory"}}


async def give_tools(service: Service) -> None:
    """Let the first platform have seen these tools, and the other none."""
    for name, tools in (("one", TOOLS), ("two", {})):
        survey = await service.platforms.survey(name)
        service.platforms.surveys[name] = replace(survey, tools=tools, good_for=timedelta(hours=1))


async def explain(service: Service, person: Person, **short: Any) -> dict[tuple[str, str], WayFinding]:
    asked = await service.asking.read(json.dumps(short).encode(), "application/json", person)
    return {(each.platform, each.way): each for each in await service.ways.explain(person, asked)}


async def test_every_way_on_every_platform_is_possible_or_says_why_not(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False, images=IMAGES, platforms=PLATFORMS) as service:
        await give_tools(service)
        plain = await explain(service, ME, notebook="https://example.org/a.ipynb")
        assert plain["one", "papermill"].is_possible
        assert plain["one", "kernel"].why == "it is not a Jupyter service"
        assert plain["one", "podman"].why == "no image is named, and none is set for such requests"
        assert plain["two", "papermill"].why == "papermill and python3 are not installed there"
        named = await explain(service, ME, notebook="https://example.org/a.ipynb", image="jupyter", platform="one")
        assert [key for key, each in named.items() if each.is_possible] == [("one", "podman")]
        assert named["one", "papermill"].why == "an image was named, and it runs in that only"
        with pytest.raises(NoOffers) as refused:
            await explain(service, ME, notebook="https://example.org/a.ipynb", image="nothing")
        assert refused.value.reasons[0].message == "There is no image called nothing here; there are: jupyter."
        assert await service.offers.open_offers(ME) == [], "nothing is held"


@pytest.mark.parametrize("mode", ["personal", "gateway"])
async def test_a_container_and_steps_run_in_an_image_by_its_name(tmp_path: Path, mode: str) -> None:
    person, word = BOB if mode == "gateway" else ME, {"locations": ["jupyter"]}
    async with serving(tmp_path, loop=False, mode=mode, images=IMAGES, platforms=PLATFORMS) as service:
        await allow(service, BOB.name) if mode == "gateway" else None
        await give_tools(service)
        known = {"locations": ["ghcr.io/owner/jupyter:1"], "digest": IMAGES["jupyter"]["digest"]}
        for short in ({"run": ["true"]}, {"steps": ["true", "true"]}, {"run": ["true"], "image": word}):
            offerset = await ask(service, person, **{"image": "jupyter", "run": None, **short})
            assert [offer.offer.way for offer in offerset.offers] == ["podman"], offerset.reasons
            assert offerset.request.executable.fields["image"] == known
        other = await ask(service, person, image="alpine")
        assert other.request.executable.fields["image"] == {"locations": ["alpine"]}, "the usual registry's"
        wrong = await ask(service, person, image=word | {"digest": f"sha256:{'b' * 64}"})
        assert wrong.reasons[0].message.startswith("The image called jupyter here has another digest: sha256:aaa")


async def test_on_a_gateway_a_notebook_runs_in_the_operators_image_and_without_one_nowhere(tmp_path: Path) -> None:
    settings = {"mode": "gateway", "images": IMAGES, "platforms": PLATFORMS}
    book = {"notebook": "data:,{}"}
    async with serving(tmp_path / "without", loop=False, **settings) as service:
        await allow(service, BOB.name)
        await give_tools(service)
        assert (await explain(service, BOB, **book))["one", "papermill"].why == OUTSIDE
        refused = await ask(service, BOB, run=None, **book)
        assert "a gateway runs containers only" in refused.reasons[0].message
    usual = {"standard_images": {"notebook": "jupyter"}}
    async with serving(tmp_path / "with", loop=False, **settings, **usual) as service:
        await allow(service, BOB.name)
        await give_tools(service)
        offerset = await ask(service, BOB, run=None, **book)
        assert [offer.offer.way for offer in offerset.offers] == ["podman"], offerset.reasons


SITES = {  # what surveys find on each sort of platform
    "machine": ("python3", "sh", "papermill", "jupyter-lab", "podman", "docker"),
    "cluster": ("python3", "sh", "papermill", "apptainer", "ch-run"),
    "hub": ("jupyter-kernel", "jupyterhub", "contained-servers"),
    "cloud": ("kubernetes", "sh", "python3"),
    "canfar": ("skaha",),
}
COMPOSED = {"services": {"one": {"image": "ghcr.io/owner/a:1"}}}
CONTAINED = {  # what is asked for → the ways on each platform that are possible on a gateway
    "notebook": {"machine": ["podman", "docker"], "cluster": ["apptainer"], "hub": ["kernel"], "cloud": ["kubernetes"]},
    "lab": {"machine": ["podman", "docker"], "hub": ["jupyterhub"], "cloud": ["kubernetes"], "canfar": ["skaha"]},
    "image": {
        "machine": ["podman", "docker"],
        "cluster": ["apptainer"],
        "cloud": ["kubernetes"],
        "canfar": ["skaha"],
    },
    "compose": {"machine": ["podman"]},
    "command": {},
    "shell": {},
}
BESIDE = {  # what is possible too on one's own service, outside of a container
    "notebook": {"machine": ["papermill"], "cluster": ["papermill", "charliecloud"]},
    "lab": {"machine": ["jupyter-lab"]},
    "image": {"cluster": ["charliecloud"]},
    "compose": {},
    "command": {name: ["exec"] for name in SITES},
    "shell": {name: ["shell"] for name in ("machine", "cluster", "cloud")},
}
ASKED: dict[str, dict[str, Any]] = {
    "notebook": {"notebook": "data:,{}"},
    "lab": {"interactive": "lab"},
    "image": {"image": "ghcr.io/owner/a:1", "run": ["true"]},
    "compose": {"compose": COMPOSED},
    "command": {"run": ["true"]},
    "shell": {"interactive": "shell"},
}


@pytest.mark.parametrize("mode", ["gateway", "personal"])
async def test_every_kind_has_its_ways_on_every_sort_of_platform_and_the_others_say_why_not(
    tmp_path: Path, mode: str
) -> None:
    usual = {"standard_images": {"notebook": "jupyter", "lab": "jupyter"}, "images": IMAGES}
    platforms = {name: {"kind": "memory"} for name in SITES}
    async with serving(tmp_path, loop=False, mode=mode, platforms=platforms, **usual) as service:
        person = BOB if mode == "gateway" else ME
        if mode == "gateway":
            await allow(service, BOB.name)
        for name, tools in SITES.items():
            survey = await service.platforms.survey(name)
            known = replace(survey, tools=dict.fromkeys(tools, ""), good_for=timedelta(hours=1))
            service.platforms.surveys[name] = known
        for what, short in ASKED.items():
            found = await explain(service, person, **short)
            for name in SITES:
                ways = set(CONTAINED[what].get(name, ()))
                ways |= set(BESIDE[what].get(name, ())) if mode == "personal" else set()
                possible = {way for (where, way), each in found.items() if where == name and each.is_possible}
                assert possible == ways, (what, name)
            assert all(each.is_possible or each.why for each in found.values()), what


async def test_what_keeps_a_request_from_a_platform_altogether_is_why_none_of_its_ways_is_possible(
    tmp_path: Path,
) -> None:
    platforms = {name: {"kind": "memory"} for name in ("one", "two", "three")}
    async with serving(tmp_path, loop=False, mode="gateway", images=IMAGES, platforms=platforms) as service:
        for name in ("one", "two"):
            await allow(service, BOB.name, name=name)
        await give_tools(service)
        await service.drains.drain(ME, "two")
        short = {"image": "jupyter", "run": ["true"]}
        ways = await explain(service, BOB, **short)
        asked = await ask(service, BOB, **short)
        assert [key for key, each in ways.items() if each.is_possible] == [("one", "podman")]
        for name in ("two", "three"):
            said = {each.why for (platform, _), each in ways.items() if platform == name}
            assert said == {reason.message for reason in asked.reasons if reason.platform == name}, name
        optional = await explain(service, BOB, **short, platform="one", qos="high")
        refused = await ask(service, BOB, **short, platform="one", qos="high")
        assert {each.why for each in optional.values()} == {refused.reasons[0].message}


async def test_what_is_not_contained_enough_for_a_gateway_says_what_it_lacks(tmp_path: Path) -> None:
    platforms = {name: {"kind": "memory"} for name in ("machine", "hub")}
    async with serving(tmp_path, loop=False, mode="gateway", platforms=platforms) as service:
        await allow(service, BOB.name)
        for name, tools in (("machine", ("python3", "podman", "ch-run")), ("hub", ("jupyter-kernel",))):
            survey = await service.platforms.survey(name)
            known = replace(survey, tools=dict.fromkeys(tools, ""), good_for=timedelta(hours=1))
            service.platforms.surveys[name] = known
        shared = await explain(service, BOB, image="ghcr.io/owner/a:1", run=["true"])
        assert shared["machine", "podman"].is_possible
        assert shared["machine", "charliecloud"].why == SHARING
        own = await explain(service, BOB, image="/home/service/a.tar", run=["true"])
        assert own["machine", "podman"].why == OWN_IMAGE
        assert (await explain(service, BOB, notebook="data:,{}"))["hub", "kernel"].why == UNDECLARED


async def test_a_way_that_an_image_rules_out_is_not_said_to_be_there_and_what_is_used_instead_is_the_best(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, loop=False, platforms={"one": {"kind": "memory"}}) as service:
        survey = await service.platforms.survey("one")
        tools = ("python3", "podman", "docker", "apptainer", "unsquashfs")
        service.platforms.surveys["one"] = replace(survey, tools=dict.fromkeys(tools, ""), good_for=timedelta(hours=1))
        ways = await explain(service, ME, image="https://example.org/a.sif", run=["true"])
        assert ways["one", "docker"].why == "docker can't run this there, and apptainer is used instead"
        bag = await explain(service, ME, bag={"tasks": [["true"]]})
        assert all(each.is_possible or each.why for each in bag.values())
        assert bag


async def test_on_a_gateway_what_is_opened_runs_in_reviewed_images_alone(tmp_path: Path) -> None:
    recipes = {"panel": {"run": ["panel", "serve", "--port", "{port}"]}}
    usual = {"standard_images": {"desktop": "jupyter", "panel": "jupyter"}}
    settings = {"mode": "gateway", "images": IMAGES, "platforms": PLATFORMS, "recipes": recipes}
    async with serving(tmp_path, loop=False, **settings, **usual) as service:
        await allow(service, BOB.name)
        await give_tools(service)
        for interface in ("desktop", "panel"):
            offerset = await ask(service, BOB, run=None, interactive=interface)
            assert [offer.offer.way for offer in offerset.offers] == ["podman"], offerset.reasons
            assert offerset.offers[0].offer.interactive
        own = await ask(service, BOB, run=None, interactive="desktop", image="docker.io/somebody/desktop:1")
        assert own.reasons[0].message == "Interactive sessions run in reviewed images here; there are: jupyter."
        none = await ask(service, BOB, run=None, interactive="code")
        assert "a gateway runs containers only" in none.reasons[0].message
        unknown = await ask(service, BOB, run=None, interactive="vr")
        assert "there are: lab, shell, desktop, code, rstudio, web, panel" in unknown.reasons[0].message


async def test_the_answer_to_an_accept_says_where_the_session_is_going_to_be(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False, platforms=PLATFORMS) as service:
        offerset = await ask(service, ME, run=None, interactive="lab")
        session = await service.sessions.accept(offerset.offers[0].id, ME)
        (coming,) = session.connectors
        assert coming.status == "PREPARING"
        assert f"/connect/{session.id}/?token={service.secrets.of(session.id)}" in coming.location
        document = session_document(session, offerset.request, "https://here")
        assert document["connectors"][0]["status"] == "PREPARING"
        notice = await service.session_notices.describe(session.id)
        assert notice is not None
        assert notice.is_coming
