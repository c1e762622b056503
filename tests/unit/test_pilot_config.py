"""Lines that a system's file adds to pilots: those that tune them are taken, those that decide for them are not."""

from __future__ import annotations

import pytest

from sublet.annexes.pilots.bundle import PilotPlan, values_of
from sublet.platforms.htcondor.configuration import PLACES, STRICT
from sublet.systems.fields import BadField
from sublet.systems.model.pilot_config import MOST, check_lines
from sublet.systems.reader import read_system
from tests.unit.test_pilot_bundle import PLAN

TUNED = ("FILETRANSFER_PLUGINS", "MAX_DEFAULT_LOG", "MAX_NUM_DEFAULT_LOG", "MOUNT_UNDER_SCRATCH", "RUNBENCHMARKS")
HARMLESS = (*TUNED, "SINGULARITY_IS_SETUID", "STARTD_COMPUTE_AVAIL_STATS", "STARTD_ATTRS", "MASTER_ATTRS")


@pytest.mark.parametrize(
    "line",
    [
        "STARTER_DEBUG = D_FULLDEBUG",
        'SINGULARITY_BIND_EXPR="/project /scratch"',
        "USER_JOB_WRAPPER = /opt/site/wrapper",
        "STARTD.STARTD_DEBUG = D_ALWAYS:2",
        'GLIDEIN_Site = "Example"',
        "STARTD_ATTRS = $(STARTD_ATTRS) GLIDEIN_Site",
    ],
)
def test_a_line_that_tunes_a_pilot_is_taken(line: str) -> None:
    assert check_lines([line]) == []


@pytest.mark.parametrize(
    "line",
    [
        "START = True",
        "start=True",
        "STARTD.START = True",
        "SLOT1_START = True",
        "SLOT_TYPE_1_START = True",
        "ALLOW_ADMINISTRATOR = *",
        "SEC_DEFAULT_AUTHENTICATION = NEVER",
        'SubletAnnex = "other"',
        "STARTD_DIRECT_ATTACH_SCHEDD_NAME = other",
        "MASTER.DAEMON_SHUTDOWN_FAST = False",
        "STARTD_ATTRS = Mine",
        "use ROLE : Execute",
        "include : /etc/passwd",
        "include command : /bin/sh",
        "A @=end",
        "A = 1\nSTART = True",
        "A = one \\",
        "",
        "A = " + "x" * 2000,
    ],
)
def test_a_line_that_decides_or_is_more_than_a_line_is_refused(line: str) -> None:
    assert check_lines([line])


def test_all_that_sublet_says_of_a_pilot_is_its_own_to_say_but_what_only_tunes_it() -> None:
    assert isinstance(PLAN, PilotPlan)
    own = {*values_of(PLAN), *STRICT, *PLACES}
    assert {name for name in own if not check_lines([f"{name} = x"])} <= set(HARMLESS)


def test_there_is_an_end_to_lines() -> None:
    assert check_lines(["A = 1"] * (MOST + 1)) == [f"there are {MOST + 1} lines; {MOST} are possible"]


def test_a_systems_file_has_options_for_sbatch_and_lines_for_pilots() -> None:
    read = read_system("x", {"options": ["--licenses=matlab:1"], "pilot": ["STARTER_DEBUG = D_FULLDEBUG"]})
    assert (read.options, read.pilot) == (("--licenses=matlab:1",), ("STARTER_DEBUG = D_FULLDEBUG",))
    with pytest.raises(BadField, match="START is Sublet's own to say") as wrong:
        read_system("x", {"pilot": ["A = 1", "START = True"]})
    assert wrong.value.path == ("pilot", 1)
