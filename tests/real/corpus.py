"""Submit files as people write them (`tests/corpus`), all at once on one annex, and what has to come of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from sublet.annexes.calls import jobs
from tests.access_points import Person

FILES = Path(__file__).parents[1] / "corpus"
PREPARE = """
ln -sf ../words.txt linked/name
python3 -m venv --without-pip venv
echo 'WORD = "a module of its own"' >venv/lib/$(ls venv/lib)/site-packages/tool.py
cp -r venv copied
rm copied/lib64
head -c 17M /dev/zero >built.dat
"""
SUBMIT = 'for file in *.sub; do echo "$file $(condor_submit -terse "$file" | head -n 1)"; done'
LARGE = 17 << 20  # bytes from which on, and a little more, an input is brought once for all jobs
NOWHERE = "nowhere"  # an annex without nodes
HELD = {
    "venv.sub": "Transfer of symlinks to directories is not supported",
    "unstartable.sub": "Failed to execute 'unstartable.sh': Exec format error",
}
SAID: Mapping[str, str] = {
    "stdin.out": "some words\n",
    "environment.out": "1/two words/it's/from the shell/1\n",
    "runs/0/sum.out": "sum 30\n",
    "runs/1/sum.out": "sum 100\n",
    "matching.a.out": "table a\nsum 6\n",
    "matching.b.out": "table b\nsum 6\n",
    "scratch.result": "40000000\n",
    "made/one": "table\n",
    "odd.out": "some words\ndeep\n",
    "left.txt": "made\n",
    "copied.out": "a module of its own\n",
    "edited.out": "second draft\n",
    "rebuilt.out": f"second{LARGE}\n",
    "retried.out": "tried\n",
    "together.out": "deep\n1 1\n1\nwrong\n",
    **{f"plain.{n}.out": f'<it\'s a test><"quoted"><{n}> on NODE\n' for n in range(2)},
    **{f"factory.{n}.out": f"<factory><{n}> on NODE\n" for n in range(5)},
}


class Corpus:
    """All of it, in a directory of someone who has an annex."""

    def __init__(self, person: Person, annex: str, condor: Callable[..., str]) -> None:
        """`condor` runs one of HTCondor's tools as them."""
        self.person, self.annex, self.condor, self.place = person, annex, condor, person.file("corpus")
        self.clusters: dict[str, str] = {}

    def submit(self) -> None:
        """Submit every file by HTCondor's own tool, then mark all of them for the annex."""
        shutil.copytree(FILES, self.place)
        owner = Path(self.person.place).stat().st_uid
        for place, directories, files in os.walk(self.place):
            for name in ("", *directories, *files):
                shutil.chown(Path(place, name), owner, owner)
        self._types("sh", "-ec", PREPARE)
        said = self._types("env", "CORPUS_WORD=from the shell", "sh", "-ec", SUBMIT)
        self.clusters = {name: first.partition(".")[0] for name, first, *_ in map(str.split, said.splitlines())}
        assert set(self.clusters) == {file.name for file in FILES.glob("*.sub")}, said
        waits = self.clusters["moved.sub"]
        self.person.typed("job", "mark", *set(self.clusters.values()) - {waits}, "--annex", self.annex)
        client = self.person.client()
        client.do(jobs.submitting(NOWHERE))  # from now on there is such a name
        client.do(jobs.mark([waits], NOWHERE))
        (self.place / "draft.txt").write_text("second draft\n")
        self.condor("condor_release", self.clusters["edited.sub"])

    def _types(self, *words: str) -> str:
        return self.condor("env", "-C", "corpus", *words)

    def check(self) -> None:
        """Wait until nothing of it waits or runs, and compare what came of each."""
        self._rebuild_input()
        self._move_and_remove_factory()
        self._check_shared()
        self.person.site.wait(lambda: not self.active(), 180)
        held = self.condor("condor_q", "-af:j", "HoldReason", "-constraint", self._of_us("JobStatus == 5"))
        reasons = {id: why for id, _, why in (line.partition(" ") for line in held.splitlines())}
        wanted = {f"{self.clusters[name]}.0": why for name, why in HELD.items()}
        assert {id: wanted[id] in why for id, why in reasons.items()} == dict.fromkeys(wanted, True), held
        machine, node = self._read("machine.out").removeprefix("<").split("> on ")
        assert machine.partition(".")[0] == node.strip(), "$$(Machine) is the node that it runs on"
        nodes = {name: self._read(name).rpartition(" on ")[2] for name in SAID if "NODE" in SAID[name]}
        said = {name: text.replace("NODE\n", nodes.get(name, "")) for name, text in SAID.items()}
        assert {name: self._read(name) for name in said} == said
        assert set(nodes.values()) <= {f"c{number}\n" for number in range(1, 5)}
        variables = self._read("listed/environment")
        assert "A=two'  'words " in variables
        assert {"attempt=7", "OMP_NUM_THREADS=1"} <= set(variables.split()), variables
        self._check_records()
        self.condor("condor_rm", *(self.clusters[name] for name in HELD))
        shutil.rmtree(self.place)

    def _rebuild_input(self) -> None:
        """Build a large input anew when it was looked at, and maybe brought, already; then let its job go at once."""
        held = self.clusters["rebuilt.sub"]
        seen = ("condor_q", held, "-af", "SubletContent")
        self.person.site.wait(lambda: self.condor(*seen).strip() not in ("", "undefined"), 60)
        (self.place / "built.dat").write_bytes(b"second".ljust(LARGE, b"."))
        self.condor("condor_release", held)

    def _move_and_remove_factory(self) -> None:
        """Jobs that are made one after another are one thing: none of them is left behind, or made later."""
        cluster, client = self.clusters["moved.sub"], self.person.client()
        jobs_of = ("condor_q", cluster, "-af", "JobStatus")
        assert self.condor(*jobs_of).split() == ["1"]
        client.do(jobs.move([cluster], self.annex))
        self.person.site.wait(lambda: self.condor(*jobs_of).split() == ["2"], 60)
        client.do(jobs.remove([cluster]))
        factory = ("condor_q", "-factory", "-constraint", f"ClusterId == {cluster}", "-af", "ClusterId")
        self.person.site.wait(lambda: not self.condor(*jobs_of).split() and not self.condor(*factory).split(), 60)
        ended = self.condor("condor_history", cluster, "-af", "ProcId", "JobStatus").splitlines()
        assert ended == ["0 3"], f"the one that ran was removed, and no other was made: {ended}"

    def _check_shared(self) -> None:
        """A job that counts on a shared file system runs nowhere here, and it is said why."""
        cluster = self.clusters["shared.sub"]
        why = self.person.client().do(jobs.explain(cluster))
        assert "should_transfer_files = NO" in " ".join(why.sentences), why
        assert self.condor("condor_q", cluster, "-af", "JobStatus", "NumJobStarts").split() == ["1", "0"]
        self.condor("condor_rm", cluster)

    def _check_records(self) -> None:
        """What HTCondor remembers: each job ran once but that which was to be tried again; no scratch came home."""
        lines = self.condor(
            *("condor_history", "-constraint", self._of_us("JobStatus == 4")),
            *("-af", "ClusterId", "NumJobStarts", "ExitCode", "Project", "Urgency"),
        ).splitlines()
        of_retried = f"{self.clusters['retried.sub']} 2 3 corpus 7"
        assert of_retried in lines, lines
        assert {line.split(None, 1)[1] for line in lines if line != of_retried} == {"1 0 undefined undefined"}
        left = sorted(path.name for path in self.place.iterdir() if not (FILES / path.name).exists())
        assert not [name for name in left if name in ("large.tmp", "left.pipe", "condor_exec.exe", ".job.ad.out")], left

    def active(self) -> str:
        """The jobs that wait or run."""
        return self.condor("condor_q", "-af:j", "JobStatus", "-constraint", self._of_us("JobStatus != 5"))

    def _of_us(self, clause: str) -> str:
        clusters = " || ".join(f"ClusterId == {cluster}" for cluster in self.clusters.values())
        return f"({clusters}) && ({clause})"

    def _read(self, name: str) -> str:
        file = self.place / name
        return file.read_text() if file.exists() else "(it is not there)"
