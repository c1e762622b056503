"""Someone at `ap` with an annex that is up, and a directory in which they submit HTCondor jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sublet.annexes.calls import annexes, jobs
from tests.access_points import Person

SMALL = "request_memory = 16M\nrequest_disk = 1M\ntransfer_executable = false\n"
NAME = "runner"


class Worker:
    """Someone who works in a directory of their own at `ap`."""

    def __init__(self, person: Person) -> None:
        self.person, self.place = person, person.file("work")
        person.did("mkdir", "-p", "work")

    def has(self, name: str, text: str) -> str:
        """Write a file there."""
        (self.place / name).write_text(text)
        return name

    def runs(self, *words: str, **more: str) -> str:
        """What a program prints there that has to succeed."""
        return self.person.did("env", "-C", "work", *words, **more)

    def types(self, *words: str, **more: str) -> str:
        """What a command line of Sublet prints there."""
        return self.runs("sublet", *words, **more)

    def submits(self, name: str, annex: str = NAME, *own: str, **more: str) -> str:
        """Submit a file for an annex; its cluster."""
        said = self.types("job", "submit", name, "--annex", annex, "--json", *(("--", *own) if own else ()), **more)
        return str(json.loads(said)["clusters"][0])

    def condor(self, *words: str) -> str:
        """What one of HTCondor's own tools prints there."""
        return self.runs(*words, CONDOR_CONFIG=self.person.owned)

    def explained(self, job: str) -> str:
        """Why a job is where it is."""
        return self.types("job", "explain", job)

    def waits_for(self, job: str, word: str = "completed") -> None:
        """Wait until a job has come to this."""
        client = self.person.client()
        self.person.site.wait(lambda: client.do(jobs.explain(job)).job.state == word, 60)

    def leased(self, annex: str) -> bool:
        """Whether an annex has leases."""
        return bool(self.person.client().do(annexes.annex(annex)).leases)


@pytest.fixture(scope="session")
def worker(person: Person) -> Iterator[Worker]:
    """Someone with an annex that is up, shared by the tests of this worker."""
    details = ("--nodes", "1", "--cores", "2", "--memory", "1GiB", "--lifetime", "20m", "--idle", "20m")
    person.typed("annex", "create", NAME, "--system", person.site.name, *details, "--yes", "--wait")
    yield Worker(person)
    person.types("annex", "shutdown", NAME)
