"""Runs a container as a job, once or once per task. Travels with the job: standard library only."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from sublet.kinds.inside import container_runner as containers
from sublet.kinds.inside import task_runner
from sublet.kinds.inside.container_images import NoImage, have_image, own_name
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import ToolImage

PLAN = ".sublet/container.json"


def main() -> int:
    """Run the container that `.sublet/container.json` describes, or one task of it."""
    with open(PLAN, encoding="utf-8") as file:
        plan: dict[str, Any] = json.load(file)
    if sys.argv[1:] == ["task"]:
        return task_runner.run_task(plan, containers.run)
    containers.hide_version_2(plan)
    image = ToolImage(own_name(plan["name"]), temporary=True)  # what may exist partly if it is stopped early
    signal.signal(signal.SIGTERM, containers.on_term)
    try:
        image = have_image(plan)
        return task_runner.run_tasks(plan, image) if plan["tasks"] else containers.run(plan, image)
    except containers.Stopped:
        return 128 + signal.SIGTERM
    except NoImage as why:
        return containers.not_run(plan, "staging-failed", str(why))
    except (NotStarted, OSError) as why:
        return containers.tell_unstarted(plan, why)
    finally:
        containers.clean(plan, image)
