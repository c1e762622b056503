"""How large a directory is that sessions share, as systems say it."""

import pytest

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch.transfers import read_size
from sublet.reach.port import Outcome


def test_du_tells_a_size_also_where_it_may_not_read_all() -> None:
    assert read_size(Outcome(0, b"2048\t/scratch/me\n", b"")) == 2 << 20
    assert read_size(Outcome(1, b"4\t/scratch/me\n", b"du: cannot read directory")) == 4096


def test_a_system_that_can_not_tell_is_told_of() -> None:
    with pytest.raises(PlatformRefused, match="no such directory"):
        read_size(Outcome(1, b"", b"du: no such directory"))
