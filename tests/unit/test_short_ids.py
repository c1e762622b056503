"""Things are named by the beginning of their id."""

from __future__ import annotations

import pytest

from sublet.kernel.errors import Ambiguous, IdTooShort
from sublet.kernel.short_ids import pick_one, require_length


def test_three_letters_are_enough_and_two_are_told_to_be_too_few() -> None:
    require_length("355", "session")
    for name in ("3", "35", "AB"):
        with pytest.raises(IdTooShort) as caught:
            require_length(name, "session")
        assert caught.value.message == f"{name} is too short to name a session."
        assert "at least 3 characters" in caught.value.advice
    require_length("me", "session")  # no id begins so: there is just no such session


def test_the_only_one_is_picked_and_several_are_listed() -> None:
    assert pick_one("355", "session", ["355a"], str) == "355a"
    assert pick_one("355", "session", [], str) is None
    assert pick_one("", "session", ["355a"], str) is None, "an empty name stands for none"
    with pytest.raises(Ambiguous) as caught:
        pick_one("355", "session", ["355a", "355b"], str)
    assert caught.value.message == "355 could mean several sessions: 355a; 355b."
    with pytest.raises(Ambiguous, match="; and 2 more"):
        pick_one("355", "rule", [f"355{n}" for n in range(7)], str)
