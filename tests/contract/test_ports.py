"""The port of a personal service: the same after a restart, another only if someone else has taken it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sublet.kernel.errors import NotHere
from sublet.kernel.home import Home
from sublet.server.ports import listen_tcp, read_port

HERE = "127.0.0.1"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / "home"))
    made.make()
    return made


def test_a_restarted_service_has_the_same_port(home: Home) -> None:
    with listen_tcp(HERE, 0, home).socket as first:
        port = first.getsockname()[1]
    again = listen_tcp(HERE, 0, home)
    with again.socket as second:
        assert (second.getsockname()[1], again.moved_from) == (port, 0)


def test_a_port_that_another_program_took_is_replaced_and_named(home: Home) -> None:
    with socket.create_server((HERE, 0)) as other:
        taken = other.getsockname()[1]
        Path(home.port).write_text(f"{taken}\n")
        found = listen_tcp(HERE, 0, home)
        with found.socket as listener:
            assert found.moved_from == taken
            assert read_port(home) == listener.getsockname()[1] != taken


@pytest.mark.parametrize("kept", ["", "nonsense", "0", "70000", "-1", "\xff\xff"])
def test_a_damaged_record_of_the_port_is_as_none(home: Home, kept: str) -> None:
    Path(home.port).write_bytes(kept.encode("latin-1"))
    with listen_tcp(HERE, 0, home).socket as listener:
        assert read_port(home) == listener.getsockname()[1]


def test_a_port_that_was_asked_for_is_neither_replaced_nor_remembered(home: Home) -> None:
    with socket.create_server((HERE, 0)) as other, pytest.raises(NotHere, match="can't listen"):
        listen_tcp(HERE, other.getsockname()[1], home)
    assert not Path(home.port).exists()
