"""A system of one's own, as the settings of the platform that reaches it."""

from __future__ import annotations

import pytest

from sublet.service.systems import platform_of
from sublet.systems.own import Systems


@pytest.mark.parametrize(
    ("like", "queue", "partition", "qos"),
    [
        ("expanse", "shared", "shared", ""),
        ("archer2", "short", "standard", "short"),
        ("perlmutter", "regular", "", "regular"),
        ("expanse", "", "", ""),
        ("expanse", "secret", "secret", ""),
    ],
)
def test_a_queue_becomes_the_partition_and_qos_that_stand_for_it(
    like: str, queue: str, partition: str, qos: str, tmp_path: object
) -> None:
    found = Systems(str(tmp_path)).add("mine", {"like": like} | ({"queue": queue} if queue else {}))
    settings = platform_of(found)
    assert (settings["queue"], settings["qos"]) == (partition, qos)


def test_a_system_of_ones_own_keeps_its_door_and_its_manners(tmp_path: object) -> None:
    document = {"like": "frontier", "user": "alice", "project": "abc", "constraint": "nvme"}
    settings = platform_of(Systems(str(tmp_path)).add("mine", document))
    assert settings["kind"] == "slurm"
    assert (settings["host"], settings["user"], settings["shared"]) == ("frontier.olcf.ornl.gov", "alice", False)
    assert (settings["project"], settings["constraint"]) == ("abc", "nvme")
    assert "mem" in platform_of(Systems(str(tmp_path)).add("other", {"like": "vista"}))["refuses"]
