"""The picture of the rooms is drawn from the code, and no room uses one above it."""

from __future__ import annotations

from tests.docs.rooms import PICTURE, ROWS, draw, use_between_rooms


def test_the_picture_of_the_rooms_is_of_this_code() -> None:
    assert PICTURE.read_text() == draw(), "Draw it again: python -m tests.docs.rooms"


def test_no_room_uses_one_above_it() -> None:
    height = {room: number for number, row in enumerate(ROWS) for room in row}
    upward = sorted(f"{one} → {other}" for one, other in use_between_rooms() if height[other] <= height[one])
    assert not upward
