"""What is sent of folders and files, and how often it is tried."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from sublet.client.call import Call
from sublet.client.uploading import PAUSES, LocalFile, Steps, UploadPlan, UploadTally, find_repeated, upload_steps
from sublet.kernel.errors import NotFound, ServiceUnreachable


class CountedPath(str):
    """A path that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedPath.compared += 1
        return super().__eq__(other)


def test_a_path_that_occurs_twice_is_found_without_comparing_each_with_each() -> None:
    paths = [CountedPath(f"folder/{number}") for number in range(2000)]
    assert find_repeated(paths) == ""
    assert CountedPath.compared < 10 * len(paths)
    assert find_repeated([*paths, CountedPath("folder/7")]) == "folder/7"


def follow(steps: Steps[Any]) -> list[Call[Any] | timedelta]:
    """Answer each call with ServiceUnreachable, but the first with NotFound; return what was done until it gave up."""
    done: list[Call[Any] | timedelta] = [next(steps)]
    error: Exception | None = NotFound()
    while True:
        try:
            done.append(steps.throw(error) if error else steps.send(None))
        except ServiceUnreachable:
            return done
        error = ServiceUnreachable() if isinstance(done[-1], Call) else None


def test_a_file_that_can_not_be_sent_is_tried_after_every_pause_and_given_up_without_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    plan = UploadPlan("upload", (LocalFile(str(tmp_path / "file"), "file", 7, 0.0, False),))
    _, *done = follow(upload_steps(plan, UploadTally()))
    assert [step.total_seconds() for step in done if isinstance(step, timedelta)] == list(PAUSES)
    assert [isinstance(step, Call) for step in done] == [True, *[False, True] * len(PAUSES)]
