"""Rules of the container kinds: what is refused, which tool is chosen, and with which words it is called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.booking.model.job import Mount
from sublet.booking.model.request import GIB, Compute, Executable, Request, Volume
from sublet.booking.model.shape import Amounts, Shape
from sublet.kinds.container import DOCKER, SINGULARITY
from sublet.kinds.images import read_location
from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.container_images import pin
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Machine, ToolImage
from sublet.kinds.inside.container_variables import add_multiline
from sublet.kinds.inside.task_launcher import describe_task
from sublet.kinds.inside.task_runner import choose_words
from tests.unit.test_kinds import refusals, setting

DIGEST = "sha256:" + "6e" * 32
EVERYTHING = dict.fromkeys(
    ("sh", "python3", "podman", "apptainer", "singularity", "docker", "ch-run", "unsquashfs"), "/usr/bin/tool"
)


def docker(*locations: str, **fields: Any) -> Executable:
    image = {"locations": list(locations or ["ghcr.io/ada/tool:1"]), **fields.pop("image", {})}
    return Executable("docker-container", fields={"image": image, **fields})


def singularity(location: str, **fields: Any) -> Executable:
    return Executable("singularity-container", fields={"location": location, **fields})


def port(**fields: Any) -> dict[str, Any]:
    return {"ports": [{"access": True, "protocol": "HTTP", "internal": {"port": 8888}} | fields]}


def plan(executable: Executable, tool: str, **changes: Any) -> dict[str, Any]:
    """What the runner of one way is told."""
    kind = DOCKER if executable.kind == DOCKER.name else SINGULARITY
    (way,) = [way for way in kind.ways(executable, EVERYTHING) if way.name == tool]
    program = way.program(setting(tools=EVERYTHING, **changes))
    assert program.argv == ("/usr/bin/tool", ".sublet/program.pyz")
    told: dict[str, Any] = json.loads(program.files[".sublet/container.json"])
    return told


def test_an_ordinary_image_is_accepted() -> None:
    assert refusals(docker(image={"digest": DIGEST, "platform": {"architecture": "amd64", "os": "linux"}})) == []
    assert refusals(docker(entrypoint="/run.sh", command=["60"], environment={"A": "b"}, network=port())) == []


@pytest.mark.parametrize(
    ("field", "executable"),
    [
        ("executable.image", Executable("docker-container")),
        ("executable.image.locations", Executable("docker-container", fields={"image": {"locations": []}})),
        ("executable.image.locations[0]", docker("ghcr.io/x y")),
        ("executable.image.locations[0]", docker("ftp://host/image.tar")),
        ("executable.image.locations[0]", docker("-v/etc:/etc")),
        ("executable.image.digest", docker(image={"digest": "md5:12"})),
        ("executable.image.platform.architecture", docker(image={"platform": {"architecture": "arm64"}})),
        ("executable.image.platform.os", docker(image={"platform": {"os": "windows"}})),
        ("executable.image.platform.os", docker(image={"platform": {"os": {"name": "linux"}}})),
        ("executable.image.sha", docker(image={"sha": "1"})),
        ("executable.privileged", docker(privileged=True)),
        ("executable.entrypoint[0]", docker(entrypoint="")),
        ("executable.command", docker(command="run it")),
        ("executable.network.ports[0].external", docker(network=port(external={"port": 80}))),
        ("executable.network.ports[0].protocol", docker(network=port(protocol="UDP"))),
        ("executable.network.ports[0].internal.port", docker(network=port(internal={"port": 0}))),
        ("executable.network.ports", docker(network={"ports": port()["ports"] * 2})),
        ("executable.location", singularity("")),
        ("executable.location", singularity("ghcr.io/ada/tool:1")),
    ],
)
def test_what_can_not_be_run_is_refused_by_the_field(field: str, executable: Executable) -> None:
    assert refusals(executable) == [field]


def test_what_is_understood_but_not_done_is_not_supported() -> None:
    executable = docker(privileged=True)
    (reason,) = DOCKER.check(executable, Request(executable))
    assert reason.kind == "urn:not-supported"


@pytest.mark.parametrize("path", ["/", "/a:b", "/a,readonly=false", "/a/../etc"])
def test_a_volume_can_not_change_the_words_of_the_tool(path: str) -> None:
    request = Request(docker(), compute=Compute(volumes=(Volume("v", path, "cube"),)))
    assert refusals(docker(), request) == ["compute.volumes"]


@pytest.mark.parametrize(
    ("location", "how"),
    [
        ("ghcr.io/ada/tool:1", "registry"),
        ("docker://busybox", "registry"),
        ("localhost/mine:latest", "registry"),
        ("localhost:5000/mine@" + DIGEST, "registry"),
        ("docker-archive:/images/a.tar", "archive"),
        ("oci-archive:/images/a.tar", "archive"),
        ("/images/a.tar.gz", "archive"),
        ("https://example.org/a.tar", "archive"),
        ("file:///images/a.sif", "sif"),
        ("dir:/images/root", "directory"),
        ("/images/root", "directory"),
        ("library://a/b/c", "unknown"),
    ],
)
def test_locations_are_read_by_their_form(location: str, how: str) -> None:
    assert read_location(location, 0)["how"] == how


def test_the_best_tool_comes_first_and_one_without_ports_is_not_offered_for_them() -> None:
    assert [way.name for way in DOCKER.ways(docker(), EVERYTHING)] == ["podman", "apptainer", "docker", "charliecloud"]
    reached = DOCKER.ways(docker(network=port()), EVERYTHING)
    assert [(way.name, way.interactive) for way in reached] == [("podman", True), ("docker", True)]
    assert DOCKER.ways(docker(), {"python3": "", "sh": ""}) == []
    assert DOCKER.ways(docker("dir:/images/root"), {"docker": ""}) == []
    named = singularity("https://example.org/a.sif")
    assert [way.name for way in SINGULARITY.ways(named, EVERYTHING)] == ["apptainer", "podman", "charliecloud"]
    assert SINGULARITY.ways(named, {"podman": ""}) == []
    assert [way.name for way in SINGULARITY.ways(singularity("library://a/b:1"), EVERYTHING)] == ["apptainer"]


def test_an_image_among_the_accounts_own_files_is_not_for_strangers() -> None:
    def contained(*locations: str) -> dict[str, bool]:
        return {way.name: way.contained for way in DOCKER.ways(docker(*locations), EVERYTHING)}

    assert contained("ghcr.io/ada/tool:1")["podman"]
    assert not contained("ghcr.io/ada/tool:1")["charliecloud"]
    for ours in ("dir:/", "docker-archive:/images/a.tar", "file:///images/a.tar"):
        assert not any(contained("ghcr.io/ada/tool:1", ours).values())


def test_a_container_for_each_node_runs_in_as_many_tasks_as_there_are_nodes() -> None:
    two = Amounts(Shape(1, GIB), 2)
    told = plan(docker(each_node=True), "apptainer", amounts=two)
    assert (told["tasks"], told["each_node"]) == (2, True)
    task = describe_task(told, {"SLURM_PROCID": "1", "SUBLET_FIRST_NODE": "node1"})
    assert (task["SUBLET_NODE_NUMBER"], task["SUBLET_NODES"], task["SUBLET_FIRST_NODE"]) == ("1", "2", "node1")
    elsewhere = describe_task(told, {"SUBLET_NODE_NUMBER": "1", "SUBLET_FIRST_NODE": "c1"})
    assert [elsewhere[name] for name in ("SUBLET_TASK", "SLURM_NODEID", "SLURM_NNODES")] == ["1", "1", "2"]
    assert "SUBLET_NODE_NUMBER" not in describe_task(plan(docker(tasks=2), "apptainer", amounts=two), {})
    alone = plan(docker(each_node=True), "apptainer")
    assert (alone["tasks"], alone["environment"]["SUBLET_FIRST_NODE"]) == (0, "localhost")
    for beside in ({"tasks": 2}, {"network": port()}):
        executable = docker(each_node=True, **beside)
        (reason,) = DOCKER.check(executable, Request(executable))
        assert reason.field == "executable.each_node"


def test_containers_for_each_node_are_started_by_the_platforms_own_script_where_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SUBLET_ON_NODES", "/s/k1/nodes.sh")
    monkeypatch.setenv("PATH", "")
    two, image = Amounts(Shape(1, GIB), 2), ToolImage("tool")
    assert choose_words(plan(docker(each_node=True), "apptainer", amounts=two), image) == [
        *("sh", "/s/k1/nodes.sh", "--together")
    ]
    assert choose_words(plan(docker(tasks=2), "apptainer", amounts=two), image) == []


def test_an_image_at_an_address_is_brought() -> None:
    (data,) = DOCKER.brings(docker("ghcr.io/ada/tool:1", "https://example.org/a.tar"))
    assert (data.name, data.location) == ("sublet.image-1", "https://example.org/a.tar")
    told = plan(docker("ghcr.io/ada/tool:1", "https://example.org/a.tar"), "podman")
    assert told["sources"][1]["folder"] == "/s/k1/data/sublet.image-1"
    assert [item.name for item in SINGULARITY.brings(singularity("https://example.org/a.sif"))] == ["sublet.image-0"]


@pytest.mark.parametrize(
    ("reference", "digest", "exact"),
    [
        ("ghcr.io/ada/tool:1", DIGEST, f"ghcr.io/ada/tool@{DIGEST}"),
        ("localhost:5000/tool", DIGEST, f"localhost:5000/tool@{DIGEST}"),
        (f"ghcr.io/ada/tool@{DIGEST}", "", f"ghcr.io/ada/tool@{DIGEST}"),
        ("ghcr.io/ada/tool:1", "", "ghcr.io/ada/tool:1"),
    ],
)
def test_a_digest_takes_the_place_of_the_tag(reference: str, digest: str, exact: str) -> None:
    assert pin(reference, digest) == exact


def words(argv: list[str], flag: str) -> list[str]:
    """The values that a flag is given."""
    return [argv[i + 1] for i, word in enumerate(argv) if word == flag] + [
        word.removeprefix(f"{flag}=") for word in argv if word.startswith(f"{flag}=")
    ]


def test_podman_is_told_mounts_limits_and_words_and_no_values_of_the_environment() -> None:
    executable = docker(entrypoint="/run.sh", command=["$(id)"], environment={"KEY": "hush", "TWO": "a\nb"})
    mounts = (Mount("data/cube", "/input"), Mount("storage/s", "out", read_only=False))
    told = plan(executable, "podman", mounts=mounts)
    argv = tools.podman(told, ToolImage("abc"), Machine(open_files=20, processes=10), "/env")
    assert argv[-2:] == ["abc", "$(id)"]
    assert words(argv, "--entrypoint") == ["/run.sh"]
    assert words(argv, "--mount") == [
        "type=bind,source=/s/k1/work,target=/work",
        "type=bind,source=/s/k1/data/cube,target=/input,readonly",
        "type=bind,source=/s/k1/storage/s,target=/work/out",
    ]
    assert words(argv, "--name") == ["sublet-k1"]
    assert words(argv, "--ulimit") == ["nofile=20:20", "nproc=10:10"]
    assert "--cgroups=disabled" in argv
    assert not any("hush" in word or "a\nb" in word for word in argv)
    assert words(argv, "--secret") == ["sublet-k1-0,type=env,target=TWO"]
    assert tools.environment_lines(tools.inner_environment(told, ToolImage("abc"))) == (
        "SUBLET_WORK=/work\nSUBLET_CORES=2\nKEY=hush\n"
    )


def test_podman_runs_an_unpacked_image_as_one_that_it_loads() -> None:
    config = {"Entrypoint": ["/e"], "Cmd": ["c"], "User": "ann:staff", "StopSignal": "SIGINT", "WorkingDir": "/w"}
    image = ToolImage(directory="/kept/root", config=config | {"Env": ["A=b"]}, shared=True, owner="1000:50")
    told = plan(docker(), "podman")
    argv = tools.podman(told, image, Machine(), "/env")
    assert argv[-4:] == ["--rootfs", "/kept/root:O", "/e", "c"]
    assert {"--user=ann:staff", "--userns=keep-id:uid=1000,gid=50", "--stop-signal=SIGINT", "--workdir=/w"} <= set(argv)
    assert words(argv, "--mount") == ["type=bind,source=/s/k1/work,target=/work"], "its user owns that already"
    assert tools.inner_environment(told, image)["A"] == "b"
    rootless = tools.podman(told, ToolImage(directory="/kept/root", config=config, owner="7:0"), Machine(), "/env")
    assert "--userns=keep-id:uid=7,gid=7" in rootless
    loaded = tools.podman(told, ToolImage("abc", config=config), Machine(), "/env")
    assert words(loaded, "--mount") == ["type=bind,source=/s/k1/work,target=/work,U=true"]


def test_podman_keeps_a_container_in_the_jobs_control_group_only_where_its_runtime_can() -> None:
    told = plan(docker(), "podman")
    argv = tools.podman(told, ToolImage("abc"), Machine(runtime="/bin/crun"), "/env")
    assert (words(argv, "--runtime"), "--cgroups=disabled" in argv) == (["/bin/crun"], True)
    runc = Machine(runtime="/bin/runc", stays_in_group=False, root=True, cores=(0, 3))
    argv = tools.podman(told, ToolImage("abc"), runc, "/env")
    assert (words(argv, "--runtime"), "--cgroups=disabled" in argv) == (["/bin/runc"], False)
    assert words(argv, "--cpuset-cpus") == ["0,3"]


def test_docker_takes_values_of_several_lines_from_its_environment_unless_it_would_obey_them() -> None:
    told = plan(docker(environment={"KEY": "hush", "TWO": "a\nb"}), "docker")
    argv = tools.docker(told, ToolImage("abc"), Machine(), "/env")
    assert (words(argv, "--env"), any("hush" in word or "a\nb" in word for word in argv)) == (["TWO"], False)
    assert add_multiline({"PATH": "/bin"}, {"TWO": "a\nb"}) == {"PATH": "/bin", "TWO": "a\nb"}
    for name in ("PATH", "LD_PRELOAD", "DOCKER_HOST", "https_proxy"):
        with pytest.raises(NotStarted, match=name):
            add_multiline({"PATH": "/bin"}, {name: "a\nb"})


def test_docker_is_given_the_limits_that_its_daemon_would_not_know_of() -> None:
    argv = tools.docker(plan(docker(), "docker"), ToolImage("abc"), Machine(cores=(0, 3)), "/env")
    assert words(argv, "--memory") == [str(4 * 1024**3)]
    assert words(argv, "--cpuset-cpus") == ["0,3"]
    assert words(argv, "--user")
    assert argv[-1] == "abc"


def test_apptainer_sees_nothing_of_the_accounts() -> None:
    executable = docker(command=["60"], environment={"KEY": "hush"})
    told = plan(executable, "apptainer", mounts=(Mount("data/cube", "/input"),))
    argv = tools.apptainer(told, ToolImage("/s/k1/image.sif"), Machine())
    assert argv[1:3] == ["--silent", "run"]
    assert {"--containall", "--no-home", "--cleanenv"} <= set(argv)
    assert words(argv, "--bind") == ["/s/k1/work:/work", "/s/k1/data/cube:/input:ro"]
    assert argv[-2:] == ["/s/k1/image.sif", "60"]
    assert tools.apptainer_environment(told)["APPTAINERENV_KEY"] == "hush"
    site = {"PATH": "/bin", "APPTAINER_TMPDIR": "/tmp/a"}
    more = {
        "APPTAINER_BIND": "/",
        "SINGULARITY_BINDPATH": "/scratch",
        "APPTAINERENV_X": "1",
        "SINGULARITY_CONTAINALL": "",
    }
    assert tools.apptainer_outside(site | more) == site
    override = plan(docker(entrypoint="/run.sh"), "apptainer")
    argv = tools.apptainer(override, ToolImage("/s/k1/image.sif"), Machine(gpus="0"))
    assert argv[2] == "exec"
    assert "--nv" in argv
    assert argv[-1] == "/run.sh"


def test_entry_point_and_arguments_mean_what_docker_means() -> None:
    image = ToolImage(directory="/r", config={"Entrypoint": ["/own"], "Cmd": ["a"]})
    for fields, run in [
        ({}, ["/own", "a"]),
        ({"command": ["b"]}, ["/own", "b"]),
        ({"entrypoint": "/e"}, ["/e"]),
        ({"entrypoint": ["/e", "x"], "command": ["b"]}, ["/e", "x", "b"]),
    ]:
        assert tools.words(plan(docker(**fields), "podman"), image) == run


def test_a_volume_at_work_moves_the_working_directory_aside() -> None:
    told = plan(docker(), "podman", mounts=(Mount("storage/s", "/work", read_only=False),))
    assert ("/s/k1/work", "/sublet/work", False) in tools.inner_mounts(told)
    assert tools.inner_environment(told, ToolImage("abc"))["SUBLET_WORK"] == "/sublet/work"


def test_an_image_starts_in_its_own_directory_if_it_has_one() -> None:
    told = plan(docker(), "podman")
    assert tools.inner_directory(told, ToolImage("abc", config={"WorkingDir": "/app"})) == "/app"
    assert tools.inner_directory(told, ToolImage("abc", config={"WorkingDir": "/"})) == "/work"
    among_files = {**told, "in_work": True}
    assert tools.inner_directory(among_files, ToolImage("abc", config={"WorkingDir": "/app"})) == "/work"


def test_a_reached_port_has_the_secret_in_the_environment_of_the_runner_only() -> None:
    (way, _) = DOCKER.ways(docker(network=port(path="/lab")), EVERYTHING)
    program = way.program(setting(tools=EVERYTHING, secret="s3cret", base_url="/connect/x/"))
    assert program.connects == "uri:http"
    assert program.environment == {"SUBLET_SECRET": "s3cret"}
    assert b"s3cret" not in program.files[".sublet/container.json"]
