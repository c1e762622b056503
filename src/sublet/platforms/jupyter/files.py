"""The files that are sent to a session's directory on a server before it starts, and fetched when it has ended."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sublet.kernel.errors import PlatformRefused
from sublet.kernel.streams import closing
from sublet.platforms.jupyter.server import ServerApi, ServerFile
from sublet.platforms.jupyter.session import JupyterSession
from sublet.platforms.sessiondir import OWN

UPLOADED = "uploaded.json"
SENT = ("data", "storage", "work")  # the parts of a session's directory that are sent
WORK = "work"


async def send_files(session: JupyterSession, api: ServerApi, leave: Sequence[str]) -> None:
    """Send staged files, except those in `leave`; after a crash they are sent again."""
    directory = api.directory(session.key)
    await api.make_folder(f"{directory}/{WORK}")
    modified: dict[str, str] = {}
    for name in SENT:
        for path, is_folder in await asyncio.to_thread(_walk, session.root / name, leave):
            below = str(path.relative_to(session.root))
            if is_folder:
                await api.make_folder(f"{directory}/{below}")
            else:
                modified[below] = await api.upload(path, f"{directory}/{below}")
    session.write(UPLOADED, json.dumps(modified).encode())


def _walk(top: Path, leave: Sequence[str]) -> list[tuple[Path, bool]]:
    """List everything below a directory, folders before their content.

    Links are followed, as data may be shared by them.
    """
    paths: list[tuple[Path, bool]] = []
    for folder, folders, names in os.walk(top, followlinks=True):
        folders[:] = sorted(name for name in folders if name != OWN and name not in leave)
        if Path(folder) != top or names:
            paths.append((Path(folder), True))
        paths += [(Path(folder, name), False) for name in sorted(names) if Path(folder, name).is_file()]
    return paths


async def collect_files(session: JupyterSession, api: ServerApi) -> None:
    """Fetch the results from the working directory there; files that were sent and haven't changed are kept."""
    directory = f"{api.directory(session.key)}/{WORK}"
    known: dict[str, str] = session.read(UPLOADED) or {}
    mounted = [mount["target"] for mount in session.read_job().get("mounts", ())]
    for file in await api.list_files(directory):
        if not is_left(file, known, mounted):
            continue
        target = session.inside(file.path)
        if file.is_folder:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        await _fetch(api, f"{directory}/{file.path}", target)


def is_left(file: ServerFile, known: dict[str, str], mounted: Sequence[str]) -> bool:
    """Whether a file is a result, and not one that was sent there."""
    below = PurePosixPath(file.path)
    if any(below.is_relative_to(target) for target in mounted) or below.parts[0] == OWN:
        return False
    return known.get(f"{WORK}/{file.path}") != file.modified


async def _fetch(api: ServerApi, path: str, target: Path) -> None:
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as file:
            async with closing(api.download(path)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(part.rename, target)
    except PlatformRefused:  # it is gone, or can't be read there, like a socket
        await asyncio.to_thread(part.unlink, missing_ok=True)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def list_links(job: dict[str, Any]) -> list[list[str]]:
    """Return the links in the working directory to data and storage: a path in it → a path beside it."""
    return [[mount["target"], mount["source"]] for mount in job.get("mounts", ())]
