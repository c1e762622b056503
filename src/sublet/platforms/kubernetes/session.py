"""One session's directory on this machine: what is sent to its pod, and what comes back from it.

work/, data/, storage/    staged data; after the end, the results
submitted                 the uid of its Job, once the cluster has it;  pod: that of the pod in which it began
cancel                    who cancelled it
end.json                  how it ended, once its results are here
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from sublet.booking.model.job import Job
from sublet.platforms.kubernetes.kept import KeptInput, list_large
from sublet.platforms.kubernetes.manifests import count_pods
from sublet.platforms.kubernetes.states import Left, read_usage
from sublet.platforms.local.shim.watch import words_of
from sublet.platforms.packed_session import PackedSession
from sublet.platforms.sessiondir import OWN as OWN_FOLDER

SMALL = 700_000  # bytes that a Secret has room for, besides our own
OWN = "own/"  # in an archive: what the pod recorded of its end
WORK = "session/work"
NODES = "nodes"  # among the results: those of the nodes after the first
PRINTED = {"session/stdout": "out", "session/stderr": "err"}


class PodSession(PackedSession):
    """A session's local directory, and the notes on its objects in the cluster."""

    def lay_out(self, job: Job, output_limit: int) -> None:
        """Write the program's files, and what must be known of the session later."""
        self.make()
        self.write_program(dict(job.program.files))
        volumes = self.volumes(job.mounts)
        self.write_job(
            {
                "mounts": volumes,
                "connects": job.program.connects,
                "nodes": count_pods(job),
                "output_limit": output_limit,
                "prints_to_log": job.program.keeps_entrypoint,
                "writable": [mount.source for mount in job.mounts if not mount.read_only],
            }
        )

    def list_large(self) -> list[KeptInput]:
        """Return the files that can be kept for other sessions too."""
        return list_large(self.root, (self.read("job.json") or {}).get("writable", ()))

    @property
    def nodes(self) -> int:
        """In how many pods the session runs."""
        return int((self.read("job.json") or {}).get("nodes", 1))

    @property
    def prints_to_log(self) -> bool:
        """Whether an image's own entrypoint runs, whose output is only in its container's log."""
        return bool((self.read("job.json") or {}).get("prints_to_log"))

    def find_output(self, node: int) -> Path:
        """Return the file for the output of a node's program."""
        target = self.work / NODES / f"{node}.out" if node else self.root / "stdout"
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return target

    def unpack(self, archive: Path, node: int = 0) -> Left:
        """Unpack the results of the first node, or of another one in its own folder.

        Return what the pod recorded of its end.
        """
        brought = self.read("brought.json") or {}
        if node:
            brought = {f"{NODES}/{node}/{path}": seen for path, seen in brought.items()}
        notes: dict[str, str] = {}
        with tarfile.open(archive, "r|") as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isreg() else None
                if member.name.startswith(OWN) or member.name in ("session/unstarted", "session/detail"):
                    notes[member.name.rpartition("/")[2]] = (
                        content.read(10_000).decode("utf-8", "replace") if content else ""
                    )
                elif not node or move_to_node(member, node):
                    self.put_member(member, content, brought)
        self.remove_empty_parents()
        return read_left(notes)


def move_to_node(member: tarfile.TarInfo, node: int) -> bool:
    """Move a member of another node's archive to its place among the results; return False if it isn't a result."""
    if member.name in PRINTED:
        member.name = f"{WORK}/{NODES}/{node}.{PRINTED[member.name]}"
        return member.size > 0
    path = member.name.removeprefix(WORK).lstrip("/")
    member.name = f"{WORK}/{NODES}/{node}/{path}".rstrip("/")
    member.linkname = member.linkname.replace(f"{WORK}/", f"{WORK}/{NODES}/{node}/", 1)
    return bool(path) and path.partition("/")[0] != OWN_FOLDER


def read_left(notes: dict[str, str]) -> Left:
    """Read what a pod recorded of the end of its session."""
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
