"""The command lines of each container tool. Travels with the job: standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Plan = Mapping[str, Any]
LABEL = "sublet"  # of containers; its value is the process that started them and cleans up
# Apptainer settings that a centre may make: where and how it works there
OF_THE_MACHINE = ("TMPDIR", "CONFIG", "UNSQUASH")
READ_BY_DOCKER = (  # prefixes of variables that the docker command, its plug-ins or the system's loader read
    *("DOCKER", "BUILD", "COMPOSE", "OTEL", "LD_", "GO", "GLIBC", "MALLOC", "XDG_", "SSH_", "SSL", "TLS"),
    *("HTTP", "ALL_PROXY", "NO_PROXY", "PATH", "HOME", "TMPDIR", "LOCALDOMAIN", "RES_OPTIONS", "HOSTALIASES"),
)


@dataclass
class ToolImage:
    """An available image: a name or id that the tool knows, or a directory with its file system."""

    reference: str = ""
    directory: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)  # its own Entrypoint, Cmd, Env, WorkingDir
    singularity: bool = False  # unpacked from a Singularity image
    temporary: bool = False  # made for this session: removed afterwards
    shared: bool = False  # a directory unpacked earlier, which other sessions use too
    owner: str = ""  # the user of an unpacked image, UID:GID, who must own its files; empty: root


def inner_work(plan: Plan) -> str:
    """Return where the container sees the working directory: as planned, or /work unless a volume is there."""
    if plan.get("inside"):
        return str(plan["inside"])
    seen = [*plan["mounts"], *plan.get("places", ())]
    taken = any(target.rstrip("/") == "/work" or target.startswith("/work/") for _, target, _ in seen)
    return "/sublet/work" if taken else "/work"


def inner_mounts(plan: Plan) -> list[tuple[str, str, bool]]:
    """Return the mounts (source, target, read-only), parents first; they include the working directory."""
    work = inner_work(plan)
    mounts = [(plan["work"], work, False)]
    for source, target, read_only in [*plan["mounts"], *plan.get("places", ())]:
        mounts.append((source, target if target.startswith("/") else f"{work}/{target}", read_only))
    return sorted(mounts, key=lambda mount: mount[1].rstrip("/").count("/"))


def inner_directory(plan: Plan, image: ToolImage) -> str:
    """Return the start directory: as planned, or the working directory or the image's own.

    The working directory is used if the command needs its files, or if the image names none.
    """
    if plan.get("start"):
        return str(plan["start"])
    own = image.config.get("WorkingDir") or "/"
    return inner_work(plan) if own == "/" or plan.get("in_work") else str(own)


def inner_environment(plan: Plan, image: ToolImage) -> dict[str, str]:
    """Return the container's environment; for a bare directory it includes the image's own variables."""
    variables = (
        dict(pair.split("=", 1) for pair in image.config.get("Env") or () if "=" in pair) if image.directory else {}
    )
    variables |= {"SUBLET_WORK": inner_work(plan), "SUBLET_CORES": str(plan["cores"])}
    if plan["port"]:
        variables["SUBLET_BASE_URL"] = plan["base_url"]
    return {**variables, **plan["environment"]}


def owner_differs(image: ToolImage) -> bool:
    """Whether the image runs as a user other than root, who must own what it writes to."""
    return str(image.config.get("User") or "0").split(":")[0] not in ("0", "root")


def changes_owner(image: ToolImage) -> bool:
    """Whether writable mounts must first be given to that user, who doesn't exist on this machine."""
    return owner_differs(image) and not image.owner


def words(plan: Plan, image: ToolImage) -> list[str]:
    """Return the whole command, by Docker's rules of entrypoint and arguments.

    It is for tools that don't know the image's own.
    """
    if plan["entrypoint"]:
        return [*plan["entrypoint"], *plan["command"]]
    own = list(image.config.get("Entrypoint") or ())
    return own + (plan["command"] or list(image.config.get("Cmd") or ()))


@dataclass(frozen=True)
class Machine:
    """What the runner found out about the machine."""

    open_files: int = 1024
    processes: int = 1024
    cores: tuple[int, ...] = ()
    gpus: str = ""  # numbers of our GPUs, such as "0,1"
    runtime: str = ""  # the OCI runtime for Podman; empty: its default
    stays_in_group: bool = True  # whether that can leave a container in the job's own control group
    hooks: str = ""  # a directory with a hook that keeps the container's memory in our control group
    root: bool = False
    init: bool = True  # whether there is an init process for containers, which forwards signals and reaps zombies
    network: str = ""  # if not the tool's default; may be "none"
    inherits: bool = False  # whether a descriptor of the process manager is passed to the program


def podman(plan: Plan, image: ToolImage, machine: Machine, environment_file: str) -> list[str]:
    """Return the `podman run` command: in the foreground, and within the limits of its job."""
    argv = [plan["paths"]["podman"]]
    argv += ["--runtime", machine.runtime] if machine.runtime else []
    argv += ["--hooks-dir", machine.hooks] if machine.hooks else []
    argv += ["run", "--pull=never", "--log-driver=none", f"--conmon-pidfile={plan['private']}/monitor"]
    if machine.stays_in_group:
        argv += ["--cgroups=disabled"]  # it stays in the job's own control group, with its limits
    elif machine.root:
        argv += [f"--cpuset-cpus={','.join(map(str, machine.cores))}"]
    # Podman's defaults exceed what an ordinary process may set.
    argv += ["--ulimit", f"nofile={machine.open_files}:{machine.open_files}"]
    argv += ["--ulimit", f"nproc={machine.processes}:{machine.processes}"]
    if machine.gpus:
        argv += [f"--device=nvidia.com/gpu={number}" for number in machine.gpus.split(",")]
    argv += ["--init"] if machine.init else []
    argv += ["--preserve-fds=1"] if machine.inherits else []
    for number, name in enumerate(multiline_values(inner_environment(plan, image))):
        argv += ["--secret", f"{secret_name(plan, number)},type=env,target={name}"]
    argv += [*_like_docker(plan, image, machine, environment_file, ",U=true" if changes_owner(image) else "")]
    if image.directory:
        return [*argv, *_like_loaded(image), "--rootfs", f"{image.directory}:O", *words(plan, image)]
    return [*argv, image.reference, *_arguments(plan)]


def _like_loaded(image: ToolImage) -> list[str]:
    """Return the options for a bare directory that Podman would know for a loaded image."""
    uid, _, gid = image.owner.partition(":")
    argv = [f"--user={image.config['User']}"] if image.config.get("User") else []
    gid = uid if gid == "0" else gid  # Podman 4 can't map it; the user still owns its own files
    argv += [f"--userns=keep-id:uid={uid},gid={gid}"] if uid else []
    return argv + ([f"--stop-signal={image.config['StopSignal']}"] if image.config.get("StopSignal") else [])


def docker(plan: Plan, image: ToolImage, machine: Machine, environment_file: str) -> list[str]:
    """Return the `docker run` command: the daemon isn't part of the job, so it is given the limits."""
    argv = [plan["paths"]["docker"], "run", "--pull=never", "--init", f"--memory={plan['memory']}"]
    argv += [f"--memory-swap={plan['memory']}", f"--user={os.getuid()}:{os.getgid()}"]
    if machine.cores:
        argv += [f"--cpuset-cpus={','.join(map(str, machine.cores))}"]
    if machine.gpus:
        argv += [f'--gpus="device={machine.gpus}"']
    for name in multiline_values(inner_environment(plan, image)):
        argv += ["--env", name]  # takes the value from its own environment
    return [*argv, *_like_docker(plan, image, machine, environment_file), image.reference, *_arguments(plan)]


def _like_docker(
    plan: Plan, image: ToolImage, machine: Machine, environment_file: str, writable: str = ""
) -> list[str]:
    # Without --rm: only the container itself distinguishes a failed start from a failed program.
    argv = [f"--name={plan['name']}", f"--label={LABEL}={os.getpid()}", "--security-opt=no-new-privileges"]
    argv += [f"--env-file={environment_file}", f"--workdir={inner_directory(plan, image)}"]
    shared = {source for source, _, _ in plan.get("places", ())}  # their owner isn't changed, as others use them too
    for source, target, read_only in inner_mounts(plan):
        mode = ",readonly" if read_only else "" if source in shared else writable
        argv += ["--mount", f"type=bind,source={source},target={target}{mode}"]
    argv += [f"--network={machine.network}"] if machine.network else []
    argv += [f"--add-host={name}:127.0.0.1" for name in plan.get("hosts", ())]
    if plan["port"] and machine.network != "none":
        argv += [f"--publish=127.0.0.1::{plan['port']}"]
    if plan["entrypoint"] and not image.directory:
        argv += ["--entrypoint", plan["entrypoint"][0]]
    return argv


def _arguments(plan: Plan) -> list[str]:
    return [*(plan["entrypoint"] or ())[1:], *plan["command"]]


def apptainer(plan: Plan, image: ToolImage, machine: Machine) -> list[str]:
    """Return the `apptainer run` or `exec` command: it sees nothing of the account but what is bound."""
    override = bool(plan["entrypoint"])
    argv = [plan["paths"][plan["tool"]], "--silent", "exec" if override else "run"]
    argv += [*_apart(plan), "--no-home", "--cleanenv", "--writable-tmpfs"]
    argv += ["--pwd", plan.get("start") or inner_work(plan)]
    if machine.gpus:
        argv += ["--nv"]
    if machine.network:
        argv += ["--net", f"--network={machine.network}"]
    for source, target, read_only in inner_mounts(plan):
        argv += ["--bind", f"{source}:{target}" + (":ro" if read_only else "")]
    return [*argv, image.reference or image.directory, *(plan["entrypoint"] or ()), *plan["command"]]


def _apart(plan: Plan) -> list[str]:
    """Return the options that isolate a container from the account's files and processes.

    `--containall` gives each container its own shared memory. Tasks that share one see the machine's devices, with that
    memory mounted, and nothing else that Apptainer mounts by default.
    """
    if not plan.get("shared_memory"):
        return ["--containall"]
    private = f"{plan['private']}/temporary"
    words = ["--pid", "--ipc", "--no-mount", "home,cwd,tmp,hostfs,bind-paths"]
    return [*words, "--bind", f"{private}:/tmp", "--bind", f"{private}:/var/tmp"]


def apptainer_outside(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that make Apptainer bind more, as some centres' modules do."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("APPTAINER", "SINGULARITY")) or name.partition("_")[2] in OF_THE_MACHINE
    }


def apptainer_environment(plan: Plan) -> dict[str, str]:
    """Return the container's variables for the tool's environment, which other users can't read."""
    prefix = f"{plan['tool'].upper()}ENV_"
    return {prefix + name: value for name, value in inner_environment(plan, ToolImage()).items()}


def apptainer_home(plan: Plan) -> dict[str, str]:
    """Return settings that keep Apptainer's files in the session, not in the home, and disable evaluation of values."""
    prefix = plan["tool"].upper()
    own = {f"{prefix}_CONFIGDIR": plan["private"], f"{prefix}_CACHEDIR": f"{plan['private']}/cache"}
    return {**own, f"{prefix}_NO_EVAL": "1"}


def charliecloud(plan: Plan, image: ToolImage) -> list[str]:
    """Return the `ch-run` command: a read-only image with bind mounts; its environment is the container's."""
    argv = [plan["paths"]["ch-run"], "--private-tmp", f"--cd={inner_directory(plan, image)}"]
    argv += [f"--bind={source}:{target}" for source, target, _ in inner_mounts(plan)]
    return [*argv, image.directory, "--", *words(plan, image)]


def environment_lines(pairs: Mapping[str, str]) -> str:
    """Format variables as NAME=VALUE lines, without those whose values have several lines."""
    return "".join(f"{name}={value}\n" for name, value in pairs.items() if not _is_multiline(value))


def multiline_values(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with several lines. They mustn't be on a command line, which everybody can read."""
    return {name: value for name, value in pairs.items() if _is_multiline(value)}


def secret_name(plan: Plan, number: int) -> str:
    """Return Podman's secret name for one of these variables, while the container runs."""
    return f"{plan['name']}-{number}"


def can_be_given_to_docker(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a variable means nothing to the docker command itself (which gets it too) or to the loader."""
    return name not in environment and not name.upper().startswith(READ_BY_DOCKER)


def _is_multiline(value: str) -> bool:
    return "\n" in value or "\r" in value
