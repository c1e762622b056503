"""A queue, a quality of service and a project can be named where there are such things, and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.scheduler import SchedulerOptions
from tests.contract.services import ME, allow, ask, serving

pytestmark = pytest.mark.anyio
PREDICTED = {"cluster": {"kind": "memory", "terms": "predicted"}}


async def test_an_offer_is_of_the_queue_and_the_project_that_were_named(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PREDICTED) as service:
        [session] = (await ask(service, queue="short", qos="high", project="abc", nice=7)).offers
        assert session.offer.queue == "short"
        assert session.offer.scheduler == SchedulerOptions(queue="short", qos="high", project="abc", nice=7)


async def test_a_queue_that_others_share_offers_something_in_each_window(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PREDICTED) as service:
        day = f"{service.now() + timedelta(days=2):%Y-%m-%d}"
        hours = ("09", "12", "15")
        found = await ask(service, start=[f"{day}T{hour}:00:00Z/PT30M" for hour in hours])
        assert [f"{session.offer.start:%Y-%m-%d %H:%M}" for session in found.offers] == [f"{day} {h}:00" for h in hours]
        chosen = await service.sessions.accept(found.offers[2].id, ME)
        assert chosen.offer.begin
        assert f"{chosen.offer.begin:%H}" == "15"


@pytest.mark.parametrize("field", ["queue", "qos", "project", "constraint", "reservation", "licenses"])
async def test_a_platform_without_queues_says_so(tmp_path: Path, field: str) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        [reason] = (await ask(service, **{field: "short"})).reasons
        assert (reason.field, reason.platform, reason.nearest) == (field, "here", f"leave {field} out")


async def test_on_a_gateway_its_operator_chooses(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=PREDICTED) as service:
        await allow(service)
        [reason] = (await ask(service, run=None, image="docker://busybox", project="abc")).reasons
        assert "operator" in reason.message


async def test_a_gateway_takes_what_harms_nobody_and_what_its_operator_allows(tmp_path: Path) -> None:
    settings = {"scheduler_options": ("licenses", "switches")}
    async with serving(tmp_path, mode="gateway", platforms=PREDICTED, **settings) as service:
        await allow(service)
        image = {"run": None, "image": "docker://busybox"}
        wanted = {"constraint": "gpu", "nice": 5, "licenses": "matlab:1", "options": {"switches": 1}}
        [session] = (await ask(service, **image, **wanted)).offers
        asked = SchedulerOptions(constraint="gpu", nice=5, licenses="matlab:1", options=("switches=1",))
        assert session.offer.scheduler == asked
        for more in ({"exclusive": True}, {"options": {"mail-user": "eve@example.org"}}, {"mail": "end"}):
            [reason] = (await ask(service, **image, **more)).reasons
            assert reason.field in ("exclusive", "options.mail-user", "mail")


async def test_a_pilot_is_nobodys_to_ask_for(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PREDICTED) as service:
        document = b'{"executable": {"kind": "urn:sublet:kind:executable:pilot", "lease": "x"}}'
        refused = await service.asking.ask(ME, await service.asking.read(document, "application/json", ME))
        assert (refused.result, refused.reasons[0].nearest) == ("NO", "sublet annex create NAME")
