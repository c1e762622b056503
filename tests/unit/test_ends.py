"""The end of a session, as a sentence."""

from typing import Any

import pytest

from sublet.booking.cli.running import exit_code
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.session import End, EndKind
from tests.canned import a_session, an_end


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (End(EndKind.EXITED, code=3), "It exited with code 3."),
        (End(EndKind.CANCELLED, by="ada", detail="it had not started"), "It was cancelled by ada: it had not started."),
        (End(EndKind.NOT_STARTED, detail="sim.py: No such file"), "It could not be started: sim.py: No such file."),
        (
            End(EndKind.OUT_OF_MEMORY, code=1, detail="it had 256 MiB"),
            "It used more memory than was booked for it: it had 256 MiB. Ask for more.",
        ),
        (End(EndKind.SIGNALLED, signal=11), "It was ended by the signal SIGSEGV, which Sublet did not send."),
    ],
)
def test_an_end_reads_as_a_sentence(end: End, sentence: str) -> None:
    assert end_sentence(end) == sentence


@pytest.mark.parametrize("kind", EndKind)
def test_every_end_has_a_sentence(kind: EndKind) -> None:
    assert end_sentence(End(kind)).endswith(".")


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ({"kind": "exited", "code": 7}, 7),
        ({"kind": "out-of-memory", "code": 3}, 3),
        ({"kind": "out-of-memory", "signal": 9}, 137),
        ({"kind": "signalled", "signal": 15}, 143),
        ({"kind": "timeout", "signal": 15}, 124),
        ({"kind": "disk-full", "code": 2}, 2),
        ({"kind": "disk-full"}, 1),
    ],
)
def test_run_exits_with_the_jobs_own_code_if_it_had_one(end: dict[str, Any], code: int) -> None:
    assert exit_code(a_session(phase="FAILED", end=an_end(**end))) == code
