"""Runs a container as part of a job: gets the image, runs the tool, stops it with the job, and cleans up.

Travels with the job: standard library only. Exit code 125 and a reason in `unstarted` mean that nothing was run;
otherwise the code is the container's own.
"""

from __future__ import annotations

import glob
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from functools import partial

from sublet.kernel.container_network import Network, choose_networks, find_program, is_about_network, look_at_machine
from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.container_images import alone, own_name, say
from sublet.kinds.inside.container_mounts import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    enter_namespaces,
    make_read_only,
    mount_folder,
    unmount,
)
from sublet.kinds.inside.container_port import is_reached, open_gate
from sublet.kinds.inside.container_start import NotStarted, Tail, find_why_unstarted
from sublet.kinds.inside.container_tools import Machine, Plan, ToolImage
from sublet.kinds.inside.container_variables import (
    add_multiline,
    keep_secrets,
    quietly,
    remove_secrets,
    write_private,
)
from sublet.kinds.inside.image_files import make_place, make_usual_places
from sublet.kinds.inside.inner_port import InnerPort
from sublet.kinds.inside.task_launcher import PMI_DESCRIPTOR, SHARED_MEMORY, find_descriptors

NO_IMAGE = 125
FIRST_DESCRIPTOR = 3  # after stdin, stdout and stderr
VERSION_2 = "/sys/fs/cgroup/unified"
LEFT_BEHIND = 2 * 86400  # seconds after which nobody will ask how a container ended
STOP_SECONDS = 3  # between SIGTERM and SIGKILL in the container
TELL_SECONDS = 20  # for a tool to report how a container ended, on a busy machine
HOOK = """#!/bin/sh
# The container's first process joins the job's control group, so that its memory is counted and limited as the job's.
sed 's/.*"pid": *\\([0-9]*\\).*/\\1/' > "$1/cgroup.procs"
"""


def remove(tool: str, name: str) -> None:
    """Remove a container, with a retry, as Podman fails once if the processes were killed behind its back.

    Podman would wait ten seconds for a running one, so `--time=0`, which Docker and old versions of Podman don't know.
    """
    if not quietly(tool, "rm", "--force", "--time=0", name):
        quietly(tool, "rm", "--force", name)


class Stopped(Exception):
    """The job is being stopped."""


def machine_of(plan: Plan, network: Network) -> Machine:
    """Return what the tools must know about this machine."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = int(read("/proc/sys/kernel/pid_max") or 32768)
    root = os.geteuid() == 0
    runtime, stays_in_group = choose_runtime() if plan["tool"] == "podman" else ("", True)
    return Machine(
        open_files=files if files != resource.RLIM_INFINITY else 1 << 20,
        processes=min(processes, most) if processes != resource.RLIM_INFINITY else most,
        cores=tuple(sorted(os.sched_getaffinity(0))),
        gpus=os.environ.get("CUDA_VISIBLE_DEVICES", "all") if plan["gpus"] else "",
        runtime=runtime,
        stays_in_group=stays_in_group,
        hooks=make_hook(plan["private"]) if root and not stays_in_group else "",
        root=root,
        init=bool(find_program("catatonit")),
        network=network.name,
        inherits=bool(find_descriptors(os.environ)),
    )


def read(path: str) -> str:
    """Read a small file of the kernel; empty if it doesn't exist."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def choose_runtime() -> tuple[str, bool]:
    """Return the OCI runtime for Podman, and whether it can leave a container in the job's own control group.

    crun can, but refuses machines with control groups of both versions; runc works there, but can't.
    """
    if not has_both_versions() and (crun := find_program("crun")):
        return crun, True
    runc = find_program("runc")
    return runc, not runc


def has_both_versions() -> bool:
    """Whether control groups of version 2 are mounted beside those of version 1."""
    return bool(read(f"{VERSION_2}/cgroup.controllers"))


def hide_version_2(plan: Plan) -> None:
    """Hide the control groups of version 2 from this process if Podman's containers can only run in the job's own.

    As root, runc makes groups of version 1, which fails where they are read-only, as in most containers.
    """
    if plan["tool"] != "podman" or os.geteuid() or not has_both_versions() or not find_program("crun"):
        return
    if not all(os.access(group, os.W_OK) for group in glob.glob("/sys/fs/cgroup/*/")):
        with suppress(OSError):  # not allowed here
            unmount(VERSION_2)


def make_hook(folder: str) -> str:
    """Make a hook directory for Podman, if our memory has a control group of version 1.

    Otherwise return an empty string.
    """
    for line in read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        group = f"/sys/fs/cgroup/memory{path}".rstrip("/")
        if "memory" in controllers.split(",") and os.access(f"{group}/cgroup.procs", os.W_OK):
            program = f"{folder}/join"
            with open(program, "w", encoding="ascii") as file:
                file.write(HOOK)
            os.chmod(program, 0o700)
            hook = {"path": program, "args": ["join", group]}
            with open(f"{folder}/join.json", "w", encoding="ascii") as file:
                json.dump({"version": "1.0.0", "hook": hook, "when": {"always": True}, "stages": ["prestart"]}, file)
            return folder
    return ""


def command(plan: Plan, image: ToolImage, network: Network) -> tuple[list[str], dict[str, str]]:
    """Return the tool's command line and environment."""
    os.makedirs(plan["private"], mode=0o700, exist_ok=True)
    machine, environment = machine_of(plan, network), dict(os.environ)
    environment.pop("SUBLET_SECRET", None)
    inner = tools.inner_environment(plan, image)
    if plan["tool"] == "podman" and find_descriptors(os.environ):
        inner[PMI_DESCRIPTOR] = str(FIRST_DESCRIPTOR)
    if plan["tool"] in ("podman", "docker"):
        lines = f"{plan['private']}/environment"
        write_private(lines, tools.environment_lines(inner))
        if plan["tool"] == "podman":
            keep_secrets(plan, tools.multiline_values(inner))
            return tools.podman(plan, image, machine, lines), environment
        return tools.docker(plan, image, machine, lines), add_multiline(environment, tools.multiline_values(inner))
    if plan["tool"] == "charliecloud":
        prepare_directory(plan, image, network)
        own = {"USER": environment.get("USER") or str(os.getuid()), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        return tools.charliecloud(plan, image), {**own, **inner}
    os.makedirs(f"{plan['private']}/temporary", mode=0o700, exist_ok=True)
    inner = tools.apptainer_environment(plan)
    outside = tools.apptainer_outside(environment)
    return tools.apptainer(plan, image, machine), {**outside, **tools.apptainer_home(plan), **inner}


def prepare_directory(plan: Plan, image: ToolImage, network: Network) -> None:
    """Prepare Charliecloud: make mount points, and for us only, read-only mounts and no network if required."""
    make_places(plan, image)
    sources = [os.fsencode(source) for source, _, read_only in tools.inner_mounts(plan) if read_only]
    if sources or network.is_none:
        enter_namespaces(CLONE_NEWNS | (CLONE_NEWNET if network.is_none else 0))
        make_read_only(sources)


def make_places(plan: Plan, image: ToolImage) -> None:
    """Make mount points in an unpacked image, if it is ours."""
    if not (image.temporary or image.shared):
        return
    make_usual_places(image.directory)
    for source, target, _ in tools.inner_mounts(plan):
        make_place(image.directory, target, "file" if os.path.isfile(source) else "folder")


def on_term(number: int, frame: object) -> None:
    """Raise Stopped at the first SIGTERM."""
    signal.signal(number, signal.SIG_IGN)
    raise Stopped


def run(plan: Plan, image: ToolImage) -> int:
    """Run the container to its end, or until the job is stopped.

    Raise NotStarted if it starts with none of its networks.
    """
    secret = os.environ.pop("SUBLET_SECRET", "")
    networks = list_networks(plan)
    for number, network in enumerate(networks):
        if network.is_none:
            say(f"the container has {network.words}")
        try:
            return run_with(plan, image, network, secret)
        except NotStarted as why:
            if number + 1 == len(networks) or not is_about_network(str(why)):
                raise
            remove(plan["paths"][plan["tool"]], plan["name"])
    raise AssertionError  # there is always a network to try


def list_networks(plan: Plan) -> list[Network]:
    """Return the networks that this container may have here, best first."""
    return choose_networks(plan["tool"], plan["network"], bool(plan["port"]), look_at_machine())


def run_with(plan: Plan, image: ToolImage, network: Network, secret: str) -> int:
    """Run the container with one network; raise NotStarted if the tool couldn't start it."""
    argv, environment = command(plan, image, network)
    inherited = find_descriptors(os.environ)
    argv = inherit_descriptors(plan, argv, inherited)
    with closing(InnerPort()) if plan["port"] and network.is_none else nullcontext() as inner:
        tail = Tail()
        process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=tail.write_end,
            pass_fds=inherited,
            preexec_fn=find_preparation(plan),
        )
        tail.start()
        try:
            if is_reached(plan):
                threading.Thread(target=open_gate, args=(plan, process, secret, inner), daemon=True).start()
            code = process.wait()
        except Stopped:
            stop(plan, process)
            return code_of(process.wait())
        if why := find_why_unstarted(plan, code, process.pid, tail.read()):
            raise NotStarted(why)
        return code_of(code)


def find_preparation(plan: Plan) -> Callable[[], None] | None:
    """Return what the tool's process must do first: Apptainer takes shared memory only from a mount."""
    folder = plan.get("shared_memory")
    return partial(mount_folder, folder, SHARED_MEMORY) if folder else None


def can_mount_memory(plan: Plan, folder: str) -> bool:
    """Whether a process here may mount another folder as its shared memory, and the tool then keeps it.

    A setuid tool drops what an ordinary user has mounted.
    """
    tool = os.path.realpath(plan["paths"][plan["tool"]])
    starters = (f"{root}/{plan['tool']}/bin/starter-suid" for root in find_library_folders(tool))
    if any(os.path.exists(starter) and os.stat(starter).st_mode & stat.S_ISUID for starter in starters):
        return False
    try:
        trial = partial(mount_folder, folder, SHARED_MEMORY)
        return subprocess.run(["true"], preexec_fn=trial, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def find_library_folders(program: str) -> list[str]:
    """Return where a program in PREFIX/bin may keep its own programs."""
    prefix = os.path.dirname(os.path.dirname(program))
    return [f"{prefix}/libexec", *glob.glob(f"{prefix}/lib*"), *glob.glob(f"{prefix}/lib/*-linux-gnu")]


def inherit_descriptors(plan: Plan, argv: list[str], inherited: tuple[int, ...]) -> list[str]:
    """Wrap the command so that the program inside inherits the descriptor: Podman only passes on those after stderr."""
    if plan["tool"] != "podman" or not inherited:
        return argv
    return ["/bin/sh", "-c", f'exec "$@" {FIRST_DESCRIPTOR}<&{inherited[0]}', "sh", *argv]


def code_of(code: int) -> int:
    """Return a process's exit code as a shell reports it."""
    return code if code >= 0 else 128 - code


def stop(plan: Plan, process: subprocess.Popen[bytes]) -> None:
    """Stop the container with SIGTERM, then SIGKILL."""
    patience = STOP_SECONDS
    if plan["tool"] in ("podman", "docker"):
        if quietly(plan["paths"][plan["tool"]], "stop", "--time", str(STOP_SECONDS), plan["name"]):
            patience = TELL_SECONDS  # it has ended, and the tool will report how
    else:
        process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()


def wait_for_monitor(plan: Plan) -> None:
    """Wait for Podman's monitor, which cleans up after the container and shouldn't be interrupted."""
    monitor = read(f"{plan['private']}/monitor")
    deadline = time.monotonic() + STOP_SECONDS
    while monitor and os.path.exists(f"/proc/{monitor}") and time.monotonic() < deadline:
        time.sleep(0.02)


def clean(plan: Plan, image: ToolImage) -> None:
    """Remove the container, the temporary image, and secrets."""
    if plan["tool"] in ("podman", "docker"):
        tool = plan["paths"][plan["tool"]]
        remove(tool, plan["name"])
        if plan["tool"] == "podman" and tools.multiline_values(tools.inner_environment(plan, image)):
            remove_secrets(tool, plan["name"])
        wait_for_monitor(plan)
        if image.temporary and image.reference:
            with alone():
                quietly(tool, "rmi", image.reference)
        if plan["tool"] == "podman" and os.geteuid() and tools.changes_owner(image):
            shared = {source for source, _, _ in plan.get("places", ())}
            mounts = tools.inner_mounts(plan)
            ours = [source for source, _, read_only in mounts if not read_only and source not in shared]
            quietly(tool, "unshare", "chown", "-hR", "0:0", *ours)
        if plan["tool"] == "podman":
            sweep(tool)
    if os.path.exists(single := f"{plan['image']}.sif"):
        os.unlink(single)
    for folder in (plan["private"], plan["image"]):
        shutil.rmtree(folder, ignore_errors=True)


def sweep(podman: str) -> None:
    """Remove what a crash left: our containers that ended days ago, or whose starter is gone.

    Podman still lists a container that has just ended as running, without a process; its starter removes it.
    """
    long_ago = time.strftime("%Y-%m-%d", time.localtime(time.time() - LEFT_BEHIND))
    about = f'{{{{.Pid}}}} {{{{index .Labels "{tools.LABEL}"}}}} {{{{.CreatedAt}}}}|{{{{.Names}}}}'
    argv = [podman, "ps", "--all", "--filter", f"label={tools.LABEL}", "--format", about]
    for line in subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines():
        about, _, name = line.rpartition("|")
        pid, starter, created = about.split(" ", 2)
        is_running = pid.isdigit() and pid != "0"
        if not (is_alive(pid) or is_alive(starter)) if is_running else created < long_ago:
            remove(podman, name)
            remove_secrets(podman, name)
            with alone():
                quietly(podman, "rmi", own_name(name))


def is_alive(pid: str) -> bool:
    """Whether a process with this number exists."""
    return pid.isdigit() and os.path.exists(f"/proc/{pid}")


def not_run(plan: Plan, kind: str, why: str) -> int:
    """Record that nothing was run and why, as this is no exit of the program itself."""
    write_private(plan["unstarted"], f"{kind}\n{json.dumps(why[:600], ensure_ascii=False)}\n")
    return NO_IMAGE


def tell_unstarted(plan: Plan, why: Exception) -> int:
    """Report that the container couldn't be started and why, unless the tool has said so already."""
    if not isinstance(why, NotStarted):
        say(f"the container could not be started: {why}")
    return not_run(plan, "not-started", f"the container could not be started: {why}")
