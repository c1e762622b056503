"""Conversions of apps to views."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.apps.model.app import MOST_SHOWN, App, Change, Version, VersionState, text_of
from sublet.apps.model.tree import TreeFile
from sublet.apps.views.apps import AppView, ChangeView, FileView, VersionView

SAME = (
    *("name", "app", "number", "id", "repository", "branch", "commit", "tree", "manifest_hash", "image", "digest"),
    *("proposed", "proposed_by", "author", "written", "subject", "findings", "decided", "decided_by", "why"),
)


def version_view(version: Version) -> VersionView:
    """Return a version as its view."""
    said = {name: getattr(version, name) for name in SAME}
    return VersionView(state=version.state.value, manifest=dict(version.manifest), **said)


def app_view(app: App, versions: Sequence[Version]) -> AppView:
    """Return an app with its visible versions as a view."""
    current = next((version for version in versions if version.state is VersionState.APPROVED), None)
    shown = current or (versions[0] if versions else None)
    return AppView(
        name=app.name,
        person=app.person,
        repository=app.repository,
        created=app.created,
        current=current.number if current else None,
        title=str(shown.manifest.get("title", "")) if shown else "",
        description=str(shown.manifest.get("description", "")) if shown else "",
        versions=tuple(map(version_view, versions)),
    )


def file_view(file: TreeFile) -> FileView:
    """Return a file as its view, as far as it is text."""
    text = text_of(file)
    return FileView(
        path=file.path,
        size=len(file.content),
        executable=file.executable,
        binary=text is None and not file.link,
        link=file.link,
        text=(text or "")[:MOST_SHOWN],
        cut=len(text or "") > MOST_SHOWN,
    )


def change_view(change: Change) -> ChangeView:
    """Return a change of a file as its view."""
    return ChangeView(path=change.path, how=change.how, diff=change.diff)
