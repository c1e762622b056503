"""Backup and restore: one private file with the database and the other files of SUBLET_HOME that a service needs.

Encrypted secrets stay encrypted: the master key is outside SUBLET_HOME, and isn't in the backup.
"""

from __future__ import annotations

import dataclasses
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, cast

from sublet.kernel.db.copies import DATABASE, CopyFailed, DatabaseCopy, copy_of
from sublet.kernel.db.moves import Moves
from sublet.kernel.db.record import SQLITE, DatabaseRecord, write_record
from sublet.kernel.errors import NotBackedUp, NotRestored
from sublet.kernel.home import Home

FORMAT = 1
MANIFEST = "manifest.json"
# Temporary files of services and sessions, files that can be fetched again, and the database, which has its own copy.
LEFT_OUT = frozenset(
    {"run", "logs", "platforms", "fetching", "htcondor", "splits", "ap", "backups", "database.json"}
    | {"sublet.db", "sublet.db-wal", "sublet.db-shm", "sublet.db-journal", "pilots/releases"}
)
ASIDE = "replaced-"
STAGING = ".restoring-"
UNREADABLE = (
    EOFError,
    ValueError,
    TypeError,
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    gzip.BadGzipFile,
    zlib.error,
)
STAYS = frozenset({"run", "logs"})  # these don't mean that a home is in use
UNTOUCHED = frozenset({"platforms", "ap", "htcondor", "backups"})  # sessions' files, and others that aren't in backups


@dataclass(frozen=True, kw_only=True)
class BackupManifest:
    """A description of a backup's contents."""

    format: int = FORMAT
    sublet: str  # the version that made it
    created: str
    database: str  # sqlite or postgresql
    events: int = 0  # ever recorded
    sessions: int = 0
    files: dict[str, str] = field(default_factory=dict)  # name → SHA-256


def make_backup(home: Home, database: str, to: Path, version: str, config: Path | None = None) -> BackupManifest:
    """Write a backup; the service may be running. `config` is a settings file outside SUBLET_HOME."""
    if to.exists():
        raise NotBackedUp(why=f"{to} is there already", hint="Choose another name.")
    if not to.parent.is_dir():
        raise NotBackedUp(why=f"there is no directory {to.parent}", hint=f"Make it first: mkdir -p {to.parent}")
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=to.parent) as place:
            copied = copy_of(database)
            copied.save(Path(place) / DATABASE)
            counts = copied.count(Path(place) / DATABASE)._asdict()
            named = {DATABASE: Path(place) / DATABASE, **dict(_files(Path(home.root)))}
            if config:
                named["config.toml"] = config
            files = {name: _digest(path) for name, path in named.items()}
            made = _now()
            manifest = BackupManifest(sublet=version, created=made, database=copied.kind, files=files, **counts)
            part = Path(place) / "backup.tar.gz"
            _pack(part, named, manifest)
            os.link(part, to)  # unlike a rename, it never replaces a file
    except CopyFailed as error:
        raise NotBackedUp(why=error.why, hint=error.hint) from error
    except OSError as error:
        raise NotBackedUp(why=f"{error.filename or to}: {error.strerror}") from error
    return manifest


def restore_backup(
    home: Home, find_database: Callable[[Path | None], str], file: Path, *, replace: bool = False
) -> tuple[BackupManifest, str]:
    """Restore a backup, completely or not at all; return its manifest and where the replaced files are kept.

    `find_database` returns the database's address by the settings in the backup, if it has any. A plain copy of a
    SQLite database, such as the one made before an upgrade, replaces only the database.
    """
    with _hold_stopped(home, file):
        root = Path(home.root)
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=root))
        try:
            is_copy = _is_sqlite(file)
            manifest = _take_copy(file, staging) if is_copy else _unpack(file, staging)
            settings = staging / "sublet.toml"
            copied = copy_of(find_database(settings if settings.exists() else None))
            if copied.kind != manifest.database:
                why = f"it is of a {manifest.database} database, and the settings name a {copied.kind} one"
                raise NotRestored(file=file, why=why, hint="Use the settings of the service that it was made of.")
            copied.check(staging / DATABASE)
            manifest = dataclasses.replace(manifest, **copied.count(staging / DATABASE)._asdict())
            write_record(str(staging), DatabaseRecord(copied.address, manifest.events))
            there = [] if is_copy else _entries(root)
            _check_unused(root, there, copied, file, replace=replace)
            aside = _replace_all(root, there, staging, copied, file)
        except CopyFailed as error:
            raise NotRestored(file=file, why=error.why, hint=error.hint) from error
        except OSError as error:
            raise NotRestored(file=file, why=f"{error.filename or root}: {error.strerror}") from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return manifest, aside


def _entries(root: Path) -> list[str]:
    """Return the names of the files that show that a home is in use."""
    return sorted(entry.name for entry in root.iterdir() if entry.name not in STAYS and not _is_ours(entry.name))


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(16) == b"SQLite format 3\0"


def _take_copy(file: Path, staging: Path) -> BackupManifest:
    """Copy a plain SQLite database to the staging directory, and describe it like a backup of only a database."""
    to = staging / DATABASE
    shutil.copyfile(file, to)
    copied = copy_of(f"{SQLITE}{to}")
    copied.check(to)
    made = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return BackupManifest(sublet="", created=made, database=copied.kind, **copied.count(to)._asdict())


def _check_unused(root: Path, there: list[str], copied: DatabaseCopy, file: Path, *, replace: bool) -> None:
    """Raise NotRestored if the home or the database is in use, unless it may be replaced."""
    if not replace and (there or copied.is_used()):
        why = f"{root} is in use: it has {', '.join(there[:4]) or copied.address}"
        raise NotRestored(file=file, why=why, hint=f"With --replace it is moved to {root}/{ASIDE}…, and kept there.")


def _replace_all(root: Path, there: list[str], staging: Path, copied: DatabaseCopy, file: Path) -> str:
    """Put the unpacked files and database in place; return where the replaced files are, or "" if there were none."""
    aside, moves = root / f"{ASIDE}{_now().replace(':', '')}", Moves()
    aside.mkdir(mode=0o700)
    try:
        _swap(root, staging, aside, there, moves)
        copied.load(staging / DATABASE, aside, moves)
    except BaseException as error:
        if left := moves.undo():
            raise _describe_left(file, left, error) from error
        shutil.rmtree(aside, ignore_errors=True)
        raise
    if any(aside.iterdir()):
        return str(aside)
    aside.rmdir()
    return ""


def _describe_left(file: Path, left: list[Path], error: BaseException) -> NotRestored:
    """Return the error for a restore that failed and could not be undone completely."""
    hint = f"Not everything could be put back. Move these to where they were, by hand: {', '.join(map(str, left))}"
    return NotRestored(file=file, why=str(error), hint=hint)


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file that belongs in a backup, by its path below SUBLET_HOME."""
    for directory, folders, names in os.walk(root):
        below = Path(directory).relative_to(root)
        folders[:] = sorted(
            folder for folder in folders if str(below / folder) not in LEFT_OUT and not _is_ours(folder)
        )
        for name in sorted(names):
            path = Path(directory) / name
            if str(below / name) not in LEFT_OUT and path.is_file() and not path.is_symlink():
                yield str(below / name), path


def _is_ours(name: str) -> bool:
    return name.startswith((ASIDE, STAGING))


def _pack(part: Path, named: dict[str, Path], manifest: BackupManifest) -> None:
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as archive:
            for name, path in named.items():
                archive.add(path, name, recursive=False)
            text = json.dumps(asdict(manifest), indent=1).encode()
            entry = tarfile.TarInfo(MANIFEST)
            entry.size, entry.mode = len(text), 0o600
            with tempfile.TemporaryFile() as body:
                body.write(text)
                body.seek(0)
                archive.addfile(entry, body)
        file.flush()
        os.fsync(file.fileno())


def _write_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    """Write one file, accessible only to its owner.

    It doesn't use tarfile's extraction filters, which older versions of Python, such as Debian 12's, lack.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    body = archive.extractfile(entry)
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
        shutil.copyfileobj(cast(IO[bytes], body), made)
    archive.utime(entry, str(target))


def _unpack(file: Path, staging: Path) -> BackupManifest:
    """Unpack a backup, and check each file against its digest in the manifest."""
    try:
        with tarfile.open(file, "r:*") as archive:
            for entry in archive:
                name = PurePosixPath(entry.name)
                if not entry.isreg() or name.is_absolute() or ".." in name.parts:
                    raise NotRestored(file=file, why=f"{entry.name} does not belong in a backup")
                _write_entry(archive, entry, staging / name)
        manifest = BackupManifest(**json.loads((staging / MANIFEST).read_text()))
    except (tarfile.TarError, *UNREADABLE) as error:
        raise NotRestored(file=file, why="it is no backup of Sublet's, or it is cut off") from error
    if manifest.format > FORMAT:
        raise NotRestored(file=file, why=f"Sublet {manifest.sublet} made it", hint="Restore it with that version.")
    wrong = [name for name, digest in manifest.files.items() if _digest(staging / name) != digest]
    if wrong or DATABASE not in manifest.files:
        raise NotRestored(file=file, why=f"{(wrong or [DATABASE])[0]} in it is damaged", hint="Take another backup.")
    (staging / MANIFEST).unlink()
    return manifest


def _swap(root: Path, staging: Path, aside: Path, there: list[str], moves: Moves) -> None:
    """Move existing files aside, and unpacked ones in."""
    for name in there:
        if name not in UNTOUCHED:
            moves.move(root / name, aside / name)
    for entry in sorted(staging.iterdir()):
        if entry.name == DATABASE:
            continue
        if os.path.lexists(root / entry.name):
            moves.move(root / entry.name, aside / entry.name)
        moves.move(entry, root / entry.name)


@contextmanager
def _hold_stopped(home: Home, file: Path) -> Iterator[None]:
    """Hold the lock of the home's service, so that none is running or can start."""
    home.make()
    with open(f"{home.socket}.lock", "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Stop it first: sublet down"
            raise NotRestored(file=file, why=f"a service runs on {home.root}", hint=hint) from None
        yield


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
