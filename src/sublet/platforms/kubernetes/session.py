"""One session's directory on this machine: what is sent to its pod, and what comes back from it.

work/, data/, storage/    what was brought; after the end, what it left
submitted                 the uid of its Job, once the cluster has it;  pod: that of the pod in which it began
cancel                    who wants it stopped
end.json                  how it ended, once what it left is here
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from sublet.booking.model.job import Job
from sublet.platforms.kubernetes.kept import KeptInput, list_large
from sublet.platforms.kubernetes.states import Left, read_usage
from sublet.platforms.local.shim.watch import words_of
from sublet.platforms.packed_session import PackedSession

SMALL = 700_000  # bytes that a Secret has room for, beside our own
OWN = "own/"  # of an archive: what the pod wrote of its end


class PodSession(PackedSession):
    """A session's directory, and the notes on what the cluster has of it."""

    def lay_out(self, job: Job, output_limit: int) -> None:
        """Write what the program needs, and what has to be known of it later on."""
        self.make()
        self.write_program(dict(job.program.files))
        volumes = self.volumes(job.mounts)
        self.write_job(
            {
                "mounts": volumes,
                "connects": job.program.connects,
                "output_limit": output_limit,
                "prints_to_log": job.program.keeps_entrypoint,
                "writable": [mount.source for mount in job.mounts if not mount.read_only],
            }
        )

    def list_large(self) -> list[KeptInput]:
        """The files that can be kept for other sessions, too."""
        return list_large(self.root, (self.read("job.json") or {}).get("writable", ()))

    @property
    def prints_to_log(self) -> bool:
        """Whether an image's own entrypoint runs, whose output is its container's log alone."""
        return bool((self.read("job.json") or {}).get("prints_to_log"))

    def unpack(self, archive: Path) -> Left:
        """Put what came back in its place; what the pod wrote of the end."""
        brought = self.read("brought.json") or {}
        notes: dict[str, str] = {}
        with tarfile.open(archive, "r|") as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isreg() else None
                if member.name.startswith(OWN) or member.name in ("session/unstarted", "session/detail"):
                    notes[member.name.rpartition("/")[2]] = (
                        content.read(10_000).decode("utf-8", "replace") if content else ""
                    )
                else:
                    self.put_member(member, content, brought)
        self.remove_empty_parents()
        return read_left(notes)


def read_left(notes: dict[str, str]) -> Left:
    """What a pod wrote of the end of its session."""
    kind, _, why = notes.get("unstarted", "").partition("\n")
    code = notes.get("code", "").strip()
    return Left(
        code=int(code) if code.isdigit() else None,
        usage=read_usage(notes["times"], notes.get("peak", "")) if "times" in notes else None,
        is_over_time="time" in notes,
        killed=int(killed) if (killed := notes.get("killed", "").strip()).isdigit() else 0,
        unstarted=kind.strip(),
        detail=words_of(why) if kind else words_of(notes.get("detail", "")),
    )
