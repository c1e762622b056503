"""Rules of the kind `pilot`: what travels with a lease's job, and who may ask for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sublet.booking.model.request import Executable, Request
from sublet.kinds.pilot import PILOT, PLACE
from sublet.kinds.port import Callback
from tests.unit.test_kinds import setting

LEASE = "7f1a0c52-0000-4000-8000-000000000001"
ASKING = Callback(("https://10.0.0.1:9650", "https://ap.example:9650"), "pin+/=")


def executable(**fields: object) -> Executable:
    return Executable("pilot", fields=fields)


def test_a_pilot_asks_the_service_and_outlives_the_loss_of_a_node() -> None:
    (way,) = PILOT.ways(executable(lease=LEASE), {})
    program = way.program(setting(secret="s3cret", callback=ASKING))
    assert way.asks
    assert not way.contained
    assert program.outlives_nodes
    assert program.argv == ("sh", f"{PLACE}/start.sh")


def test_what_travels_says_where_to_ask_and_nothing_of_it_is_among_words_or_variables(tmp_path: Path) -> None:
    (way,) = PILOT.ways(executable(lease=LEASE), {})
    program = way.program(setting(secret="it's $(id) secret", callback=ASKING))
    assert "secret" not in " ".join((*program.argv, *program.environment, *program.environment.values()))
    (tmp_path / "values").write_bytes(program.files[f"{PLACE}/values"])
    told = subprocess.run(
        ["sh", "-c", '. ./values && printf "%s|" "$lease" "$token" "$urls" "$pin"'],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=True,
    )
    assert told.stdout.split("|")[:4] == [LEASE, "it's $(id) secret", " ".join(ASKING.urls), ASKING.pin]


@pytest.mark.parametrize("lease", [None, "", 7, "a b", "../x", "x" * 65])
def test_a_pilot_without_a_lease_is_refused(lease: object) -> None:
    wanted = executable(lease=lease)
    assert [reason.field for reason in PILOT.check(wanted, Request(wanted))] == ["executable.lease"]


def test_a_field_that_means_nothing_is_refused() -> None:
    wanted = executable(lease=LEASE, argv=["true"])
    assert [reason.field for reason in PILOT.check(wanted, Request(wanted))] == ["executable.argv"]


@pytest.mark.parametrize("name", ["start", "node", "ask"])
@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_the_scripts_can_be_read_by_every_shell(name: str, sh: str, tmp_path: Path) -> None:
    (way,) = PILOT.ways(executable(lease=LEASE), {})
    text = way.program(setting(callback=ASKING)).files[f"{PLACE}/{name}.sh"]
    assert subprocess.run([sh, "-n"], input=text, capture_output=True).stderr == b""
