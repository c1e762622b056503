"""Runs the stages of an app as part of a job: in one container, or of several tasks each in its own.

Travels with the job: Python alone. Only the folders of the plan are seen from inside; the plan itself is not, so that
what one stage does can't change what the next is allowed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from sublet.kinds.inside import container_runner as containers
from sublet.kinds.inside.container_images import NoImage, have_image, own_name, say
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Image, Plan, inner_mounts

PLAN, IMAGE = ".sublet/app.json", ".sublet/image.json"
PROGRAM = ".sublet/program.pyz"
LOOK_EVERY = 0.2  # seconds
FAILED = ".sublet/failed"  # the exit code of the first task that failed
HOST = "exec"  # the way without any container
# What tells a task which one it is, and how it finds the others.
RANKS = ("PMI_", "PMI2_", "PMIX_", "OMPI_COMM_WORLD_", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS")


def make_folders(plan: Plan) -> None:
    """Folders of the session's own: its results, a home, and a copy of the code where that is a result too."""
    for folder in (plan["work"], plan["home"]):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    code = plan["copied"] or plan["code"]
    if plan["copied"] and not os.path.exists(code):
        shutil.copytree(plan["code"], code, symlinks=True)
        for _, target, _ in inner_mounts(plan):
            if target.startswith(f"{plan['start']}/"):
                os.makedirs(code + target[len(plan["start"]) :], exist_ok=True)  # a place to mount on
    for name, text in plan["files"].items():
        path = os.path.join(code, name)
        if name not in plan["kept"] or not os.path.lexists(path):
            if os.path.lexists(path):
                os.unlink(path)
            containers.write_private(path, text)


def launcher(plan: Plan) -> list[str]:
    """What starts a command once for each task; nothing where we do that ourselves."""
    tasks, nodes = plan["tasks"], os.environ.get("SUBLET_NODES", "1")
    if "SLURM_JOB_ID" in os.environ and (srun := shutil.which("srun")):
        said = subprocess.run([srun, "--mpi=list"], capture_output=True, text=True, check=False)
        mpi = ["--mpi=pmi2"] if "pmi2" in said.stdout + said.stderr else []
        argv = [srun, f"--ntasks={tasks}", f"--nodes={nodes}", "--unbuffered", "--cpu-bind=none", *mpi]
        return [*argv, "--kill-on-bad-exit=1"]
    if mpirun := shutil.which("mpirun"):
        return [mpirun, "-n", str(tasks)]
    return []


def started(plan: Plan, program: list[str]) -> list[subprocess.Popen[bytes]]:
    """The processes of all tasks, or of what starts them."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    nothing = subprocess.DEVNULL
    if words := launcher(plan):
        return [subprocess.Popen([*words, *program], stdin=nothing, env=environment)]
    say(f"there is no srun or mpirun here: {plan['tasks']} tasks are started, each for itself")
    tasks = [{**environment, "SUBLET_TASK": str(number)} for number in range(plan["tasks"])]
    return [subprocess.Popen(program, stdin=nothing, env=task) for task in tasks]


def run_tasks(plan: Plan, image: Image) -> int:
    """The execution stage, once for each task: the first failure is the code, and ends the others."""
    containers.write_private(IMAGE, json.dumps(vars(image)))
    if plan["tool"] == "charliecloud":
        containers.make_places(plan, image)  # which none of many tasks may do
    with contextlib.suppress(FileNotFoundError):
        os.unlink(FAILED)
    processes = started(plan, [sys.executable, PROGRAM, "task"])
    try:
        code = first_code(processes)
        code = (code and first_failure()) or code
    except containers.Stopped:
        code = 128 + signal.SIGTERM
    stop_all(processes)
    for process in processes:
        process.wait()
    return code if code >= 0 else 128 - code


def first_code(processes: list[subprocess.Popen[bytes]]) -> int:
    """The code of the first that fails; 0 when all have ended well."""
    while True:
        codes = [process.poll() for process in processes]
        if None not in codes or any(codes):
            return next((code for code in codes if code), 0)
        time.sleep(LOOK_EVERY)


def note_failure(code: int) -> None:
    """Leave the code of the first task that failed: what starts them all may tell of those that it ended then."""
    with contextlib.suppress(FileExistsError), open(FAILED, "x", encoding="ascii") as file:
        file.write(str(code))


def first_failure() -> int:
    """The code that was left; 0 if none was."""
    try:
        with open(FAILED, encoding="ascii") as file:
            said = file.read(10).strip()
    except OSError:
        return 0
    return int(said) if said.isdigit() else 0


def stop_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask those that still run to stop; each of them stops its container."""
    for process in processes:
        if process.poll() is None:
            process.terminate()


def run_stages(plan: Plan, image: Image, names: list[str]) -> int:
    """Stages in one container, or in none."""
    plan = {**plan, "command": [*plan["command"], *names]}
    if plan["tool"] != HOST:
        return containers.run(plan, image)
    environment = {**os.environ, **plan["environment"]}
    process = subprocess.Popen([*plan["entrypoint"], *plan["command"]], env=environment, stdin=subprocess.DEVNULL)
    try:
        code = process.wait()
    except containers.Stopped:
        process.terminate()
        code = process.wait()
    return code if code >= 0 else 128 - code


def run(plan: Plan, image: Image) -> int:
    """All stages in their order, until one fails."""
    names = list(plan["stages"])
    if plan["tasks"] < 2 or not plan["each"]:
        return run_stages(plan, image, names)
    for name in names:
        code = run_tasks(plan, image) if name in plan["each"] else run_stages(plan, image, [name])
        if code:
            return code
        remove_container(plan)  # the next stage's has its name
    return 0


def remove_container(plan: Plan) -> None:
    """Remove the container of a stage that has ended, where the tool keeps it."""
    if plan["tool"] in ("podman", "docker"):
        containers.remove(plan["paths"][plan["tool"]], plan["name"])


def task_plan(plan: Plan) -> dict[str, Any]:
    """The plan of one task: which it is, and a container and private files of its own."""
    ranks = ("SUBLET_TASK", "SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    rank = next((os.environ[name] for name in ranks if os.environ.get(name, "").isdigit()), "0")
    passed = {name: value for name, value in os.environ.items() if name.startswith(RANKS)}
    told = {"SUBLET_TASK": rank, "SUBLET_TASKS": str(plan["tasks"])}
    environment = {"SLURM_PROCID": rank, "SLURM_NTASKS": str(plan["tasks"]), **plan["environment"], **passed, **told}
    own = {"name": f"{plan['name']}-{rank}", "private": f"{plan['private']}-{rank}"} if plan["tool"] != HOST else {}
    return {**plan, **own, "environment": environment}


def task() -> int:
    """One task of the execution stage; the image is there already."""
    plan = task_plan(loaded(PLAN))
    signal.signal(signal.SIGTERM, containers.on_term)
    image = Image(**{**loaded(IMAGE), "temporary": False})
    try:
        code = run_stages(plan, image, list(plan["each"]))
        if code:
            note_failure(code)
        return code
    except containers.Stopped:
        return 128 + signal.SIGTERM
    except NotStarted as why:
        note_failure(containers.tell_unstarted(plan, why))
        return containers.NO_IMAGE
    finally:
        if plan["tool"] != HOST:
            clean_task(plan)


def clean_task(plan: Plan) -> None:
    """Leave neither container nor private files behind; the image is the others' too."""
    remove_container(plan)
    shutil.rmtree(plan["private"], ignore_errors=True)


def loaded(path: str) -> dict[str, Any]:
    """A file of the runner's own."""
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def failed_stage(plan: Plan) -> str:
    """Which stage failed, as far as it was left by one of the names that there are."""
    try:
        opened = os.open(f"{plan['home']}/.stage", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(opened, "rb") as file:
        said = file.read(100).decode("ascii", "replace").strip()
    return said if said in plan["stages"] else ""


def main() -> int:
    """Run the app that `.sublet/app.json` describes, or one task of it."""
    if sys.argv[1:] == ["task"]:
        return task()
    plan = loaded(PLAN)
    image = Image(own_name(plan["name"]), temporary=True)  # what may be half there if it is stopped early
    signal.signal(signal.SIGTERM, containers.on_term)
    try:
        make_folders(plan)
        image = have_image(plan) if plan["tool"] != HOST else image
        code = run(plan, image)
        if code and (stage := failed_stage(plan)):
            containers.write_private(plan["detail"], json.dumps(f"the stage {stage} failed") + "\n")
        return code
    except containers.Stopped:
        return 128 + signal.SIGTERM
    except NoImage as why:
        return containers.not_run(plan, "staging-failed", str(why))
    except (NotStarted, OSError) as why:
        return containers.tell_unstarted(plan, why)
    finally:
        if plan["tool"] != HOST:
            containers.clean(plan, image)
        shutil.rmtree(plan["home"], ignore_errors=True)
