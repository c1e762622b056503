"""The guides to a gateway, one after the other: a real site, sshd, mail server, git server and registry."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.guides import run_guide
from tests.git_server import git_server
from tests.old_client import OldClient
from tests.real.images import docker_archive, oci_archive
from tests.registries import registry
from tests.serving import eventually
from tests.sites import Site
from tests.smtp import running_smtp

pytestmark = pytest.mark.engines
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# What a reader does by hand: opens the mail, and asks the centre.
PROGRAMS = {
    "mailed": """\
#!/bin/sh
tries=300
while [ "$tries" -gt 0 ]; do
    for mail in $(ls -t "$MAILS/$1"-* 2>/dev/null); do
        code=$(grep -oE '^ +[0-9]{4} [0-9]{4}' "$mail" | tr -d ' ')
        rm "$mail"
        [ -n "$code" ] && echo "$code" && exit 0
    done
    sleep 0.1
    tries=$((tries - 1))
done
exit 1
""",
    "sacct_at_the_centre": f"""\
#!/bin/sh
exec {sys.executable} {ROOT}/testbed/site exec "$NAME" ctl sacct -X -a -n -P --delimiter=' ' -o State,Comment
""",
    "numbers_at_the_centre": f"""\
#!/bin/sh
exec {sys.executable} {ROOT}/testbed/site exec "$NAME" ctl sacct -X -a -n -P --delimiter=' ' -o JobID,Comment
""",
}


class Reader:
    """Types both guides in one directory; what is exported stays so for the next command."""

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        """Nothing is typed yet."""
        self.place, self.directory, self.environment = place, place / "here", environment
        self.directory.mkdir()

    def shell(self, command: str) -> list[str]:
        """The words that type a command here, and remember what it exported."""
        kept = self.place / "exported"
        return ["bash", "-c", f'[ -f "{kept}" ] && . "{kept}"\n{command}\ndeclare -p SUBLET_HOME >"{kept}"']

    def types(self, command: str) -> str:
        """What a command says."""
        words = self.shell(command)
        return subprocess.run(words, env=self.environment, cwd=self.directory, capture_output=True, text=True).stdout

    def reads(self, guide: str) -> list[str]:
        """What differs."""
        return run_guide(ROOT / "docs" / "guides" / f"{guide}.md", self.directory, self.environment, self.shell)


@pytest.fixture
def reader(new_site: Callable[..., Site], tmp_path: Path) -> Iterator[Reader]:
    """Someone with all that the guides speak of."""
    site = new_site("--base", "box", "--accounts", "--nodes", "2")
    programs, mails = tmp_path / "bin", tmp_path / "mails"
    programs.mkdir()
    mails.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    with (
        running_smtp(keep=mails) as box,
        registry() as images,
        git_server(tmp_path / "git") as git,
        socket.socket() as free,
    ):
        for name in ("anna/hello", "bela/pi"):
            git.repository(name).git("config", "http.receivepack", "true")
        oci_archive(tmp_path / "image.tar", Entrypoint=None)
        docker_archive(tmp_path / "docker.tar", Entrypoint=None)
        free.bind(("127.0.0.1", 0))
        one = Reader(
            tmp_path,
            {
                "PATH": f"{programs}:{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": str(tmp_path),
                "PWD": str(tmp_path / "here"),
                "SITE": site.host,
                "NAME": site.name,
                "FINGERPRINT": site.facts["fingerprint"],
                "MAILS": str(mails),
                "SMTP": str(box.port),
                "GIT": git.url,
                "REGISTRY": images.address,
                "IMAGE": f"docker-archive:{tmp_path}/docker.tar",
                "DIGEST": images.push("geo/python", "3.12", tmp_path / "image.tar"),
                "PORT": str(free.getsockname()[1]),
                "GIT_AUTHOR_NAME": "Anna",
                "GIT_AUTHOR_EMAIL": "anna@illinois.edu",
                "GIT_COMMITTER_NAME": "Anna",
                "GIT_COMMITTER_EMAIL": "anna@illinois.edu",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "COLUMNS": "100",
                "TZ": "UTC",
                "SUBLET_POLL": "1s",
            },
        )
        free.close()
        (one.directory / "community.key").write_text(site.key.read_text())
        (one.directory / "community.key").chmod(0o600)
        try:
            yield one
        finally:
            for name in ("gateway", "bela"):
                home = {**one.environment, "SUBLET_HOME": str(one.directory / name), "SUBLET_URL": "own"}
                subprocess.run([str(BIN / "sublet"), "down"], env=home, capture_output=True, timeout=60)


@pytest.mark.parametrize("guides", [("gateway", "contribute-an-app")], ids=",".join)
def test_the_guides_to_a_gateway_show_what_their_commands_say(guides: tuple[str, ...], reader: Reader) -> None:
    for guide in guides:
        differences = reader.reads(guide)
        assert not differences, "\n\n".join(differences)
    job = run_by_old_client(reader)
    at_the_centre = reader.types(f"numbers_at_the_centre | grep session={job['session']}")
    assert job["slurmId"] == at_the_centre.split()[0], "a job has the number that the centre knows it by"


def run_by_old_client(reader: Reader) -> dict[str, Any]:
    """Run the guide's app with CyberGIS's own client; the job at its end."""
    client = OldClient(int(reader.environment["PORT"]), reader.types("sublet token -q").strip())
    where = f"/job/{client.asks('POST', '/job', hpc='keeling')['id']}"
    client.asks("PUT", where, localExecutableFolder={"type": "git", "gitId": "hello"}, param={"times": "2"})
    client.asks("POST", f"{where}/submit")
    seen = set()

    def ended() -> bool:
        job = client.asks("GET", where)
        seen.add(job["slurmId"])
        return bool(job["finishedAt"])

    eventually(ended, "the end of an old client's job", 120)
    job: dict[str, Any] = client.asks("GET", where)
    assert seen <= {None, job["slurmId"]}, "it stays"
    assert not job["isFailed"], job
    return job
