"""Pledges that an operator adds, changes and removes while the service runs, beside those of the settings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.access.audit import Sought
from sublet.app import open_service
from sublet.kernel.errors import BadPledge, NotFound, OperatorsOnly
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import ME, OPERATOR, allow, ask, serving

pytestmark = pytest.mark.anyio
LOCAL, GUEST = Person("lu@local.org"), Person("sam@srcnet.org")
OWN = {"pledges": {"fixed": {"cores": 8}}}
SITE = {"site": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "10h"}}
ANY_TIME = {"time": "1h", "image": "docker://busybox", "run": None}
NOW = {"start": "within 5m", **ANY_TIME}


async def list_drawn(
    service: Service, person: Person, nodes: int, wish: dict[str, Any] | None = None
) -> list[tuple[str, ...]]:
    """The pledges of what is offered for so many whole nodes, usually now; nothing stays held."""
    found = await ask(service, person, nodes=nodes, cores=8, **(wish or NOW))
    await service.offers.reject_all(person)
    return [tuple(session.offer.pledge) for session in found.offers]


async def test_a_pledge_counts_as_soon_as_it_is_added_changed_and_removed(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=SITE, loop=False) as service:
        changes = service.access.pledge_changes
        await allow(service, "*@local.org")
        await allow(service, "*@srcnet.org", noun="pledge", name="srcnet")
        assert await list_drawn(service, LOCAL, 4) == [()]
        await changes.add(OPERATOR, "site", "srcnet", {"cores": 16, "title": "Ours"})
        assert await list_drawn(service, LOCAL, 2) == [("open",)]
        assert await list_drawn(service, LOCAL, 3) == [], "what is pledged is kept from others at once"
        assert await list_drawn(service, GUEST, 2) == [("srcnet",)]
        await changes.edit(OPERATOR, "", "srcnet", {"cores": 8})
        assert await list_drawn(service, LOCAL, 3) == [("open",)]
        assert await list_drawn(service, GUEST, 2) == []
        [state] = [part for part in await service.access.pledges.pledges(OPERATOR) if part.name == "srcnet"]
        assert (state.cores, state.title, state.is_added) == (8, "Ours", True), "what is not named stays"
        booked = await ask(service, GUEST, nodes=1, cores=8, **NOW)
        await service.sessions.accept(booked.offers[0].id, GUEST)
        await changes.remove(OPERATOR, "", "srcnet")
        assert await list_drawn(service, LOCAL, 3) == [()]
        assert await list_drawn(service, LOCAL, 4) == [], "what was booked under it stays booked"
        assert await list_drawn(service, GUEST, 1) == []
        seen = await service.access.audit.audit(OPERATOR, Sought(noun="pledge"))
        assert [entry.action for entry in seen] == ["pledge.add", "pledge.edit", "pledge.remove"]


async def test_it_is_kept_over_a_restart_and_the_settings_come_first(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=SITE, loop=False) as service:
        changes = service.access.pledge_changes
        await changes.add(ME, "site", "ml", {"memory": "1GiB", "when": "nights", "zone": "Europe/London"})
        await changes.add(ME, "site", "fixed", {"cores": 2})
    own = {"site": {**SITE["site"], **OWN}}
    async with serving(tmp_path, platforms=own, loop=False) as service:
        parts = {part.name: part for part in await service.access.pledges.pledges(ME)}
        assert (parts["ml"].pledged.memory, parts["ml"].when) == (1 << 30, "nights (Europe/London)")
        assert (parts["fixed"].cores, parts["fixed"].is_added) == (8, False)


async def test_what_the_settings_have_is_not_changed_and_what_can_not_be_pledged_says_why(tmp_path: Path) -> None:
    platforms = {"site": {**SITE["site"], **OWN}, "other": {"kind": "memory"}}
    async with serving(tmp_path, mode="gateway", platforms=platforms, loop=False) as service:
        changes = service.access.pledge_changes
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("fixed", {"cores": 1}, "it is in the settings of site"),
            ("open", {"cores": 1}, "this is the name of what is not pledged"),
            ("A b", {"cores": 1}, "small letters"),
            ("none", {}, "say what is pledged"),
            ("ml", {"memory": "much"}, "memory: "),
            ("ml", {"cores": 1, "when": "sometimes"}, "write days and hours"),
        ]
        for name, amounts, why in wrong:
            with pytest.raises(BadPledge, match=why):
                await changes.add(OPERATOR, "site", name, amounts)
        for change in (changes.edit(OPERATOR, "site", "fixed", {"cores": 1}), changes.remove(OPERATOR, "", "fixed")):
            with pytest.raises(BadPledge, match="it is in the settings of site") as refused:
                await change
            assert "sublet.toml" in refused.value.advice
        for platform in ("site", "other"):
            await changes.add(OPERATOR, platform, "twice", {"cores": 1})
        with pytest.raises(BadPledge, match="several platforms have one of that name: other, site"):
            await changes.remove(OPERATOR, "", "twice")
        await changes.remove(OPERATOR, "other", "twice")
        with pytest.raises(BadPledge, match="site has one of that name"):
            await changes.add(OPERATOR, "site", "twice", {"cores": 2})
        with pytest.raises(NotFound):
            await changes.remove(OPERATOR, "", "nothing")
        with pytest.raises(OperatorsOnly):
            await changes.remove(LOCAL, "site", "twice")


async def test_on_a_shared_queue_it_is_a_cap_at_once(tmp_path: Path) -> None:
    queue = {"site": {"kind": "memory", "terms": "predicted", "nodes": 4, "cores": 8}}
    async with serving(tmp_path, mode="gateway", platforms=queue, loop=False) as service:
        await allow(service, "*@srcnet.org", noun="pledge", name="srcnet")
        assert await list_drawn(service, GUEST, 1, ANY_TIME) == []
        await service.access.pledge_changes.add(OPERATOR, "site", "srcnet", {"cores": 8})
        assert {*await list_drawn(service, GUEST, 1, ANY_TIME)} == {("srcnet",)}
        assert await list_drawn(service, GUEST, 2, ANY_TIME) == []


async def test_another_process_takes_it_up(store_url: str, tmp_path: Path) -> None:
    one, two = (
        Settings.load(tmp_path / name, mode="gateway", database=store_url, platforms=SITE) for name in ("one", "two")
    )
    async with open_service(one, loop=False) as first, open_service(two, loop=False) as second:
        await allow(first, "*@local.org")
        await first.access.pledge_changes.add(OPERATOR, "site", "srcnet", {"cores": 16})
        await second.access.pledge_changes.added.look_after(second.now() + timedelta(seconds=2))
        for service in (second, first):
            assert await list_drawn(service, LOCAL, 3) == []
            assert await list_drawn(service, LOCAL, 2) == [("open",)]
