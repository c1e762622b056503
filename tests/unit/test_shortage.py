"""What a machine is short of for a moment is known as that, in whatever words it comes."""

import errno
from datetime import timedelta

import pytest

from sublet.kernel.backoff import Backoff
from sublet.kernel.errors import DataNotThere
from sublet.kernel.shortage import SHORT, find_shortage
from sublet.platforms.local.shim import shortage as of_shim


@pytest.mark.parametrize("number", sorted(SHORT))
def test_a_shortage_is_found_behind_other_words(number: int) -> None:
    error = DataNotThere(name="data", location="file:/x", why="it can't be read")
    error.__cause__ = OSError(number, "no more of it")
    assert find_shortage(error) == "no more of it"


def test_a_shortage_is_found_where_the_cause_was_not_named() -> None:
    error = ValueError("it can't be read")
    error.__context__ = MemoryError()
    assert find_shortage(error) == "Cannot allocate memory"


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.EIO])
def test_other_failures_are_no_shortage(number: int) -> None:
    assert find_shortage(OSError(number, "it is not there")) == ""


def test_a_circle_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert find_shortage(first) == ""


def test_waits_grow_to_their_limit_and_a_success_forgets_them() -> None:
    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=5))
    assert [backoff.lengthen("a").total_seconds() for _ in range(5)] == [1, 2, 4, 5, 5]
    assert backoff.lengthen("b").total_seconds() == 1
    backoff.forget("a")
    assert backoff.lengthen("a").total_seconds() == 1


def test_a_shim_tries_again_what_the_machine_was_short_of_and_nothing_else() -> None:
    failures = [errno.EMFILE, errno.EAGAIN]

    def act() -> str:
        if failures:
            raise OSError(failures.pop(), "not now")
        return "done"

    def refuse() -> None:
        raise OSError(errno.EACCES, "never")

    def lack() -> None:
        raise OSError(errno.ENFILE, "not now")

    assert of_shim.patiently(act) == "done"
    assert of_shim.SHORT == SHORT
    with pytest.raises(PermissionError):
        of_shim.patiently(refuse)
    with pytest.raises(OSError, match="not now"):
        of_shim.patiently(lack, until=0.0)
