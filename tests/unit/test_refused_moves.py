"""Why a session can't be changed is said in words, not in phases."""

from __future__ import annotations

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move


@pytest.mark.parametrize(
    ("phase", "wanted", "message"),
    [
        (Phase.COMPLETED, Phase.CANCELLED, "This session has already completed."),
        (Phase.FAILED, Phase.CANCELLED, "This session has already failed."),
        (Phase.CANCELLED, "extended", "This session has already been cancelled."),
        (Phase.EXPIRED, Phase.REJECTED, "This offer has expired."),
        (Phase.RUNNING, "deleted", "This session is still running, so it can't be deleted."),
        (Phase.RUNNING, Phase.REJECTED, "This session is still running, so it can't be declined."),
        (Phase.WAITING, "opened", "This session has not started yet, so it can't be opened."),
        (Phase.OFFERED, "paused", "This offer has not been accepted yet, so it can't be paused."),
    ],
)
def test_the_reason_names_what_the_session_is_doing(phase: Phase, wanted: Phase | str, message: str) -> None:
    assert refuse_move(phase, wanted, "3f2a77b1-0000").message == message


@pytest.mark.parametrize("wanted", [*Phase, "deleted", "paused"])
@pytest.mark.parametrize("phase", Phase)
def test_no_phase_is_named_by_its_code(phase: Phase, wanted: Phase | str) -> None:
    error = refuse_move(phase, wanted, "3f2a77b1-0000")
    assert not any(code in error.message for code in Phase)
    assert "3f2a77b1" in error.advice


def test_what_is_being_cancelled_is_called_that() -> None:
    error = refuse_move(Phase.RUNNING, "paused", "3f2a77b1", is_being_cancelled=True)
    assert error.message == "This session is being cancelled, so it can't be paused."
