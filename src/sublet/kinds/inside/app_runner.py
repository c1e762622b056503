"""Runs the stages of an app as part of a job, in one container, or one container per task.

Travels with the job: standard library only. The container sees only the folders of the plan, not the plan itself, so a
stage can't change what the next one is allowed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

from sublet.kinds.inside import container_runner as containers
from sublet.kinds.inside.container_images import NoImage, have_image, own_name
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Plan, ToolImage, inner_mounts
from sublet.kinds.inside.container_variables import write_private
from sublet.kinds.inside.task_launcher import describe_job, describe_task, find_descriptors, find_launcher
from sublet.kinds.inside.task_runner import HOST, remove_container, run_task, run_tasks

PLAN = ".sublet/app.json"


def make_folders(plan: Plan) -> None:
    """Make the session's folders: results, home, and a copy of the code if that is a result too."""
    for folder in (plan["work"], plan["home"]):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    code = plan["copied"] or plan["code"]
    if plan["copied"] and not os.path.exists(code):
        shutil.copytree(plan["code"], code, symlinks=True)
        for place in find_places(plan):
            os.makedirs(place, exist_ok=True)
    for name, text in plan["files"].items():
        path = os.path.join(code, name)
        if name not in plan["kept"] or not os.path.lexists(path):
            if os.path.lexists(path):
                os.unlink(path)
            write_private(path, text)


def find_places(plan: Plan) -> list[str]:
    """Return the folders in the copy of the code that are only mount points."""
    targets = [target for _, target, _ in inner_mounts(plan) if target.startswith(f"{plan['start']}/")]
    return [plan["copied"] + target[len(plan["start"]) :] for target in targets] if plan["copied"] else []


def remove_empty(plan: Plan) -> None:
    """Remove the runner's own folders that are empty, so that they aren't results."""
    for folder in (*sorted(find_places(plan), reverse=True), plan["work"]):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def run_stages(plan: Plan, image: ToolImage, names: list[str]) -> int:
    """Run stages in one container, or on the host."""
    plan = {**plan, "command": [*plan["command"], *names]}
    if plan["tool"] != HOST:
        return containers.run(plan, image)
    environment = {**os.environ, **plan["environment"]}
    words, inherited = [*plan["entrypoint"], *plan["command"]], find_descriptors(os.environ)
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, pass_fds=inherited)
    try:
        code = process.wait()
    except containers.Stopped:
        process.terminate()
        code = process.wait()
    return containers.code_of(code)


def run(plan: Plan, image: ToolImage) -> int:
    """Run all stages in order until one fails; a single task too is started by the launcher, if there is one."""
    names = list(plan["stages"])
    variables = describe_task(plan, os.environ) if plan["each"] and not find_launcher() else describe_job(os.environ)
    alone = {**plan, "environment": {**plan["environment"], **variables}}
    if not plan["each"] or (plan["tasks"] < 2 and not find_launcher()):
        return run_stages(alone, image, names)
    for name in names:
        code = run_tasks(plan, image) if name in plan["each"] else run_stages(alone, image, [name])
        if code:
            return code
        remove_container(plan)  # the next stage's container has the same name
    return 0


def run_each(plan: Plan, image: ToolImage) -> int:
    """Run one task of the stages that run in several tasks."""
    return run_stages(plan, image, list(plan["each"]))


def load(path: str) -> dict[str, Any]:
    """Load one of the runner's own files."""
    with open(path, encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document


def find_failed_stage(plan: Plan) -> str:
    """Return the stage that failed, if its name was recorded and is known."""
    try:
        opened = os.open(f"{plan['home']}/.stage", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(opened, "rb") as file:
        stage = file.read(100).decode("ascii", "replace").strip()
    return stage if stage in plan["stages"] else ""


def main() -> int:
    """Run the app that `.sublet/app.json` describes, or one task of it."""
    if sys.argv[1:] == ["task"]:
        return run_task(load(PLAN), run_each)
    plan = load(PLAN)
    containers.hide_version_2(plan)
    image = ToolImage(own_name(plan["name"]), temporary=True)  # what may exist partly if it is stopped early
    signal.signal(signal.SIGTERM, containers.on_term)
    try:
        make_folders(plan)
        image = have_image(plan) if plan["tool"] != HOST else image
        code = run(plan, image)
        if code and (stage := find_failed_stage(plan)):
            write_private(plan["detail"], json.dumps(f"the stage {stage} failed") + "\n")
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
        remove_empty(plan)
