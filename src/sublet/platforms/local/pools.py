"""Storage pools of this machine besides its scratch: folders on other disks, in which sessions get parts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sublet.kernel.value_names import directory_name
from sublet.platforms.port import Memory
from sublet.platforms.sessiondir import remove_tree

SCRATCH = "scratch"  # the pool below SUBLET_HOME itself
OURS = "sublet-sessions"  # the folder in a pool that has one folder for each session


class PoolSettings(BaseModel):
    """A folder in which storage is booked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(description="A folder that exists, on the disk that is meant.")
    size: Memory = Field(ge=0, description="How much of it can be booked, as `2TiB`.")

    @field_validator("path")
    @classmethod
    def _exists(cls, path: Path) -> Path:
        if not (path.is_absolute() and path.is_dir()):
            raise ValueError(f"there is no folder {path}; name one that exists, from the root on")
        return path


def refuse_scratch(pools: dict[str, PoolSettings]) -> dict[str, PoolSettings]:
    """Raise ValueError if a pool has the name of the scratch that every machine has."""
    if SCRATCH in pools:
        raise ValueError(f"{SCRATCH} is there already, and its size is the setting `{SCRATCH}`; choose another name")
    return pools


def make_storage(pool: PoolSettings, key: str, link: Path) -> None:
    """Create a session's part of a pool, linked at `link` in the session's own directory."""
    folder = pool.path / OURS / key / link.name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(folder, target_is_directory=True)


def storage_path(root: Path, name: str) -> Path:
    """Return the path of the storage of this name in a session's directory."""
    return root / "storage" / directory_name(name)


def remove_storage(pools: Iterable[PoolSettings], key: str) -> None:
    """Remove a session's parts of these pools."""
    for pool in pools:
        folder = pool.path / OURS / key
        if folder.is_dir():
            remove_tree(folder)
