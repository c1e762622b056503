"""A session that waits for others starts when they have completed, and ends with an honest reason if one does not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.kernel.errors import NotYours
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, in_phase, over, reach, serving
from tests.contract.test_service_life import memory

pytestmark = pytest.mark.anyio
QUEUE = {"kind": "memory", "terms": "predicted", "waits": ["0s", "0s", "0s"], "takes": "0s"}


async def begin(service: Service, **short: Any) -> Session:
    """Ask, and take the first offer."""
    made = await ask(service, **short)
    assert made.result == "YES", made.reasons
    return await service.sessions.accept(made.offers[0].id, ME)


def waits(session: Session) -> bool:
    return session.condition.startswith("waits for")


async def test_what_waits_starts_when_the_other_has_completed(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory", "takes": "1s"}, "queue": QUEUE}
    async with serving(tmp_path, platforms=both) as service:
        first = await begin(service, platform="own", time="1h")
        second = await begin(service, platform="queue", after=[first.id[:8]], time="1h")
        assert second.offer.after == (first.id,)
        held = await reach(service, second.id, waits)
        assert (held.phase, held.condition) == (Phase.WAITING, f"waits for {first.id[:8]} to complete")
        before, after = await over(service, first.id), await over(service, second.id)
        assert (before.phase, after.phase) == (Phase.COMPLETED, Phase.COMPLETED)
        assert before.ended
        assert after.started
        assert after.started >= before.ended


async def test_what_waits_for_one_that_fails_says_which_and_so_on_down_the_line(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"queue": QUEUE}) as service:
        bad = {"SUBLET_PLAY_TAKES": "1s", "SUBLET_PLAY_EXIT": "3"}
        first = await begin(service, env=bad, name="sieve")
        second = await begin(service, after=first.id)
        third = await begin(service, after=[second.id])
        ended = await over(service, second.id)
        assert ended.phase is Phase.FAILED
        assert ended.end
        assert ended.end.kind is EndKind.DEPENDENCY_FAILED
        assert ended.end.detail == f"{first.id[:8]} (sieve) is FAILED: It exited with code 3"
        last = await over(service, third.id)
        assert last.end
        assert last.end.kind is EndKind.DEPENDENCY_FAILED
        assert last.end.detail.startswith(f"{second.id[:8]} is FAILED: A session that it depends on did not complete")


async def test_what_waits_for_one_that_is_cancelled_gives_back_what_was_booked_for_it(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="10h")) as service:
        first = await begin(service, cores=16, time="1h")
        second = await begin(service, cores=16, time="1h", after=[first.id])
        await reach(service, second.id, waits)
        await service.sessions.cancel(first.id, ME)
        ended = await over(service, second.id)
        assert ended.end
        assert ended.end.kind is EndKind.DEPENDENCY_FAILED
        assert "It was cancelled by me" in ended.end.detail
        assert (await ask(service, cores=16, time="1h")).offers[0].offer.start < service.now() + timedelta(minutes=1)


async def test_a_booked_start_is_after_the_planned_end_and_moves_up_when_that_comes_early(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="2s")) as service:
        first = await begin(service, time="1h")
        second = await begin(service, time="1h", after=[first.id])
        assert first.until
        assert second.start
        assert second.start >= first.until
        ended = await over(service, second.id)
        assert ended.phase is Phase.COMPLETED
        kinds = [event.kind for event in await service.events.events(ME, session=second.id)]
        assert "session.moved-up" in kinds
        before = await service.sessions.get(first.id, ME)
        assert before.ended
        assert ended.started
        assert ended.started >= before.ended


@pytest.mark.parametrize("needs_results", [False, True])
async def test_a_booked_start_that_the_others_miss_is_missed(tmp_path: Path, needs_results: bool) -> None:
    async with serving(tmp_path, platforms=memory(takes="10h")) as service:
        first = await begin(service, time="1h")
        data = [{"location": f"session:{first.id}/out/", "path": "in"}]  # which can't be brought before its end
        second = await begin(service, time="1h", **({"data": data} if needs_results else {"after": [first.id]}))
        await reach(service, second.id, waits)
        await service.sessions.extend(first.id, ME, by="2h")
        assert second.start
        much_later = second.start + timedelta(minutes=1)
        set_clock(service, lambda: much_later)
        await service.store.write(lambda tx: tx.sessions.change(second.id, now=much_later, due=much_later))
        ended = await over(service, second.id)
        assert ended.end
        assert ended.end.kind is EndKind.WINDOW_PASSED
        assert first.id[:8] in ended.end.detail
        kinds = [event.kind for event in await service.events.events(ME, session=second.id)]
        assert ("session.preparing" in kinds) is not needs_results


async def test_a_window_that_ends_before_the_others_is_a_no(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory", "takes": "10h"}, "queue": QUEUE}
    async with serving(tmp_path, platforms=both) as service:
        first = await begin(service, platform="own", time="5h")
        made = await ask(service, start="within 10m", after=[first.id])
        assert made.result == "NO"
        assert {reason.platform for reason in made.reasons} == {"own", "queue"}
        assert all("depends on are planned to end" in reason.message for reason in made.reasons)


async def test_only_sessions_of_ones_own_that_can_complete_are_waited_for(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="10h")) as service:
        mine = await begin(service, time="1h")
        for name, words in (("ffffffff", "There is no session ffffffff"), ("nonsense!", "There is no session")):
            unknown = await ask(service, after=[name])
            assert (unknown.result, unknown.reasons[0].field) == ("NO", "after")
            assert words in unknown.reasons[0].message
        with pytest.raises(NotYours):
            await ask(service, OTHER, after=[mine.id])
        offered = (await ask(service)).offers[0]
        assert "has not been accepted" in (await ask(service, after=[offered.id])).reasons[0].message
        await service.sessions.cancel(mine.id, ME)
        assert "would never start" in (await ask(service, after=[mine.id])).reasons[0].message


async def test_what_has_completed_is_not_waited_for_even_when_it_was_deleted_since(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory", "takes": "0s"}, "queue": QUEUE | {"takes": "1h"}}
    async with serving(tmp_path, platforms=both) as service:
        first = await begin(service, platform="own")
        await over(service, first.id)
        open_ = await begin(service, platform="queue", time="1h")
        second = await begin(service, platform="own", after=[first.id, open_.id])
        await reach(service, second.id, waits)
        await service.sessions.delete(first.id, ME)
        assert (await service.sessions.get(second.id, ME)).condition == f"waits for {open_.id[:8]} to complete"
        await service.sessions.cancel(open_.id, ME)
        ended = await over(service, second.id)
        assert ended.end
        assert open_.id[:8] in ended.end.detail


async def test_a_session_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory", "takes": "10h"}, "queue": QUEUE}
    async with serving(tmp_path, platforms=both) as service:
        first = await begin(service, platform="own", time="1h")
        second = await begin(service, platform="queue", after=[first.id])
        await reach(service, second.id, waits)
        assert (await service.sessions.cancel(second.id, ME)).phase is Phase.CANCELLED
        await reach(service, first.id, in_phase(Phase.RUNNING))
