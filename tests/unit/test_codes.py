"""A wrong code is asked for again where someone can type, and nowhere else."""

from __future__ import annotations

import pytest

from sublet.cli.output import Output
from sublet.kernel.errors import TooMany, WrongCode
from sublet.people.cli.codes import TRIES, ask_until_right


class Terminal(Output):
    """Output to someone who can answer."""

    can_ask = True  # type: ignore[assignment]


class Gateway:
    """Takes the last of the codes that are typed."""

    def __init__(self, wrong: int) -> None:
        self.wrong, self.shown = wrong, 0

    def show(self) -> str:
        self.shown += 1
        if self.shown <= self.wrong:
            raise WrongCode
        return "token"


def test_a_mistyped_code_of_the_second_factor_needs_no_new_mail() -> None:
    gateway = Gateway(wrong=2)
    assert (ask_until_right(Terminal(), gateway.show), gateway.shown) == ("token", 3)


@pytest.mark.parametrize(("out", "asked"), [(Terminal(), TRIES), (Output(), 1)])
def test_nobody_is_asked_for_ever_and_no_program_twice(out: Output, asked: int) -> None:
    gateway = Gateway(wrong=99)
    with pytest.raises(WrongCode):
        ask_until_right(out, gateway.show)
    assert gateway.shown == asked


def test_how_long_to_wait_is_said_in_words_and_never_that_a_code_still_works() -> None:
    error = TooMany(seconds=3408)
    assert (error.message, error.values["seconds"]) == ("Too many attempts: wait 56 min 48 s.", 3408)
    assert "still works" not in error.advice
    assert TooMany("Not now: wait {wait}.", hint="Rest.", seconds=60).sentences == "Not now: wait 1 min. Rest."
