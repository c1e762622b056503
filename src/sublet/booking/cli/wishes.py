"""Options that describe a request, converted to the short form."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from sublet.booking.model.steps import read_step
from sublet.cli.command import with_options
from sublet.cli.output import Output
from sublet.cli.scheduler import read_scheduler_flags, scheduler_flags
from sublet.cli.texts import size
from sublet.client.documents import Prepared, parse, prepare
from sublet.client.link import Link
from sublet.client.names import shorten
from sublet.kernel.data_urls import is_data_url
from sublet.kernel.errors import BadRequest

UPLOAD = "upload:"
NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)=(.+)", re.DOTALL)
INTERFACES = ("lab", "shell", "desktop", "code", "rstudio")  # interfaces that every service has
F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (
    *(
        "cores",
        "memory",
        "gpus",
        "disk",
        "nodes",
        "time",
        "image",
        "tasks",
        "notebook",
        "interactive",
        "web",
        "idle",
        "name",
        "workdir",
    ),
    *("platform", "pledge"),
)

AMOUNTS = (
    click.option("--cores", metavar="N", help="Cores on each node: 4, or 4-16 for at least and at most."),
    click.option("--memory", metavar="SIZE", help="Memory on each node: 8GiB."),
    click.option("--gpus", metavar="N", help="GPUs on each node."),
    click.option("--disk", metavar="SIZE", help="Disk of each node's own, for temporary files: 50GiB."),
    click.option("--nodes", metavar="N", help="How many nodes."),
    click.option("--time", "-t", metavar="TIME", help="For how long: 10m, 2h, 1-12:00:00."),
    click.option("--start", metavar="WHEN", multiple=True, help="When it may begin: tonight, 'tomorrow 9am'."),
    click.option("--data", metavar="WHERE[:PATH]", multiple=True, help="A file, folder or URL to bring, and as what."),
    click.option("--unpack", metavar="WHERE[:PATH]", multiple=True, help="An archive to bring and unpack."),
    click.option("--write-back", metavar="WHERE[:PATH]", multiple=True, help="Data that goes back if it was changed."),
    click.option("--data-from", metavar="SESSION[:PATH]", multiple=True, help="Results of a session, when it is over."),
    click.option("--place", metavar="NAME[:PATH]", multiple=True, help="A shared place of the system (place list)."),
    click.option("--output", metavar="FILES=ADDRESS", multiple=True, help="Results to send somewhere at the end."),
    click.option("--workdir", metavar="DIR", help="A folder whose content to bring into the working directory."),
)
KINDS = (
    click.option("--image", metavar="IMAGE", help="A container image to run it in."),
    click.option("--tasks", metavar="N", help="How many copies of the container, as the ranks of an MPI program."),
    click.option("--each-node", is_flag=True, help="Start the program once on each of several nodes."),
    click.option("--notebook", metavar="FILE", help="A Jupyter notebook to run."),
    click.option("--compose", metavar="FILE", help="A Docker Compose file, whose services run side by side."),
    click.option("--param", metavar="NAME=VALUE", multiple=True, help="A parameter of the notebook."),
    click.option("--script", metavar="FILE", help="A script to run, instead of a command."),
    click.option("--step", metavar="[NAME=]COMMAND", multiple=True, help="One of several commands, in this order."),
    click.option("--together", is_flag=True, help="With --step: start all steps at once."),
    click.option("--keep-going", is_flag=True, help="With --step: continue after a step that failed."),
    click.option(
        "--interactive",
        metavar="WHAT",
        help="To open: lab, shell, desktop, code, rstudio, or another here.",
        shell_complete=lambda context, option, begun: [name for name in INTERFACES if name.startswith(begun)],
    ),
    click.option("--web", metavar="PORT", help="The command is a web application on this port, to open; or auto."),
    click.option("--idle", metavar="TIME", help="End it after nobody has had it open for this long: 30m."),
)
MORE = (
    click.option("--env", metavar="NAME[=VALUE]", multiple=True, help="An environment variable. Can be repeated."),
    click.option("--name", metavar="NAME", help="What to call it."),
    click.option("--platform", metavar="NAME", help="Only on this platform."),
    *scheduler_flags(),
    click.option("--pledge", metavar="NAME", help="Only of this part of a platform; open: of what is not pledged."),
    click.option("--after", metavar="SESSION", multiple=True, help="Only once this session has completed well."),
    click.option("--max-cost", metavar="AMOUNT", type=float, help="At most this price."),
    click.option("--stay", is_flag=True, help="Don't bring the files that the command names."),
)


def wishes(function: F) -> F:
    """Add the options that describe a request."""
    return with_options(function, (*AMOUNTS, *KINDS, *MORE))


def wishes_of_a_command(function: F) -> F:
    """Add the options that describe a request whose executable is a command."""
    return with_options(function, (*AMOUNTS, *MORE))


def document(
    out: Output,
    source: str | None,
    words: tuple[str, ...],
    given: dict[str, Any],
    *,
    local: bool,
    bag: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document to send: the file's, overridden by the options and the command or bag."""
    typed = short_form(words, given) | ({"bag": bag} if bag else {})
    if source is None and not typed:
        raise click.UsageError("There is nothing to ask for: give a file, or options, or a command after --.")
    if given["stay"]:
        typed["stay"] = True
    read = parse(sys.stdin.buffer.read()) if source == "-" else source
    prepared = prepare(read, typed, local=local)
    if given["start"]:
        tell_starts(out, prepared.document["start"])
    tell_brought(out, prepared)
    return dict(prepared.document)


def send_files(out: Output, link: Link, asked: dict[str, Any]) -> dict[str, Any]:
    """Upload the files that a request brings to a service on another machine, and refer to them as uploads."""
    if link.address.local:
        return asked
    from sublet.cli.progress import Progress  # only where files may have to be sent
    from sublet.client.sending import send_steps
    from sublet.client.uploading import UploadTally, drive

    line = Progress(wanted=out.for_people)
    tally = UploadTally(show=lambda tally: line.show(f"uploading: {size(tally.done)} of {size(tally.total)}"))
    try:
        return drive(send_steps(asked, tally), link.do)
    finally:
        line.clear()


def tell_starts(out: Output, start: str | list[str]) -> None:
    """Say which times words like `tomorrow` stand for, by the clock of this machine."""
    from sublet.cli.texts import window_text  # only needed with --start

    for text in [start] if isinstance(start, str) else start:
        if out.for_people and (windows := window_text(text)):
            out.note(f"note: to start {windows}")


def tell_brought(out: Output, prepared: Prepared) -> None:
    """Say which files are sent along, and which are not."""
    files = prepared.files
    if files.names:
        out.note(f"brings {', '.join(files.names)} ({size(files.size)})")
    if files.folder and files.folder.secrets:
        left = ", ".join(files.folder.secrets)
        out.note(f"leaves {left} behind, which may be secret; a line !NAME in .subletignore brings it")
    if prepared.missing:
        out.note(f"note: {prepared.missing} is not here, and is not brought: it has to be there where this runs.")
    for name in prepared.above if not prepared.missing else ():
        last = os.path.basename(os.path.normpath(name))
        out.note(f"note: {name} is above this directory, and is not brought; --data {name} brings it as {last}.")


def short_form(words: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Convert options and a command to the short form."""
    form: dict[str, Any] = {name: number_of(given[name]) for name in PLAIN if given[name] is not None}
    form |= read_scheduler_flags(given)
    if words:
        form["run"] = list(words)
    for name in (name for name in ("script", "compose") if given[name]):
        form[name] = _text(given[name])
        form.setdefault("name", shorten(os.path.basename(given[name])))
    form |= _read_steps(given) | ({"each_node": True} if given["each_node"] else {})
    if given["notebook"] and "://" not in given["notebook"] and not os.path.isfile(given["notebook"]):
        from sublet.client.missing import refuse_missing_notebook  # only when something is wrong

        raise refuse_missing_notebook(given["notebook"], os.getcwd())
    if given["start"]:
        form["start"] = given["start"][0] if len(given["start"]) == 1 else list(given["start"])
    for name, word, read in MANY:
        if given[word]:
            form[name] = [*form.get(name, ()), *map(read, given[word])]
    if given["env"]:
        form["env"] = dict(_variable(item) for item in given["env"])
    if given["param"]:
        form["parameters"] = dict(_parameter(item) for item in given["param"])
    if given["max_cost"] is not None:
        form["max_cost"] = given["max_cost"]
    return form


def _read_steps(given: dict[str, Any]) -> dict[str, Any]:
    """Return the steps with their names, and how they run; empty if there are none."""
    how = {name: True for name in ("together", "keep_going") if given[name]}
    if how and not given["step"]:
        raise click.UsageError("--together and --keep-going are for steps: name them with --step.")
    steps = [read_step(item) for item in given["step"] or ()]
    return {"steps": {"run": steps, **how}} if steps else {}


def number_of(text: str) -> str | int:
    """Return a whole number as an int, and any other text as it is."""
    return int(text) if text.isascii() and text.isdigit() else text


def _data(item: str) -> str | dict[str, Any]:
    """Parse `WHERE`, `WHERE:PATH` or `NAME=WHERE`; a URL's colon doesn't count, and `data:,…` is the file itself."""
    if os.path.exists(item):
        return item
    if is_data_url(item) and "," in item and not os.path.exists(item.partition(":")[0]):
        return item
    if item.startswith(UPLOAD):
        return _read_upload(item.removeprefix(UPLOAD))
    if named := NAMED.match(item):
        return {"name": named[1], "location": named[2]}
    scheme, separator, rest = item.partition("://")
    where, colon, path = (rest if separator else item).rpartition(":")
    if not colon or (separator and "/" not in where):
        return item
    return {"location": f"{scheme}://{where}" if separator else where, "path": path, "writable": True}


def _read_upload(item: str) -> dict[str, Any]:
    """Parse an upload, or a path in it, and the path to bring it to, which defaults to its own name."""
    where, _, path = item.partition(":")
    return {"location": f"{UPLOAD}{where}", "path": path or where.rstrip("/").rpartition("/")[2], "writable": True}


def _archive(item: str) -> dict[str, Any]:
    return _data_with(item, "unpack")


def _round_trip(item: str) -> dict[str, Any]:
    return _data_with(item, "write_back")


def _data_with(item: str, flag: str) -> dict[str, Any]:
    given = _data(item)
    return {"location": given, flag: True} if isinstance(given, str) else {**given, flag: True}


def _source(item: str) -> dict[str, Any]:
    session, _, path = item.partition(":")
    return {"location": f"session:{session}/{path}", "path": path.strip("/") or ".", "writable": True}


def _place(item: str) -> dict[str, Any]:
    name, colon, path = item.partition(":")
    is_read = path == "ro" or path.endswith(":ro")
    path = path.removesuffix("ro").removesuffix(":") if is_read else path
    if not name or (colon and not path and not is_read):
        raise click.UsageError(f"--place {item}: write NAME, NAME:PATH or NAME:PATH:ro.")
    return {"name": name} | ({"path": path} if path else {}) | ({"writable": False} if is_read else {})


def read_output(item: str) -> dict[str, str]:
    """Parse `FILES=ADDRESS`: results to send to an address."""
    path, given, address = item.partition("=")
    if not given or not path or not address:
        raise click.UsageError(f"--output {item}: write FILES=ADDRESS, as in 'out/*.csv=s3://bucket/run1/'.")
    if "://" not in address:
        address = f"file://{os.path.abspath(address)}{'/' if address.endswith('/') or os.path.isdir(address) else ''}"
    return {"path": path, "to": address}


def _variable(item: str) -> tuple[str, str]:
    name, given, value = item.partition("=")
    if given:
        return name, value
    if name not in os.environ:
        raise click.UsageError(f"--env {name}: it isn't set here; write {name}=VALUE.")
    return name, os.environ[name]


def _parameter(item: str) -> tuple[str, Any]:
    name, given, value = item.partition("=")
    if not given:
        raise click.UsageError(f"--param {item}: write NAME=VALUE.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        from sublet.client.missing import refuse_unreadable  # only when something is wrong

        raise refuse_unreadable(path, error) from error
    if path.endswith(".py") and not text.startswith("#!"):
        detail = f"{path} has no line #!, so sh would run it, which reads no Python"
        raise BadRequest(detail=detail, hint=f"Run it with: sublet run -- python3 {shlex.quote(path)}")
    return text


# Options that can be repeated: the name in the short form, the option, and how each value is read.
MANY: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("data", "data", _data),
    ("data", "unpack", _archive),
    ("data", "write_back", _round_trip),
    ("data", "data_from", _source),
    ("places", "place", _place),
    ("outputs", "output", read_output),
    ("after", "after", str),
)
