"""A survey of a Slurm site as a service keeps it, for platforms that nobody is signed in to."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

NODE = "c{0}|compute|8|1:8:1|16000|(null)|idle\n"
QUEUE = (
    "PartitionName=compute Default=YES MaxNodes=4 MaxTime=12:00:00 MinNodes=0 Nodes=c[1-4] State=UP OverSubscribe=NO"
)


def keep_survey(home: Path, platform: str, as_of: datetime) -> None:
    """Put down what was seen of a site then: four nodes of eight cores in one queue."""
    directory = home / "platforms" / platform
    directory.mkdir(parents=True, exist_ok=True)
    said = {"nodes": "".join(NODE.format(number) for number in range(1, 5)), "queues": QUEUE, "tools": ""}
    (directory / "survey.json").write_text(json.dumps({"as_of": as_of.isoformat(), "said": said}))
