"""`app propose`, `list`, `maintainers`, `show`, `check-upstream`: propose apps, and list them."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.apps.calls import apps
from sublet.apps.cli.texts import SHORT, find_number, split_version, version_lines
from sublet.apps.views.apps import ProposeAsk
from sublet.cli.command import command
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import moment


@command(
    "propose",
    "sublet app propose github://owner/name",
    "sublet app propose https://example.org/flood.git --branch release --name flood",
)
@click.argument("repository")
@click.option("--branch", metavar="NAME", help="A branch or a tag; else the one that the repository names.")
@click.option("--commit", metavar="SHA", help="A commit of that branch; else its newest.")
@click.option("--name", metavar="NAME", help="What the app is called; else as its manifest says.")
@click.option("--maintainer", metavar="NAME", help="Run it in this generic image: `sublet app maintainers` lists them.")
def propose(
    out: Output, repository: str, branch: str | None, commit: str | None, name: str | None, maintainer: str | None
) -> None:
    """Propose a git repository as an app, or as the next version of one.

    The repository is copied as it is now. Reviewers see that copy, and only that copy is run.
    """
    ask = ProposeAsk(
        repository=repository,
        branch=branch or "",
        commit=commit or "",
        name=name or "",
        maintainer=maintainer or "",
    )
    made = out.link().do(apps.propose(ask))
    out.show(made, lambda: version_lines(made), lambda: [made.name])
    if out.for_people and made.state == "proposed":
        out.note(f"It waits for a reviewer: sublet app show {made.app}")


@command("list", "sublet app list")
def list_apps(out: Output) -> None:
    """List the apps that you can run, propose or review."""
    view = out.link().do(apps.apps())
    rows = [
        (
            item.name,
            f"{item.name}@{item.current}" if item.current else "",
            ", ".join(f"@{version.number} {version.state}" for version in item.versions[:3]),
            ": ".join(filter(None, (item.title, item.description.partition("\n")[0])))[:60],
        )
        for item in view.items
    ]
    head = ("APP", "RUNS", "VERSIONS", "WHAT")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (item.name for item in view.items))
    if not rows and out.for_people:
        out.note("There are no apps for you yet. Propose one: sublet app propose REPOSITORY")


@command("maintainers", "sublet app maintainers")
def maintainers(out: Output) -> None:
    """List the operator's generic images for code that has no image of its own.

    A kind says what is run of a repository without a manifest: `jupyter` its only notebook, `python` main.py or
    entry.py.
    """
    view = out.link().do(apps.maintainers())
    rows = [
        (item.name, item.kind, item.image, ", ".join(item.systems) or "anywhere", ", ".join(item.apps))
        for item in view.items
    ]
    head = ("MAINTAINER", "KIND", "IMAGE", "WHERE", "APPS")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (item.name for item in view.items))
    if not rows and out.for_people:
        out.note("There are none here: an app has to name its own image.")


@command("show", "sublet app show flood", "sublet app show flood@2")
@click.argument("app")
def show(out: Output, app: str) -> None:
    """Show an app with its versions, or one version."""
    name, number = split_version(app)
    view, now = out.link().do(apps.app(name)), datetime.now(UTC)
    if number is not None:
        chosen = next((version for version in view.versions if version.number == number), None)
        if chosen is None:
            raise click.UsageError(f"There is no version {app}.")
        out.show(chosen, lambda: version_lines(chosen), lambda: [chosen.name])
        return
    rows = [
        (
            version.name,
            version.state,
            version.commit[:SHORT],
            version.proposed_by,
            moment(version.proposed, now),
            version.why,
        )
        for version in view.versions
    ]
    facts = [
        ("app", view.name),
        *([("title", view.title)] if view.title else []),
        ("what", view.description),
        ("repository", view.repository),
        ("owner", view.person),
        ("runs", f"{view.name}@{view.current}" if view.current else "nothing is approved"),
    ]
    head = ("VERSION", "STATE", "COMMIT", "BY", "PROPOSED", "WHY")
    out.show(view, lambda: [*pairs(facts), "", *table(head, rows)], lambda: (version.name for version in view.versions))


@command("check-upstream", "sublet app check-upstream flood@2")
@click.argument("version")
def check_upstream(out: Output, version: str) -> None:
    """Check whether a version's branch has new commits or was rewritten. The approved version doesn't change."""
    link = out.link()
    name, number = find_number(link, version)
    state = link.do(apps.upstream(name, number))
    lines = pairs([("version", state.version), ("commit", state.commit), ("now", state.tip), ("upstream", state.words)])
    out.show(state, lambda: lines, lambda: [state.words])
