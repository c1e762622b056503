"""`upload`: folders and files of yours, kept at the service for a while, and used as data."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import click

from sublet.booking.model.amounts import parse_duration
from sublet.cli.command import DefaultGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.progress import Progress
from sublet.cli.texts import size, when
from sublet.client.link import Link
from sublet.client.uploading import UploadPlan, UploadTally, drive, plan_upload, upload_steps
from sublet.data.calls import uploads as calls
from sublet.data.model.uploads import SCHEME
from sublet.data.views.uploads import UploadFileView, UploadShown, UploadView
from sublet.kernel.errors import NotFound
from sublet.kernel.texts import count_text


@click.group(
    "upload",
    cls=DefaultGroup,
    default="send",
    epilog=Example("sublet upload forcing/", "sublet run --data upload:forcing/:in -- ls in"),
)
def upload() -> None:
    """Upload folders and files to the service, to be used as data of sessions: upload:NAME/PATH.

    `sublet upload DIR` is `sublet upload send DIR`.
    """


@command(
    "send", "sublet upload forcing/", "sublet upload model.nc table.csv --name inputs", "sublet upload big/ --dry-run"
)
@click.argument("places", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--name", metavar="NAME", default="", help="What to call it; else as the folder or file is called.")
@click.option("--ignore", metavar="PATTERN", multiple=True, help="Leave this behind, as a line of .subletignore does.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")
def send(out: Output, places: tuple[str, ...], name: str, ignore: tuple[str, ...], dry_run: bool) -> None:
    """Upload a folder or files. If you repeat the command, only missing or changed files are sent; interrupted
    uploads resume.

    Not sent: files that are rarely wanted (.git, __pycache__, …), files that look like secrets (.env, *.pem, …), and
    those named in .subletignore. Links to files in the folder are sent as those files.
    """
    plan = plan_upload(places, name, ignore)
    if dry_run:
        _show_plan(out, plan)
        return
    shown = send_plan(out, out.link(), plan)
    address = shown.upload.address
    out.show(shown.upload, lambda: [f"{address} ({describe(shown.upload)})"], lambda: [address])


def send_plan(out: Output, link: Link, plan: UploadPlan) -> UploadShown:
    """Send the planned files, with a progress line."""
    line = Progress(wanted=out.for_people)

    def show(tally: UploadTally) -> None:
        line.show(f"uploading {plan.name}: {size(tally.done)} of {size(tally.total)}")

    tally = UploadTally(show=show)
    try:
        shown = drive(upload_steps(plan, tally), link.do)
    finally:
        line.clear()
    if tally.skipped:
        out.note(f"{count_text(tally.skipped, 'file')} there already; sent {size(tally.sent)}")
    return shown


def _show_plan(out: Output, plan: UploadPlan) -> None:
    rows = [(file.path, size(file.size)) for file in plan.files]
    view = {"name": plan.name, "files": [{"path": file.path, "size": file.size} for file in plan.files]}
    out.show({**view, "size": plan.size}, lambda: table(("FILE", "SIZE"), rows), lambda: (row[0] for row in rows))
    if out.for_people:
        out.note(f"{count_text(len(rows), 'file')}, {size(plan.size)} would be sent to {SCHEME}:{plan.name}/.")


def describe(view: UploadView) -> str:
    """Describe an upload's size, and until when it is kept."""
    until = when(view.keep_until, datetime.now(UTC))
    return f"{count_text(view.files, 'file')}, {size(view.size)}, kept until {until}"


@command("list", "sublet upload list")
def list_uploads(out: Output) -> None:
    """List your uploads, and until when they are kept."""
    view, now = out.link().do(calls.uploads()), datetime.now(UTC)
    rows = [
        (known.name, str(known.files), size(known.size), when(known.created, now), when(known.keep_until, now))
        for known in view.items
    ]
    head = ("NAME", "FILES", "SIZE", "CREATED", "KEPT UNTIL")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (known.name for known in view.items))
    if out.for_people:
        out.note(f"{size(view.size)} of {size(view.most)} used." if rows else "No uploads yet: sublet upload DIR")


@command("show", "sublet upload show forcing")
@click.argument("name")
def show_upload(out: Output, name: str) -> None:
    """Show the files of an upload, and which are incomplete."""
    view, now = out.link().do(calls.upload(name)), datetime.now(UTC)
    rows = [(file.path, size(file.size), _state(file, now)) for file in view.items]
    out.show(view, lambda: table(("FILE", "SIZE", "STATE"), rows), lambda: (file.path for file in view.items))
    if out.for_people:
        out.note(f"{view.upload.address} ({describe(view.upload)})")
    if view.sessions and out.for_people:
        out.note(f"sessions that wait for it: {', '.join(session[:8] for session in view.sessions)}")


def _state(file: UploadFileView, now: datetime) -> str:
    if file.whole or file.expires is None:
        return "whole"
    return f"{size(file.offset)} came; can be resumed until {when(file.expires, now)}"


@command("keep", "sublet upload keep forcing 60d")
@click.argument("name")
@click.argument("duration", metavar="TIME")
def keep(out: Output, name: str, duration: str) -> None:
    """Keep an upload for this long from now on: 12h, 7d, 4w."""
    view = out.link().do(calls.keep(name, parse_duration(duration, timedelta(days=36500))))
    out.show(view, lambda: [f"{view.name}: {describe(view)}"], lambda: [view.name])


@command("remove", "sublet upload remove forcing", "sublet upload remove inputs/old.csv")
@click.argument("names", metavar="NAME[/PATH]...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Also if sessions wait for it, which are going to fail.")
def remove(out: Output, names: tuple[str, ...], force: bool) -> None:
    """Remove uploads, or files of them."""
    link = out.link()
    for name in names:
        title, slash, path = name.removeprefix(f"{SCHEME}:").partition("/")
        if slash and path:
            _remove_files(link, title, path)
        else:
            link.do(calls.remove(title, force=force))
    out.show({"removed": list(names)}, lambda: (f"{name} is removed." for name in names), lambda: names)


def _remove_files(link: Link, name: str, path: str) -> None:
    chosen = list(_choose(link.do(calls.upload(name)).items, path.rstrip("/")))
    if not chosen:
        raise NotFound(f"The upload {name} has no file {path}.", hint=f"sublet upload show {name} lists its files.")
    for file in chosen:
        link.do(calls.cancel(file.id))


def _choose(files: Iterable[UploadFileView], path: str) -> Iterable[UploadFileView]:
    return (file for file in files if file.path == path or file.path.startswith(f"{path}/"))


for word in (send, list_uploads, show_upload, keep, remove):
    upload.add_command(word)
