"""Apps that Ann proposes and Rae approves, on a gateway that trusts a git server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import serving
from tests.git_server import GitServer, Repository, program

ANN = Person("ann@example.org")
BOB = Person("bob@example.org")
REVIEWER = Person("rae@example.org", reviewer=True)
DIGEST = "sha256:" + "a" * 64
MANIFEST = f"""
name: Hello_World
image:
  location: docker://ghcr.io/ann/hello
  digest: {DIGEST}
stages:
  execution: sh hello.sh
resources:
  cores: {{min: 1, max: 4, default: 2}}
  time: {{min: 1m, max: 1h, default: 10m}}
"""


async def approved(service: Service, repository: Repository, name: str = "hello") -> str:
    """Propose and approve it; the tree."""
    version = await service.apps.proposing.propose(ANN, repository.url, name=name)
    return (await service.apps.reviewing.approve(version.name, REVIEWER, version.tree)).tree


def begun(git: GitServer) -> Repository:
    """A repository with an app in it."""
    made = git.repository(f"ann/{len(git.asked)}")
    made.commit({"sublet.yaml": MANIFEST, "hello.sh": program("echo hello\n")}, "Begin")
    return made


@asynccontextmanager
async def trusting(git: GitServer, home: Path, **settings: Any) -> AsyncIterator[Service]:
    """A gateway that trusts a git server."""
    apps = {"private": [f"{git.url}/*"]}
    generic = {"image": "docker://ghcr.io/sublet/python", "digest": DIGEST, "hpc": ["trial"]}
    maintainers = {"python": generic, "cybergisx": {**generic, "kind": "jupyter"}}
    async with serving(home, mode="gateway", apps=apps, maintainers=maintainers, **settings) as running:
        yield running
