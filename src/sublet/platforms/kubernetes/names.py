"""What everything of a session is called in a cluster, and by which labels it is known."""

from __future__ import annotations

import re
from hashlib import sha256

PREFIX = "sublet-"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LONGEST = 56  # characters of a Job's name: its pods' have six more, and a label holds 63
SESSION, OWNER = "sublet.science/session", "sublet.science/owner"
MANAGED = "app.kubernetes.io/managed-by"
KEY, TIME, PERSON, TITLE = (f"sublet.science/{word}" for word in ("key", "seconds", "person", "name"))
INDEX = "batch.kubernetes.io/job-completion-index"  # the annotation of a pod that says which of a Job's it is
MAIN, KEEPER, STAGE = "main", "keeper", "stage"  # the containers of a pod


def name_of(key: str) -> str:
    """The name of a session's Job and Secret: its key, where that can be a name."""
    name = f"{PREFIX}{key}"
    if len(name) <= LONGEST and NAME.fullmatch(name):
        return name
    return f"{PREFIX}{sha256(key.encode()).hexdigest()[:40]}"


def first_name_of(key: str) -> str:
    """The name of the Secret that says where the first of several pods is, for an image's own entrypoint."""
    return f"{name_of(key)}-first"


def labels_of(key: str, owner: str) -> dict[str, str]:
    """What finds a session's objects, and those of its service."""
    return {MANAGED: "sublet", OWNER: owner, SESSION: label_of(key)}


def label_of(key: str) -> str:
    """A key as the value of a label; one that is too long is known by its digest."""
    return key if len(key) <= 63 else sha256(key.encode()).hexdigest()[:40]


def select(owner: str) -> str:
    """The selector of all that a service has in a cluster."""
    return f"{MANAGED}=sublet,{OWNER}={owner}"
