"""Files that many sessions share, sent to a system once and kept there by their content: `kept/sha256-…`.

A file is protected while a session that isn't over needs it, and is removed when it has been unused for a while. Its
layout is described in `shell/keep.sh`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files as resources
from pathlib import Path
from weakref import WeakValueDictionary

from sublet.booking.model.image import ImageArchive
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.scripts import script
from sublet.platforms.port import KeptFile, Progress
from sublet.platforms.recent import RecentKeys
from sublet.reach.port import Command, Outcome, Reach, as_is

INSIDE = "sublet.kinds.inside"  # the package with the program that reads image archives
PULLING = 1800  # seconds for a login host to pull and build an image
SIF_TOOLS = ("apptainer", "singularity")
DIRECTORY_TOOLS = ("charliecloud", "podman")  # those that run an image as a directory
UNSQUASHFS = "unsquashfs"
TRIED = 600.0  # seconds before the next try after a failure


class KeptFiles:
    """The shared files that one platform keeps on its system."""

    def __init__(self, failures: Failures, owner: str) -> None:
        """Start without knowledge; the system is asked each time."""
        self._failures, self._owner = failures, owner
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._no_way_to = RecentKeys(TRIED)  # registries from which pulling failed
        self._not_made = RecentKeys(TRIED)  # archives of which no image could be made

    def _turn(self, name: str) -> asyncio.Lock:
        """Return the lock of one file, which exists while someone uses it."""
        return self._turns.setdefault(name, asyncio.Lock())

    async def keep(self, reach: Reach, root: str, file: Path, digest: str, user: str, progress: Progress) -> str:
        """Send a file unless it is kept already, record the session that needs it, and return its path there."""
        before = _state_of(file)
        actual = await asyncio.to_thread(digest_of, file)
        if digest and digest != actual:
            why = f"{file.name} is not the file that was meant: its digest is {actual}, and {digest} was expected"
            raise PlatformRefused(
                platform=self._failures.platform, why=why, hint="Fetch it again, or correct the digest."
            )
        content = f"{root}/kept/{name_of(actual)}/content"
        async with self._turn(actual):  # a second caller then finds the file there
            if not await reach.run(to_keep(self._failures, root, name_of(actual), user, self._owner, file.name)):
                await reach.send(file, f"{content}.new", progress)
                if _state_of(file) != before:
                    why = f"{file.name} changed while it was sent"
                    raise PlatformRefused(
                        platform=self._failures.platform, why=why, hint="It is sent anew once it is complete."
                    )
                await reach.run(to_publish(self._failures, content))
                await reach.run(to_keep(self._failures, root, name_of(actual), user, self._owner))
        return content

    async def pull(self, reach: Reach, root: str, image: str, tool: str, user: str) -> str | None:
        """Have Apptainer there pull a registry's image, once, and return its path; None if it can't be pulled."""
        label = image.partition("://")[2]
        registry = label.partition("/")[0]
        name = name_image(image)
        if registry in self._no_way_to:
            return None
        async with self._turn(name):
            if await reach.run(to_keep(self._failures, root, name, user, self._owner, label)):
                return f"{root}/kept/{name}/content"
            pulled = await reach.run(Command(script("pull", root, name, user, tool, image), as_is, seconds=PULLING))
        if pulled.code:
            self._no_way_to.note(registry)
            return None
        return f"{root}/kept/{name}/content"

    async def make_for(
        self,
        reach: Reach,
        root: str,
        content: str,
        tool: str,
        tools: Mapping[str, str],
        describe: Callable[[], ImageArchive | None] | None,
    ) -> bool:
        """Have a kept image file converted to what `tool` runs, and return whether the result exists now."""
        path = tools.get(tool, "")
        if tool in SIF_TOOLS and path.startswith("/"):
            return await self.make_image(reach, root, content, path, describe)
        is_unpacked = tool in DIRECTORY_TOOLS
        return is_unpacked and await self.unpack_image(reach, root, content, tools.get(UNSQUASHFS, ""))

    async def make_image(
        self, reach: Reach, root: str, content: str, tool: str, describe: Callable[[], ImageArchive | None] | None
    ) -> bool:
        """Have Apptainer there build an image from a kept archive, once, beside it; return whether the image exists
        now.

        `describe` reads the archive here; if it is None, the archive is read there.
        """
        name = content.split("/")[-2]
        if content in self._not_made:
            return False
        async with self._turn(content):
            if await reach.run(to_look_for(content)):
                return True
            archive = await (asyncio.to_thread(describe) if describe else reach.run(to_describe(root, name)))
            if archive is None:
                return False  # the session reports what is wrong with it
            words = script("pull", root, name, "", tool, f"{archive.form}:{content}", *archive.digests)
            made = await reach.run(Command(words, as_is, seconds=PULLING))
        if made.code:
            self._not_made.note(content)
        return not made.code

    async def unpack_image(self, reach: Reach, root: str, content: str, unsquashfs: str) -> bool:
        """Have a kept image file unpacked there, once, beside it; return whether the result exists now."""
        if content in self._not_made:
            return False
        async with self._turn(content):
            if await reach.run(to_look_for(content, "unpacked/image.json")):
                return True
            words = script("unpack_image", root, content.split("/")[-2], unsquashfs)
            program = read_image_program("image_unpacker")
            unpacked = await reach.run(Command(words, as_is, program, seconds=PULLING))
        if unpacked.code:
            self._not_made.note(content)
        return not unpacked.code

    async def unpack_file(
        self, reach: Reach, root: str, path: str, tools: Mapping[str, str], user: str
    ) -> dict[str, str]:
        """Have an image file elsewhere on the system unpacked, once.

        Return link name → target for a session, or nothing.
        """
        link = await reach.run(Command(script("name_file", path), lambda outcome: outcome.text.strip()))
        name = f"image-at-{link}"
        content = f"{root}/kept/{name}/content"
        if not link or name in self._not_made:
            return {}
        async with self._turn(name):
            label = f"{path}, unpacked"
            if await reach.run(to_keep(self._failures, root, name, user, self._owner, label)):
                return {f"image-{link}": content}
            words = script("unpack_image", root, name, tools.get(UNSQUASHFS, ""), path)
            program = read_image_program("image_unpacker")
            unpacked = await reach.run(Command(words, as_is, program, seconds=PULLING))
        if unpacked.code:
            self._not_made.note(name)
            return {}
        return {f"image-{link}": content}

    async def list_kept(self, reach: Reach, root: str) -> Sequence[KeptFile]:
        """List the shared files on the system."""
        return await reach.run(to_kept(self._failures, root))

    async def let_go(self, reach: Reach, root: str, digests: Sequence[str], idle: timedelta) -> Sequence[str]:
        """Remove the kept files with these digests, or all, that no session has needed for `idle`.

        Return the removed ones.
        """
        return await reach.run(to_let_go(self._failures, root, idle, digests))


def name_of(digest: str) -> str:
    """Return the name of the directory for this digest."""
    return digest.replace(":", "-")


def name_image(location: str) -> str:
    """Return the name of the directory for an image pulled from a registry, `docker://NAME@sha256:…`."""
    return name_of(name_pulled(location.rpartition("@")[2]))


def name_pulled(digest: str) -> str:
    """Return the ID of a pulled image among the kept files, where other files have their digests."""
    return f"oci-{digest}"


def _state_of(file: Path) -> tuple[int, ...]:
    """Return what the file system says of a file, which differs if the content has changed."""
    seen = file.stat()
    return (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)


def read_name(name: str) -> str:
    """Return the digest that belongs to a directory's name."""
    return ":".join(name.rsplit("-", 1))


def digest_of(file: Path) -> str:
    """Return the digest of a file, as `sha256:…`."""
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def to_keep(failures: Failures, root: str, name: str, key: str, owner: str, label: str = "") -> Command[bool]:
    """Record that a session needs a shared file, with a label for people, and ask whether it is there."""
    words = script("keep", root, name, key, owner, *([" ".join(label.split())] if label else []))
    return Command(words, failures.reading(lambda answer: answer.strip() == "there"))


def to_look_for(content: str, made: str = "image.sif") -> Command[bool]:
    """Ask whether an image was already made from an archive, or unpacked."""
    words = ("sh", "-c", '[ -f "${1%/*}/$2" ]', "sh", content, made)
    return Command(words, lambda outcome: outcome.code == 0)


def to_describe(root: str, name: str) -> Command[ImageArchive | None]:
    """Read an archive there: its form and digests; None if it isn't an archive or there is no Python to read it."""
    return Command(
        script("describe", root, name), read_description, read_image_program("archive_reader"), seconds=PULLING
    )


def read_image_program(name: str) -> bytes:
    """Return a program that reads image files as a single file that can be sent alone."""
    texts = [resources(INSIDE).joinpath(file).read_text() for file in ("image_files.py", f"{name}.py")]
    lines = "\n".join(texts).splitlines()
    own = [line for line in lines if not line.startswith(("from __future__", "from sublet."))]
    return ("from __future__ import annotations\n" + "\n".join(own) + "\n").encode()


def read_description(outcome: Outcome) -> ImageArchive | None:
    """Read the output of `archive_reader.py`."""
    words = outcome.text.split()
    if outcome.code or not words:
        return None
    return ImageArchive("oci-archive" if words[0] == "oci-archive" else "docker-archive", tuple(words[1:]))


def to_publish(failures: Failures, content: str) -> Command[str]:
    """Rename a file that has arrived, so that it becomes the shared one."""
    move = 'chmod a-w "$1.new" && mv -f "$1.new" "$1"'
    return Command(("sh", "-c", move, "sh", content), failures.reading(str))


def to_kept(failures: Failures, root: str, *, unfinished: bool = False) -> Command[tuple[KeptFile, ...]]:
    """List the shared files, with `unfinished` also those that are still incomplete."""
    return Command(script("kept", root, *(["all"] if unfinished else [])), failures.reading(read_kept))


def to_let_go(failures: Failures, root: str, idle: timedelta, digests: Sequence[str]) -> Command[list[str]]:
    """Remove shared files that nobody has needed for `idle`; the answer is their digests."""
    words = script("let_go", root, str(round(idle.total_seconds())), *map(name_of, digests))
    return Command(words, failures.reading(lambda answer: [read_name(name) for name in answer.split()]), seconds=600)


def read_kept(text: str) -> tuple[KeptFile, ...]:
    """Read the output of `kept.sh`."""
    lines = ((line.partition("\t")) for line in text.splitlines())
    return tuple(_read_line(fields.split(), label) for fields, _, label in lines)


def _read_line(fields: Sequence[str], label: str) -> KeptFile:
    name, size, used, *users = fields
    return KeptFile(read_name(name), int(size), datetime.fromtimestamp(int(used), UTC), tuple(users), label)
