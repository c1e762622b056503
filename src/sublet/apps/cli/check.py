"""`app check` and `app init`: check that a directory is an app, try it here, and create a manifest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sublet.apps.cli.needs import Needs, find_out
from sublet.booking.cli.fetching import Destination, check_folder, overwrite_option
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.kernel.errors import BadRequest, NotChangeable, SubletError

if TYPE_CHECKING:
    from sublet.apps.manifests.page import ManifestReading
    from sublet.apps.model.manifest import Manifest

BEGINNING = """\
# An app of Sublet: what each field means is in docs/manifest.md; `sublet app check` says what is wrong.
name: {name}
description: What it does, in a sentence.
image: {image}
{runs}

parameters:
  years:
    type: integer
    minimum: 1
    maximum: 50
    default: 1
    title: How many years

resources:
  cores: 1-4
  memory: 1GiB-8GiB
  time: 10m-2h

results: []
"""
STARTS = ("main.py", "run.py", "run.sh", "main.sh", "entry.sh", "main.R", "main.jl")  # files to suggest as the command
RUN_BY = {".py": "python", ".sh": "sh", ".R": "Rscript", ".jl": "julia"}


@command(
    "check",
    "sublet app check .",
    "sublet app check . --run --image python:3.12-slim --set years=2 --data rain.csv",
)
@click.argument("directory", metavar="DIR", default=".")
@click.option("--run", "runs", is_flag=True, help="Run it here, by your own service.")
@click.option("--set", "values", metavar="NAME=VALUE", multiple=True, help="A parameter. Can be repeated.")
@click.option("--want", metavar="NAME=AMOUNT", multiple=True, help="A resource, as in tasks=2 or time=10m.")
@click.option("--data", metavar="WHERE", multiple=True, help="With --run: a file, directory or URL to bring.")
@click.option("--image", metavar="IMAGE", default="", help="The image to run it in, instead of the one it names.")
@click.option(
    "--kind",
    type=click.Choice(("jupyter", "python")),
    default=None,
    help="Of code without a manifest: the kind of the maintainer that would run it.",
)
@click.option(
    "--out", "to", metavar="DIR", callback=check_folder, help="With --run: fetch the results into this directory."
)
@overwrite_option
def check(
    out: Output,
    directory: str,
    runs: bool,
    values: tuple[str, ...],
    want: tuple[str, ...],
    data: tuple[str, ...],
    image: str,
    kind: str | None,
    to: str | None,
    overwrite: bool,
) -> int:
    """Check that a directory is an app: its manifest line by line, and with --run by running it here.

    DIR has sublet.yaml, CyberGIS-Compute's manifest.json, or entry.sh; or none of these and one notebook, or main.py
    or entry.py, which a gateway's maintainer runs in its image. Every error and warning is shown with its file and
    line; the exit code is 1 if there are errors. It also lists what the code seems to need besides its image: a
    mount, data, MPI, the internet, GPUs. If you are signed in to a gateway, it is asked whether it has these and
    knows the image. Without --run, none of the code is sent anywhere.
    """
    from sublet.apps.manifests.generic import kinds_of
    from sublet.apps.manifests.reader import read_manifest
    from sublet.apps.model.needs import find_needs
    from sublet.apps.model.tree import archive_of
    from sublet.client.trees import files_in

    files = files_in(directory)
    archive = archive_of(files)
    name = os.path.basename(os.path.abspath(directory))
    contents = {file.path: file.content for file in files}
    reading = read_manifest(contents, None, name=name, image=image, kinds=kinds_of(kind or ""))
    if not runs or reading.manifest is None:
        needs = find_needs(reading.manifest, contents) if reading.manifest else []
        return _show_reading(out, reading, find_out(out, needs, None if image else reading.manifest))
    for finding in reading.findings:
        out.note(str(finding))
    document = _document(reading.manifest, values, want, data)
    return _run(
        out,
        archive,
        document,
        {"name": name, "image": image, "kind": kind or ""},
        Destination.read(to, overwrite=overwrite),
    )


def _show_reading(out: Output, reading: ManifestReading, needs: Needs) -> int:
    from sublet.apps.model.manifest import to_json

    findings = [vars_of(finding) for finding in reading.findings]
    manifest = reading.manifest
    value = {"ok": not reading.errors, "findings": findings, "manifest": to_json(manifest) if manifest else None}
    value |= {"needs": needs.as_values(), "gateway": needs.gateway}
    lines = [*map(str, reading.findings), *needs.as_lines()]
    out.show(value, lambda: [*lines, _summary(reading, needs)], lambda: map(str, reading.errors))
    return 1 if reading.errors else 0


def vars_of(finding: Any) -> dict[str, Any]:
    """Return a finding as plain values."""
    return {name: getattr(finding, name) for name in ("file", "line", "message", "error")}


def _summary(reading: ManifestReading, needs: Needs) -> str:
    errors, warnings = len(reading.errors), len(reading.findings) - len(reading.errors)
    counts = ", ".join(
        f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((errors, "error"), (warnings, "warning")) if n
    )
    if not reading.manifest:
        return counts
    number = len(reading.manifest.parameters)
    can = needs.can_run()
    sentence = (
        f"{reading.manifest.name} {can}: {_runs(reading.manifest)}; {number} parameter{'' if number == 1 else 's'}"
    )
    return f"{sentence}; {counts}" if counts else sentence


def _runs(manifest: Manifest) -> str:
    from sublet.apps.manifests.generic import kind_of

    if kind := kind_of(manifest):
        return f"{manifest.source}, as a maintainer of the kind {kind} does"
    return ", ".join(stage.name for stage in manifest.stages)


def _document(manifest: Manifest, values: Sequence[str], want: Sequence[str], data: Sequence[str]) -> dict[str, Any]:
    """Return the request in the short form, with the manifest's resources."""
    from sublet.apps.model import parameters
    from sublet.apps.model import resources as app_resources
    from sublet.booking.model.amounts import duration_text

    given = {name: parameters.read(manifest.parameter(name), text) for name, text in _pairs("--set", values)}
    wanted = {}
    for name, text in _pairs("--want", want):
        if name not in app_resources.NAMES:
            raise BadRequest(detail=f"there is no resource {name}; there are: {', '.join(app_resources.NAMES)}")
        wanted[name] = app_resources.parse(name, text)
    for reason in (*app_resources.wrong(manifest, wanted), *parameters.check(manifest, given)):
        raise BadRequest(detail=reason.message, hint=f"Take {reason.nearest}." if reason.nearest else "Change it.")
    size = app_resources.size_run(manifest, wanted)
    document: dict[str, Any] = {"parameters": given, "tasks": size.tasks, "name": manifest.name}
    each = size.amounts.shape
    document |= {"nodes": size.amounts.nodes, "cores": each.cores, "memory": f"{each.memory}B", "gpus": each.gpus}
    document |= {"time": duration_text(size.amounts.time), "data": [_absolute_location(where) for where in data]}
    return document


def _absolute_location(where: str) -> str:
    return where if ":" in where.partition("/")[0] else os.path.abspath(where)


def _pairs(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    cut = [text.partition("=") for text in given]
    for name, equals, _ in cut:
        if not equals or not name:
            raise click.UsageError(f"{option} takes NAME=VALUE.")
    return [(name, value) for name, _, value in cut]


def _run(out: Output, archive: bytes, document: dict[str, Any], taken: dict[str, str], to: Destination | None) -> int:
    from sublet.apps.calls import trials
    from sublet.booking.calls import offers
    from sublet.booking.cli.asking import show_answer
    from sublet.booking.cli.running import accept_and_follow

    link = out.link()
    if not link.address.local:
        raise SubletError("An app is tried on one's own machine.", hint="Type it without SUBLET_URL.")
    trial = link.do(trials.try_app(archive, **taken))
    view = link.do(offers.ask({"app": trial.name, **document}, firm=True))
    if not view.offers:
        return show_answer(out, view)
    return accept_and_follow(out, link, view, detach=False, yes=True, to=to)


@command("init", "sublet app init . --image python")
@click.argument("directory", metavar="DIR", default=".")
@click.option("--name", metavar="NAME", help="Its name; default: the directory's.")
@click.option("--image", metavar="IMAGE", default="python", help="A name that gateways know, or a location.")
@click.option("--force", is_flag=True, help="Write over a sublet.yaml that is there.")
def init(out: Output, directory: str, name: str | None, image: str, force: bool) -> int:
    """Create a manifest in a directory, to be completed by hand."""
    import json

    from sublet.apps.manifests.cybergis import name_of

    path = os.path.join(directory, "sublet.yaml")
    if os.path.exists(path) and not force:
        raise NotChangeable(f"{path} is there already.", hint="Write over it with --force.")
    os.makedirs(directory, exist_ok=True)
    called = name_of(name or os.path.basename(os.path.abspath(directory)))
    shown = json.dumps(image) if not image.isalnum() else image
    text = BEGINNING.format(name=called, image=shown, runs=_start(sorted(os.listdir(directory))))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    out.show({"written": path}, lambda: [f"wrote {path}; check it with: sublet app check {directory}"], lambda: [path])
    return 0


def _start(names: Sequence[str]) -> str:
    """Guess the command from the files that are there."""
    import json

    notebooks = [name for name in names if name.endswith(".ipynb")]
    start = next((file for file in STARTS if file in names), None)
    if notebooks and not start:
        return f"notebook: {json.dumps(notebooks[0])}"
    start = start or STARTS[0]
    return f"run: {RUN_BY[os.path.splitext(start)[1]]} {start}"
