"""Errors of apps: their repositories, manifests and reviews."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError
from sublet.kernel.errors.requests import NotFound


class AppRevoked(NotFound):
    """{version} was revoked on {when} and can't be run any more: {why}"""

    hint = "`sublet app list` shows what you can run now."


class BadManifest(SubletError):
    """The manifest can't be used: {problem}"""

    hint = "`sublet app check DIR` lists all problems, line by line; docs/manifest.md describes the format."
    status = 400
    exit_code = 2


class ImageUnknown(BadManifest):
    """The manifest names an image that isn't known here: {problem}"""

    hint = "Name one with --image, or in [images] of sublet.toml."


class OwnAppsOnly(SubletError):
    """A gateway runs only reviewed code."""

    hint = "Try it with your own service (`sublet app check DIR --run`, without SUBLET_URL), then propose it."
    status = 409


class NotReviewed(SubletError):
    """No app with the code of {repository} has been approved here."""

    hint = "`sublet app list` lists the apps that you may run; `sublet app propose {repository}` requests a review."
    status = 403


class BadRepository(SubletError):
    """{address} can't be proposed: {why}."""

    hint = "Write it as https://github.com/owner/name, or github://owner/name."
    status = 400
    exit_code = 2


class RepositoryUnreachable(SubletError):
    """{repository} can't be fetched: {why}"""

    hint = "Try the same address with `git ls-remote` where you are."
    status = 503
    exit_code = 3


class ReviewersOnly(SubletError):
    """Only a reviewer or an operator can do this."""

    hint = "An operator makes someone a reviewer: `sublet person role ADDRESS reviewer`."
    status = 403


class OwnProposal(SubletError):
    """You proposed {version} yourself: somebody else has to approve it."""

    hint = "Another reviewer can; an operator allows it for all with `own_review = true` in the section [apps]."
    status = 403


class NotAsReviewed(SubletError):
    """{version} is not what you reviewed: its code is {tree}."""

    hint = "Review it again, and name the tree that is shown: `sublet app review {version}`."
    status = 409


class NotDecidable(SubletError):
    """{version} is {state} and can't be {wanted}: {why}."""

    hint = "`sublet app show {version}` shows its state and its history."
    status = 409


class AppFromElsewhere(SubletError):
    """The app {name} already exists, from {repository}; this is another repository."""

    hint = "Give this one another name with --name. If the project has moved, say so with --name {name}."
    status = 409


class AppTaken(SubletError):
    """The app {name} already exists, and belongs to {owner}."""

    hint = "Its owner, or an operator, proposes its next version; give yours another name with --name."
    status = 409


class AppRefused(SubletError):
    """{version} can't be started: {why}"""

    hint = "`sublet app list` shows what can be run now."
    status = 409
