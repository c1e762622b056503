"""What is remembered for a while is forgotten later."""

from __future__ import annotations

from sublet.platforms.recent import RecentKeys


def test_a_key_is_remembered_for_a_while_and_only_recent_ones_are_kept() -> None:
    time = [0.0]
    recent = RecentKeys(10.0, lambda: time[0])
    for key in ("a", "b"):
        recent.note(key)
    time[0] = 6.0
    recent.note("a")
    assert "a" in recent
    assert "b" in recent
    time[0] = 10.0
    assert "a" in recent
    assert "b" not in recent
    recent.note("c")
    assert len(recent) == 2, "b is forgotten"
    time[0] = 20.0
    recent.note("d")
    assert len(recent) == 1
