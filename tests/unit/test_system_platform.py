"""A system of one's own, as the settings of the platform that reaches it."""

from __future__ import annotations

import pytest

from sublet.booking.platforms.systems import platform_of
from sublet.kernel.errors import SubletError
from sublet.systems.own import Systems


@pytest.mark.parametrize(
    ("like", "queue", "words"),
    [
        ("expanse", "shared", None),
        ("archer2", "short", {"partition": "standard", "qos": "short"}),
        ("perlmutter", "regular", {"qos": "regular"}),
        ("expanse", "", None),
        ("expanse", "secret", None),
    ],
)
def test_a_queue_is_known_by_the_partition_and_qos_that_stand_for_it(
    like: str, queue: str, words: dict[str, str] | None, tmp_path: object
) -> None:
    found = Systems(str(tmp_path)).add("mine", {"like": like} | ({"queue": queue} if queue else {}))
    settings = platform_of(found)
    assert settings["queue"] == queue
    assert settings["queues"].get(queue) == words


def test_a_system_of_ones_own_keeps_its_door_and_its_manners(tmp_path: object) -> None:
    document = {"like": "frontier", "user": "alice", "project": "abc", "constraint": "nvme"}
    settings = platform_of(Systems(str(tmp_path)).add("mine", document))
    assert settings["kind"] == "slurm"
    assert (settings["host"], settings["user"], settings["shared"]) == ("frontier.olcf.ornl.gov", "alice", False)
    assert (settings["project"], settings["constraint"]) == ("abc", "nvme")
    assert "mem" in platform_of(Systems(str(tmp_path)).add("other", {"like": "vista"}))["refuses"]


def test_what_this_machine_sees_of_a_systems_files_is_said_by_whole_paths(tmp_path: object) -> None:
    systems = Systems(str(tmp_path))
    document = {"title": "mine", "login": {"hosts": ["login.example.org"]}, "scheduler": {"kind": "slurm"}}
    found = systems.add("mine", {**document, "mounts": {"/home": "/mnt/home"}})
    assert platform_of(found)["mounts"] == {"/home": "/mnt/home"}
    with pytest.raises(SubletError, match="from the root"):
        systems.add("other", {**document, "mounts": {"home": "/mnt/home"}})
