"""Apps run by name, by repository in the roadmap's form, and as jobs of old clients: always what was approved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sublet.apps.run_requests import AppWish
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.phases import Phase
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import OfferSet
from sublet.doors.cybergis.drafts import MOST_OPEN
from sublet.doors.cybergis.roadmap import read_seed
from sublet.doors.cybergis.wire import job_of
from sublet.kernel.errors import (
    AlreadySubmitted,
    BadRequest,
    KeyReused,
    NoOffers,
    NoOwnLogins,
    NotAllowedNow,
    NotFound,
    NotReviewed,
    NotYours,
    SubletError,
    TooManyDrafts,
)
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import allow, in_phase, over, reach, serving
from tests.git_server import GitServer, Repository, program

pytestmark = pytest.mark.anyio

ANN, BOB, EVE = Person("ann@example.org"), Person("bob@example.org"), Person("eve@example.net")
REVIEWER = Person("rae@example.org", reviewer=True)
MANIFEST = f"""
name: hello
image:
  location: docker://ghcr.io/ann/hello
  digest: sha256:{"a" * 64}
stages:
  execution: sh hello.sh
parameters:
  years: {{type: integer, minimum: 0, default: 10}}
  label: {{type: string, default: ""}}
  fast: {{type: boolean, default: false}}
resources:
  tasks: {{min: 1, max: 4, default: 1}}
  cores: {{min: 1, max: 4, default: 2}}
  memory_per_core: {{min: 1GiB, max: 4GiB, default: 1GiB}}
  time: {{min: 1m, max: 1h, default: 10m}}
"""


@pytest.fixture(scope="module")
def repository(git: GitServer) -> Repository:
    made = git.repository("ann/hello")
    made.commit({"sublet.yaml": MANIFEST, "hello.sh": program("echo hello\n")}, "Begin")
    return made


@pytest.fixture
async def service(git: GitServer, repository: Repository, tmp_path: Path) -> AsyncIterator[Service]:
    """A gateway with one approved app, which people at example.org may run."""
    apps = {"private": [f"{git.url}/*"]}
    platforms = {"trial": {"kind": "memory", "takes": "0.1s", "cores": 32, "memory": "64GiB"}}
    async with serving(tmp_path / "home", mode="gateway", apps=apps, platforms=platforms) as running:
        version = await running.apps.proposing.propose(ANN, repository.url, name="hello")
        await running.apps.reviewing.approve("hello@1", REVIEWER, version.tree)
        await allow(running, "*@example.org")
        await allow(running, "*@example.org", noun="app")
        yield running


def executable(found: Any) -> dict[str, Any]:
    return dict(found.request.executable.fields)


async def test_words_are_typed_by_the_schema_and_resources_go_by_the_manifest(service: Service) -> None:
    wish = AppWish(
        app="hello",
        words={"years": "0", "label": "007", "fast": "false"},
        resources={"tasks": 2, "memory_per_core": "2GiB", "time": "20m"},
    )
    found = await service.apps.runs.ask_app(BOB, wish)
    assert found.offers, found.reasons
    assert executable(found)["parameters"] == {"years": 0, "label": "007", "fast": False}
    offer = found.offers[0].offer
    assert (offer.shape.cores, offer.shape.memory, offer.duration.total_seconds()) == (4, 8 * 1024**3, 1200)
    again, said = await service.rerun.again(found.offers[0].id, BOB, {"time": "40m", "cores": 1}, {"years": 5})
    assert said == ("cores: (not said) → 1", "time: 20 min → 40 min", "years: 0 → 5")
    assert executable(again)["parameters"] == {"years": 5, "label": "007", "fast": False}
    changed = again.offers[0].offer
    assert (changed.shape.cores, changed.duration.total_seconds()) == (2, 2400), "each of its two tasks has one core"
    refusals = {
        "years": AppWish(app="hello", words={"years": "many"}),
        "label": AppWish(app="hello", set={"label": 7}),
        "nonsense": AppWish(app="hello", words={"nonsense": "1"}),
        "tasks": AppWish(app="hello", resources={"tasks": 9}),
        "memory_per_core": AppWish(app="hello", resources={"memory_per_core": "40GiB"}),
        "nowhere": AppWish(app="hello", hpc="nowhere"),
    }
    for word, wrong in refusals.items():
        no = await service.apps.runs.ask_app(BOB, wrong)
        assert not no.offers
        assert word in " ".join(f"{reason.field} {reason.message}" for reason in no.reasons)
    with pytest.raises(NotFound):
        await service.apps.runs.ask_app(EVE, AppWish(app="hello"))
    for version in ("7", "newest", "1; true"):
        with pytest.raises(NotFound):
            await service.apps.runs.ask_app(BOB, AppWish(app="hello", version=version))


async def test_an_app_asks_a_scheduler_for_what_the_rules_of_its_gateway_allow(service: Service) -> None:
    found = await service.apps.runs.ask_app(BOB, AppWish(app="hello", scheduler={"constraint": "gpu", "nice": 5}))
    assert found.request.scheduler == SchedulerOptions(constraint="gpu", nice=5)
    partition = read_seed({"file": "hello", "slurm": {"partition": "short", "num_of_task": 2}})
    assert partition.resources == {"tasks": 2}
    for wish in (AppWish(app="hello", scheduler={"queue": "short"}), partition):
        no = await service.apps.runs.ask_app(BOB, wish)
        assert [(reason.field, reason.wanted) for reason in no.reasons] == [("queue", "short")]
    with pytest.raises(BadRequest, match=r"scheduler\.nonsense"):
        await service.apps.runs.ask_app(BOB, AppWish(app="hello", scheduler={"nonsense": "1"}))
    service.settings.take_up(
        service.settings.model_copy(update={"scheduler_options": ("queue",)}), ["scheduler_options"]
    )
    allowed = await service.apps.runs.ask_app(BOB, partition)
    assert allowed.request.scheduler == SchedulerOptions(queue="short")
    assert allowed.offers


async def test_the_roadmaps_form_runs_an_approved_repository_and_nothing_else(
    service: Service, repository: Repository, git: GitServer
) -> None:
    seed = {"maintainer": "python", "hpc": "trial", "file": f"{repository.url}/", "app": {"years": 0}}
    session, token = await service.apps.runs.start_app(BOB, read_seed(seed), key="once")
    again, other_token = await service.apps.runs.start_app(BOB, read_seed(seed), key="once")
    assert (again.id, other_token != token) == (session.id, True)
    with pytest.raises(KeyReused):
        await service.apps.runs.start_app(BOB, read_seed({**seed, "app": {"years": 1}}), key="once")
    assert (session.person, session.kind, session.app != "") == (BOB.name, "app", True)
    holder = await service.people.tokens.bearer(token)
    assert holder is not None
    assert (holder.name, holder.session) == (BOB.name, session.id)
    await reach(service, session.id, in_phase(Phase.COMPLETED), BOB)
    with pytest.raises(NotReviewed):
        await service.apps.runs.start_app(BOB, read_seed({**seed, "file": "github://zimo-xiao/project-a"}))
    with pytest.raises(NotReviewed):
        await service.apps.runs.start_app(EVE, read_seed(seed))
    for place in ("globus://endpoint/path", "ftp://example.org/x"):
        with pytest.raises(NoOffers, match=place.partition(":")[0]):
            await service.apps.runs.start_app(BOB, read_seed({**seed, "data_file": {"": place}}))
    for more in ({"user": "me"}, {"password": "secret"}):
        with pytest.raises(NoOwnLogins):
            read_seed({**seed, **more})
    for wrong in ({}, {"hpc": "trial"}, {**seed, "env": {}}, {**seed, "slurm": {"qos": "x"}}, {**seed, "app": 3}):
        with pytest.raises(BadRequest):
            read_seed(wrong)


async def test_a_job_of_an_old_client_is_set_submitted_once_and_seen_by_its_owner(service: Service) -> None:
    draft = await service.drafts.new_draft(BOB, {"maintainer": "community_contribution", "hpc": "trial"})
    with pytest.raises(BadRequest, match="localExecutableFolder"):
        await service.drafts.submit_draft(BOB, draft.id)
    folder = {"type": "git", "gitId": "hello"}
    await service.drafts.set_draft(
        BOB, draft.id, {"localExecutableFolder": folder, "param": {"years": 3}, "nonsense": 1}
    )
    await service.drafts.set_draft(
        BOB, draft.id, {"slurm": {"num_of_task": 2, "time": "20:00", "memory_per_cpu": "2GB"}}
    )
    for act in (service.drafts.draft, service.drafts.submit_draft):
        with pytest.raises(NotYours):
            await act(ANN, draft.id)
    with pytest.raises(NotYours):
        await service.drafts.set_draft(ANN, draft.id, {"param": {"years": 1}})
    kept, session = await service.drafts.submit_draft(BOB, draft.id)
    assert (session.offer.shape.cores, session.offer.duration.total_seconds()) == (4, 1200)
    with pytest.raises(AlreadySubmitted):
        await service.drafts.submit_draft(BOB, draft.id)
    with pytest.raises(AlreadySubmitted):
        await service.drafts.set_draft(BOB, draft.id, {"param": {}, "name": "x"})
    await reach(service, session.id, in_phase(Phase.COMPLETED), BOB)
    seen = await service.drafts.draft_session(BOB, kept)
    job = job_of(await service.drafts.draft(BOB, draft.id), seen, await service.drafts.draft_events(kept))
    types = [event["type"] for event in job["events"]]
    assert types[0] == "JOB_QUEUED"
    assert types[-1] == "JOB_ENDED"
    assert {"JOB_REGISTERED", "JOB_INIT"} < set(types)
    assert (job["param"], job["isFailed"], job["userId"]) == ({"years": 3}, False, BOB.name)
    assert [one.id for one, _ in await service.drafts.drafts(BOB)] == [draft.id]
    assert await service.drafts.drafts(ANN) == []


async def test_drafts_are_bounded_take_no_environment_and_no_password(service: Service) -> None:
    with pytest.raises(NoOwnLogins):
        await service.drafts.new_draft(BOB, {"user": "me", "password": "secret"})
    draft = await service.drafts.new_draft(BOB, {})
    fields = {"localExecutableFolder": {"type": "git", "gitId": "hello"}, "env": {"LD_PRELOAD": "x"}}
    await service.drafts.set_draft(BOB, draft.id, fields)
    with pytest.raises(BadRequest, match="env"):
        await service.drafts.submit_draft(BOB, draft.id)
    with pytest.raises(BadRequest, match="more than"):
        await service.drafts.set_draft(BOB, draft.id, {"param": {"label": "x" * 200_000}})
    for _ in range(MOST_OPEN - 1):
        await service.drafts.new_draft(BOB, {})
    with pytest.raises(TooManyDrafts):
        await service.drafts.new_draft(BOB, {})
    await service.drafts.delete_draft(BOB, draft.id)
    await service.drafts.new_draft(BOB, {})


async def test_a_draft_is_deleted_by_its_owner_and_not_while_its_session_runs(service: Service) -> None:
    draft = await service.drafts.new_draft(BOB, {})
    await service.drafts.set_draft(BOB, draft.id, {"localExecutableFolder": {"type": "git", "gitId": "hello"}})
    with pytest.raises(NotYours):
        await service.drafts.delete_draft(ANN, draft.id)
    _, session = await service.drafts.submit_draft(BOB, draft.id)
    with pytest.raises(NotAllowedNow):
        await service.drafts.delete_draft(BOB, draft.id)
    await over(service, session.id, BOB)
    await service.drafts.delete_draft(BOB, draft.id)
    with pytest.raises(NotFound):
        await service.drafts.draft(BOB, draft.id)
    assert (await service.sessions.get(session.id, BOB)).phase is Phase.COMPLETED, "only the record of the job is gone"


async def test_of_two_who_submit_at_once_one_does_and_what_is_refused_at_the_end_can_be_tried_again(
    service: Service,
) -> None:
    fields = {"localExecutableFolder": {"type": "git", "gitId": "hello"}}
    draft = await service.drafts.new_draft(BOB, {})
    await service.drafts.set_draft(BOB, draft.id, fields)
    both = await asyncio.gather(*(service.drafts.submit_draft(BOB, draft.id) for _ in range(2)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in both) == ["AlreadySubmitted", "tuple"]
    later = await service.drafts.new_draft(BOB, {})
    await service.drafts.set_draft(BOB, later.id, fields)
    asked = service.apps.runs.ask_app

    async def revoked_meanwhile(person: Person, wish: AppWish, precedence: Precedence) -> OfferSet:
        found = await asked(person, wish, precedence)
        await service.apps.reviewing.revoke("hello@1", REVIEWER, "It is wrong.")
        return found

    service.apps.runs.ask_app = revoked_meanwhile  # type: ignore[method-assign]
    with pytest.raises(SubletError):
        await service.drafts.submit_draft(BOB, later.id)
    assert not (await service.drafts.draft(BOB, later.id)).session
