"""The settings that all batch systems behind SSH have in common."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from sublet.platforms.batch.fields import Name, PilotLines
from sublet.platforms.batch.transfers import TransferSettings
from sublet.platforms.port import Duration


class BatchSettings(TransferSettings):
    """What a person or an operator says about a cluster."""

    queue: Name = Field(default="", description="The queue, or partition, to use; empty: each that fits is asked.")
    queues: dict[str, dict[str, Name]] = Field(
        default_factory=dict, description="Queues as the centre calls them: name → the partition, the qos, or both."
    )
    project: Name = Field(default="", description="The account that pays.")
    constraint: Name = Field(default="", description="Features that nodes must have.")
    refuses: tuple[str, ...] = Field(default=(), description="Options that the site refuses, such as `mem`.")
    pilot: PilotLines = Field(
        default=(),
        description="Lines of HTCondor's configuration for pilots there, as `STARTER_DEBUG = D_FULLDEBUG`; pilots fetch"
        " them, also while they run. What decides whose jobs run, and who commands them, is refused.",
    )
    path: tuple[str, ...] = Field(
        default=(), description="Directories that tools are looked for in first, also by jobs; `~/` is the home there."
    )
    tool_modules: dict[str, str] = Field(
        default_factory=dict, description="Tools that are in a module, loaded by jobs that use them: name → module."
    )
    site_file: str = Field(
        default="/etc/sublet/site", description="The site's own file that lowers polling and limits; plain text."
    )
    modules: tuple[str, ...] = Field(default=(), description="Modules to load, for finding tools and in every job.")
    directory: str = Field(
        default=".sublet", description="Where sessions are kept there: below the home directory, or `$SCRATCH/sublet`."
    )
    scratch: str = Field(default="", description="A node's own disk, as `/scratch/{user}/job_{job}`; empty: TMPDIR.")
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    poll: Duration = Field(
        default=timedelta(seconds=30), ge=timedelta(0), description="The shortest time between two polls of the queue."
    )
    look: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="The shortest time between two polls of job records."
    )
    calls: float = Field(
        default=2,
        gt=0,
        description="How many times a second the scheduler is called in the long run; 20 at once, or as it allows.",
    )
    patience: Duration = Field(
        default=timedelta(seconds=30),
        description="How long a job's own record is waited for when the queue says it ended.",
    )
    unused: Duration = Field(
        default=timedelta(days=7), description="How long a shared file, such as an image, stays there with no session."
    )
    pulls: bool = Field(
        default=True,
        description="Whether Apptainer on the login host may fetch images of registries, else they are sent, and make "
        "images of archives that are sent, or whether these may be unpacked there, else sessions do it.",
    )
    parts: int = Field(
        default=20, ge=1, le=1000, description="The most jobs of an array that one bag is cut into; 1: no arrays."
    )
    mounts: dict[str, str] = Field(
        default_factory=dict, description="What this machine sees of its file systems: path there → path here."
    )
    fresh: Duration = Field(default=timedelta(minutes=5), description="How long a survey is good for.")
