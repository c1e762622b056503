"""Which network a container gets, and how a container that could not be started is told from a program that failed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.kernel.container_network import HOST, NONE, OWN, USUAL, Means, choose_networks, is_about_network, try_tun
from sublet.kinds.inside.container_start import find_why_unstarted, find_words
from sublet.kinds.inside.container_tools import Machine, ToolImage
from sublet.kinds.inside.container_tools import apptainer as apptainer_words
from sublet.kinds.inside.container_tools import podman as podman_words
from sublet.platforms.local.platform import Local
from tests.unit.test_kinds_container import docker, plan, port, words

SLIRP = ("slirp4netns",)
DENIED = "Permission denied"


def names(tool: str, policy: str, means: Means, has_port: bool = False) -> list[str]:
    return [network.name for network in choose_networks(tool, policy, has_port, means)]


@pytest.mark.parametrize(
    ("means", "tried"),
    [
        (Means(is_root=True, has_bridge=True, programs=SLIRP), ["", "slirp4netns", "none"]),
        (Means(is_root=True, has_bridge=True, programs=(), tun_error=DENIED), ["", "none"]),
        (Means(is_root=True, has_bridge=False, programs=SLIRP), ["slirp4netns", "none"]),
        (Means(is_root=False, has_bridge=True, programs=SLIRP), ["slirp4netns", "none"]),
        (Means(is_root=False, has_bridge=True, programs=("pasta",)), ["pasta", "none"]),
        (Means(is_root=False, has_bridge=True, programs=("pasta", "slirp4netns")), ["", "none"]),
        (Means(is_root=False, has_bridge=True, programs=SLIRP, tun_error=DENIED), ["none"]),
        (Means(is_root=False, has_bridge=False, programs=()), ["none"]),
    ],
)
def test_podman_gets_the_best_network_that_the_machine_can_make(means: Means, tried: list[str]) -> None:
    assert names("podman", USUAL, means) == tried
    assert names("podman", OWN, means, has_port=True) == tried


def test_a_missing_network_is_explained_with_a_remedy() -> None:
    (network,) = choose_networks("podman", USUAL, False, Means(False, False, SLIRP, DENIED))
    assert network.words == "no network: slirp4netns can't open /dev/net/tun (Permission denied)"
    assert "/dev/net/tun" in network.remedy
    (network,) = choose_networks("podman", USUAL, False, Means(False, False, ()))
    assert (network.words, network.remedy) == (
        "no network: neither slirp4netns nor pasta is installed",
        "Install slirp4netns.",
    )


def test_the_policy_decides_who_shares_the_machines_network() -> None:
    means = Means(is_root=False, has_bridge=False, programs=SLIRP)
    for tool in ("apptainer", "charliecloud"):
        assert names(tool, USUAL, means) == names(tool, HOST, means) == [""], "it has the machine's"
        assert names(tool, OWN, means) == names(tool, NONE, means) == ["none"]
    assert names("podman", HOST, means) == names("docker", HOST, means) == ["host"]
    assert names("podman", NONE, means) == names("docker", NONE, means) == ["none"]
    assert names("podman", HOST, means, has_port=True) == ["slirp4netns", "none"], "its port is no port of the machine"


def test_a_stranger_never_gets_the_machines_network() -> None:
    for setting, theirs in (("usual", OWN), ("host", OWN), ("own", OWN), ("none", NONE)):
        platform = Local(name="here", container_network=setting)
        assert platform.choose_network_policy(is_for_stranger=False) == setting
        assert platform.choose_network_policy(is_for_stranger=True) == theirs


def test_the_tools_are_told_of_the_network() -> None:
    told = plan(docker(network=port()), "podman")
    argv = podman_words(told, ToolImage("abc"), Machine(network="slirp4netns"), "/env")
    assert (words(argv, "--network"), words(argv, "--publish")) == (["slirp4netns"], ["127.0.0.1::8888"])
    argv = podman_words(told, ToolImage("abc"), Machine(network="none"), "/env")
    assert (words(argv, "--network"), words(argv, "--publish")) == (["none"], []), "it is reached from inside"
    told = plan(docker(), "apptainer")
    assert "--net" not in apptainer_words(told, ToolImage("a.sif"), Machine())
    assert words(apptainer_words(told, ToolImage("a.sif"), Machine(network="none")), "--network") == ["none"]


def test_a_device_that_can_not_be_opened_is_told_in_the_systems_words(tmp_path: Path) -> None:
    assert try_tun(str(tmp_path / "tun")) == os.strerror(2)
    (tmp_path / "tun").touch()
    assert try_tun(str(tmp_path / "tun")) == ""


def test_the_tools_own_words_are_found_among_what_was_said() -> None:
    said = 'sublet: fetching\nError: /usr/bin/slirp4netns failed: "open(\\"/dev/net/tun\\"): Permission denied"\n'
    assert find_words(said).startswith("/usr/bin/slirp4netns failed")
    assert is_about_network(find_words(said))
    assert find_words("FATAL:   stat /nope: no such file or directory\n") == "stat /nope: no such file or directory"
    assert find_words("a program's FATAL: error\n") == ""
    assert not is_about_network('runc create failed: exec: "/nope": stat /nope: no such file or directory')


@pytest.mark.parametrize("code", [0, 1, 126, 255])
def test_a_program_of_charliecloud_and_apptainer_fails_by_itself(code: int) -> None:
    for tool in ("charliecloud", "apptainer"):
        told = plan(docker(), tool)
        assert find_why_unstarted(told, code, 7, "ch-run[8]: error: of another\nFATAL: mine\nbye\n") == ""


def test_what_charliecloud_and_apptainer_could_not_start_is_told() -> None:
    error = "ch-run[7]: error: can't execve(2): /nope: No such file or directory"
    assert find_why_unstarted(plan(docker(), "charliecloud"), 1, 7, error).startswith("can't execve(2)")
    error = "INFO: x\nFATAL:   container creation failed: mount denied\n"
    assert find_why_unstarted(plan(docker(), "apptainer"), 255, 7, error) == "container creation failed: mount denied"


@pytest.mark.parametrize(
    ("tool", "error"),
    [
        ("podman", "ERROR (catatonit:6): failed to exec pid1: No such file or directory"),
        ("docker", "[FATAL tini (7)] exec /nope failed: No such file or directory"),
    ],
)
def test_a_program_that_the_first_process_of_a_container_can_not_find_is_named(tool: str, error: str) -> None:
    told = plan(docker(entrypoint="/nope"), tool)
    assert find_why_unstarted(told, 1, 7, f"before\n{error}\n") == "/nope: No such file or directory"
    assert find_why_unstarted(told, 1, 7, f"{error}\nafter\n") == "", "somebody else said it"
