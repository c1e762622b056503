"""`app review`, `diff`, `approve`, `refuse`, `revoke`: decide on apps."""

from __future__ import annotations

import click

from sublet.apps.calls import apps
from sublet.apps.cli.texts import find_number, version_lines
from sublet.apps.views.apps import FileView, ReviewView
from sublet.cli.command import command
from sublet.cli.options import reason_option
from sublet.cli.output import Output, table
from sublet.kernel.texts import count_text


@command("review", "sublet app review flood@2", "sublet app review flood@2 --file entry.sh")
@click.argument("version")
@click.option("--file", "path", metavar="PATH", help="Show this file alone.")
def review(out: Output, version: str, path: str | None) -> None:
    """Show everything to review: commit, image, manifest, and each file with its text."""
    link = out.link()
    view = link.do(apps.review(*find_number(link, version)))
    if path is not None:
        chosen = next((file for file in view.files if file.path == path), None)
        if chosen is None:
            raise click.UsageError(f"{view.version.name} has no file {path}.")
        out.show(chosen, lambda: _text(chosen), lambda: [chosen.text])
        return
    out.show(view, lambda: _whole(view), lambda: [view.version.tree])
    if out.for_people and view.version.state == "proposed":
        out.note(f"\nsublet app approve {view.version.name} --tree {view.version.tree}")
        out.note(f"sublet app refuse {view.version.name} --reason '…'")


@command("diff", "sublet app diff flood@2", "sublet app diff flood@3 --against 1")
@click.argument("version")
@click.option("--against", type=int, metavar="N", help="Compare with this version; else with the last approved.")
def diff(out: Output, version: str, against: int | None) -> None:
    """Show what is new in a version: files, manifest and image."""
    link = out.link()
    name, number = find_number(link, version)
    view = link.do(apps.review(name, number, against))
    out.show(view, lambda: _news(view), lambda: (change.path for change in view.changes))


@command("approve", "sublet app approve flood@2 --tree 3a7bd3e2360a3d29eea4")
@click.argument("version")
@click.option(
    "--tree",
    required=True,
    metavar="HASH",
    help="The tree that you have seen, or its first 16 digits or more: `sublet app review` shows it.",
)
@reason_option("A message to the proposer.")
def approve(out: Output, version: str, tree: str, reason: str) -> None:
    """Approve exactly the version that you have reviewed."""
    if "@" not in version:  # a newer version may have the same files and another image
        raise click.UsageError(f"Which version of {version}? `sublet app review {version}` shows its number.")
    link = out.link()
    done = link.do(apps.approve(*find_number(link, version), tree, reason))
    out.show(done, lambda: [f"{done.name} is approved: {done.commit}, {done.digest}."], lambda: [done.name])


@command("refuse", "sublet app refuse flood@2 --reason 'It reads files of others.'")
@click.argument("version")
@reason_option("A message to the proposer.", required=True)
def refuse(out: Output, version: str, reason: str) -> None:
    """Refuse a version, so that it can't be run."""
    link = out.link()
    done = link.do(apps.refuse(*find_number(link, version), reason))
    out.show(done, lambda: [f"{done.name} is refused."], lambda: [done.name])


@command("revoke", "sublet app revoke flood@2 --reason 'Its image has a hole.' --cancel")
@click.argument("version")
@reason_option("A message to the proposer and to people who run it.", required=True)
@click.option("--cancel", is_flag=True, help="Also end the sessions that run it.")
def revoke(out: Output, version: str, reason: str, cancel: bool) -> None:
    """Revoke an approval: no new session can run it, and running ones are notified."""
    link = out.link()
    done = link.do(apps.revoke(*find_number(link, version, "approved"), reason, cancel=cancel))
    effect = f"{count_text(len(done.sessions), 'session')} {'are ended' if cancel else 'were told'}"
    out.show(done, lambda: [f"{done.version.name} is revoked; {effect}."], lambda: done.sessions)


def _whole(view: ReviewView) -> list[str]:
    rows = [(file.path, str(file.size), "yes" if file.executable else "", _sort(file)) for file in view.files]
    lines = [*version_lines(view.version), "", *table(("FILE", "BYTES", "EXECUTABLE", "SORT"), rows)]
    for file in view.files:
        if file.text:
            lines += ["", f"--- {file.path}", *_text(file)]
    return lines


def _sort(file: FileView) -> str:
    if file.link:
        return f"link to {file.link}"
    return "binary" if file.binary else "text"


def _text(file: FileView) -> list[str]:
    return [*file.text.splitlines(), *(["… and more: it is too long to be shown whole."] if file.cut else [])]


def _news(view: ReviewView) -> list[str]:
    if view.base is None:
        return [f"{view.version.name} is the first: nothing of it was approved before."]
    old, new = view.base, view.version
    lines = [f"from {old.name} ({old.commit}) to {new.name} ({new.commit})"]
    if (old.image, old.digest) != (new.image, new.digest):
        lines += [f"- image {old.image}@{old.digest}", f"+ image {new.image}@{new.digest}"]
    for change in view.changes:
        lines += ["", f"{change.how}: {change.path}", *change.diff.splitlines()]
    if view.manifest_diff:
        lines += ["", "the manifest, as it is read:", *view.manifest_diff.splitlines()]
    return lines if len(lines) > 1 else [*lines, "Nothing differs."]
