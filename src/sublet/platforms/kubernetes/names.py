"""The names and labels of a session's objects in a cluster."""

from __future__ import annotations

import re
from hashlib import sha256

PREFIX = "sublet-"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LONGEST = 56  # characters of a Job's name: its pods' names have six more, and a label holds 63
SESSION, OWNER = "sublet.science/session", "sublet.science/owner"
MANAGED = "app.kubernetes.io/managed-by"
KEY, TIME, PERSON, TITLE = (f"sublet.science/{word}" for word in ("key", "seconds", "person", "name"))
INDEX = "batch.kubernetes.io/job-completion-index"  # the annotation with a pod's number in its Job
MAIN, KEEPER, STAGE = "main", "keeper", "stage"  # the containers of a pod


def name_of(key: str) -> str:
    """Return the name of a session's Job and Secret: its key, if that is a valid name, else a digest of it."""
    name = f"{PREFIX}{key}"
    if len(name) <= LONGEST and NAME.fullmatch(name):
        return name
    return f"{PREFIX}{sha256(key.encode()).hexdigest()[:40]}"


def first_name_of(key: str) -> str:
    """Return the name of the Secret with the address of the first of several pods, for an image's own entrypoint."""
    return f"{name_of(key)}-first"


def labels_of(key: str, owner: str) -> dict[str, str]:
    """Return the labels that identify a session's objects, and those of its service."""
    return {MANAGED: "sublet", OWNER: owner, SESSION: label_of(key)}


def label_of(key: str) -> str:
    """Return a key as the value of a label; a key that is too long is replaced by its digest."""
    return key if len(key) <= 63 else sha256(key.encode()).hexdigest()[:40]


def select(owner: str) -> str:
    """Return the selector of all objects of a service in a cluster."""
    return f"{MANAGED}=sublet,{OWNER}={owner}"
