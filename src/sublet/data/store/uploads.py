"""Uploads and their files as rows; the files' content is on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.data.model.uploads import Upload, UploadedFile
from sublet.data.store.tables import upload_files, uploads
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain

U, F = uploads.c, upload_files.c
ALL = select(U.id, U.person, U.name, U.created, U.keep_until, U.files, U.size)
OF = ALL.where(U.person == bind("of_person")).order_by(U.name)
NAMED = ALL.where(U.person == bind("of_person"), U.name == bind("called"))
BY_ID = ALL.where(U.id == bind("of_id"))
OLD = ALL.where(U.keep_until <= bind("now")).order_by(U.keep_until).limit(bind("most"))
SIZE_OF = select(func.coalesce(func.sum(U.size), 0)).where(U.person == bind("of_person"))
SIZE = select(func.coalesce(func.sum(U.size), 0))
ADD = insert(uploads)
GROW = (
    update(uploads)
    .where(U.id == bind("of_id"))
    .values(files=U.files + bind("more_files"), size=U.size + bind("more_bytes"))
)
KEEP = update(uploads).where(U.id == bind("of_id")).values(keep_until=bind("until"))
REMOVE = delete(uploads).where(U.id == bind("of_id"))

FILES = select(F.id, F.upload, F.path, F.size, F.created, F.expires, F.whole, F.modified, F.executable)
FILES_OF = FILES.where(F.upload == bind("of_upload")).order_by(F.path, F.created)
FILE = FILES.where(F.id == bind("of_id"))
WHOLE_AT = FILES.where(F.upload == bind("of_upload"), F.path == bind("at"), F.whole == 1)
EXPIRED = FILES.where(F.whole == 0, F.expires <= bind("now")).order_by(F.expires).limit(bind("most"))
ADD_FILE = insert(upload_files)
TOUCH = update(upload_files).where(F.id == bind("of_id")).values(expires=bind("until"))
FINISH = update(upload_files).where(F.id == bind("of_id"), F.whole == 0).values(whole=1)
REMOVE_FILE = delete(upload_files).where(F.id == bind("of_id"))
REMOVE_FILES = delete(upload_files).where(F.upload == bind("of_upload"))
BATCH = 500  # ids per query


class UploadStore:
    """Uploads, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def of(self, person: str) -> list[Upload]:
        """Return a person's uploads, by name."""
        return [_read(row) for row in self._sql.rows(OF, {"of_person": plain(person)})]

    def find(self, person: str, name: str) -> Upload | None:
        """Return a person's upload by its name or id."""
        row = self._sql.row(NAMED, {"of_person": plain(person), "called": plain(name)})
        if row:
            return _read(row)
        by_id = self.get(name)
        return by_id if by_id and by_id.person == plain(person) else None

    def get(self, id: str) -> Upload | None:
        """Return an upload by id."""
        row = self._sql.row(BY_ID, {"of_id": plain(id)})
        return _read(row) if row else None

    def list_expired(self, now: datetime, most: int) -> list[Upload]:
        """Return some of the uploads whose retention time is over, oldest first."""
        return [_read(row) for row in self._sql.rows(OLD, {"now": micros(now), "most": most})]

    def count_bytes(self, person: str | None = None) -> int:
        """Return the total bytes of a person's uploads, or of everyone's."""
        return self._sql.number(SIZE_OF, {"of_person": plain(person)}) if person else self._sql.number(SIZE, {})

    def add(self, new: Upload) -> None:
        """Add an upload without files."""
        values = {"id": new.id, "person": plain(new.person), "name": plain(new.name), "files": 0, "size": 0}
        self._sql.change(ADD, {**values, "created": micros(new.created), "keep_until": micros(new.keep_until)})

    def keep(self, id: str, until: datetime) -> None:
        """Keep an upload until then."""
        self._sql.change(KEEP, {"of_id": id, "until": micros(until)})

    def remove(self, id: str) -> list[str]:
        """Remove an upload and its files; return the files' ids."""
        files = [file.id for file in self.files(id)]
        self._sql.change(REMOVE_FILES, {"of_upload": id})
        self._sql.change(REMOVE, {"of_id": id})
        return files

    def remove_all(self, person: str) -> list[str]:
        """Remove all uploads of a person; return the files' ids."""
        return [file for upload in self.of(person) for file in self.remove(upload.id)]

    def files(self, upload: str) -> list[UploadedFile]:
        """Return an upload's files, by path."""
        return [_read_file(row) for row in self._sql.rows(FILES_OF, {"of_upload": plain(upload)})]

    def file(self, id: str) -> UploadedFile | None:
        """Return a file by id."""
        row = self._sql.row(FILE, {"of_id": plain(id)})
        return _read_file(row) if row else None

    def list_expired_files(self, now: datetime, most: int) -> list[UploadedFile]:
        """Return some of the incomplete files that have expired, oldest first."""
        return [_read_file(row) for row in self._sql.rows(EXPIRED, {"now": micros(now), "most": most})]

    def find_obstacle(self, upload: str, path: str) -> str | None:
        """Return a file that conflicts with this path (a file where a folder is needed, or the reverse), or None."""
        parts = plain(path).split("/")
        above = ["/".join(parts[:number]) for number in range(1, len(parts))]
        in_the_way: ColumnElement[bool] = and_(F.path > f"{plain(path)}/", F.path < f"{plain(path)}0")
        query = select(F.path).where(F.upload == upload, or_(F.path.in_(above), in_the_way)).limit(1)
        rows = self._sql.select(query)
        return str(rows[0][0]) if rows else None

    def add_file(self, new: UploadedFile) -> None:
        """Add a file that is yet to be sent."""
        self._sql.change(
            ADD_FILE,
            {
                "id": new.id,
                "upload": new.upload,
                "path": plain(new.path),
                "size": new.size,
                "created": micros(new.created),
                "expires": micros(new.expires),
                "whole": int(new.is_whole),
                "modified": micros_or_none(new.modified),
                "executable": int(new.is_executable),
            },
        )
        self._grow(new.upload, 1, new.size)

    def touch_file(self, id: str, expires: datetime) -> None:
        """Postpone the expiry of an incomplete file that is being sent."""
        self._sql.change(TOUCH, {"of_id": id, "until": micros(expires)})

    def finish_file(self, file: UploadedFile) -> list[str]:
        """Mark a file as complete; return the ids of the files that it replaces at its path."""
        before = self._sql.rows(WHOLE_AT, {"of_upload": file.upload, "at": plain(file.path)})
        if not self._sql.change(FINISH, {"of_id": file.id}):
            return []
        old = [_read_file(row) for row in before]
        for other in old:
            self.remove_file(other)
        return [other.id for other in old]

    def remove_file(self, file: UploadedFile) -> bool:
        """Remove a file; return whether it was there."""
        gone = self._sql.change(REMOVE_FILE, {"of_id": file.id}) > 0
        if gone:
            self._grow(file.upload, -1, -file.size)
        return gone

    def find_known_files(self, ids: Collection[str]) -> set[str]:
        """Return which of these ids belong to files."""
        return {
            row[0] for some in _batches(sorted(ids)) for row in self._sql.select(select(F.id).where(F.id.in_(some)))
        }

    def _grow(self, upload: str, files: int, size: int) -> None:
        self._sql.change(GROW, {"of_id": upload, "more_files": files, "more_bytes": size})


def _batches(ids: list[str]) -> Iterator[list[str]]:
    return (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))


def _read(row: Row) -> Upload:
    id, person, name, created, keep_until, files, size = row
    return Upload(id, person, name, moment(created), moment(keep_until), files, size)


def _read_file(row: Row) -> UploadedFile:
    id, upload, path, size, created, expires, whole, modified, executable = row
    return UploadedFile(
        id,
        upload,
        path,
        size,
        moment(created),
        moment(expires),
        bool(whole),
        moment_or_none(modified),
        bool(executable),
    )
