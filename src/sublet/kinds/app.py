"""The kind `app`: reviewed code in its image, with parameters as data, run in stages and isolated from all else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Any

import yaml

from sublet.apps.model import manifest as m
from sublet.apps.model import parameters as p
from sublet.apps.model.resources import size_run
from sublet.apps.model.tree import KIND, location_of, tree_of
from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import variable_of
from sublet.booking.model.request import Data, Executable, Request
from sublet.kernel.errors import BadManifest
from sublet.kernel.value_names import value_text
from sublet.kinds import container, images
from sublet.kinds import fields as f
from sublet.kinds.container import TOOLS
from sublet.kinds.inside.task_runner import HOST
from sublet.kinds.port import Kind, Setting, Way
from sublet.kinds.travel import PROGRAM, pack

# `pinned` is set by the service only; no document may contain it. `resources` are amounts by the manifest's names.
FIELDS = ("app", "version", "parameters", "tasks", "resources", "pinned")
BROUGHT = "sublet.app"  # the code
PARTS = container.PARTS
INSIDE = "/sublet/stages"  # where a container sees the scripts that run its stages
HOME = "/sublet/home"
LIBRARIES = ("library://", "oras://", "shub://")


class AppKind(Kind):
    """The kind `app`."""

    name = "app"
    uri = "urn:sublet:kind:executable:app"
    in_container = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong: no pinned version, parameters unlike the manifest's, or missing data."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS)
        pinned = fields.get("pinned")
        if not isinstance(pinned, Mapping):
            message = (
                f"there is no approved version of the app {fields.get('app') or executable.name or '(no name)'} here."
            )
            return [*reasons, f.missing("app", message, nearest="sublet app list")]
        try:
            manifest = manifest_of(pinned)
        except BadManifest as error:
            return [*reasons, f.invalid("pinned", error.message)]
        given = fields.get("parameters") or {}
        if not isinstance(given, Mapping):
            return [*reasons, f.invalid("parameters", "parameters must be a map of names to values.", wanted=given)]
        reasons += [replace(reason, field=f"executable.{reason.field}") for reason in p.check(manifest, given)]
        reasons += check_tasks(manifest, fields.get("tasks"))
        return reasons + check_data(manifest, request) + check_volumes(request)

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return a way for each available container tool; without an image, the way to run on the host."""
        pinned = executable.fields["pinned"]
        manifest = manifest_of(pinned)
        location, digest = image_of(pinned, manifest)
        if not location:
            there = "python3" in tools
            return [Way(HOST, contained=False, program=partial(program, executable, HOST, (), ""))] if there else []
        source = images.read_location(location, 0, sif=location.startswith(LIBRARIES))
        safe = bool(digest) and (bool(manifest.image.name) or not images.is_ours(source))
        return [
            Way(tool, contained=TOOLS[tool][1] and safe, program=partial(program, executable, tool, (source,), digest))
            for tool in container.tools_for([source], tools)
        ]

    def needs(self, executable: Executable) -> str:
        """Return that it needs a container tool."""
        return "apptainer, podman or docker, and python3"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the code, and an image that has an address."""
        pinned = executable.fields["pinned"]
        location, _ = image_of(pinned, manifest_of(pinned))
        code = Data(BROUGHT, KIND, location_of(str(pinned.get("tree", ""))))
        return [code, *(images.to_bring([location], sif=location.startswith(LIBRARIES)) if location else ())]

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the image, if it is named by a path."""
        pinned = executable.fields["pinned"]
        location, _ = image_of(pinned, manifest_of(pinned))
        return images.list_archives([location]) if location else ()

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry image."""
        pinned = executable.fields["pinned"]
        location, digest = image_of(pinned, manifest_of(pinned))
        return images.to_fetch([location], digest, sif=location.startswith(LIBRARIES)) if location else ()


def name_of(executable: Executable) -> str:
    """Return the app's name: the field `app`, or the executable's own name."""
    return str(executable.fields.get("app") or executable.name)


def manifest_of(pinned: Mapping[str, Any]) -> m.Manifest:
    """Return the manifest of a pinned version; raise BadManifest if there is none."""
    if not tree_of(location_of(str(pinned.get("tree", "")))):
        raise BadManifest(problem="no code is pinned to it.")
    return m.from_json(pinned.get("manifest") or {})


def image_of(pinned: Mapping[str, Any], manifest: m.Manifest) -> tuple[str, str]:
    """Return the image's location and digest: as pinned, or as in the manifest."""
    return str(pinned.get("image") or manifest.image.location), str(pinned.get("digest") or manifest.image.digest)


def check_tasks(manifest: m.Manifest, tasks: Any) -> list[Reason]:
    """Return what is wrong with the number of parallel tasks of the execution stage."""
    bounds = manifest.resources.get("tasks", m.ResourceBounds(1, 1, 1))
    if tasks is None or (type(tasks) is int and bounds.min <= tasks <= bounds.max):
        return []
    nearest = str(min(max(tasks, bounds.min), bounds.max)) if type(tasks) is int else str(bounds.default)
    message = f"{manifest.name} runs in {bounds.min} to {bounds.max} tasks, not {tasks}."
    return [f.invalid("tasks", message, wanted=tasks, nearest=nearest)]


def check_data(manifest: m.Manifest, request: Request) -> list[Reason]:
    """Return reasons for missing data, and for reserved names."""
    names = [data.name for data in request.data]
    reasons = [
        Reason(f.MISSING, "data", f"{manifest.name} needs the data {needed.name}: {needed.description or 'required'}.")
        for needed in manifest.data
        if needed.required and needed.name not in names and not (manifest.one_folder and names)
    ]
    taken = [name for name in names if name.lstrip(".").startswith("sublet.")]  # by the name of its directory
    return reasons + [
        Reason(f.INVALID, f"data[{name}].name", f"{name} can't be the name of data.", name, "", "input")
        for name in taken
    ]


def check_volumes(request: Request) -> list[Reason]:
    """Return reasons for volumes outside the data folder, which could replace reviewed code or the image."""
    message = f"an app sees what it is given below {m.DATA}, and nowhere else."
    return [
        Reason(f.INVALID, "compute.volumes", message, volume.path, "", f"{m.DATA}/input")
        for volume in request.compute.volumes
        if not _in_data(volume.path)
    ]


def _in_data(path: str) -> bool:
    parts = (path if path.startswith("/") else f"{m.JOB}/{path}").rstrip("/").split("/")
    plain = not any(part in ("", ".", "..") or set(part) & set(":,\\\n\0") for part in parts[1:])
    return plain and parts[:3] == m.DATA.split("/")


def program(
    executable: Executable, tool: str, sources: Sequence[Mapping[str, str]], digest: str, setting: Setting
) -> Program:
    """Build the runner, its plan, and the stages as scripts."""
    manifest = manifest_of(executable.fields["pinned"])
    values = p.fill_parameters(manifest, executable.fields.get("parameters") or {})
    host = tool == HOST
    folders = _folders(manifest, setting) if host else _inner_folders(manifest)
    stages = f"{setting.work}/.sublet/stages"
    environment = _environment(executable, manifest, values, folders, setting)
    home = f"{setting.directory}/home"
    plan = container.image_plan(tool, sources, digest, setting) | {
        "entrypoint": ["/bin/sh"],
        "command": [f"{stages if host else INSIDE}/run"],
        "environment": {},
        "mounts": _mounts(manifest, setting, stages, home),
        "port": 0,
        "path": "/",
        "work": f"{setting.work}/result",
        "inside": m.RESULT,
        "start": manifest.folder,
        "code": setting.find_brought(BROUGHT),
        "copied": f"{setting.work}/job" if manifest.folder == m.JOB else "",
        "home": home,
        "detail": f"{setting.directory}/detail",
        "files": {
            "job.json": json.dumps(_job(executable, manifest, values, folders, setting)),
            "params.json": json.dumps(values),
        },
        "kept": ["params.json"]
        if manifest.source == "manifest.json"
        else [],  # the app may have a file of this name itself
        "stages": [stage.name for stage in manifest.stages],
        "each": [stage.name for stage in manifest.stages if stage.each],
        "tasks": executable.fields.get("tasks") or size_run(manifest).tasks,
        "program": PROGRAM,
        "mpi": manifest.environment.get("SLURM_MPI_TYPE", ""),
    }
    travels = {PROGRAM: pack("app_runner", *PARTS), ".sublet/app.json": json.dumps(plan).encode()}
    environment["SUBLET_HOME_FOLDER"] = home if host else HOME
    environment |= {variable_of(place.name): place.path if host else place.target for place in setting.places}
    scripts = _scripts(manifest, stages if host else INSIDE) | {"environment": _exports(environment)}
    if manifest.notebook:
        scripts["parameters.yaml"] = yaml.safe_dump(values, sort_keys=False).encode()  # the format that papermill reads
    travels |= {f".sublet/stages/{name}": text for name, text in scripts.items()}
    return Program((setting.tool("python3"), PROGRAM), {}, travels, tools=() if host else (tool,))


def _scripts(manifest: m.Manifest, where: str) -> dict[str, bytes]:
    """Return the stages as scripts: words are quoted, and a script with a `#!` line is run by its interpreter."""
    inside = files("sublet.kinds.inside")
    scripts = {"run": inside.joinpath("stages.sh").read_bytes()}
    if manifest.notebook:
        scripts["notebook"] = inside.joinpath("notebook.sh").read_bytes()
    for stage in manifest.stages:
        text = stage.script or f"exec {shlex.join(stage.argv)}\n"
        if stage.script.startswith("#!"):
            words = stage.script.partition("\n")[0][2:].strip().split(None, 1)
            scripts[f"{stage.name}.script"] = stage.script.encode()
            text = f"exec {shlex.join([*words, f'{where}/{stage.name}.script'])}\n"
        scripts[stage.name] = text.encode()
    return scripts


def _exports(environment: Mapping[str, str]) -> bytes:
    """Format variables for the shell of the stages, as some container tools would evaluate their values."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()).encode()


def _inner_folders(manifest: m.Manifest) -> dict[str, str]:
    return {"executable_folder": manifest.folder, "data_folder": m.DATA, "result_folder": m.RESULT}


def _folders(manifest: m.Manifest, setting: Setting) -> dict[str, str]:
    """Return the app's folders on the host."""
    code = f"{setting.work}/job" if manifest.folder == m.JOB else setting.find_brought(BROUGHT)
    own = [mount.source for mount in setting.mounts]
    data = own[0] if manifest.one_folder and len(own) == 1 else "data"
    return {
        "executable_folder": code,
        "data_folder": f"{setting.directory}/{data}",
        "result_folder": f"{setting.work}/result",
    }


def _mounts(manifest: m.Manifest, setting: Setting, stages: str, home: str) -> list[list[Any]]:
    """List the mounts: only the session's own code, data, home and stage scripts."""
    code = f"{setting.work}/job" if manifest.folder == m.JOB else setting.find_brought(BROUGHT)
    mounts: list[list[Any]] = [[code, manifest.folder, not manifest.writable]]
    alone = manifest.one_folder and len(setting.mounts) == 1
    for mount in setting.mounts:
        target = mount.target if mount.target.startswith("/") else f"{m.JOB}/{mount.target}"
        target = m.DATA if alone or mount.source == "data/data" else target
        mounts.append([f"{setting.directory}/{mount.source}", target, mount.read_only])
    return [*mounts, [stages, INSIDE, True], [home, HOME, False]]


def _job(
    executable: Executable,
    manifest: m.Manifest,
    values: Mapping[str, Any],
    folders: Mapping[str, str],
    setting: Setting,
) -> dict[str, Any]:
    """Return the content of `job.json`."""
    return {
        "job_id": setting.session,
        "user_id": setting.person,
        "maintainer": str(executable.fields["pinned"].get("maintainer") or manifest.name),
        "hpc": setting.platform,
        "param": dict(values),
        "env": dict(manifest.environment),
        **folders,
    }


def _environment(
    executable: Executable,
    manifest: m.Manifest,
    values: Mapping[str, Any],
    folders: Mapping[str, str],
    setting: Setting,
) -> dict[str, str]:
    """Return the content of `job.json` as variables, except names that no variable can have."""
    job = _job(executable, manifest, values, folders, setting)
    environment = dict(manifest.environment)
    environment |= {name: value for name, value in job.items() if isinstance(value, str)}
    for prefix, held in (("param_", values), ("env_", manifest.environment)):
        named = {f"{prefix}{name}": value_text(value) for name, value in held.items()}
        environment |= {name: value for name, value in named.items() if name.isidentifier()}
    return {name: value for name, value in environment.items() if name.isascii()}


APP = AppKind()
