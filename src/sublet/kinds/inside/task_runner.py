"""Runs the tasks of a container or of an app's stage, each in its own container.

Travels with the job: standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sublet.kernel.container_network import HOST as MACHINE_NETWORK
from sublet.kernel.container_network import USUAL
from sublet.kinds.inside import container_runner as containers
from sublet.kinds.inside import task_launcher as launching
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Plan, ToolImage
from sublet.kinds.inside.container_variables import write_private
from sublet.kinds.inside.image_files import make_place

IMAGE = ".sublet/image.json"
FAILED = ".sublet/failed"  # the exit code of the first task that failed
LOOK_EVERY = 0.2  # seconds
ASK_SECONDS = 60  # for an image to say which MPI it has
HOST = "exec"  # the way without any container


def run_tasks(plan: Plan, image: ToolImage) -> int:
    """Run the command once per task; the first failure sets the exit code, and ends the others."""
    write_private(IMAGE, json.dumps(vars(image)))
    if plan["tool"] == "charliecloud":
        containers.make_places(plan, image)  # must not be done by several tasks at once
    with contextlib.suppress(FileNotFoundError):
        os.unlink(FAILED)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes = launching.start_tasks(plan, choose_words(plan, image))
        code = wait_for_failure(processes)
        code = (code and read_failure()) or code
    except containers.Stopped:
        code = 128 + signal.SIGTERM
    stop_all(processes)
    for process in processes:
        process.wait()
    return containers.code_of(code)


def choose_words(plan: Plan, image: ToolImage) -> list[str]:
    """Return how to start the tasks; the image is asked for its MPI only if there is a choice."""
    if plan.get("each_node") and (script := os.environ.get(launching.ON_NODES)):
        return ["sh", script, "--together"]
    launcher = launching.find_launcher()
    if not launcher:
        return []
    is_srun = os.path.basename(launcher) == "srun"
    available = launching.list_process_managers(launcher) if is_srun else set()
    speaks = ask_image(plan, image) if len(available) > 1 and not plan.get("mpi") else ""
    return launching.make_words(plan, launcher, launching.choose_process_manager(plan, available, speaks))


def ask_image(plan: Plan, image: ToolImage) -> str:
    """Return the process manager that the MPI library of the image or machine uses; empty if unknown."""
    words, environment = ["/bin/sh", "-c", launching.ASK_IMAGE], dict(os.environ)
    if plan["tool"] != HOST:
        asking = own_plan(plan, "mpi") | {"entrypoint": words[:1], "command": words[1:], "port": 0, "environment": {}}
        network = containers.list_networks(asking)[-1]
        if plan["tool"] == "charliecloud" and network.is_none:
            return ""  # this process would have to give up the network for good
        words, environment = containers.command(asking, image, network)
    try:
        answer = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ASK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    finally:
        if plan["tool"] != HOST:
            clean_task(asking)
    return answer.stdout.strip()


def wait_for_failure(processes: list[subprocess.Popen[bytes]]) -> int:
    """Return the code of the first process that fails; 0 when all have succeeded."""
    while True:
        codes = [process.poll() for process in processes]
        if None not in codes or any(codes):
            return next((code for code in codes if code), 0)
        time.sleep(LOOK_EVERY)


def note_failure(code: int) -> None:
    """Record the code of the first task that failed, as the launcher may report those that it ended afterwards."""
    with contextlib.suppress(FileExistsError), open(FAILED, "x", encoding="ascii") as file:
        file.write(str(code))


def read_failure() -> int:
    """Return the recorded code; 0 if there is none."""
    try:
        with open(FAILED, encoding="ascii") as file:
            text = file.read(10).strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def stop_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask the running processes to stop; each of them stops its container."""
    for process in processes:
        if process.poll() is None:
            process.terminate()


def own_plan(plan: Plan, name: str) -> dict[str, Any]:
    """Return the plan with its own container name and private files."""
    return {**plan, "name": f"{plan['name']}-{name}", "private": f"{plan['private']}-{name}"}


def make_task_plan(plan: Plan, shared_memory: str) -> dict[str, Any]:
    """Return the plan of one task: its rank, how it reaches the others, and its own container."""
    task = launching.describe_task(plan, os.environ)
    environment = {**plan["environment"], **task}
    if plan["tool"] == HOST:
        return {**plan, "environment": environment}
    own = own_plan(plan, task["SUBLET_TASK"])
    folders = [[folder, folder, False] for folder in launching.find_folders(os.environ)]
    if has_own_memory(plan):
        environment = {**launching.WITHOUT_SINGLE_COPY, **environment}
        own, mounts, more = share(own, shared_memory)
        folders, environment = [*folders, *mounts], {**more, **environment}
    if plan["network"] == USUAL:
        own["network"] = MACHINE_NETWORK  # the tasks of a job reach one another and the process manager by it
    return {**own, "environment": environment, "mounts": [*plan["mounts"], *folders]}


def share(plan: Plan, memory: str) -> tuple[dict[str, Any], list[list[Any]], dict[str, str]]:
    """Return the plan with a memory that this node's tasks share, its mounts, and what to tell MPI without one."""
    if memory and plan["tool"] == "podman":
        return dict(plan), [[memory, launching.SHARED_MEMORY, False]], {}
    if memory and containers.can_mount_memory(plan, memory):
        return {**plan, "shared_memory": memory}, [], {}
    return dict(plan), [], launching.WITHOUT_SHARED_MEMORY


def run_task(plan: Plan, run: Callable[[Plan, ToolImage], int]) -> int:
    """Run one task in the image that is already there; `run` says how."""
    signal.signal(signal.SIGTERM, containers.on_term)
    with open(IMAGE, encoding="utf-8") as file:
        image = ToolImage(**json.load(file))
    with contextlib.ExitStack() as stack:
        try:
            memory = stack.enter_context(launching.share_memory(name_step(plan))) if has_own_memory(plan) else ""
            plan = make_task_plan(plan, memory)
            prepare_folders(plan, image)
            code = run(plan, replace(image, temporary=False))
            if code:
                note_failure(code)
            return code
        except containers.Stopped:
            return 128 + signal.SIGTERM
        except (NotStarted, OSError) as why:
            note_failure(containers.tell_unstarted(plan, why))
            return containers.NO_IMAGE
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only cleanup is left
            if plan["tool"] != HOST:
                clean_task(plan)


def prepare_folders(plan: Plan, image: ToolImage) -> None:
    """Make mount points for the process manager's folders in an unpacked image of ours, for Charliecloud."""
    if plan["tool"] == "charliecloud" and (image.temporary or image.shared):
        for folder in launching.find_folders(os.environ):
            make_place(image.directory, folder, "folder")


def has_own_memory(plan: Plan) -> bool:
    """Whether the tool gives each container its own shared memory, so that tasks wouldn't share any."""
    return plan["tool"] not in (HOST, "charliecloud", "docker") and plan["tasks"] > 1


def name_step(plan: Plan) -> str:
    """Return a name that all tasks of one step share, and nothing else on this node has."""
    step = [os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]
    return "-".join([str(plan["name"]), *(word for word in step if word.isdigit())])


def clean_task(plan: Plan) -> None:
    """Remove the container and private files; the image is needed by others."""
    remove_container(plan)
    shutil.rmtree(plan["private"], ignore_errors=True)


def remove_container(plan: Plan) -> None:
    """Remove the container of a stage that has ended, if the tool keeps it."""
    if plan["tool"] in ("podman", "docker"):
        containers.remove(plan["paths"][plan["tool"]], plan["name"])
