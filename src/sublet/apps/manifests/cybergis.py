"""Reads CyberGIS-Compute's `manifest.json`, as found in the wild; what CyberGIS-Compute silently drops is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sublet.apps.manifests.cybergis_rules import parameters, resources
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.manifests.places import read_mounts
from sublet.apps.manifests.sublet_yaml import NAME
from sublet.apps.model.manifest import EXECUTION, POST, PRE, AppImage, AppStage, Input, Manifest
from sublet.booking.model.amounts import quote_value

FILE = "manifest.json"
STAGES = {"pre_processing_stage": PRE, "execution_stage": EXECUTION, "post_processing_stage": POST}
RAW = "_in_raw_sbatch"
FIELDS = (
    "name",
    "description",
    "estimated_runtime",
    "repository",
    "container",
    "connector",
    *STAGES,
    *(f"{name}{RAW}" for name in STAGES),
    "slurm_input_rules",
    "param_rules",
    "require_upload_data",
    "mount",
    "supported_hpc",
    "default_hpc",
    "default_result_folder_downloadable_path",
)
CVMFS = "SingCVMFSConnector"
CONNECTORS = ("SlurmConnector", "SingularityConnector", CVMFS)
USUAL_SYSTEM = "keeling_community"  # the system that CyberGIS-Compute assumes if none is given
_HARMLESS = re.compile(r"\s*(#.*|(module|ml)( [A-Za-z0-9._/+-]+)+|)\s*")  # not needed in a container


def read(page: ManifestPage) -> Manifest:
    """Read the manifest of a document; problems are noted on the page."""
    value = page.value
    page.note_unknown((), value, FIELDS, page.warn)
    name = page.a_text(("name",), value.get("name"))
    if not name.strip():
        page.error(("name",), "a name is needed.")
    systems, default = _systems(page)
    return Manifest(
        name=name_of(name),
        source=FILE,
        title=name.strip() if name_of(name) != name.strip() else "",
        description=_words(page, "description"),
        stages=_stages(page),
        image=_image(page),
        writable=True,
        parameters=parameters(page),
        resources=resources(page),
        data=_data(page),
        results=_results(page),
        systems=systems,
        default_system=default,
        estimated_runtime=_words(page, "estimated_runtime"),
        places=read_mounts(page),
    )


def name_of(text: str) -> str:
    """Turn a title into a name: `Hello World` becomes hello-world."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text.strip()).strip("-.").lower()[:63]
    return plain if NAME.fullmatch(plain) else "app"


def _words(page: ManifestPage, field: str) -> str:
    """Return a text for people; numbers are accepted too."""
    value = page.value.get(field)
    return page.a_text((field,), str(value) if isinstance(value, int | float) else value)


def _stages(page: ManifestPage) -> tuple[AppStage, ...]:
    stages = []
    for field, name in STAGES.items():
        text = page.a_text((field,), page.value.get(field))
        if _raw(page, field) and text:
            page.warn(
                (field,), f"CyberGIS-Compute would not run {field}, because of {field}{RAW}; here it is what runs."
            )
        if text.strip():
            stages.append(AppStage(name, script=text, each=name == EXECUTION))
    if not any(stage.name == EXECUTION for stage in stages):
        page.error(("execution_stage",), "execution_stage is needed: the command that runs the app.")
    return tuple(stages)


def _raw(page: ManifestPage, field: str) -> bool:
    """Whether raw lines replace a stage; as they would run outside the container, only harmless ones are accepted."""
    path = (f"{field}{RAW}",)
    lines = page.texts(path, page.value.get(path[0]))
    wrong = [number for number, line in enumerate(lines) if not _HARMLESS.fullmatch(line)]
    for number in wrong:
        message = (
            f"{quote_value(lines[number])} would run outside the container, as the shared account; put it in {field}"
        )
        page.error((*path, number), f"{message}, which runs in the container.")
    if lines and not wrong:
        page.warn(path, "modules and comments have no meaning in a container; these lines are left out.")
    return bool(lines)


def _image(page: ManifestPage) -> AppImage:
    name = page.a_text(("container",), page.value.get("container")).strip()
    connector = page.a_text(("connector",), page.value.get("connector"))
    if not name:
        page.error(("container",), "container is needed: the name of an image that the operator knows.")
    if connector == CVMFS:
        page.warn(
            ("connector",),
            f"the kernel {quote_value(name)} is looked for among the operator's images; CVMFS isn't used.",
        )
    elif connector and connector not in CONNECTORS:
        page.warn(("connector",), f"the connector {quote_value(connector)} isn't known; the app runs as others do.")
    return AppImage(name=name)


def _systems(page: ManifestPage) -> tuple[tuple[str, ...], str]:
    systems = page.texts(("supported_hpc",), page.value.get("supported_hpc"))
    default = page.a_text(("default_hpc",), page.value.get("default_hpc"))
    if not systems:
        return (default or USUAL_SYSTEM,), default or USUAL_SYSTEM
    if default and default not in systems:
        page.warn(("default_hpc",), f"{quote_value(default)} is not in supported_hpc; it is taken for one of them.")
        systems = (*systems, default)
    return systems, default or systems[0]


def _data(page: ManifestPage) -> tuple[Input, ...]:
    value = page.value.get("require_upload_data")
    if isinstance(value, str) and value.lower() in ("true", "false"):
        page.warn(("require_upload_data",), f"{quote_value(value)} is written as text; it is taken for what it says.")
        value = value.lower() == "true"
    required = page.a_flag(("require_upload_data",), value)
    return (Input("data", required, "the folder that the app reads"),) if required else ()


def _results(page: ManifestPage) -> tuple[str, ...]:
    field = "default_result_folder_downloadable_path"
    text = page.a_text((field,), page.value.get(field))
    path = text.strip("/")
    if ".." in path.split("/") or "\0" in path:
        page.error((field,), f"{quote_value(text)} is not a path below the result folder.")
    return (path,) if path else ()


def is_cybergis(value: Mapping[str, Any]) -> bool:
    """Whether a `manifest.json` is CyberGIS', and not a web page's or an extension's."""
    return any(field in value for field in (*STAGES, "container", "slurm_input_rules", "param_rules"))
