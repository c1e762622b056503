"""Translates between CyberGIS-Compute's clients (version 2) and Sublet: jobs, events, folders, amounts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sublet.apps.model.draft import Draft
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.events import Event, EventKind
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.session import Session
from sublet.kernel.errors import BadRequest
from sublet.kernel.views import instant_text

SETTABLE = ("param", "env", "slurm", "localExecutableFolder", "localDataFolder", "name")
MAINTAINER = "community_contribution"
FIRST = "hello_world"  # the app that their form opens by default
# Sublet's events by the names that old clients know. A session has many more states; the last two end their loops.
EVENTS = {
    EventKind.ACCEPTED: "JOB_QUEUED",
    EventKind.WAITING: "JOB_REGISTERED",
    EventKind.PREPARING: "SLURM_UPLOAD_EXECUTABLE",
    EventKind.SUBMITTED: "SLURM_SUBMIT_SUCCESS",
    EventKind.RUNNING: "JOB_INIT",
    EventKind.AVAILABLE: "JOB_INIT",
    EventKind.LOST: "JOB_RETRY",
    EventKind.PAUSED: "JOB_PAUSED",
    EventKind.RESUMED: "JOB_RESUMED",
    EventKind.COMPLETED: "JOB_ENDED",
    EventKind.FAILED: "JOB_FAILED",
    EventKind.CANCELLED: "JOB_FAILED",
    EventKind.EXPIRED: "JOB_FAILED",
}
# Their Slurm settings → an app's resources.
SLURM = {
    "num_of_node": "nodes",
    "num_of_task": "tasks",
    "cpu_per_task": "cores",
    "memory": "memory",
    "memory_per_cpu": "memory_per_core",
    "memory_per_gpu": "memory_per_gpu",
    "gpus": "gpus_in_all",
    "gpus_per_node": "gpus",
    "gpus_per_task": "gpus_per_task",
    "time": "time",
    "gpu_per_task": "gpus_per_task",  # the roadmap's spelling
}
OPTIONS = {"partition": "queue"}  # their Slurm settings → scheduler options
CODE = "-code"  # suffix of a session's id for its code folder, which can only be renamed
MAIL = ("mail_user", "mail_type")  # sent by their forms beside Slurm's settings
MAILED = {"BEGIN": "started", "END": "ended", "FAIL": "failed", "ALL": "ended"}
UNIT = {"G": "GiB", "GB": "GiB", "M": "MiB", "MB": "MiB", "K": "KiB", "KB": "KiB", "T": "TiB", "TB": "TiB"}


def secret_in(token: Any) -> str:
    """Return Sublet's token from an old client's `jupyterhubApiToken`: plain, or as base64 of `host@token`."""
    if not isinstance(token, str):
        return ""
    text = token.strip()
    try:
        whole = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return text
    host, at, secret = whole.rpartition("@")
    return secret if at and host else text


def find_same_name(wanted: str, names: Iterable[str]) -> str:
    """Return the app that an old client means, ignoring case, spaces, `-` and `_`; empty if there is none.

    Their form opens `hello_world`, which stands for the first app if none has this name.
    """
    there = sorted(names)
    same = [name for name in there if plain_letters(name) == plain_letters(wanted)]
    if wanted in there:
        return wanted
    return next(iter([*same, *(there if wanted == FIRST else [])]), "")


def list_once(forms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the apps by the names that old clients look for, so that `hello_world` exists, and only once."""
    first = find_same_name(FIRST, forms)
    if first and plain_letters(first) == plain_letters(FIRST):
        return {FIRST if name == first else name: form for name, form in forms.items()}
    return {**forms, FIRST: forms[first]} if first else dict(forms)


def plain_letters(name: str) -> str:
    """Normalize a name to its letters and digits, for comparison."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def event_of(event: Event) -> dict[str, Any]:
    """Return an event in CyberGIS' format."""
    return {
        "id": event.id,
        "jobId": event.session,
        "type": EVENTS.get(event.kind, event.kind.upper().replace(".", "_").replace("-", "_")),
        "message": event.detail or event.kind.fact,
        "createdAt": instant_text(event.time),
    }


def log_of(session: Session, text: str, at: datetime) -> dict[str, Any]:
    """Return output in CyberGIS' format, but not truncated to 500 characters."""
    return {"jobId": session.id, "message": text, "createdAt": instant_text(at)}


def job_of(
    draft: Draft,
    session: Session | None,
    events: Sequence[Event] = (),
    logs: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a job in CyberGIS' format."""
    fields = draft.fields
    over = session is not None and session.phase in OVER
    return {
        "id": draft.id,
        "userId": draft.person,
        "name": fields.get("name"),
        "maintainer": fields.get("maintainer") or MAINTAINER,
        "hpc": session.offer.platform if session else fields.get("hpc"),
        "param": fields.get("param") or {},
        "env": fields.get("env") or {},
        "slurm": fields.get("slurm") or {},
        "slurmId": (session.own_id if session else "") or None,
        "localExecutableFolder": fields.get("localExecutableFolder"),
        "localDataFolder": fields.get("localDataFolder"),
        "remoteExecutableFolder": folder_of(draft, session, CODE) if session else {},
        "remoteDataFolder": {},
        "remoteResultFolder": folder_of(draft, session) if session else {},
        "createdAt": instant_text(draft.created),
        "updatedAt": instant_text(draft.changed),
        "deletedAt": None,
        "queuedAt": instant_text(session.modified if not session.start else session.start) if session else None,
        "initializedAt": _time(session.started) if session else None,
        "finishedAt": _time(session.ended or session.modified) if session and over else None,
        "isFailed": bool(session and session.phase in OVER - {Phase.COMPLETED}),
        "session": session.id if session else None,
        "phase": session.phase.value if session else None,
        "end": end_sentence(session.end) if session and session.end else None,
        "events": [{**event_of(event), "jobId": draft.id} for event in events],
        "logs": [{**log, "jobId": draft.id} for log in logs],
    }


def folder_of(draft: Draft, session: Session, part: str = "") -> dict[str, Any]:
    """Return a folder of a job, with everything that their lists of folders show."""
    return {
        "id": f"{session.id}{part}",
        "name": draft.fields.get("name") or session.name,
        "hpc": session.offer.platform,
        "userId": draft.person,
        "isWritable": False,
        "createdAt": instant_text(draft.created),
        "updatedAt": instant_text(session.modified),
        "deletedAt": None,
    }


def _time(at: datetime | None) -> str | None:
    return instant_text(at) if at else None


def seed_of(draft: Draft) -> dict[str, Any]:
    """Return a draft as the document that `POST /v1/sessions` takes."""
    fields = draft.fields
    folder = fields.get("localExecutableFolder")
    if not isinstance(folder, Mapping) or folder.get("type") != "git" or not folder.get("gitId"):
        raise BadRequest(
            detail="localExecutableFolder has to be {type: git, gitId: NAME}, an app that was approved.",
            hint="GET …/git lists them.",
        )
    if fields.get("env"):
        raise BadRequest(
            detail="env is not taken: what an app reads are its parameters.",
            hint="Put it into `param`, or leave it out.",
        )
    return {
        "maintainer": fields.get("maintainer") or MAINTAINER,
        "hpc": fields.get("hpc") or "",
        "file": str(folder["gitId"]),
        "data_file": data_of(fields.get("localDataFolder")),
        "app": fields.get("param") or {},
        "slurm": _without_mail(fields.get("slurm") or {}),
        "name": fields.get("name") or "",
    }


def _without_mail(slurm: Any) -> Any:
    return {name: value for name, value in slurm.items() if name not in MAIL} if isinstance(slurm, Mapping) else slurm


def mail_of(draft: Draft) -> tuple[str, tuple[str, ...]]:
    """Return the address to notify and for which events; empty if the job doesn't ask for mail."""
    slurm = draft.fields.get("slurm")
    if not isinstance(slurm, Mapping):
        return "", ()
    to, kinds = (_texts(slurm.get(name)) for name in MAIL)
    events = dict.fromkeys(MAILED[kind.upper()] for kind in kinds if kind.upper() in MAILED)
    return next((address.strip() for address in to if address.strip()), ""), tuple(events)


def _texts(value: Any) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def data_of(folder: Any) -> dict[str, str]:
    """Return the location of an old client's data folder; a Globus folder becomes a globus: address."""
    if not folder or (isinstance(folder, Mapping) and folder.get("type") == "empty"):
        return {}
    if not isinstance(folder, Mapping):
        raise BadRequest(detail="localDataFolder has to be a map with a type.")
    kind = folder.get("type")
    if kind == "globus":
        return {"": f"globus://{folder.get('endpoint', '')}{folder.get('path', '')}"}
    if kind == "git":
        return {"": f"git:{folder.get('gitId', '')}"}
    location = folder.get("url") or folder.get("path") or folder.get("localPath") or ""
    return {"": str(location)}


def read_wanted(slurm: Any) -> dict[str, str | int]:
    """Convert their Slurm settings to an app's resources, each as text with its unit."""
    if not isinstance(slurm, Mapping):
        raise BadRequest(detail="slurm has to be a map of settings.")
    unknown = [name for name in slurm if name not in SLURM and name not in OPTIONS]
    if unknown:
        raise BadRequest(
            detail=f"slurm.{unknown[0]} is not taken.", hint=f"These are: {', '.join((*SLURM, *OPTIONS))}."
        )
    given = {name: value for name, value in slurm.items() if name in SLURM and value is not None}
    return {SLURM[name]: _amount(SLURM[name], value) for name, value in given.items()}


def read_options(slurm: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of their Slurm settings that are scheduler options."""
    return {OPTIONS[name]: value for name, value in slurm.items() if name in OPTIONS and value}


def _amount(name: str, value: Any) -> str | int:
    """Convert an amount: times without unit are minutes, as in sbatch; sizes without one are MiB, and 4GB are 4 GiB."""
    text = str(value).strip()
    if name == "time":
        minutes, colon, seconds = text.partition(":")
        if colon and minutes.isdigit() and seconds.isdigit():
            return f"{int(minutes) * 60 + int(seconds)}s"
        return f"{text}m" if text.isdigit() else text
    if name.startswith("memory"):
        number = text.rstrip("BbGgMmKkTt")
        unit = text[len(number) :].upper()
        return f"{number}{UNIT.get(unit, unit or 'MiB')}"
    return int(text) if text.isdigit() else text
